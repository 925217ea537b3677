"""Is a search the same however often it is interrupted and however many workers it has?"""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import run_toy_search
import toy_problem
from toy_problem import Toy

from arch.errors import InputError, Problem
from dse.config import SearchConfig
from dse.evaluate import Evaluator, Outcome
from dse.search import SearchRun, base_point, search_with
from dse.space import Parameter, Space
from dse.store import FILE, load_study
from dse.study import Study
from dse.trial import Trial, TrialState

WORKLOADS = {"toy": "f00d"}


def run(
    run_dir: Path, config: SearchConfig, evaluate: Evaluator | None = None, **changes: Any
) -> Study:
    asked = replace(SearchRun(config=config, run_dir=run_dir), **changes)
    return search_with(asked, evaluate or Toy(), WORKLOADS)


def test_trials_are_numbered_from_one_after_the_start(tmp_path: Path) -> None:
    seen: list[Trial] = []
    study = run(tmp_path, toy_problem.config(trials=10), on_trial=seen.append)
    assert study.stopped == "budget"
    assert [t.number for t in study.trials] == list(range(1, 11))
    assert seen == [study.start, *study.trials]
    assert study.cost_model_calls == 11
    assert {t.config_hash for t in seen} == {study.config.hash}


def test_infeasible_trials_keep_their_objectives_and_say_which_limit(tmp_path: Path) -> None:
    study = run(tmp_path, toy_problem.config(trials=40))
    barred = [t for t in study.trials if t.state is TrialState.INFEASIBLE]
    assert barred
    for trial in barred:
        assert trial.objectives == toy_problem.totals(trial.overrides)
        assert trial.constraints["area"] > 0
        assert trial.reason.startswith("area: needs ")
    assert all(t.constraints["area"] <= 0 for t in study.pareto())


def test_pareto_and_best_answer_from_the_feasible_trials(tmp_path: Path) -> None:
    study = run(tmp_path, toy_problem.config(trials=40))
    front = study.pareto()
    for key in study.objective_keys:
        best = study.best(key)
        assert best is not None
        assert best.objectives[key] == min(t.objectives[key] for t in study.feasible)
        assert best in front
    assert list(front) == sorted(front, key=lambda t: t.objectives["latency_ps"])


def test_the_start_is_the_base_design_and_is_not_suggested_again(tmp_path: Path) -> None:
    config = toy_problem.config(trials=2000)
    study = run(tmp_path, config)
    assert study.start.overrides == {
        "array.rows": 16,
        "array.cols": 16,
        "gbuf.size": "256 KiB",
        "array.dataflow": "weight_stationary",
    }
    assert study.stopped == "exhausted"
    designs = [tuple(t.overrides.values()) for t in (study.start, *study.trials)]
    assert len(set(designs)) == len(designs) == config.space.size


def test_a_base_outside_the_space_starts_with_no_overrides() -> None:
    rows = Parameter(path="array.rows", values=(8, 32), ordered=True)
    config = toy_problem.config(space=Space(parameters=(rows,)))
    assert base_point(config) == {}


def test_equal_values_written_otherwise_are_recognised_as_the_base() -> None:
    """16 B/cycle at 1 GHz is 16 GB/s."""
    rate = Parameter(path="dram.bandwidth", values=("8 GB/s", "16 GB/s"), ordered=True)
    assert base_point(toy_problem.config(space=Space(parameters=(rate,)))) == {
        "dram.bandwidth": "16 GB/s"
    }


@pytest.mark.parametrize("sampler", ["random", "nsga2", "tpe", "bayes"])
def test_one_and_two_workers_find_the_same(tmp_path: Path, sampler: str) -> None:
    config = toy_problem.config(sampler, trials=18)
    one = run(tmp_path / "one", config)
    two = run(tmp_path / "two", config, workers=2)
    assert (one.start, one.trials) == (two.start, two.trials)


@pytest.mark.parametrize("sampler", ["random", "nsga2", "bayes"])
def test_an_extended_budget_gives_what_a_large_one_gives(tmp_path: Path, sampler: str) -> None:
    """Also when the first budget ends in the middle of a round."""
    whole = run(tmp_path / "whole", toy_problem.config(sampler, trials=20))
    run(tmp_path / "parts", toy_problem.config(sampler, trials=14))
    parts = run(tmp_path / "parts", toy_problem.config(sampler, trials=20), resume=True)
    assert parts.trials == whole.trials


class Interrupted:
    """The toy problem, and a Ctrl-C at the n-th evaluation."""

    def __init__(self, after: int) -> None:
        self._left = after

    def __call__(self, overrides: Mapping[str, Any]) -> Outcome:
        self._left -= 1
        if self._left < 0:
            raise KeyboardInterrupt
        return Toy()(overrides)


def test_ctrl_c_keeps_what_is_finished_and_can_be_resumed(tmp_path: Path) -> None:
    config = toy_problem.config(trials=12)
    study = run(tmp_path / "cut", config, Interrupted(after=7))
    assert study.stopped == "interrupted"
    assert len(study.trials) == 6
    resumed = run(tmp_path / "cut", config, resume=True)
    assert resumed.trials == run(tmp_path / "whole", config).trials


def test_a_bug_stops_the_study_and_names_its_design(tmp_path: Path) -> None:
    config = toy_problem.config(trials=200)
    with pytest.raises(RuntimeError, match=r"trial \d+ \(array.rows=12, .*a made-up bug"):
        run(tmp_path / "bug", config, Toy(broken_rows=12))
    study = load_study(tmp_path / "bug")
    assert study.stopped == "failed"
    assert study.trials[-1].state is TrialState.FAILED
    assert study.trials[-1].reason == "ZeroDivisionError: a made-up bug"
    mended = run(tmp_path / "bug", config, resume=True)
    assert mended.trials == run(tmp_path / "whole", config).trials


def contradictory(overrides: Mapping[str, Any]) -> Outcome:
    raise InputError(Problem("too small", where="acc.size"))


def test_values_that_are_not_allowed_together_are_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no architecture with array\.rows=16.*: too small"):
        run(tmp_path, toy_problem.config(), contradictory)


def test_a_study_is_not_started_twice_nor_resumed_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no study"):
        run(tmp_path, toy_problem.config(), resume=True)
    run(tmp_path, toy_problem.config(trials=1))
    with pytest.raises(InputError, match="holds a study already"):
        run(tmp_path, toy_problem.config(trials=1))


def start(run_dir: Path, sampler: str, workers: int, log: Path, mode: str) -> subprocess.Popen[str]:
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parents[1])])
    seconds = "0.02" if mode == "new" else "0"
    return subprocess.Popen(
        [
            *(sys.executable, str(here / "run_toy_search.py")),
            *(str(run_dir), sampler, str(workers), seconds, str(log), mode),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )


@pytest.mark.parametrize(
    ("sampler", "workers", "kills"), [("nsga2", 1, 3), ("random", 2, 2), ("bayes", 1, 2)]
)
def test_killed_searches_resume_to_the_uninterrupted_result(
    tmp_path: Path, sampler: str, workers: int, kills: int
) -> None:
    """No finished trial is lost or evaluated again; nothing else changes either."""
    generator = np.random.default_rng(workers)
    run_dir, log = tmp_path / "killed", tmp_path / "log"
    finished: set[int] = set()
    for mode in ("new", *["resume"] * (kills - 1)):
        process = start(run_dir, sampler, workers, log, mode)
        assert process.stdout is not None
        for _ in range(int(generator.integers(2, 8))):
            finished.add(int(process.stdout.readline()))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        kept = load_study(run_dir)
        assert finished <= {kept.start.number, *(t.number for t in kept.trials)}
    with (run_dir / FILE).open("rb") as file:
        assert file.read(15) == b"SQLite format 3"
    config = toy_problem.config(sampler, trials=run_toy_search.TRIALS)
    resumed = run(run_dir, config, Toy(log=log), resume=True)
    whole = run(tmp_path / "whole", config)
    assert (resumed.start, resumed.trials) == (whole.start, whole.trials)
    assert resumed.pareto() == whole.pareto()
    times = collections.Counter(log.read_text().splitlines())
    repeated = [design for design, count in times.items() if count > 1]
    assert len(repeated) <= kills * config.batch, "only the round that was cut may be repeated"
