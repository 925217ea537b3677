"""Where points are evaluated: in this process, in local ones, or on a Dask cluster.

An executor only decides when results arrive, never what they are.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, as_completed
from concurrent.futures import Executor as Pool
from dataclasses import dataclass, field
from typing import Any, Protocol

from dse.evaluate import Evaluator, Outcome

Overrides = Mapping[str, Any]

#: How often the points of a batch are evaluated side by side before what is left goes one by one:
#: a worker that dies once (killed from outside) does not slow down the others.
ROUNDS = 2

#: How often a point, evaluated alone, may take its worker down with it.
MAX_CRASHES = 3


class Executor(Protocol):
    """Evaluates points; results come as they are finished, each with its place in the input."""

    def run(self, points: Sequence[Overrides]) -> Iterator[tuple[int, Outcome]]: ...

    def close(self) -> None:
        """Ends workers without waiting for what they do."""
        ...


class PointError(Exception):
    """The evaluation of point ``index`` raised ``cause``."""

    def __init__(self, index: int, cause: BaseException) -> None:
        super().__init__(index, cause)
        self.index = index
        self.cause = cause


class WorkerCrashError(RuntimeError):
    """A worker process died again and again on the same point (out of memory, killed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialExecutor:
    """One after the other, in this process."""

    evaluate: Evaluator

    def run(self, points: Sequence[Overrides]) -> Iterator[tuple[int, Outcome]]:
        for i, point in enumerate(points):
            try:
                outcome = self.evaluate(point)
            except Exception as error:
                raise PointError(i, error) from error
            yield i, outcome

    def close(self) -> None:
        return


@dataclass(kw_only=True)
class PoolExecutor:
    """On a pool of ``concurrent.futures``, which is made anew when a worker dies."""

    open_pool: Callable[[], Pool]
    call: Callable[[Overrides], Outcome]
    end_pool: Callable[[Pool], None]
    _pool: Pool | None = field(default=None, init=False)

    def run(self, points: Sequence[Overrides]) -> Iterator[tuple[int, Outcome]]:
        waiting = set(range(len(points)))
        for _ in range(ROUNDS):
            try:
                for i, outcome in self._round(points, sorted(waiting)):
                    waiting.discard(i)
                    yield i, outcome
            except BrokenExecutor:  # nobody knows which point it was
                self.close()
        for i in sorted(waiting):
            yield i, self._alone(points, i)

    def _alone(self, points: Sequence[Overrides], index: int) -> Outcome:
        """With nothing beside it, so that a worker's death is this point's doing."""
        crash: BrokenExecutor | None = None
        for _ in range(MAX_CRASHES):
            try:
                return next(self._round(points, [index]))[1]
            except BrokenExecutor as error:
                self.close()
                crash = error
        message = f"its worker died {MAX_CRASHES} times (out of memory?)"
        raise PointError(index, WorkerCrashError(message)) from crash

    def _round(
        self, points: Sequence[Overrides], indices: Sequence[int]
    ) -> Iterator[tuple[int, Outcome]]:
        if self._pool is None:
            self._pool = self.open_pool()
        futures: dict[Future[Outcome], int] = {
            self._pool.submit(self.call, points[i]): i for i in indices
        }
        for future in as_completed(futures):
            error = future.exception()
            if isinstance(error, BrokenExecutor):
                raise error
            if error is not None:
                raise PointError(futures[future], error) from error
            yield futures[future], future.result()

    def close(self) -> None:
        if self._pool is not None:
            self.end_pool(self._pool)
            self._pool = None


def local_processes(evaluate: Evaluator, workers: int) -> PoolExecutor:
    """``workers`` processes of this machine, started afresh (nothing is inherited)."""
    context = multiprocessing.get_context("spawn")
    return PoolExecutor(
        open_pool=lambda: ProcessPoolExecutor(
            workers, mp_context=context, initializer=_start_worker, initargs=(evaluate,)
        ),
        call=_evaluate_here,
        end_pool=_end_processes,
    )


_WORKER: list[Evaluator] = []


def _start_worker(evaluate: Evaluator) -> None:
    """Keeps the evaluator; leaves Ctrl-C to the coordinator and dies with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _WORKER[:] = [evaluate]


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _evaluate_here(point: Overrides) -> Outcome:
    return _WORKER[0](point)


def _end_processes(pool: Pool) -> None:
    if not isinstance(pool, ProcessPoolExecutor):
        raise TypeError(f"not a pool of processes: {pool!r}")
    processes = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.terminate()


def dask_cluster(evaluate: Evaluator, address: str) -> PoolExecutor:
    """The workers of a Dask scheduler; a worker that dies is Dask's to replace."""
    import distributed

    open_client: Any = distributed.Client  # untyped where Dask is installed
    client = open_client(address)
    return PoolExecutor(
        open_pool=client.get_executor, call=evaluate, end_pool=lambda pool: client.close()
    )


def executor_for(evaluate: Evaluator, workers: int, cluster: str | None) -> Executor:
    """The executor that a run asks for."""
    if cluster is not None:
        return dask_cluster(evaluate, cluster)
    if workers == 1:
        return SerialExecutor(evaluate=evaluate)
    return local_processes(evaluate, workers)
