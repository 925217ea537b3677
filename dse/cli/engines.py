"""Option ``--engine``: what runs event simulations, refused where there are none."""

from __future__ import annotations

from arch.errors import InputError, Problem
from dse.cli import inputs
from sim.engines import DEFAULT, ENGINES
from sim.models import EVENT


def chosen(engine: str | None, fidelity: str) -> str:
    """The engine to use; what is asked for is never ignored."""
    if engine is None:
        return DEFAULT
    inputs.choice("--engine", engine, tuple(ENGINES))
    if fidelity != EVENT:
        raise _wrong(f"runs simulations at fidelity {EVENT}; this one is {fidelity}")
    return engine


def refuse(engine: str | None, reason: str) -> None:
    """Where nothing is simulated that an engine could run."""
    if engine is not None:
        raise _wrong(reason)


def _wrong(message: str) -> InputError:
    return InputError(Problem(message, where="--engine"))
