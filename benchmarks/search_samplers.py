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

from dse.config import SamplerSettings, SearchConfig
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
            print(f"  {result.sampler}: {result.cpu_s:.1f} CPU s a run", flush=True)
    show(results)


if __name__ == "__main__":
    main()
