"""What a person sees while a search runs."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich import progress

from dse.cli.console import messages
from dse.config import SearchConfig
from dse.pareto import non_dominated
from dse.trial import Trial

#: How often a log (no terminal) gets a line.
LINES_IN_A_LOG = 10


class Progress:
    """A bar with the best values so far and the time left; in a log, a line now and then."""

    def __init__(self, config: SearchConfig, finished: Iterable[Trial]) -> None:
        self._config = config
        self._keys = [objective.key for objective in config.objectives]
        self._front: tuple[Trial, ...] = ()
        self._count = 0
        for trial in finished:
            self._add(trial)
        self._console = messages()
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(bar_width=24),
            progress.MofNCompleteColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[best]}"),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task(
            config.name, total=config.trials, completed=self._count, best=self._best()
        )

    def show(self, trial: Trial) -> None:
        """Called for each trial as it is recorded."""
        self._add(trial)
        self._bar.update(self._task, completed=self._count, best=self._best())
        every = max(1, self._config.trials // LINES_IN_A_LOG)
        if not self._console.is_terminal and trial.number and self._count % every == 0:
            self._console.print(f"{self._count}/{self._config.trials} designs; {self._best()}")

    def _add(self, trial: Trial) -> None:
        self._count += trial.number > 0  # the start is not one of the search's own
        if trial.feasible:
            self._front = non_dominated([*self._front, trial], self._keys)

    def _best(self) -> str:
        """The least of each objective so far, and how many designs are on the front."""
        if not self._front:
            return "no feasible design yet"
        best = (
            f"{o.name} {o.show(min(t.objectives[o.key] for t in self._front))}"
            for o in self._config.objectives
        )
        return f"best {', '.join(best)}; front {len(self._front)}"

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.stop()
