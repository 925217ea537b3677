"""The engines that can run a schedule. They agree to the picosecond."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from arch.errors import InputError, Problem, unknown
from sim.schedule import Schedule

#: name -> its module, imported when it is first asked for: ``replay`` needs a compiler
ENGINES = {"replay": "sim.replay.engine", "simpy": "sim.engine"}
DEFAULT = "replay"


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """``lost_ps`` says why the watched port moved nothing between its first and its last request,
    and before (``fill``); it is empty if the engine does not account for that. ``working_ps``
    is for how long it did, if that is not what the price list says.
    """

    latency_ps: int
    lost_ps: Mapping[str, int] = field(default_factory=dict)
    working_ps: int | None = None
    slower_by: str = "rounding"


class Engine(Protocol):
    def __call__(self, schedule: Schedule, watched_port: str | None) -> Simulated: ...


def engine_named(name: str) -> Engine:
    """``InputError`` if there is none of that name."""
    if name not in ENGINES:
        raise InputError(Problem(unknown("engine", name, list(ENGINES)), "engine"))
    return cast(Engine, importlib.import_module(ENGINES[name]).run_schedule)
