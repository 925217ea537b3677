"""Measure NCCL between GPUs: ``python -m kernels_ref.measure.collectives --out DIR``.

One process per GPU. ``bytes`` is the largest buffer of a GPU: what ``all_reduce`` and ``p2p`` send,
what ``all_gather`` returns, what ``reduce_scatter`` and ``all_to_all`` are given. Energy and power
are those of all GPUs together. Blocks with ``tp`` of the number of GPUs are measured too.
"""

from __future__ import annotations

import argparse
import csv
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kernels_ref.library.blocks import BLOCK, MODELS, run_block
from kernels_ref.library.kinds import Params, draw
from kernels_ref.library.points import LibraryPoint, log_uniform, usual
from kernels_ref.measure.kernels import CHUNK_US, Call, Card, elapsed_us, recorded_event, set_count
from kernels_ref.measure.library import RAW_COLUMNS, Timed, calls_per_graph, capture_kept

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "p2p")
POINTS_EACH = 20
BLOCK_POINTS = 16
ENERGY_S = 0.55
COLD_SAMPLES = 11


def collective_points(seed: int, gpus: int) -> list[LibraryPoint]:
    """Log-uniform sizes from 1 KiB to 1 GiB of each collective, and blocks; shuffled."""
    rng = np.random.default_rng(seed)
    drawn = [
        LibraryPoint(
            kind=kind,
            params={"bytes": max(1, log_uniform(rng, 2**10, 2**30) // 512) * 512, "gpus": gpus},
            dtype="bf16",
        )
        for kind in COLLECTIVES
        for _ in range(POINTS_EACH)
    ]
    drawn += [_block_point(rng, gpus) for _ in range(BLOCK_POINTS)]
    return [drawn[i] for i in rng.permutation(len(drawn))]


def _block_point(rng: np.random.Generator, gpus: int) -> LibraryPoint:
    shared = [name for name, model in MODELS.items() if model.heads % gpus == 0]
    params: dict[str, Any] = {"model": str(rng.choice(shared))}
    if rng.random() < 0.5:
        params |= {"B": log_uniform(rng, 1, 4), "S": usual(rng, 64, 2048), "ctx": 0}
    else:
        params |= {"B": log_uniform(rng, 1, 64), "S": 1, "ctx": log_uniform(rng, 64, 4096)}
    return LibraryPoint(kind="block", params={**params, "tp": gpus}, dtype="bf16")


def _exchange(kind: str, rank: int, whole: Any, part: Any) -> Any:
    """One collective; ``whole`` has the stated bytes, ``part`` a GPU's share of them."""
    import torch.distributed as dist

    p2p = dist.send if rank == 0 else dist.recv
    actions: dict[str, Callable[[], Any]] = {
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather": lambda: dist.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(part, whole),
        "p2p": lambda: p2p(whole, 1 - rank),
    }
    return actions[kind]()


def _swap(whole: Any, other: Any) -> Any:
    import torch.distributed as dist

    return dist.all_to_all_single(other, whole)


def _collective_calls(point: LibraryPoint, rank: int, l2_bytes: int) -> list[Call]:
    import torch

    elements = point.params["bytes"] // 2
    gpus = point.params["gpus"]
    sets = min(48, set_count(point.params["bytes"], l2_bytes))
    calls: list[Call] = []
    for _ in range(sets):
        whole = torch.zeros(elements, dtype=torch.bfloat16, device="cuda").normal_()
        if point.kind == "all_to_all":
            calls.append(partial(_swap, whole, torch.empty_like(whole)))
        else:
            part = torch.zeros(elements // gpus, dtype=torch.bfloat16, device="cuda").normal_()
            calls.append(partial(_exchange, point.kind, rank, whole, part))
    return calls


def _block_calls(params: Params, l2_bytes: int) -> list[Call]:
    import torch.distributed as dist

    specs = BLOCK.inputs(params, "bf16")
    sets = min(48, set_count(sum(spec.size_bytes for spec in specs), l2_bytes))
    operands = [draw(spec, sets, None, "cuda") for spec in specs]
    return [
        partial(run_block, params, dist.all_reduce, *tensors)
        for tensors in zip(*operands, strict=True)
    ]


def _agreed(value: float) -> float:
    """The largest of all processes' values."""
    import torch
    import torch.distributed as dist

    tensor = torch.tensor([value], device="cuda", dtype=torch.float64)
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    return float(tensor.item())


def _total(value: float) -> float:
    import torch
    import torch.distributed as dist

    tensor = torch.tensor([value], device="cuda", dtype=torch.float64)
    dist.all_reduce(tensor)
    return float(tensor.item())


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    calls_us: list[float]
    power_w: float
    sm_clock_mhz: int


def _replay_together(graph: Any, count: int, card: Card) -> Replayed:
    """As many replays on every GPU, for at least the window of the energy counter."""
    import torch

    graph.replay()
    replay_us = _agreed(elapsed_us(graph.replay))
    replays = max(1, round(CHUNK_US / replay_us))
    chunks = int(ENERGY_S * 1e6 / (replays * replay_us)) + 2
    torch.cuda.synchronize()
    first_mj, began_s = card.energy_mj(), time.perf_counter()
    ends = [recorded_event()]
    clock = 0
    for chunk in range(chunks):
        for _ in range(replays):
            graph.replay()
        ends.append(recorded_event())
        if chunk > 4:
            ends[chunk - 4].synchronize()
        clock = card.sm_clock_mhz() if chunk == chunks // 2 else clock
    torch.cuda.synchronize()
    spent_mj, spent_s = card.energy_mj() - first_mj, time.perf_counter() - began_s
    return Replayed(
        calls_us=[a.elapsed_time(b) * 1000 / (replays * count) for a, b in pairwise(ends)],
        power_w=_total(spent_mj / 1000 / spent_s),
        sm_clock_mhz=clock,
    )


def _cold(calls: Sequence[Call], card: Card, ready: Any) -> float:
    """Single launches of a graph of one call, all GPUs having flushed their L2 just before."""
    import torch.distributed as dist

    graph, kept = capture_kept(calls[:1], 1)
    graph.replay()
    samples = []
    for _ in range(COLD_SAMPLES):
        card.flush_l2()
        dist.all_reduce(ready)
        samples.append(elapsed_us(graph.replay))
    del graph, kept
    return statistics.median(samples)


def _measure(point: LibraryPoint, rank: int, card: Card, ready: Any) -> Timed:
    import torch

    if point.kind == "block":
        calls = _block_calls(point.params, card.l2_bytes)
    else:
        calls = _collective_calls(point, rank, card.l2_bytes)
    calls[0]()
    calls[1]()
    count = calls_per_graph(_agreed(elapsed_us(calls[0])), len(calls))
    graph, kept = capture_kept([calls[i % len(calls)] for i in range(count)], 1)
    steady = _replay_together(graph, count, card)
    cold = _cold(calls, card, ready)
    del graph, kept
    low, median, high = statistics.quantiles(steady.calls_us, n=4)
    torch.cuda.synchronize()
    return Timed(
        t_graph_us=median,
        t_cold_us=cold,
        power_w=steady.power_w,
        sm_clock_mhz=steady.sm_clock_mhz,
        spread=(high - low) / median,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    out: str
    seed: int
    gpus: int
    most: int
    seconds: float


def _rows(plan: Plan, rank: int) -> Iterator[tuple[LibraryPoint, Timed]]:
    import torch

    card = Card()
    gc.freeze()
    ready = torch.zeros(1, device="cuda")
    began_s = time.perf_counter()
    for point in collective_points(plan.seed, plan.gpus)[: plan.most]:
        if _agreed(time.perf_counter() - began_s) > plan.seconds:
            break
        yield point, _measure(point, rank, card, ready)


def _process(rank: int, plan: Plan) -> None:
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29531")
    torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl", rank=rank, world_size=plan.gpus, device_id=torch.device("cuda", rank)
    )
    name = "collectives.csv" if rank == 0 else f"collectives_rank{rank}.tmp"
    with (Path(plan.out) / name).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(RAW_COLUMNS)
        for point, timed in _rows(plan, rank):
            params = json.dumps(point.params)
            writer.writerow([point.kind, params, point.dtype, *timed.cells, "0", "0"])
            file.flush()
    (Path(plan.out) / name).with_suffix(".tmp").unlink(missing_ok=True)
    dist.destroy_process_group()


def main(arguments: Sequence[str] | None = None) -> int:
    import torch

    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.collectives")
    parser.description = __doc__
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=10**6, help="stop after so many points")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after this long")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    plan = Plan(
        out=str(given.out),
        seed=given.seed,
        gpus=torch.cuda.device_count(),
        most=given.most,
        seconds=given.seconds,
    )
    start: Any = torch.multiprocessing
    start.spawn(_process, args=(plan,), nprocs=plan.gpus)
    return 0


if __name__ == "__main__":
    sys.exit(main())
