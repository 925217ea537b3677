"""Event simulation of several cores that run the units of a plan, tile by tile.

What happens on a core is one unit's event simulation, cut into its tiles. What is simulated here
is what cores do to each other: a tile starts when its core is free and the tiles that it reads
from are done, and its traffic to the memory outside goes through one port, first come, first
served. A tile asks for the port in pieces, spread over its time and one after the other; a piece
that is served late delays those after it, and the tile ends no earlier than its last one.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any

import simpy

#: Pieces of a tile's traffic. More change little: 16 instead of 8 by less than a percent.
PIECES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreUnit:
    """A unit on its core: how many tiles, how long one takes alone, how long it needs the shared
    port for, and per earlier unit that it reads from the last tile that each tile waits for."""

    core: int
    tiles: int
    tile_ps: int
    port_ps: int
    needs: tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreRun:
    """Start and end of each unit; ``waited_ps`` is how long its pieces stood in the queue.
    ``tiles_ps`` are starts and ends of its tiles, ``port_ps`` of its turns at the shared port."""

    spans_ps: tuple[tuple[int, int], ...]
    waited_ps: tuple[int, ...]
    latency_ps: int
    tiles_ps: tuple[tuple[tuple[int, int], ...], ...]
    port_ps: tuple[tuple[tuple[int, int], ...], ...]


def simulate_cores(units: Sequence[CoreUnit], pieces: int = PIECES) -> CoreRun:
    """All units, each core's in order."""
    run = _Run(tuple(units), pieces)
    for core in sorted({unit.core for unit in units}):
        run.env.process(run.core(core))
    run.env.run()
    spans = tuple(zip(run.starts, run.ends, strict=True))
    return CoreRun(
        spans_ps=spans,
        waited_ps=tuple(run.waited),
        latency_ps=max(run.ends),
        tiles_ps=tuple(tuple(each) for each in run.tiles),
        port_ps=tuple(tuple(each) for each in run.turns),
    )


Steps = Generator[simpy.Event, Any, None]


class _Run:
    def __init__(self, units: tuple[CoreUnit, ...], pieces: int) -> None:
        self.env = simpy.Environment()
        self.port = simpy.Resource(self.env)
        self.units = units
        self.pieces = pieces
        self.done = [[self.env.event() for _ in range(unit.tiles)] for unit in units]
        self.starts = [0] * len(units)
        self.ends = [0] * len(units)
        self.waited = [0] * len(units)
        self.tiles: list[list[tuple[int, int]]] = [[] for _ in units]
        self.turns: list[list[tuple[int, int]]] = [[] for _ in units]

    def core(self, core: int) -> Steps:
        for number, unit in enumerate(self.units):
            if unit.core == core:
                for tile in range(unit.tiles):
                    yield from self._tile(number, tile)

    def _tile(self, number: int, tile: int) -> Steps:
        unit = self.units[number]
        for earlier, waits in unit.needs:
            if waits[tile] >= 0:
                yield self.done[earlier][waits[tile]]
        start = int(self.env.now)
        if tile == 0:
            self.starts[number] = start
        yield from self._traffic(number, start)
        rest = start + unit.tile_ps - int(self.env.now)
        if rest > 0:
            yield self.env.timeout(rest)
        self.ends[number] = int(self.env.now)
        self.tiles[number].append((start, self.ends[number]))
        self.done[number][tile].succeed()

    def _traffic(self, number: int, start: int) -> Steps:
        unit = self.units[number]
        for piece in range(self.pieces):
            size = _share(unit.port_ps, piece, self.pieces)
            if size == 0:
                continue
            # Alone, the last piece ends with the tile.
            idle = unit.tile_ps - unit.port_ps
            due = start + idle * piece // self.pieces + unit.port_ps * piece // self.pieces
            if due > self.env.now:
                yield self.env.timeout(due - int(self.env.now))
            asked = int(self.env.now)
            with self.port.request() as turn:
                yield turn
                served = int(self.env.now)
                self.waited[number] += served - asked
                self.turns[number].append((served, served + size))
                yield self.env.timeout(size)


def _share(total: int, piece: int, pieces: int) -> int:
    return total * (piece + 1) // pieces - total * piece // pieces
