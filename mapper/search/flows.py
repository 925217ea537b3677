"""The cost of one order of stages as lists of terms, which the compiled search adds up.

Most of the cost is linear in volumes; what is not is whether an output is as wide as a partial
sum, and how many slots a buffer has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mapper.search import pricing
from mapper.search.pricing import FloatArray, IntArray, Model

PlaceArray = NDArray[np.uint32]
Number = TypeVar("Number", int, float)


class Flows(NamedTuple):
    """A model as lists of terms, each a row of ``places`` (column numbers) and ``numbers``.

    The rows follow one another by kind: ``linear`` terms (places: volume, port; numbers: ticks
    and energy of one), ``sums`` whose width depends on whether there are partial sums (volume,
    volume times lanes used, port, revisits; ticks and energy when final, ticks and energy when
    partial, how many are for free), ``tiles`` held (volume, memory, revisits, visits; bits when
    final, bits when partial, slots) and ``waits`` for round trips and first tiles (loads, own
    revisits, visits, volume; latency, slots, whether an output, time to move one, time per visit
    that only decides between equals).
    """

    places: PlaceArray
    numbers: FloatArray
    linear: int
    sums: int
    tiles: int
    waits: int
    #: Per port: ticks whatever the mapping, and ticks per picosecond.
    ports: FloatArray
    capacity_bits: FloatArray
    axis_columns: PlaceArray
    axis_sizes: FloatArray
    #: Columns of steps, of steps times the lanes used, and of folds.
    steps_columns: PlaceArray
    lanes: float
    step_ticks: float
    fold_ticks: float
    aside_ticks: float
    step_ticks_per_ps: float
    least_ps: float
    fixed_pj: float
    leakage_w: float
    objective: int


@dataclass(slots=True)
class _Rows:
    places: list[tuple[int, ...]] = field(default_factory=list)
    numbers: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, places: tuple[int, ...], numbers: tuple[float, ...]) -> None:
        self.places.append(places)
        self.numbers.append(numbers)


class _Port(NamedTuple):
    """One direction of a memory."""

    number: int
    ticks_per_bit: float
    pj_per_bit: float


class _Terms:
    """Collects the terms of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.memories: list[list[float]] = model.memories.tolist()
        self.linear, self.sums, self.tiles, self.waits = _Rows(), _Rows(), _Rows(), _Rows()
        self.port_ticks = [0.0] * (2 * len(model.memories))
        self.fixed_pj = model.compute_pj
        for stage in model.stages.tolist():
            self._add_stage(stage)
        for path in model.datapaths.tolist():
            self._add_datapath(path)

    def _port(self, memory: int, *, write: bool) -> _Port:
        row = self.memories[memory]
        turn = write and not row[pricing.SHARED_PORT]
        ticks, energy = (
            (pricing.WRITE_TICKS, pricing.WRITE_PJ)
            if write
            else (pricing.READ_TICKS, pricing.READ_PJ)
        )
        return _Port(2 * memory + int(turn), row[ticks], row[energy])

    def _add(self, port: _Port, column: int, bits: float) -> None:
        self.linear.add((column, port.number), (bits * port.ticks_per_bit, bits * port.pj_per_bit))

    def _add_constant(self, port: _Port, bits: float) -> None:
        self.port_ticks[port.number] += bits * port.ticks_per_bit
        self.fixed_pj += bits * port.pj_per_bit

    def _add_sum(
        self, port: _Port, columns: tuple[int, int, int], bits: tuple[float, float], free: float
    ) -> None:
        moved, lifted, revisits = columns
        final, partial = bits
        self.sums.add(
            (moved, lifted, port.number, revisits),
            (
                final * port.ticks_per_bit,
                final * port.pj_per_bit,
                partial * port.ticks_per_bit,
                partial * port.pj_per_bit,
                free,
            ),
        )

    def _add_stage(self, s: list[int]) -> None:
        if s[pricing.IS_OUTPUT]:
            self._add_output(s)
        else:
            bits = float(s[pricing.FINAL_BITS])
            self._add(self._port(s[pricing.PARENT], write=False), s[pricing.COL_PARENT], bits)
            self._add(self._port(s[pricing.CHILD], write=True), s[pricing.COL_CHILD], bits)
        slots = 2.0 if s[pricing.DOUBLE_BUFFERED] else 1.0
        final = float(s[pricing.FINAL_BITS])
        partial = float(s[pricing.PARTIAL_BITS]) if s[pricing.IS_OUTPUT] else final
        self.tiles.add(
            (s[pricing.COL_HELD], s[pricing.CHILD], s[pricing.COL_REVISITS], s[pricing.COL_VISITS]),
            (final, partial, slots),
        )
        loads = s[pricing.COL_FRESH] if s[pricing.IS_OUTPUT] else s[pricing.COL_VISITS]
        held, latency_ps = bool(s[pricing.IS_HELD]), float(s[pricing.LATENCY_PS])
        self.waits.add(
            (loads, s[pricing.COL_OWN_REVISITS], s[pricing.COL_VISITS], s[pricing.COL_PARENT]),
            (
                latency_ps if held else 0.0,
                slots,
                float(s[pricing.IS_OUTPUT]),
                final * self._ps_per_bit(s),
                float(s[pricing.VISIT_PS]),
            ),
        )

    def _ps_per_bit(self, s: list[int]) -> float:
        """From one memory to the other; instances of a replicated one are reached all at once."""
        ends = [(s[pricing.PARENT], bool(s[pricing.IS_OUTPUT]))]
        if s[pricing.IS_SHARED]:
            ends.append((s[pricing.CHILD], not s[pricing.IS_OUTPUT]))
        return max(
            self._port(memory, write=write).ticks_per_bit
            / self.memories[memory][pricing.TICKS_PER_PS]
            for memory, write in ends
        )

    def _add_output(self, s: list[int]) -> None:
        """Reading partial sums back, and writing sums out."""
        partial, outputs = float(s[pricing.PARTIAL_BITS]), float(s[pricing.OUTPUTS])
        final = float(s[pricing.FINAL_BITS])
        at_parent = s[pricing.COL_PARENT]
        for memory, write in ((s[pricing.PARENT], False), (s[pricing.CHILD], True)):
            self._add(self._port(memory, write=write), at_parent, partial)
            self._add_constant(self._port(memory, write=write), -outputs * partial)
        into_parent = self._port(s[pricing.PARENT], write=True)
        self._add(into_parent, at_parent, partial)
        self._add_constant(into_parent, outputs * (float(s[pricing.PARENT_FINAL_BITS]) - partial))
        out_of_child = self._port(s[pricing.CHILD], write=False)
        at_child = s[pricing.COL_CHILD]
        if s[pricing.IS_INNERMOST]:
            columns = at_child, at_child, s[pricing.COL_REVISITS]
            self._add_sum(out_of_child, columns, (final, partial), 0.0)
        else:
            self._add(out_of_child, at_child, partial)
            self._add_constant(out_of_child, outputs * (final - partial))

    def _add_datapath(self, p: list[int]) -> None:
        columns = p[pricing.COL_MOVED], p[pricing.COL_LIFTED], self.model.unit_revisits_column
        bits = float(p[pricing.D_FINAL_BITS]), float(p[pricing.D_PARTIAL_BITS])
        if not p[pricing.D_IS_OUTPUT]:
            bits = bits[0], bits[0]
        free = float(p[pricing.D_OUTPUTS]) if p[pricing.D_IS_OUTPUT] else 0.0
        self._add_sum(self._port(p[pricing.MEMORY], write=False), columns, bits, free)
        if p[pricing.D_IS_OUTPUT]:
            self._add_sum(self._port(p[pricing.MEMORY], write=True), columns, bits, 0.0)

    def in_order(self) -> Iterator[_Rows]:
        yield from (self.linear, self.sums, self.tiles, self.waits)


def flows(model: Model) -> Flows:
    """The model in the form that ``costs.cost`` reads."""
    terms = _Terms(model)
    ends = np.cumsum([len(rows.places) for rows in terms.in_order()])
    every = list(terms.in_order())
    places = np.array(
        [_padded(r, 4) for rows in every for r in rows.places], dtype=np.uint32
    ).reshape(-1, 4)
    numbers = np.array(
        [_padded(r, 5) for rows in every for r in rows.numbers], dtype=np.float64
    ).reshape(-1, 5)
    ticks_per_ps = np.repeat(model.memories[:, pricing.TICKS_PER_PS], 2)
    return Flows(
        places=places,
        numbers=numbers,
        linear=int(ends[0]),
        sums=int(ends[1]),
        tiles=int(ends[2]),
        waits=int(ends[3]),
        ports=np.stack([np.array(terms.port_ticks), ticks_per_ps], axis=1),
        capacity_bits=np.ascontiguousarray(model.memories[:, pricing.CAPACITY_BITS]),
        axis_columns=model.axis_columns.astype(np.uint32),
        axis_sizes=model.axis_sizes,
        steps_columns=np.array(
            [model.steps_column, model.lifted_steps_column, model.fold_column], dtype=np.uint32
        ),
        lanes=model.lanes,
        step_ticks=model.step_ticks,
        fold_ticks=model.fold_ticks,
        aside_ticks=model.aside_ticks,
        step_ticks_per_ps=model.step_ticks_per_ps,
        least_ps=model.least_ps,
        fixed_pj=terms.fixed_pj,
        leakage_w=model.leakage_w,
        objective=model.objective,
    )


def _padded(row: tuple[Number, ...], width: int) -> tuple[Number | int, ...]:
    return row + (0,) * (width - len(row))


def decisive(flows: Flows) -> IntArray:
    """Columns that the cost depends on, except for the exposed time.

    Of two mappings, one that is nowhere larger in these costs no more than the other. Columns
    times the lanes used are left out: they only serve bounds.
    """
    linear, sums, tiles, waits = np.split(
        flows.places.astype(np.int64), [flows.linear, flows.sums, flows.tiles]
    )
    numbers = np.split(flows.numbers, [flows.linear, flows.sums, flows.tiles])
    by_width = numbers[1][:, :2] != numbers[1][:, 2:4]
    late = numbers[3][:, 0] > 0
    found = [
        linear[numbers[0][:, :2].any(axis=1), 0],
        sums[:, 0],
        sums[by_width.any(axis=1), 3],
        tiles[:, 0],
        tiles[numbers[2][:, 0] != numbers[2][:, 1], 2],
        tiles[numbers[2][:, 2] > 1, 3],
        waits[late, 0],
        waits[late & (numbers[3][:, 2] > 0), 1],
        waits[late & (numbers[3][:, 1] > 1), 2],
        flows.axis_columns.astype(np.int64),
        flows.steps_columns[:: 2 if flows.fold_ticks else 3].astype(np.int64),
    ]
    return np.unique(np.concatenate(found))


def compacted(flows: Flows, decisive: IntArray) -> tuple[IntArray, Flows]:
    """Columns that bounds and costs need beside the decisive ones, and the terms over these alone.

    Exposed are then only transfers that are late.
    """
    kept = np.union1d(decisive, flows.steps_columns.astype(np.int64))
    kept = np.union1d(kept, flows.places[flows.linear : flows.sums, 1].astype(np.int64))
    position = np.zeros(int(flows.places.max()) + int(kept.max()) + 1, dtype=np.uint32)
    position[kept] = np.arange(len(kept))
    places = position[flows.places]
    # Ports and memories are no columns.
    places[: flows.linear, 1] = flows.places[: flows.linear, 1]
    places[flows.linear : flows.sums, 2] = flows.places[flows.linear : flows.sums, 2]
    places[flows.sums : flows.tiles, 1] = flows.places[flows.sums : flows.tiles, 1]
    rows = np.ones(flows.waits, dtype=np.bool_)
    rows[flows.tiles :] = flows.numbers[flows.tiles :, 0] > 0
    return kept, _without_nothing(
        flows._replace(
            places=np.ascontiguousarray(places[rows]),
            numbers=np.ascontiguousarray(flows.numbers[rows]),
            waits=int(rows.sum()),
            axis_columns=position[flows.axis_columns],
            steps_columns=position[flows.steps_columns],
        )
    )


def _without_nothing(flows: Flows) -> Flows:
    """Terms of one volume and port added up, and none that cost nothing; nor ports without any."""
    linear: dict[tuple[int, int], FloatArray] = {}
    for place, number in zip(
        flows.places[: flows.linear].tolist(), flows.numbers[: flows.linear], strict=True
    ):
        key = place[0], place[1]
        linear[key] = linear[key] + number if key in linear else number
    some = {key: number for key, number in linear.items() if number.any()}
    sums = [t for t in range(flows.linear, flows.sums) if flows.numbers[t, :4].any()]
    rest = np.array([*sums, *range(flows.sums, flows.waits)], dtype=np.int64)
    places = np.array([(*key, 0, 0) for key in some], dtype=np.uint32).reshape(-1, 4)
    numbers = np.array(list(some.values()), dtype=np.float64).reshape(-1, 5)
    ports, places, moved = _used_ports(flows, places, flows.places[sums])
    after = np.concatenate([moved, flows.places[flows.sums : flows.waits]])
    dropped = flows.sums - len(some) - len(sums)
    return flows._replace(
        places=np.concatenate([places, after]),
        numbers=np.concatenate([numbers, flows.numbers[rest]]),
        linear=len(some),
        sums=flows.sums - dropped,
        tiles=flows.tiles - dropped,
        waits=flows.waits - dropped,
        ports=ports,
    )


def _used_ports(
    flows: Flows, linear: PlaceArray, sums: PlaceArray
) -> tuple[FloatArray, PlaceArray, PlaceArray]:
    """The ports that something passes (at least as many as there are memories: what they hold is
    added up in the same scratch), and the terms with these numbers."""
    used = np.union1d(np.union1d(linear[:, 1], sums[:, 2]), np.flatnonzero(flows.ports[:, 0]))
    others = np.setdiff1d(np.arange(len(flows.ports)), used)
    kept = np.concatenate([used, others[: max(len(flows.capacity_bits) - len(used), 0)]])
    number = np.zeros(len(flows.ports), dtype=np.uint32)
    kept = kept.astype(np.int64)
    number[kept] = np.arange(len(kept))
    linear, sums = linear.copy(), sums.copy()
    linear[:, 1], sums[:, 2] = number[linear[:, 1]], number[sums[:, 2]]
    return flows.ports[kept], linear, sums
