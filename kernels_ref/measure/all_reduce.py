"""Check and time the sum over GPUs with RMS norm: ``python -m kernels_ref.measure.all_reduce``.

One process per GPU of this machine, at least two. Every rank's kernel reads its peers' memory
directly (torch's symmetric memory); beside it are NCCL's all-reduce, a sum and torch's norm.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from arch.errors import InputError, Problem
from kernels_ref.measure.kernels import elapsed_us
from kernels_ref.measure.library import capture_kept
from kernels_ref.triton_kernels.all_reduce import reduce_norm

COLUMNS = "rows,cols,gpus,relative_error,triton_us,torch_us,ratio"
SIZES = ((1, 8192), (16, 8192), (128, 8192), (1024, 8192), (4096, 8192))
CALLS, SAMPLES = 20, 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """One GPU's operands; ``peers`` are all ranks' shares, its own among them."""

    share: Any
    handle: Any
    peers: tuple[Any, ...]
    residual: Any
    weight: Any

    def fused(self) -> Any:
        """No rank reads before all have written, nor writes again before all have read."""
        self.handle.barrier(channel=0)
        out = reduce_norm(self.peers, self.residual, self.weight)
        self.handle.barrier(channel=1)
        return out

    def exact(self) -> Any:
        import torch
        import torch.distributed as dist

        total = self.share.double()
        dist.all_reduce(total)
        total += self.residual.double()
        norm = torch.nn.functional.rms_norm(
            total, (total.shape[1],), self.weight.double(), eps=1e-5
        )
        return torch.stack((norm, total))


def _rank(rows: int, cols: int, gpus: int) -> Rank:
    import torch
    import torch.distributed as dist
    import torch.distributed._symmetric_memory as symmetric

    device = torch.device("cuda", torch.cuda.current_device())
    share = symmetric.empty((rows, cols), dtype=torch.float16, device=device)
    group: Any = dist.group.WORLD
    handle = symmetric.rendezvous(share, group)
    share.normal_()
    drawn = torch.Generator("cuda").manual_seed(1)  # the same on every rank
    residual = torch.randn((rows, cols), generator=drawn, device="cuda").half()
    weight = torch.randn((cols,), generator=drawn, device="cuda").half()
    peers = tuple(handle.get_buffer(rank, (rows, cols), torch.float16) for rank in range(gpus))
    return Rank(share=share, handle=handle, peers=peers, residual=residual, weight=weight)


def _plain(rank: Rank) -> Callable[[], Any]:
    import torch
    import torch.distributed as dist

    share = torch.zeros_like(rank.share)

    def run() -> Any:
        dist.all_reduce(share)
        total = share + rank.residual
        norm = torch.nn.functional.rms_norm(total, (total.shape[1],), rank.weight, 1e-5)
        return norm, total

    return run


def _time_us(call: Callable[[], Any]) -> float:
    import torch
    import torch.distributed as dist

    call()
    call()
    graph, kept = capture_kept([call] * CALLS, 1 << 20)
    samples = []
    for _ in range(SAMPLES):
        dist.barrier()
        torch.cuda.synchronize()
        samples.append(elapsed_us(graph.replay) / CALLS)
    del graph, kept
    return statistics.median(samples)


def _process(index: int, gpus: int) -> None:
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29541")
    torch.cuda.set_device(index)
    device = torch.device("cuda", index)
    dist.init_process_group("nccl", rank=index, world_size=gpus, device_id=device)
    torch.cuda.manual_seed(index)
    for rows, cols in SIZES:
        rank = _rank(rows, cols, gpus)
        dist.barrier()
        error = float((rank.fused() - rank.exact()).norm() / rank.exact().norm())
        ours, theirs = _time_us(rank.fused), _time_us(_plain(rank))
        if index == 0:
            numbers = f"{error:.3g},{ours:.4g},{theirs:.4g},{ours / theirs:.3f}"
            sys.stdout.write(f"{rows},{cols},{gpus},{numbers}\n")
            sys.stdout.flush()
    dist.destroy_process_group()


def main(arguments: Sequence[str] | None = None) -> int:
    import torch

    parser = argparse.ArgumentParser(prog="python -m kernels_ref.measure.all_reduce")
    parser.description = __doc__
    parser.parse_args(arguments)
    gpus = torch.cuda.device_count()
    if gpus < 2:
        problem = Problem(f"{gpus} CUDA devices; a sum over GPUs needs at least two")
        sys.stderr.write(f"{InputError(problem)}\n")
        return 2
    sys.stdout.write(f"{COLUMNS}\n")
    sys.stdout.flush()
    start: Any = torch.multiprocessing
    start.spawn(_process, args=(gpus,), nprocs=gpus)
    return 0


if __name__ == "__main__":
    sys.exit(main())
