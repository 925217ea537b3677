"""Options ``--search``, ``--budget`` and ``--seed``: how each operator's mapping is searched."""

from __future__ import annotations

from arch.errors import InputError, Problem
from dse.cli import inputs
from dse.cli.compiling import processors
from mapper.search.method import EXACT, METHODS, Method


def chosen_method(name: str, budget: int | None, seed: int | None) -> Method:
    """The search that the options name; the exact one leaves nothing to choose."""
    inputs.choice("--search", name, METHODS)
    for option, value in (("--budget", budget), ("--seed", seed)):
        if value is not None and name == EXACT.name:
            message = f"the exact search takes none; it is for {', '.join(METHODS[1:])}"
            raise InputError(Problem(message, where=option))
        if value is not None and value < 1:
            raise InputError(Problem(f"{value} is out of range; allowed 1 or more", where=option))
    given = {"budget": budget, "seed": seed, "threads": processors()}
    return Method(name=name, **{key: value for key, value in given.items() if value is not None})


def not_chosen(method: Method, reason: str) -> None:
    """``InputError`` for a search that would be ignored."""
    if method.name != EXACT.name:
        raise InputError(Problem(f"{reason}; leave out '{method.name}'", where="--search"))
