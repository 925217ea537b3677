"""Do the samplers find the Pareto front faster than random? Paired seeds, equal trials.

The space of a search is thinned until it can be enumerated, so that the true front is known;
every point is evaluated once and kept in a cache file, so that a comparison of many runs costs
little more than the samplers themselves.

    python benchmarks/search_samplers.py --cache front.sqlite --seeds 10
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scipy.stats import wilcoxon

from dse.config import SamplerSettings, SearchConfig, WeightedWorkload
from dse.evaluate import Outcome, PointEvaluator
from dse.executor import executor_for
from dse.load_config import load_search
from dse.pareto import Scale, dominated_share, non_dominated, scale_of
from dse.samplers import SAMPLERS
from dse.search import SearchRun, search_with
from dse.space import Space
from dse.trial import Trial, TrialState
from mapper.workload.load import load_workload

BASELINE = "random"


def thinned(space: Space, limit: int) -> Space:
    """Every second value of the parameter with the most (the last such), again and again, until
    the space is small enough."""
    while space.size > limit:
        longest = max(reversed(space.parameters), key=lambda p: len(p.values))
        shorter = replace(longest, values=longest.values[::2])
        space = Space(parameters=tuple(shorter if p is longest else p for p in space.parameters))
    return space


@dataclass(frozen=True, slots=True)
class Cached:
    """Looks outcomes up; every point of the space was evaluated before."""

    outcomes: Mapping[str, Outcome]

    def __call__(self, overrides: Mapping[str, Any]) -> Outcome:
        return self.outcomes[key_of(overrides)]


def key_of(overrides: Mapping[str, Any]) -> str:
    return json.dumps(dict(overrides), sort_keys=True)


def evaluate_all(config: SearchConfig, cache: Path, workers: int) -> dict[str, Outcome]:
    """Outcome of every point (and of the base), from the cache or evaluated now."""
    connection = sqlite3.connect(cache)
    connection.execute("CREATE TABLE IF NOT EXISTS outcome (key TEXT PRIMARY KEY, record TEXT)")
    prefix = question(config)
    known = {
        key.removeprefix(prefix): from_record(record)
        for key, record in connection.execute("SELECT key, record FROM outcome")
        if key.startswith(prefix)
    }
    points = [{}, *(config.space.overrides(p) for p in config.space.points())]
    missing = [p for p in points if key_of(p) not in known]
    workloads = {w.spec: load_workload(w.spec) for w in config.workloads}
    executor = executor_for(PointEvaluator(config=config, workloads=workloads), workers, None)
    for done, (i, outcome) in enumerate(executor.run(missing), 1):
        known[key_of(missing[i])] = outcome
        row = (prefix + key_of(missing[i]), to_record(outcome))
        with connection:
            connection.execute("INSERT OR REPLACE INTO outcome VALUES (?, ?)", row)
        if done % 20 == 0:
            print(f"  evaluated {done} of {len(missing)}", flush=True)
    executor.close()
    connection.close()
    return known


def question(config: SearchConfig) -> str:
    """What an outcome depends on, whatever the space and the sampler."""
    parts = [config.base, [c.text for c in config.constraints], config.fidelity]
    specs = [(w.spec, w.weight) for w in config.workloads]
    return json.dumps([*parts, specs, config.mapping.objective], sort_keys=True) + "|"


def to_record(outcome: Outcome) -> str:
    return json.dumps(
        {
            "state": outcome.state.value,
            "reason": outcome.reason,
            "objectives": outcome.objectives,
            "constraints": outcome.constraints,
            "cost_model_calls": outcome.cost_model_calls,
            "seconds": outcome.seconds,
        }
    )


def from_record(record: str) -> Outcome:
    data = json.loads(record)
    return Outcome(**{**data, "state": TrialState(data["state"]), "metrics": None})


def true_front(config: SearchConfig, outcomes: Mapping[str, Outcome]) -> tuple[Trial, ...]:
    """The front of the whole space, by running through it."""
    everything = replace(
        config, sampler=SamplerSettings(name=BASELINE), trials=config.space.size, batch=64
    )
    study = one_run(everything, outcomes)
    inside = [t for t in study if t.feasible]
    return non_dominated(inside, config.objective_keys)


def one_run(config: SearchConfig, outcomes: Mapping[str, Outcome]) -> tuple[Trial, ...]:
    """Trials of a search with looked-up outcomes, the start left out: it is given to all."""
    with tempfile.TemporaryDirectory() as folder:
        run = SearchRun(config=config, run_dir=Path(folder))
        return search_with(run, Cached(outcomes), {}).trials


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Of one sampler: share of the true front's volume, by checkpoint, one per seed."""

    sampler: str
    shares: Mapping[int, Sequence[float]]
    cpu_s: float


def compare(
    config: SearchConfig, outcomes: Mapping[str, Outcome], samplers: Sequence[str], seeds: int
) -> Iterator[Result]:
    front = true_front(config, outcomes)
    keys = config.objective_keys
    scale = scale_of(front, keys)
    full = dominated_share(front, keys, scale)
    print(f"true front: {len(front)} of {config.space.size} points; its volume {full:.3f}")
    marks = [config.trials * i // 4 for i in (1, 2, 3, 4)]
    for name in samplers:
        began = time.process_time()
        runs = [one_run(with_sampler(config, name, seed), outcomes) for seed in range(1, seeds + 1)]
        spent = time.process_time() - began
        shares = {m: [share(run[:m], keys, scale) / full for run in runs] for m in marks}
        yield Result(sampler=name, shares=shares, cpu_s=spent / seeds)


def share(trials: Sequence[Trial], keys: Sequence[str], scale: Scale) -> float:
    return dominated_share(trials, keys, scale)


def with_sampler(config: SearchConfig, name: str, seed: int) -> SearchConfig:
    options = config.sampler.options if name == config.sampler.name else {}
    return replace(config, sampler=SamplerSettings(name=name, options=options), seed=seed)


def show(results: Sequence[Result]) -> None:
    baseline = next((r for r in results if r.sampler == BASELINE), None)
    marks = list(results[0].shares)
    head = "".join(f"  @{m:<5}" for m in marks)
    print(f"{'sampler':10}{head}  min..max @{marks[-1]}    seeds won  p       CPU s a run")
    for result in results:
        medians = "".join(f"  {statistics.median(result.shares[m]):.3f} " for m in marks)
        last = result.shares[marks[-1]]
        versus = "-".ljust(19)
        if baseline is not None and result is not baseline:
            other = baseline.shares[marks[-1]]
            won = sum(a > b for a, b in zip(last, other, strict=True))
            p = wilcoxon(last, other, alternative="greater").pvalue
            versus = f"{won}/{len(last)}".ljust(11) + f"{p:.1g}".ljust(8)
        print(
            f"{result.sampler:10}{medians}  {min(last):.3f}..{max(last):.3f}     {versus}"
            f"{result.cpu_s:.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--search", default="resnet18_edge")
    parser.add_argument("--workload", help="another one than the search's own, such as one layer")
    parser.add_argument("--points", type=int, default=800, help="size of the thinned space")
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--samplers", nargs="+", default=list(SAMPLERS), choices=list(SAMPLERS))
    parser.add_argument("--cache", type=Path, default=Path("search_samplers.sqlite"))
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    config = load_search(asked.search)
    config = replace(config, space=thinned(config.space, asked.points), trials=asked.trials)
    if asked.workload is not None:
        config = replace(config, workloads=(WeightedWorkload(spec=asked.workload),))
    print(f"{asked.search}: {config.space.size} of its points")
    for parameter in config.space.parameters:
        print(f"  {parameter.path}: {', '.join(map(str, parameter.values))}")
    outcomes = evaluate_all(config, asked.cache, asked.workers)
    barred = sum(o.state is not TrialState.COMPLETE for o in outcomes.values())
    print(f"  {barred} of them break a limit")
    results = []
    for result in compare(config, outcomes, asked.samplers, asked.seeds):
        results.append(result)
        print(f"  {result.sampler}: {result.cpu_s:.1f} CPU s a run", flush=True)
    show(results)


if __name__ == "__main__":
    main()
