"""How many mappings of a matrix product are priced per second, and are the prices right?

Two kinds of batches: mappings drawn independently of each other, and blocks of all combinations
of tilings. Making a batch and finding the best of it are part of the time. A sample of each kind
is lowered and priced one by one and compared.

    OMP_NUM_THREADS=1 python benchmarks/batch_throughput.py --device cpu
    python benchmarks/batch_throughput.py --device cuda
    python benchmarks/batch_throughput.py --device cuda --compiled
"""

from __future__ import annotations

import argparse
import itertools
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from arch.load import load_architecture
from arch.spec import Architecture
from mapper.batch import BatchCost, BatchModel, best_of
from mapper.batch_model import NUMPY, batch_model, combinations, torch_backend
from mapper.cost import InfeasibleError
from mapper.hierarchy import Execution, execution
from mapper.lower import lower_execution
from mapper.search import pricing
from mapper.search.coefficients import Coefficients
from mapper.search.space import StageOrder, stage_orders
from mapper.sums import Array
from mapper.workload.load import load_workload
from sim.analytical import estimate
from sim.lowered import Lowered
from sim.prices import price, price_all

SEED = 1
#: Batch sizes: on the CPU what fits its second-level cache, on a GPU what keeps it busy.
SIZES = {"cpu": (1 << 13, 1 << 14, 1 << 15), "cuda": (1 << 21, 1 << 22, 1 << 23, 1 << 25)}
CHECKED = 200

Rows = Sequence[Array]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One operator on one architecture, under the first order of stages."""

    run: Execution
    architecture: Architecture
    order: StageOrder
    tables: list[pricing.FloatArray]
    coefficients: Coefficients

    @property
    def sizes(self) -> list[int]:
        return [len(table) for table in self.tables]


def problem(arch: str, spec: str) -> Problem:
    architecture, workload = load_architecture(arch), load_workload(spec)
    run = execution(workload, workload.operators[0], architecture)
    order = next(stage_orders(run))
    tables = [
        order.factors(group, {group[0]: np.arange(len(order.tilings(group[0])))})
        for group in run.counts.groups
    ]
    coefficients = Coefficients(
        run=run, leakage_w=architecture.leakage_w, price=price, objective=pricing.EDP
    )
    return Problem(
        run=run, architecture=architecture, order=order, tables=tables, coefficients=coefficients
    )


@dataclass(frozen=True, kw_only=True)
class Device:
    """Where batches are made and priced, and how its time is taken."""

    label: str
    xp: ModuleType
    draw: Callable[[int, int], Array]
    count: Callable[[int, int], Array]
    clock: Callable[[], float]
    model: BatchModel
    costs: Callable[[Rows], BatchCost]


def on_cpu(given: Problem) -> Device:
    rng = np.random.default_rng(SEED)
    model = batch_model(given.order, given.coefficients.model(given.order), given.tables)
    return Device(
        label=f"{processor()}, 1 core, numpy {np.__version__}",
        xp=NUMPY.module,
        draw=lambda options, size: rng.integers(options, size=size),
        count=lambda first, last: np.arange(first, last),
        clock=time.process_time,
        model=model,
        costs=model.costs,
    )


def on_cuda(given: Problem) -> Device:
    import torch

    backend = torch_backend("cuda")
    generator = torch.Generator("cuda").manual_seed(SEED)

    def clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    model = batch_model(given.order, given.coefficients.model(given.order), given.tables, backend)
    return Device(
        label=f"{torch.cuda.get_device_name()}, torch {torch.__version__}",
        xp=torch,
        draw=lambda options, size: torch.randint(
            options, (size,), generator=generator, device="cuda"
        ),
        count=lambda first, last: torch.arange(first, last, device="cuda"),
        clock=clock,
        model=model,
        costs=model.costs,
    )


def fused(device: Device) -> Device:
    """With torch's compiler, which makes a few kernels of the whole cost."""
    import torch

    return replace(
        device,
        label=f"{device.label}, compiled",
        costs=torch.compile(device.model.costs, dynamic=False),
    )


def processor() -> str:
    """The CPU's name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def drawn(device: Device, sizes: Sequence[int], size: int) -> Iterator[Rows]:
    """Batches of independent mappings, for ever."""
    while True:
        yield [device.draw(options, size) for options in sizes]


def blocks(device: Device, sizes: Sequence[int], size: int) -> Iterator[Rows]:
    """All combinations of the last group's rows with some of the others', around and around."""
    first, middle, last = sizes
    rows = min(middle, max(1, size // last))
    inner = device.count(0, last)[None, None, :]
    starts = range(0, middle - rows + 1, rows)
    for a, b in itertools.cycle(itertools.product(range(first), starts)):
        yield [
            device.count(a, a + 1)[:, None, None],
            device.count(b, b + rows)[None, :, None],
            inner,
        ]


KINDS = {"independent": drawn, "combinations": blocks}


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Mappings per second, over the measured time."""

    mappings: int
    seconds: float


def measured(device: Device, batches: Iterator[Rows], seconds: float) -> Rate:
    for _ in range(3):
        reduced(device, next(batches))
    mappings = rounds = 0
    step = 1
    began = device.clock()
    while True:
        for _ in range(step):
            mappings += reduced(device, next(batches))
        rounds += step
        spent = device.clock() - began
        if spent > seconds:
            return Rate(mappings=mappings, seconds=spent)
        step = max(1, min(rounds, int(rounds * (seconds - spent) / spent)))


def reduced(device: Device, rows: Rows) -> int:
    """Price a batch and find its best; how many mappings that were."""
    costs = device.costs(rows)
    best_of(costs, "edp", device.xp)
    return int(np.prod(costs.latency_ps.shape))


def differences(given: Problem, device: Device, rows: Rows) -> int:
    """Of a sample, how many mappings have another price when lowered one by one."""
    costs = device.costs(rows)
    plain = [np.asarray(on_host(each)) for each in spelled_out(rows)]
    chosen = np.random.default_rng(SEED).integers(plain[0].size, size=CHECKED)
    latency, energy, broken = (
        np.asarray(on_host(values)).ravel()[chosen]
        for values in (costs.latency_ps, costs.energy_pj, costs.broken)
    )
    wrong = 0
    for i, at in enumerate(chosen):
        numbers = [int(each.ravel()[at]) for each in plain]
        wrong += not same(given, numbers, (latency[i], energy[i], broken[i]))
    return wrong


def on_host(values: Array) -> Array:
    return values.cpu().numpy() if hasattr(values, "cpu") else values


def spelled_out(rows: Rows) -> list[Array]:
    return list(np.broadcast_arrays(*(on_host(each) for each in rows)))


def same(given: Problem, numbers: Sequence[int], priced: tuple[Any, Any, Any]) -> bool:
    """Latency and legality equal, energy within the rounding of its additions."""
    dims = [group[0] for group in given.run.counts.groups]
    mapping = given.order.mapping(dict(zip(dims, numbers, strict=True)), made_by="benchmark")
    latency, energy, broken = priced
    try:
        program = lower_execution(given.run, mapping)
    except InfeasibleError:
        return bool(broken)
    work = program.total_work()
    prices = price_all(given.architecture, price)
    expected_ps = estimate(
        Lowered(execution=given.run, program=program, work=work), prices
    ).latency_ps
    expected_pj = sum(prices[name].energy_pj(w) for name, w in work.items())
    expected_pj += given.architecture.leakage_w * expected_ps
    bound = 2.0**-53 * 2 * len(given.run.memories)
    return (
        not broken and latency == expected_ps and abs(energy - expected_pj) <= bound * expected_pj
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--compiled", action="store_true", help="through torch.compile (cuda)")
    parser.add_argument("--arch", default="ws16")
    parser.add_argument("--workload", default="gemm:M=512,N=512,K=512,dtype=int8")
    parser.add_argument("--sizes", type=int, nargs="+", help="of batches, instead of the usual")
    parser.add_argument("--seconds", type=float, default=2.0, help="per line of the table")
    asked = parser.parse_args()
    given = problem(asked.arch, asked.workload)
    device = on_cuda(given) if asked.device == "cuda" else on_cpu(given)
    if asked.compiled:
        device = fused(device)
    print(f"{asked.workload} on {asked.arch}: {combinations(given.tables):,} mappings,")
    print(f"stages {', '.join(f'{m.name}[{o}]' for o, m in given.order.stages)}; {device.label}")
    print(f"64-bit floats, all integers exact: {device.model.exact}")
    print(f"{'mappings':14}{'batch':>12}{'million/s':>12}  equal to one by one")
    for kind, size in itertools.product(KINDS, asked.sizes or SIZES[asked.device]):
        batches = KINDS[kind](device, given.sizes, size)
        rate = measured(device, batches, asked.seconds)
        wrong = differences(given, device, next(batches))
        speed = rate.mappings / rate.seconds / 1e6
        equal = f"{CHECKED - wrong} of {CHECKED}"
        print(f"{kind:14}{size:12,}{speed:12,.1f}  {equal}", flush=True)


if __name__ == "__main__":
    main()
