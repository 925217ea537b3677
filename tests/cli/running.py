"""Running ``dse`` in this process, and what that leaves behind."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass

from dse.cli import main


@dataclass(frozen=True, slots=True)
class Outcome:
    """Exit code, standard output and standard error."""

    code: int
    out: str
    err: str


#: ``dse("list", "archs")`` runs a command and returns its outcome.
Dse = Callable[..., Outcome]


def run_dse(*arguments: object) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Outcome(code, out.getvalue(), err.getvalue())
