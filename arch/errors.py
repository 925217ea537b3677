"""The error of bad input: every problem found, each with its place."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: A longer list of allowed names would hide the message.
_LISTED_WHOLE = 40
_LISTED_OF_MANY = 8


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: ``file:line: path.to.key: what; allowed ...; did you mean ...?``."""

    message: str
    where: str = ""
    file: Path | None = None
    line: int | None = None

    def __str__(self) -> str:
        place = "" if self.file is None else str(self.file)
        if place and self.line is not None:
            place = f"{place}:{self.line}"
        return ": ".join(part for part in (place, self.where, self.message) if part)


class InputError(ValueError):
    """Input that makes no sense, with all of its problems.

    A ``ValueError`` so that a validator may raise it and have its text collected with others.
    """

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))

    def __reduce__(self) -> tuple[object, ...]:
        return InputError, (self.problems,)


def suggest(name: str, choices: Iterable[str]) -> str:
    """``did you mean 'gbuf'?`` for the closest choice, or nothing if none is close."""
    by_lower = {choice.lower(): choice for choice in choices}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return suggestion(by_lower[close[0]]) if close else ""


def suggestion(name: str) -> str:
    return f"did you mean '{name}'?"


def unknown(what: str, name: str, choices: Sequence[str]) -> str:
    """The message for a name that is not one of ``choices``; of many, the closest are listed."""
    listed = ", ".join(choices)
    if len(choices) > _LISTED_WHOLE:
        close = difflib.get_close_matches(name, choices, n=_LISTED_OF_MANY, cutoff=0.0)
        listed = f"{len(choices)} names, such as {', '.join(close)}"
    parts = [f"unknown {what} '{name}'", f"allowed {listed}"]
    return "; ".join([*parts, *filter(None, [suggest(name, choices)])])
