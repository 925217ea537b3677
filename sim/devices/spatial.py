"""Prices of the components of family ``spatial``."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from arch.families.spatial import Dram, PeArray, Registers, Sram, VectorUnit
from arch.spec import PS_PER_S, Compute, Fold, Intrinsic, Memory, NocLink
from mapper.cost import Price
from sim.prices import prices


@prices(Dram)
def dram(component: Dram) -> Price:
    return replace(_memory(component), device=component.device)


@prices(Sram)
def sram(component: Sram) -> Price:
    return replace(_memory(component), banks=component.banks)


@prices(Registers)
def registers(component: Registers) -> Price:
    return _memory(component)


@prices(NocLink)
def noc_link(component: NocLink) -> Price:
    """Each direction has wires of its own; ``count`` links are busy at once."""
    return Price(
        read_ps_per_bit=_ps_per_bit(component.bytes_per_s),
        write_ps_per_bit=_ps_per_bit(component.bytes_per_s),
        transit_ps=component.transit_ps,
        arbiter=component.arbiter,
        read_pj_per_bit=component.count * component.pj_per_byte / 8,
        write_pj_per_bit=component.count * component.pj_per_byte / 8,
    )


@prices(PeArray)
def pe_array(component: PeArray) -> Price:
    return _compute(component)


@prices(VectorUnit)
def vector_unit(component: VectorUnit) -> Price:
    return _compute(component)


def _memory(memory: Memory) -> Price:
    return Price(
        read_ps_per_bit=_ps_per_bit(memory.read_bytes_per_s),
        write_ps_per_bit=_ps_per_bit(memory.write_bytes_per_s),
        shared_port=memory.shared_port,
        latency_ps=memory.latency_ps,
        arbiter=memory.arbiter,
        read_pj_per_bit=memory.read_pj_per_byte / 8,
        write_pj_per_bit=memory.write_pj_per_byte / 8,
    )


def _ps_per_bit(bytes_per_s: int | None) -> Fraction:
    return Fraction(0) if bytes_per_s is None else Fraction(PS_PER_S, 8 * bytes_per_s)


def _compute(unit: Compute) -> Price:
    intrinsic = _only(unit)
    fold = unit.fold or Fold(role="", time_ps=0, turnaround_ps=0)
    return Price(
        fold_ps=fold.time_ps,
        turnaround_ps=fold.turnaround_ps,
        step_ps=intrinsic.interval_ps,
        latency_ps=intrinsic.latency_ps,
        operation_pj=intrinsic.energy_pj,
    )


def _only(unit: Compute) -> Intrinsic:
    """A price is one number per step, so the units of this family have one instruction each."""
    (intrinsic,) = unit.intrinsics
    return intrinsic
