"""Command of the tests: a toy search in its own process, so that it can be killed.

Arguments: run directory, sampler, workers, seconds per evaluation, log file, 'resume' or 'new'.
"""

from __future__ import annotations

import sys
from pathlib import Path

import toy_problem
from toy_problem import Toy

from dse.search import SearchRun, search_with
from dse.trial import Trial

TRIALS = 24


def main() -> None:
    run_dir, sampler, workers, seconds, log, mode = sys.argv[1:]
    run = SearchRun(
        config=toy_problem.config(sampler, trials=TRIALS),
        run_dir=Path(run_dir),
        workers=int(workers),
        resume=mode == "resume",
        on_trial=tell,
    )
    search_with(run, Toy(seconds=float(seconds), log=Path(log)), {"toy": "f00d"})


def tell(trial: Trial) -> None:
    """What the test waits for."""
    sys.stdout.write(f"{trial.number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
