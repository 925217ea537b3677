"""Do all executors give the same results, whatever happens to their workers?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import toy_problem
from toy_problem import Toy

from dse.evaluate import Outcome
from dse.executor import Executor, PointError, SerialExecutor, executor_for, local_processes

POINTS = [toy_problem.SPACE.overrides((rows, 1, 2, 0)) for rows in range(6)]


@contextmanager
def closing(executor: Executor) -> Iterator[Executor]:
    try:
        yield executor
    finally:
        executor.close()


def test_processes_give_what_one_process_gives() -> None:
    serial = dict(SerialExecutor(evaluate=Toy()).run(POINTS))
    with closing(local_processes(Toy(), 2)) as executor:
        assert dict(executor.run(POINTS)) == serial
        assert dict(executor.run(POINTS[:1])) == {0: serial[0]}


def test_the_number_of_workers_picks_the_executor() -> None:
    assert isinstance(executor_for(Toy(), 1, None), SerialExecutor)


def test_a_killed_worker_is_replaced_and_no_point_is_lost(tmp_path: Path) -> None:
    fuse = tmp_path / "fuse"
    fuse.touch()
    with closing(local_processes(Toy(fuse=fuse), 2)) as executor:
        found = dict(executor.run(POINTS))
    assert not fuse.exists()
    assert found == dict(SerialExecutor(evaluate=Toy()).run(POINTS))


class Deadly:
    """Dies on the last point; the others take their time, so that some are under way then."""

    def __call__(self, overrides: Mapping[str, Any]) -> Outcome:
        if overrides == POINTS[-1]:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.1)
        return Toy()(overrides)


def test_a_point_that_always_kills_its_worker_is_named_and_no_other() -> None:
    found: dict[int, Outcome] = {}
    with (
        closing(local_processes(Deadly(), 2)) as executor,
        pytest.raises(PointError, match="died 3 times") as caught,
    ):
        found.update(executor.run(POINTS))
    assert caught.value.index == len(POINTS) - 1
    assert found == dict(SerialExecutor(evaluate=Toy()).run(POINTS[:-1]))


@pytest.mark.parametrize("workers", [1, 2])
def test_an_exception_names_its_point(workers: int) -> None:
    with (
        closing(executor_for(Toy(broken_rows=12), workers, None)) as executor,
        pytest.raises(PointError) as caught,
    ):
        list(executor.run(POINTS))
    assert caught.value.index == 2
    assert isinstance(caught.value.cause, ZeroDivisionError)


ORPHANS = """
import os, sys
from toy_problem import SPACE, Toy
from dse.evaluate import Outcome
from dse.executor import local_processes

if __name__ == "__main__":
    executor = local_processes(Toy(seconds=60), 2)
    pool = executor.run([SPACE.overrides((i, 0, 0, 0)) for i in range(2)])
    import threading
    def tell():
        import multiprocessing, time
        while len(multiprocessing.active_children()) < 2:
            time.sleep(0.05)
        print(*[p.pid for p in multiprocessing.active_children()], flush=True)
    threading.Thread(target=tell, daemon=True).start()
    list(pool)
"""


def test_workers_do_not_outlive_a_killed_coordinator(tmp_path: Path) -> None:
    script = tmp_path / "coordinate.py"
    script.write_text(ORPHANS)
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(here), str(here.parents[1])])}
    process = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 2
    process.kill()
    process.wait()
    process.stdout.close()
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in workers) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in workers)


def alive(pid: int) -> bool:
    """Whether the process still runs (a zombie that nobody waits for does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_dask_cluster_gives_what_one_process_gives() -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        closing(executor_for(Toy(), 1, cluster.scheduler_address)) as executor,
    ):
        found = dict(executor.run(POINTS))
    assert found == dict(SerialExecutor(evaluate=Toy()).run(POINTS))
