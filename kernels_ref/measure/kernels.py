"""Measure our kernels on this machine's GPU: ``python -m kernels_ref.measure.kernels --out DIR``.

Writes a CSV of times and energies and, beside it, where they come from. Every result is compared
with the reference in fp64 before it is timed. The card's clocks and limits are left as they are.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from arch.errors import InputError, Problem
from kernels_ref.accuracy import TOLERANCE, relative_error
from kernels_ref.kernel import poisoned
from kernels_ref.points import Point, points
from kernels_ref.provenance import Measured, Repeat, document
from kernels_ref.registry import KERNELS

if TYPE_CHECKING:
    import torch

Call = Callable[[], None]

COLUMNS = ("kind", "params", "dtype", "t_graph_us", "t_cold_us", "energy_mJ", "power_W")

#: The calls of a graph rotate over buffers of this many times the L2 in all, so that a call
#: finds little of its data there.
ROTATION = 3

#: The buffer that is read to flush the L2, in sizes of the L2. Reading it also takes longer than
#: the host needs to enqueue the call that is timed after it, so that the call does not wait.
FLUSH = 8

COLD_SAMPLES = 21

#: Steady work is enqueued in chunks of this length, each of them one sample of a call's time, and
#: so many ahead that the card has work while the host reads the energy counter (some 5 ms).
CHUNK_US = 5_000.0
CHUNKS_AHEAD = 5

#: Energy is taken between two changes of the counter at least this far apart, after the card has
#: settled. A change is noticed one reading late, which is 1 % of the window.
SETTLE_S = 0.05
ENERGY_WINDOW_S = 0.5
ENERGY_PATIENCE_S = 20.0

#: Every this many points, one is measured again at the end; odd, to meet both implementations.
REPEAT_EVERY = 29


class Card:
    """The GPU: its properties, its own counters (NVML), and a buffer to flush its L2 with."""

    def __init__(self) -> None:
        import torch

        if not torch.cuda.is_available():
            raise InputError(Problem("no CUDA device; measuring needs an NVIDIA GPU"))
        missing = [name for name in ("triton", "pynvml") if find_spec(name) is None]
        if missing:
            how = "pip install 'tilewright[gpu]'"
            raise InputError(Problem(f"{' and '.join(missing)} not installed; {how}"))
        import pynvml

        self.properties: Any = torch.cuda.get_device_properties(torch.cuda.current_device())
        self.l2_bytes = int(self.properties.L2_cache_size)
        self._flush_buffer = torch.zeros(FLUSH * self.l2_bytes // 4, device="cuda")
        self._flush_result = torch.zeros((), device="cuda")
        self._nvml = pynvml
        pynvml.nvmlInit()
        self._handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{self.properties.uuid}")

    def flush_l2(self) -> None:
        """Fill the L2 with other data; by reading, which leaves nothing to be written back."""
        import torch

        torch.sum(self._flush_buffer, dim=0, out=self._flush_result)

    def energy_mj(self) -> int:
        return int(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle))

    def sm_clock_mhz(self) -> int:
        return int(self._nvml.nvmlDeviceGetClockInfo(self._handle, self._nvml.NVML_CLOCK_SM))

    def setup(self) -> dict[str, str]:
        """What was measured with, for the record."""
        import torch
        import triton

        nvml, handle = self._nvml, self._handle
        power_limit_w = nvml.nvmlDeviceGetEnforcedPowerLimit(handle) / 1000
        return {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "GPU": f"{self.properties.name}, {self.properties.multi_processor_count} SMs",
            "driver": str(nvml.nvmlSystemGetDriverVersion()),
            "CUDA of torch": str(torch.version.cuda),
            "torch": str(torch.__version__),
            "Triton": triton.__version__,
            "Python": platform.python_version(),
            "L2 that torch reports": f"{self.l2_bytes} bytes",
            "power limit": f"{power_limit_w:.0f} W",
            "maximum clocks (SM, memory)": ", ".join(
                f"{nvml.nvmlDeviceGetMaxClockInfo(handle, clock)} MHz"
                for clock in (nvml.NVML_CLOCK_SM, nvml.NVML_CLOCK_MEM)
            ),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Steady:
    """Times of a call and mean power while the card does nothing else."""

    calls_us: list[float]
    power_w: float
    sm_clock_mhz: int


def set_count(call_bytes: int, l2_bytes: int) -> int:
    """How many sets of buffers together exceed the L2 ``ROTATION`` times; at least two."""
    return max(2, math.ceil(ROTATION * l2_bytes / call_bytes))


def prepare(point: Point, card: Card, generator: torch.Generator) -> list[Call]:
    """Checked calls of the point's kernel, each on buffers of its own."""
    kernel = KERNELS[point.kernel]
    counts = kernel.counts(point.params, point.dtype)
    run = kernel.implementations[point.implementation]
    calls: list[Call] = []
    for index in range(set_count(counts.read_bytes + counts.write_bytes, card.l2_bytes)):
        inputs = kernel.make_inputs(point.params, point.dtype, generator)
        out = poisoned(kernel.output_shape(point.params), point.dtype, generator)
        call = partial(run, *inputs, out=out)
        calls.append(call)
        if index == 0:
            call()
            error = relative_error(kernel, inputs, out)
            if not error < TOLERANCE[point.dtype]:
                raise ArithmeticError(f"relative error {error} of {point}")
    return calls


def recorded_event() -> torch.cuda.Event:
    import torch

    event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event


def elapsed_us(action: Call) -> float:
    """Time of enqueued work on the GPU's own clock."""
    start = recorded_event()
    action()
    end = recorded_event()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1000


def capture(calls: Sequence[Call]) -> torch.cuda.CUDAGraph:
    """All calls as one graph, which is launched with no work of the host between the calls."""
    import torch

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return graph


def work_steadily(
    graph: torch.cuda.CUDAGraph, calls: int, card: Card, window_s: float = ENERGY_WINDOW_S
) -> Steady:
    """Replay without a pause until the energy counter has moved over the whole window."""
    graph.replay()
    replays = max(1, round(CHUNK_US / elapsed_us(graph.replay)))
    ends = [recorded_event()]
    finished = first = 0
    ticks: list[tuple[float, int]] = []
    seen, began_s = 0, time.perf_counter()
    while len(ticks) < 2 or ticks[-1][0] - ticks[0][0] < window_s:
        while finished < len(ends) and ends[finished].query():  # type: ignore[no-untyped-call]
            finished += 1
        while len(ends) - finished < CHUNKS_AHEAD:
            for _ in range(replays):
                graph.replay()
            ends.append(recorded_event())
        energy_mj, now_s = card.energy_mj(), time.perf_counter()
        if energy_mj != seen and now_s - began_s > SETTLE_S:
            first = first or finished
            ticks.append((now_s, energy_mj))
        seen = energy_mj
        if now_s - began_s > ENERGY_PATIENCE_S:
            raise RuntimeError(f"the energy counter stands still at {seen} mJ")
    sm_clock_mhz = card.sm_clock_mhz()
    ends[-1].synchronize()
    (start_s, start_mj), (end_s, end_mj) = ticks[0], ticks[-1]
    return Steady(
        calls_us=[a.elapsed_time(b) * 1000 / (replays * calls) for a, b in pairwise(ends[first:])],
        power_w=(end_mj - start_mj) / 1000 / (end_s - start_s),
        sm_clock_mhz=sm_clock_mhz,
    )


def cold_us(calls: Sequence[Call], card: Card) -> float:
    """Median time of a single call that finds nothing in the L2."""
    samples = []
    for index in range(COLD_SAMPLES):
        card.flush_l2()
        samples.append(elapsed_us(calls[index % len(calls)]))
    return statistics.median(samples)


def measure(point: Point, card: Card, generator: torch.Generator) -> Measured:
    calls = prepare(point, card, generator)
    steady = work_steadily(capture(calls), len(calls), card)
    low, median, high = statistics.quantiles(steady.calls_us, n=4)
    mean = statistics.fmean(steady.calls_us)
    return Measured(
        point=point,
        t_graph_us=median,
        t_cold_us=cold_us(calls, card),
        energy_mj=steady.power_w * mean / 1000,
        power_w=steady.power_w,
        spread=(high - low) / median,
        pauses=mean / median - 1,
        sm_clock_mhz=steady.sm_clock_mhz,
    )


def csv_row(measured: Measured) -> list[str]:
    point = measured.point
    params = json.dumps({**point.params, "impl": point.implementation})
    values = (measured.t_graph_us, measured.t_cold_us, measured.energy_mj, measured.power_w)
    return [point.kernel, params, point.dtype, *(f"{value:.5g}" for value in values)]


def measure_all(directory: Path, seed: int) -> None:
    """Write ``GPU.csv`` row by row and at last ``GPU.md``, which says that it is complete."""
    import torch

    card = Card()
    # Sums in fp32 throughout, as the kernels are defined.
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    setup = card.setup()
    # Capturing a graph collects garbage, for which what exists by now need not be searched.
    gc.freeze()
    generator = torch.Generator("cuda").manual_seed(seed)
    name = str(card.properties.name).lower().replace(" ", "_")
    directory.mkdir(parents=True, exist_ok=True)
    rows: list[Measured] = []
    with (directory / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for point in points(seed):
            rows.append(measure(point, card, generator))
            writer.writerow(csv_row(rows[-1]))
            file.flush()
            sys.stderr.write(f"{len(rows)}: {','.join(csv_row(rows[-1]))}\n")
    repeats = [
        Repeat(first=row, second=measure(row.point, card, generator))
        for row in rows[::REPEAT_EVERY]
    ]
    setup = {
        "command": f"`python -m kernels_ref.measure.kernels --out DIR --seed {seed}`",
        **setup,
        "t_cold_us of no work at all": f"{cold_us([lambda: None], card):.2f}",
    }
    (directory / f"{name}.md").write_text(document(f"{name}.csv", setup, rows, repeats))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m kernels_ref.measure.kernels", description=__doc__
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the CSV")
    parser.add_argument("--seed", type=int, default=0, help="of the random sizes and inputs")
    given = parser.parse_args(arguments)
    if given.seed < 0:
        parser.error(f"--seed is {given.seed}, at least 0")
    if given.out.exists() and not given.out.is_dir():
        parser.error(f"--out {given.out} is not a folder")
    try:
        measure_all(given.out, given.seed)
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
