"""Family ``dram_system``: a memory by itself, with its timing rules and its controller.

What it does with streams of requests can be simulated (``dse simulate --workload stream:...``),
and a main memory of another family takes its timing by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from arch import technology
from arch.dram_device import Controller, Currents, DramChannels, DramDevice
from arch.errors import InputError, Problem
from arch.families.dram_system_schema import CurrentsConfig, DramChannelsConfig, DramFamilyConfig
from arch.family import Family
from arch.load import load_architecture
from arch.registry import register_family
from arch.spec import PS_PER_S, ROLES, Architecture
from arch.timing import PARAMETERS


@register_family("dram_system")
class DramFamily(Family):
    schema = DramFamilyConfig

    def construct(self, checked: Any, data: Mapping[str, Any]) -> Architecture:
        config: DramFamilyConfig = checked
        ((name, channels),) = config.components.items()
        return Architecture(
            name=config.name,
            family="dram_system",
            description=config.description,
            clock_hz=round(PS_PER_S / channels.tCK),
            technology_nm=technology.MAX_NODE_NM,
            components=(_channels(name, config.name, channels),),
            document=data,
        )


def device_named(name_or_path: str) -> DramDevice:
    """The device of a shipped architecture of this family, or of a file, for use in a network."""
    try:
        architecture = load_architecture(name_or_path)
    except InputError as error:
        raise InputError([_of_timing(problem) for problem in error.problems]) from error
    (memory,) = architecture.memories[:1]
    if not isinstance(memory, DramChannels):
        message = (
            f"'{name_or_path}' is of family '{architecture.family}'; allowed family 'dram_system'"
        )
        raise InputError(Problem(message, where="timing"))
    _check_for_network(name_or_path, memory.device)
    return memory.device


def _check_for_network(name: str, device: DramDevice) -> None:
    controller = device.controller
    if (controller.page, controller.scheduler) != ("open", "fr_fcfs"):
        message = (
            f"'{name}' has page: {controller.page} and scheduler: {controller.scheduler}; allowed "
            "page: open with scheduler: fr_fcfs, which are the ones that the model of a memory "
            "inside a network has. The others can be simulated on the memory by itself: dse "
            f"simulate --arch {name} --workload stream:bytes=1MiB,pattern=sequential"
        )
        raise InputError(Problem(message, where="timing"))


def _of_timing(problem: Problem) -> Problem:
    where = ".".join(filter(None, ("timing", problem.where)))
    return replace(problem, where=where)


def _channels(name: str, device_name: str, config: DramChannelsConfig) -> DramChannels:
    device = _device(device_name, config)
    energy = _pj_per_byte(device, config)
    return DramChannels(
        name=name,
        size_bytes=device.size_bytes,
        roles=ROLES,
        read_bytes_per_s=device.peak_bytes_per_s,
        write_bytes_per_s=device.peak_bytes_per_s,
        shared_port=True,
        read_pj_per_byte=energy,
        write_pj_per_byte=energy,
        latency_ps=device.idle_latency_cycles("hit") * device.cycle_ps,
        device=device,
    )


def _pj_per_byte(device: DramDevice, config: DramChannelsConfig) -> float:
    if not isinstance(config.energy, str):
        return config.energy
    return technology.dram_pj_per_byte(str(config.type)).nominal if config.type else 0.0


def _device(name: str, config: DramChannelsConfig) -> DramDevice:
    return DramDevice(
        name=name,
        cycle_ps=config.tCK,
        channels=config.channels,
        ranks=config.ranks,
        bank_groups=config.bank_groups,
        banks_per_group=config.banks_per_group,
        rows=config.rows,
        row_bytes=config.row_size,
        burst_bytes=config.burst_size,
        row_and_column_bus=config.row_and_column_bus,
        pseudo_channels=config.pseudo_channels,
        parameters={parameter: getattr(config, parameter) for parameter in PARAMETERS},
        controller=Controller(
            address_map=tuple(config.address_map.split()),
            page=config.page,
            scheduler=config.scheduler,
            queue=config.queue,
            queue_depth=config.queue_depth,
            transaction_depth=config.transaction_depth,
            row_hit_limit=config.row_hit_limit,
            refresh=config.refresh,
            inject_per_cycle=config.inject_per_cycle,
        ),
        currents=_currents(config.currents) if config.currents else None,
        devices_per_rank=config.devices_per_rank,
    )


def _currents(config: CurrentsConfig) -> Currents:
    return Currents(
        vdd=config.VDD,
        idd0=config.IDD0,
        idd2n=config.IDD2N,
        idd3n=config.IDD3N,
        idd4r=config.IDD4R,
        idd4w=config.IDD4W,
        idd5b=config.IDD5B,
        i_beta=config.IDD0 if config.IBETA is None else config.IBETA,
        rho=config.RHO,
    )
