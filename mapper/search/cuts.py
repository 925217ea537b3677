"""What a network can be cut into for several cores: units, their tiles, and what they wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from arch.spec import Architecture
from mapper.cost import InfeasibleError
from mapper.plan import Unit
from mapper.search.cut_choices import Choice, Cuts
from mapper.search.schedule import Schedules
from mapper.unit_tiles import UnitTiles, unit_tiles
from mapper.workload.graph import Workload

#: Operators of a unit at most.
LONGEST = 4
#: Units are tiled at least this finely, so that cores can overlap them: fine tiles fill a
#: pipeline sooner, coarse ones cost less.
LEAST_TILES = (4, 16)

#: Latency, energy without leakage, time of the shared memory's port.
UnitNumbers = Callable[[Workload, Architecture, Unit], tuple[int, float, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Units:
    """``units[i]`` is what choice ``i`` of the cuts stands for."""

    units: tuple[Unit, ...]
    cuts: Cuts


def units_of(found: Schedules, numbers: UnitNumbers) -> Units:
    """Every way to run up to ``LONGEST`` neighbours: as one core would, and tiled over each set
    of loops that helps."""
    workload, architecture = found.setting.workload, found.setting.architecture
    places: list[tuple[int, int]] = []
    units: list[Unit] = []
    for start in range(len(workload.operators)):
        for end in range(start + 1, min(start + LONGEST, len(workload.operators)) + 1):
            for unit in dict.fromkeys(_ways(found, start, end)):
                places.append((start, end))
                units.append(unit)
    tiles = [unit_tiles(workload, architecture, unit) for unit in units]
    choices = tuple(
        _choice(place, each, numbers(workload, architecture, unit))
        for place, each, unit in zip(places, tiles, units, strict=True)
    )
    cuts = Cuts(
        operators=len(workload.operators),
        choices=choices,
        waits=_waits(places, tiles),
        cores=architecture.cores,
        leakage_w=architecture.leakage_w,
        objective=found.setting.objective,
    )
    return Units(units=tuple(units), cuts=cuts)


def _choice(place: tuple[int, int], tiles: UnitTiles, numbers: tuple[int, float, int]) -> Choice:
    latency_ps, dynamic_pj, shared_ps = numbers
    return Choice(
        start=place[0],
        end=place[1],
        tiles=tiles.count,
        tile_ps=-(-latency_ps // tiles.count),
        shared_ps=shared_ps,
        dynamic_pj=dynamic_pj,
    )


def _ways(found: Schedules, start: int, end: int) -> Iterator[Unit]:
    operators = found.setting.workload.operators[start:end]
    names = tuple(operator.name for operator in operators)
    whole = found.groups(1)
    if len(operators) == 1:
        with suppress(InfeasibleError):
            yield found.mapped.single(operators[0], {}, {})[0]
    elif whole is not None and (best := whole.best(names, {}, {})) is not None:
        yield best.fused
    for tiles in LEAST_TILES:
        tiled = found.groups(tiles)
        for one in tiled.by_loops(names) if tiled else ():
            yield one.fused


def _waits(
    places: list[tuple[int, int]], tiles: list[UnitTiles]
) -> Mapping[tuple[int, int], tuple[int, ...]]:
    """Between choices of which one follows the other and touches what it reads or writes."""
    touching: dict[str, list[int]] = {}
    for number, each in enumerate(tiles):
        for tensor in dict.fromkeys((*each.reads, each.result)):
            touching.setdefault(tensor, []).append(number)
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    for after, each in enumerate(tiles):
        related = (*each.reads, each.result) if each.overwrites else tuple(each.reads)
        earlier = {
            before
            for tensor in related
            for before in touching[tensor]
            if places[before][1] <= places[after][0]
        }
        for before in sorted(earlier):
            waits = each.waits_for(tiles[before])
            if waits is not None:
                found[before, after] = waits
    return found
