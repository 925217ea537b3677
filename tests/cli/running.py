"""What a ``dse`` command leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code, standard output and standard error."""

    code: int
    out: str
    err: str


#: ``dse("list", "archs")`` runs a command and returns its outcome.
Dse = Callable[..., Outcome]
