"""What every hardware family must satisfy. Inherit it, name an architecture, and it runs.

    class TestMine(FamilyConformance):
        architecture = "mine"

Each check runs on the mapping that the exact mapper finds and on random legal mappings of
small, awkward operators.
"""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import ClassVar

import numpy as np
import pytest

from arch.load import load_architecture
from arch.spec import Architecture, Memory
from mapper.cost import InfeasibleError, Metrics
from mapper.mapping import Mapping
from mapper.program import Hold, Node, Repeat, Work
from mapper.search.exact import map_operator
from mapper.workload.graph import Workload
from sim.engine import simulate
from sim.lowered import Lowered, lower_operator
from sim.models import FIDELITIES, cost_model
from sim.ports import ports_of
from sim.prices import price, price_all
from sim.replay.engine import replay
from sim.schedule import build_schedule
from sim.timeline import Slice, timeline
from tests.conformance.mappings import random_mapping
from tests.conformance.workloads import workloads_for

#: Random mappings per operator, besides the one that the mapper finds.
RANDOM_MAPPINGS = 2

#: Programs of more tile operations are not simulated in full.
MOST_OPERATIONS = 20_000

#: A port serves requests in the order in which they come. A faster component may change that
#: order for the worse (as in any list scheduling), so at event fidelity doubling a bandwidth may
#: cost something: 12 % in the worst of some hundred random mappings, mostly nothing.
ORDER_EFFECT = 0.15


@dataclass(frozen=True, kw_only=True)
class Case:
    """A workload with a mapping of each of its operators."""

    workload: Workload
    architecture: Architecture
    mappings: dict[str, Mapping]

    def evaluate(self, fidelity: str) -> Metrics:
        return cost_model(fidelity).evaluate(self.workload, self.architecture, self.mappings)

    @cached_property
    def metrics(self) -> dict[str, Metrics]:
        """Per fidelity."""
        return {fidelity: self.evaluate(fidelity) for fidelity in FIDELITIES}

    @cached_property
    def lowered(self) -> list[Lowered]:
        return [
            lower_operator(self.workload, o, self.mappings[o.name], self.architecture)
            for o in self.workload.operators
        ]

    def on(self, architecture: Architecture) -> Case:
        return replace(self, architecture=architecture)


class FamilyConformance:
    """The suite. ``workloads`` may be overridden where the usual ones make no sense."""

    architecture: ClassVar[str]

    @classmethod
    def load(cls) -> Architecture:
        return load_architecture(cls.architecture)

    @classmethod
    def workloads(cls, architecture: Architecture) -> tuple[Workload, ...]:
        return workloads_for(architecture)

    @pytest.fixture(scope="class")
    @classmethod
    def cases(cls) -> list[Case]:
        architecture = cls.load()
        return [
            Case(workload=workload, architecture=architecture, mappings=mappings)
            for number, workload in enumerate(cls.workloads(architecture))
            for mappings in _mappings(workload, architecture, np.random.default_rng(number))
        ]

    def test_every_component_has_a_price(self) -> None:
        for component in self.load().components:
            entry = price(component)
            assert entry.read_ps_per_bit >= 0
            assert entry.write_ps_per_bit >= 0
            assert min(entry.step_ps, entry.latency_ps) >= 0
            assert min(entry.read_pj_per_bit, entry.write_pj_per_bit, entry.operation_pj) >= 0

    def test_roofline_at_most_analytical_at_most_event(self, cases: list[Case]) -> None:
        for case in cases:
            for quick, careful in pairwise(case.metrics.values()):
                for one, other in zip(quick.operators, careful.operators, strict=True):
                    assert one.latency_ps <= other.latency_ps, case
                assert quick.latency_ps <= careful.latency_ps

    def test_the_same_work_costs_the_same_dynamic_energy(self, cases: list[Case]) -> None:
        for case in cases:
            assert len({m.dynamic_energy_pj for m in case.metrics.values()}) == 1, case

    def test_parts_sum_to_totals(self, cases: list[Case]) -> None:
        for case in cases:
            for m in case.metrics.values():
                leakage = case.architecture.leakage_w * m.latency_ps
                assert _close(m.energy_pj, m.dynamic_energy_pj + leakage)
                assert _close(m.energy_pj, sum(c.energy_pj for c in m.components.values()))
                assert _close(m.energy_pj, sum(o.energy_pj for o in m.operators))
                assert m.latency_ps == sum(o.latency_ps for o in m.operators)
                assert m.macs == sum(o.macs for o in m.operators) == case.workload.macs
                for name, component in m.components.items():
                    parts = [o.components[name] for o in m.operators]
                    assert component.busy_ps == sum(p.busy_ps for p in parts)
                    assert _close(component.energy_pj, sum(p.energy_pj for p in parts))

    def test_traffic_is_what_the_programs_move(self, cases: list[Case]) -> None:
        for case in cases:
            moved: dict[str, Work] = defaultdict(Work)
            for lowered in case.lowered:
                for count, op in lowered.program.tile_ops():
                    for component, work in op.work:
                        moved[component] += work * count
            for m in case.metrics.values():
                for name, component in m.components.items():
                    assert component.read_bytes == math.ceil(moved[name].read_bits / 8)
                    assert component.write_bytes == math.ceil(moved[name].write_bits / 8)

    def test_what_is_read_from_a_parent_is_written_to_the_child(self, cases: list[Case]) -> None:
        for case in cases:
            for lowered in case.lowered:
                for hold in _holds(lowered.program.body):
                    _check_transfers(hold, case.architecture)

    def test_nothing_is_busy_for_longer_than_it_takes(self, cases: list[Case]) -> None:
        for case in cases:
            for m in case.metrics.values():
                for operator in m.operators:
                    for component in operator.components.values():
                        assert 0 <= component.busy_ps <= operator.latency_ps
                        assert 0 <= component.utilization <= 1
                    assert operator.bound_by in (*operator.components, "latency")

    def test_more_bandwidth_is_never_slower(self, cases: list[Case]) -> None:
        ratios: dict[str, list[float]] = {fidelity: [] for fidelity in FIDELITIES}
        for case in cases:
            prices = price_all(case.architecture, price)
            for memory in case.architecture.memories:
                faster = {**prices, memory.name: price(_twice_as_fast(memory))}
                for (fidelity, estimate), lowered in product(FIDELITIES.items(), case.lowered):
                    before = estimate(lowered, prices).latency_ps
                    ratios[fidelity].append(estimate(lowered, faster).latency_ps / before)
        in_order = ratios.pop("event")
        assert max(in_order) <= 1 + ORDER_EFFECT
        assert sum(ratio > 1 for ratio in in_order) < len(in_order) / 10
        assert all(max(found) <= 1 for found in ratios.values())

    def test_evaluation_is_pure_and_deterministic(self, cases: list[Case]) -> None:
        some = cases[-1::-RANDOM_MAPPINGS]
        before = copy.deepcopy(some)
        for case in some:
            assert case.metrics == {f: case.evaluate(f) for f in FIDELITIES}
        assert before == some

    def test_skipping_ahead_changes_nothing(self, cases: list[Case]) -> None:
        for case in cases:
            prices = price_all(case.architecture, price)
            for lowered in case.lowered:
                if sum(count for count, _ in lowered.program.tile_ops()) <= MOST_OPERATIONS:
                    schedule = build_schedule(lowered.program, prices)
                    assert simulate(schedule) == simulate(schedule, skip_ahead=False), case

    def test_the_engines_agree_to_the_picosecond(self, cases: list[Case]) -> None:
        for case in cases:
            prices = price_all(case.architecture, price)
            for lowered in case.lowered:
                schedule = build_schedule(lowered.program, prices)
                assert replay(schedule).latency_ps == simulate(schedule), case

    def test_the_gap_between_the_models_is_explained(self, cases: list[Case]) -> None:
        for case in cases:
            quick, careful = case.metrics["analytical"], case.metrics["event"]
            for one, other in zip(quick.operators, careful.operators, strict=True):
                assert sum(other.gap.values()) == other.latency_ps - one.latency_ps, case
                assert all(ps > 0 for ps in other.gap.values())
            assert sum(careful.gap.values()) == careful.latency_ps - quick.latency_ps

    def test_a_memory_must_be_large_enough_and_no_larger(self, cases: list[Case]) -> None:
        for case in cases:
            peaks = case.metrics["analytical"].memory
            for memory in case.architecture.memories:
                needed = peaks[memory.name]
                if needed > 1:
                    fits = case.on(_replaced(case.architecture, replace(memory, size_bytes=needed)))
                    fits.evaluate("analytical")
                    small = replace(memory, size_bytes=needed - 1)
                    with pytest.raises(InfeasibleError) as refusal:
                        case.on(_replaced(case.architecture, small)).evaluate("analytical")
                    assert refusal.value.needed > refusal.value.allowed
                    assert memory.name in refusal.value.limit

    def test_the_timeline_agrees_with_the_metrics(self, cases: list[Case]) -> None:
        for case in cases:
            metrics = case.metrics["event"]
            tracks: dict[tuple[str, str], list[Slice]] = defaultdict(list)
            for piece in timeline(case.workload, case.architecture, case.mappings):
                tracks[piece.group, piece.track].append(piece)
            for pieces in tracks.values():
                assert all(_end(a) <= b.start_ps for a, b in pairwise(pieces))
                assert _end(pieces[-1]) <= metrics.latency_ps
            operators = tracks["operators", "operator"]
            assert [p.duration_ps for p in operators] == [o.latency_ps for o in metrics.operators]
            for name in metrics.components:
                for port in ports_of(name):
                    busy = sum(p.busy_ps for p in tracks.get(("ports", port), []))
                    assert busy <= metrics.components[name].busy_ps


def _mappings(
    workload: Workload, architecture: Architecture, rng: np.random.Generator
) -> Iterator[dict[str, Mapping]]:
    """What the mapper finds, then random ones."""
    yield {
        o.name: map_operator(workload, o, architecture, price, "edp").mapping
        for o in workload.operators
    }
    for _ in range(RANDOM_MAPPINGS):
        yield {o.name: random_mapping(workload, o, architecture, rng) for o in workload.operators}


def _holds(nodes: tuple[Node, ...]) -> Iterator[Hold]:
    for node in nodes:
        match node:
            case Hold():
                yield node
                yield from _holds(node.body)
            case Repeat():
                yield from _holds(node.body)


def _check_transfers(hold: Hold, architecture: Architecture) -> None:
    """A bit is read once and written to as many instances as need it; stores never grow.
    Links between the memories are not looked at."""
    memory = architecture.component(hold.memory)
    assert isinstance(memory, Memory)
    memories = {m.name for m in architecture.memories}
    for op, is_load in ((hold.load, True), (hold.store, False)):
        works = [work for name, work in op.work if name in memories] if op else []
        read = sum(work.read_bits for work in works)
        written = sum(work.write_bits for work in works)
        if is_load:
            assert read == written if not memory.replicated_over else read <= written
        elif op:
            assert 0 < written <= read


def _twice_as_fast(memory: Memory) -> Memory:
    read, write = memory.read_bytes_per_s, memory.write_bytes_per_s
    return replace(
        memory,
        read_bytes_per_s=None if read is None else 2 * read,
        write_bytes_per_s=None if write is None else 2 * write,
    )


def _replaced(architecture: Architecture, memory: Memory) -> Architecture:
    components = tuple(memory if c.name == memory.name else c for c in architecture.components)
    return replace(architecture, components=components)


def _end(piece: Slice) -> int:
    return piece.start_ps + piece.duration_ps


def _close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
