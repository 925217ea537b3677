"""What happens when: an event simulation of a whole workload as slices on tracks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from arch.spec import Architecture
from mapper.cost import Mappings, Metrics, PriceList
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from sim.engine import Listeners, simulate
from sim.event import schedule_of
from sim.kernel_models import evaluate, runs_kernels
from sim.lowered import lower_operator, operators_with_mappings
from sim.prices import price, price_all
from sim.process import Process
from sim.schedule import PricedOp, Schedule, busy_ps, operations
from sim.steady import Skip

#: What the tracks of a timeline stand for, in the order in which to show them.
GROUPS = ("operators", "ports", "processes")


#: The process of the compute unit, and its track.
COMPUTE = "compute"


class TooManySlicesError(Exception):
    """There is more to see than is asked for at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Something that takes time on a track of a group (see ``GROUPS``).

    On a port it is the time that one tile operation occupies it, on a process the time from
    issuing the operation to the last port being done. ``busy_ps`` is less than the duration
    where a slice stands for ``iterations`` of a loop in steady state. ``tile`` counts the runs
    of the same operation. A port's slice began ``waited_ps`` after it was requested; a process's
    has ``moved_bytes`` on their way and spends ``energy_pj``.
    """

    group: str
    track: str
    name: str
    start_ps: int
    duration_ps: int
    busy_ps: int
    iterations: int = 1
    tile: int = 0
    waited_ps: int = 0
    moved_bytes: int = 0
    energy_pj: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is to be seen: slices that overlap a stretch of time (all of them), and at most so many
    of one operator. Loops in steady state are skipped outside of the stretch only."""

    stretch_ps: tuple[int, int] | None = None
    most_slices: int = 1 << 62

    def shows(self, piece: Slice) -> bool:
        if self.stretch_ps is None:
            return True
        begin, end = self.stretch_ps
        return piece.start_ps < end and begin <= piece.start_ps + piece.duration_ps

    def seen_from(self, start_ps: int) -> View:
        """The same stretch for a clock that began at ``start_ps``."""
        if self.stretch_ps is None:
            return self
        begin, end = self.stretch_ps
        return replace(self, stretch_ps=(begin - start_ps, end - start_ps))


#: All slices; what is steady is skipped everywhere.
EVERYTHING = View()


def timeline(
    workload: Workload,
    architecture: Architecture,
    mappings: Mappings,
    price_of: PriceList = price,
    view: View = EVERYTHING,
) -> Iterator[Slice]:
    """Slices of all operators, one operator after the other; within one, in order of issue."""
    if runs_kernels(architecture):
        kernels = kernel_slices(evaluate(workload, architecture, {}, "event"))
        yield from (piece for piece in kernels if view.shows(piece))
        return
    prices = price_all(architecture, price_of)
    start = 0
    for operator, mapping, _ in operators_with_mappings(workload, mappings):
        schedule = schedule_of(lower_operator(workload, operator, mapping, architecture), prices)
        latency, slices = operator_timeline(operator, schedule, view.seen_from(start))
        yield from placed(operator.name, (start, latency), slices, view)
        start += latency


def placed(name: str, span_ps: tuple[int, int], slices: list[Slice], view: View) -> Iterator[Slice]:
    """One operator (from, how long) and its slices, which count from its beginning."""
    start, latency = span_ps
    whole = Slice(
        group="operators",
        track="operator",
        name=name,
        start_ps=start,
        duration_ps=latency,
        busy_ps=latency,
    )
    moved = (replace(piece, start_ps=piece.start_ps + start) for piece in slices)
    yield from (piece for piece in (whole, *moved) if view.shows(piece))


def kernel_slices(metrics: Metrics) -> Iterator[Slice]:
    """Kernels one after the other, and how much of each every component is busy, evenly spread."""
    start = 0
    for run in metrics.operators:
        tracks = {name: part.busy_ps for name, part in run.components.items() if part.busy_ps}
        for group, track, busy in (
            ("operators", "operator", run.latency_ps),
            *(("ports", name, busy) for name, busy in tracks.items()),
        ):
            yield Slice(
                group=group,
                track=track,
                name=run.name,
                start_ps=start,
                duration_ps=max(busy, run.latency_ps),
                busy_ps=busy,
            )
        start += run.latency_ps


def operator_timeline(
    operator: Operator, schedule: Schedule, view: View = EVERYTHING
) -> tuple[int, list[Slice]]:
    """Latency of one operator, and its slices from time zero."""
    return schedule_timeline(schedule, _tracks(operator, schedule), view)


def schedule_timeline(
    schedule: Schedule, tracks: dict[str, str], view: View = EVERYTHING
) -> tuple[int, list[Slice]]:
    """As ``operator_timeline``; ``tracks`` names the track of each process."""
    recorder = _Recorder(tracks, view)
    listeners = Listeners(issue=recorder.issue, skip=recorder.skip)
    latency = simulate(schedule, listeners=listeners, window_ps=view.stretch_ps or (0, 0))
    return latency, recorder.slices


def _tracks(operator: Operator, schedule: Schedule) -> dict[str, str]:
    """Names of processes that are the same for all operators: roles, not tensors."""
    names = {COMPUTE: COMPUTE}
    for stage in schedule.stages:
        role = operator.role(stage.operand)
        if role == "input" and stage.operand > 0:
            role = f"input {stage.operand + 1}"
        for verb in ("load", "store"):
            names[f"{verb} {stage}"] = f"{verb} {role} in {stage.memory}"
    return names


@dataclass(slots=True)
class _Recorder:
    """Collects the slices that are to be seen; ``tiles`` counts what each operation did."""

    tracks: dict[str, str]
    view: View
    slices: list[Slice] = field(default_factory=list)
    tiles: Counter[PricedOp] = field(default_factory=Counter)

    def issue(
        self, process: Process, op: PricedOp, issued_ps: int, served: list[tuple[str, int, int]]
    ) -> None:
        self.tiles[op] += 1
        for port, start, end in served:
            wait = start - issued_ps
            self._add(op, "ports", port, (start, end), waited_ps=wait)
        self._add(
            op,
            "processes",
            self.tracks[process.name],
            (issued_ps, process.time_ps),
            moved_bytes=op.moved_bytes,
            energy_pj=op.energy_pj,
        )

    def _add(
        self, op: PricedOp, group: str, track: str, span_ps: tuple[int, int], **more: Any
    ) -> None:
        start, end = span_ps
        pause = dict(op.pauses_ps).get(track, op.recovery_ps) - op.recovery_ps
        piece = Slice(
            group=group,
            track=track,
            name=op.name,
            start_ps=start,
            duration_ps=end - start,
            busy_ps=end - start - pause,
            tile=self.tiles[op],
            **more,
        )
        self._keep(piece)

    def _keep(self, piece: Slice) -> None:
        if not self.view.shows(piece):
            return
        if len(self.slices) == self.view.most_slices:
            raise TooManySlicesError
        self.slices.append(piece)

    def skip(self, skip: Skip) -> None:
        for count, op in operations(skip.loop.body):
            self.tiles[op] += count * skip.iterations
        busy = busy_ps(skip.loop.body)
        spans = [
            ("ports", port, start, busy[port] * skip.iterations, 0.0)
            for port, start in skip.port_from_ps.items()
        ]
        spans += [
            ("processes", self.tracks[p], start, skip.span_ps, self._energy_pj(p, skip))
            for p, start in skip.process_from_ps.items()
        ]
        for group, track, start, busy_in_span, energy in spans:
            piece = Slice(
                group=group,
                track=track,
                name=f"{skip.loop.label}: x {skip.iterations} iterations, steady state",
                start_ps=start,
                duration_ps=skip.span_ps,
                busy_ps=busy_in_span,
                iterations=skip.iterations,
                energy_pj=energy,
            )
            self._keep(piece)

    def _energy_pj(self, process: str, skip: Skip) -> float:
        """Of all that was skipped, on the track of the compute process."""
        if self.tracks[process] != COMPUTE:
            return 0.0
        work = operations(skip.loop.body)
        return skip.iterations * math.fsum(count * op.energy_pj for count, op in work)
