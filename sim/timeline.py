"""What happens when: an event simulation of a whole workload as slices on tracks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from arch.spec import Architecture
from mapper.cost import Mappings, Metrics, PriceList
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from sim.engine import Listeners, simulate
from sim.kernel_models import evaluate, runs_kernels
from sim.lowered import lower_operator, operators_with_mappings
from sim.prices import price, price_all
from sim.process import Process
from sim.schedule import Schedule, build_schedule, busy_ps
from sim.steady import Skip

#: What the tracks of a timeline stand for, in the order in which to show them.
GROUPS = ("operators", "ports", "processes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Something that takes time on a track of a group (see ``GROUPS``).

    On a port it is the time that one tile operation occupies it, on a process the time from
    issuing the operation to the last port being done. ``busy_ps`` is less than the duration
    where a slice stands for ``iterations`` of a loop in steady state.
    """

    group: str
    track: str
    name: str
    start_ps: int
    duration_ps: int
    busy_ps: int
    iterations: int = 1


def timeline(
    workload: Workload, architecture: Architecture, mappings: Mappings, price_of: PriceList = price
) -> Iterator[Slice]:
    """Slices of all operators, one operator after the other; within one, in order of issue."""
    if runs_kernels(architecture):
        yield from kernel_slices(evaluate(workload, architecture, {}, "event"))
        return
    prices = price_all(architecture, price_of)
    start = 0
    for operator, mapping, _ in operators_with_mappings(workload, mappings):
        program = lower_operator(workload, operator, mapping, architecture).program
        latency, slices = operator_timeline(operator, build_schedule(program, prices))
        yield Slice(
            group="operators",
            track="operator",
            name=operator.name,
            start_ps=start,
            duration_ps=latency,
            busy_ps=latency,
        )
        for piece in slices:
            yield replace(piece, start_ps=piece.start_ps + start)
        start += latency


def kernel_slices(metrics: Metrics) -> Iterator[Slice]:
    """Kernels one after the other, and how long each keeps every component busy."""
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
                duration_ps=busy,
                busy_ps=busy,
            )
        start += run.latency_ps


def operator_timeline(operator: Operator, schedule: Schedule) -> tuple[int, list[Slice]]:
    """Latency of one operator, and its slices from time zero."""
    return schedule_timeline(schedule, _tracks(operator, schedule))


def schedule_timeline(schedule: Schedule, tracks: dict[str, str]) -> tuple[int, list[Slice]]:
    """As ``operator_timeline``; ``tracks`` names the track of each process."""
    recorder = _Recorder(tracks)
    latency = simulate(schedule, listeners=Listeners(issue=recorder.issue, skip=recorder.skip))
    return latency, recorder.slices


def _tracks(operator: Operator, schedule: Schedule) -> dict[str, str]:
    """Names of processes that are the same for all operators: roles, not tensors."""
    names = {"compute": "compute"}
    for stage in schedule.stages:
        role = operator.role(stage.operand)
        if role == "input" and stage.operand > 0:
            role = f"input {stage.operand + 1}"
        for verb in ("load", "store"):
            names[f"{verb} {stage}"] = f"{verb} {role} in {stage.memory}"
    return names


@dataclass(slots=True)
class _Recorder:
    tracks: dict[str, str]
    slices: list[Slice] = field(default_factory=list)

    def issue(
        self, process: Process, name: str, issued_ps: int, served: list[tuple[str, int, int]]
    ) -> None:
        for port, start, end in served:
            self._add("ports", port, name, (start, end))
        self._add("processes", self.tracks[process.name], name, (issued_ps, process.time_ps))

    def _add(self, group: str, track: str, name: str, span_ps: tuple[int, int]) -> None:
        start, end = span_ps
        duration = end - start
        self.slices.append(
            Slice(
                group=group,
                track=track,
                name=name,
                start_ps=start,
                duration_ps=duration,
                busy_ps=duration,
            )
        )

    def skip(self, skip: Skip) -> None:
        busy = busy_ps(skip.loop.body)
        spans = [
            ("ports", port, start, busy[port] * skip.iterations)
            for port, start in skip.port_from_ps.items()
        ]
        spans += [
            ("processes", self.tracks[process], start, skip.span_ps)
            for process, start in skip.process_from_ps.items()
        ]
        for group, track, start, busy_in_span in spans:
            self.slices.append(
                Slice(
                    group=group,
                    track=track,
                    name=f"{skip.loop.label}: x {skip.iterations} iterations, steady state",
                    start_ps=start,
                    duration_ps=skip.span_ps,
                    busy_ps=busy_in_span,
                    iterations=skip.iterations,
                )
            )
