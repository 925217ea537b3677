"""Recomputation: claims of every method against a simulation, and against all schedules."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("ortools", reason="the exact method is a constraint program")

from mapper.cost import InfeasibleError
from mapper.memory_plan.rematerialize import (
    Node,
    StepGraph,
    best_checkpoints,
    checkpoints,
    graph_of,
    keep_everything,
    root_checkpoints,
    run,
)
from mapper.memory_plan.retention import cheapest
from mapper.workload.load import load_workload


def chain(length: int) -> StepGraph:
    """``length`` layers of one byte and their backward passes: each reads the layer's input and the
    gradient that the one before left."""
    forward = [_node(f"f{i}", (i - 1,) if i else ()) for i in range(length)]
    backward = []
    for j, layer in enumerate(reversed(range(length))):
        needs = {length + j - 1} if j else {length - 1}
        needs |= {layer - 1} if layer else set()
        backward.append(_node(f"b{layer}", tuple(sorted(needs))))
    return StepGraph(nodes=(*forward, *backward), base_bytes=0, forward=length)


def _node(name: str, needs: tuple[int, ...], **more: int) -> Node:
    size, cost = more.get("size", 1), more.get("cost", 1)
    return Node(name=name, size_bytes=size, cost=cost, needs=needs, kept=False, latest=10**6)


def random_graph(rng: np.random.Generator) -> StepGraph:
    """A few nodes; late ones read early ones, as a backward pass does."""
    count = int(rng.integers(4, 8))
    nodes = []
    for number in range(count):
        choices = rng.permutation(number)[: int(rng.integers(1, 3))]
        needs = tuple(sorted({int(x) for x in choices} | ({number - 1} if number else set())))
        size, cost = (int(x) for x in rng.integers(1, 6, size=2))
        nodes.append(_node(f"n{number}", needs, size=size, cost=cost))
    return StepGraph(nodes=tuple(nodes), base_bytes=int(rng.integers(3)), forward=count // 2)


def every_sequence(graph: StepGraph, most: int) -> Iterator[tuple[int, ...]]:
    """All sequences in which stage ``k`` computes some earlier nodes again, then node ``k``."""
    stages = [
        [(*again, k) for size in range(k + 1) for again in itertools.combinations(range(k), size)]
        for k in range(len(graph.nodes))
    ]
    for chosen in itertools.product(*stages):
        sequence = tuple(itertools.chain.from_iterable(chosen))
        if all(sequence.count(n) <= most for n in set(sequence)):
            yield sequence


def least_cost(graph: StepGraph, limit_bytes: int, most: int) -> int | None:
    """By trying all of them, cheapest first cut by cost."""
    best: int | None = None
    for sequence in every_sequence(graph, most):
        cost = sum(graph.nodes[n].cost for n in sequence)
        if best is not None and cost >= best:
            continue
        try:
            found = run(graph, sequence)
        except ValueError:
            continue
        if found.peak_bytes <= limit_bytes:
            best = cost
    return best


@pytest.mark.parametrize("length", [9, 16, 25])
def test_checkpoints_of_a_chain_need_twice_the_root(length: int) -> None:
    """Closed form: the root's number of checkpoints, one run of the root's length, and what the
    step itself reads and writes; less than one more forward pass of work."""
    graph, root = chain(length), math.isqrt(length)
    found = root_checkpoints(graph)
    assert keep_everything(graph).peak_bytes == length + 1
    assert 2 * root - 1 <= found.peak_bytes <= 2 * root + 2
    assert graph.cost < found.cost <= graph.cost + length


def test_one_run_keeps_everything() -> None:
    graph = chain(7)
    assert checkpoints(graph, 1).sequence == keep_everything(graph).sequence


def test_the_simulation_refuses_what_is_not_there() -> None:
    graph = chain(3)
    with pytest.raises(ValueError, match="reads f0, which is not there"):
        run(graph, (1, 0, 2, 3, 4, 5))
    with pytest.raises(ValueError, match="not everything"):
        run(graph, (0, 1, 2, 3, 4))


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_method_equals_all_schedules(seed: int) -> None:
    """Differential: on small graphs, at every limit between the least and everything kept."""
    graph = random_graph(np.random.default_rng(seed))
    everything = keep_everything(graph).peak_bytes
    for limit in range(graph.least_bytes, everything + 1):
        wanted = least_cost(graph, limit, most=2)
        if wanted is None:
            with pytest.raises(InfeasibleError):
                cheapest(graph, limit, most=2)
            continue
        found = cheapest(graph, limit, most=2)
        assert found is not None
        assert found.optimal
        assert (found.run.cost, found.run.peak_bytes <= limit) == (wanted, True)
        assert run(graph, found.run.sequence) == found.run


def test_more_memory_never_costs_more() -> None:
    """Monotone, and never worse than checkpoints, which need more work or more memory."""
    graph = graph_of(load_workload("mlperf_kws:training=sgd"))
    everything = keep_everything(graph)
    limits = np.linspace(root_checkpoints(graph).peak_bytes, everything.peak_bytes, 3)
    costs = []
    for limit in map(int, limits):
        found, simple = cheapest(graph, limit), best_checkpoints(graph, limit)
        assert found is not None
        assert simple is not None
        assert found.run.peak_bytes <= limit
        assert found.lower_bound <= found.run.cost <= simple.cost
        costs.append(found.run.cost)
    assert costs == sorted(costs, reverse=True)
    assert costs[0] > costs[-1] == graph.cost


def test_a_stopped_search_says_how_far_it_may_be_from_the_best() -> None:
    graph = graph_of(load_workload("mlperf_ic:training=sgd"))
    limit = root_checkpoints(graph).peak_bytes
    found = cheapest(graph, limit, effort=1e-4)
    assert found is not None
    assert graph.cost <= found.lower_bound <= found.run.cost
    assert found.gap > 0


def test_a_training_step_as_a_graph() -> None:
    """Conservation: all work once, gradients of parameters gone after their update; nothing that
    reads a parameter runs again after it was overwritten."""
    workload = load_workload("mlperf_ad:training=sgd")
    graph = graph_of(workload)
    assert graph.cost == sum(o.operations for o in workload.operators)
    assert 0 < graph.forward < len(graph.nodes)
    names = [node.name for node in graph.nodes]
    for number, node in enumerate(graph.nodes):
        assert all(read < number for read in node.needs)
        if node.name.endswith(".update"):
            assert node.size_bytes == 0
            assert f"{node.name.removesuffix('.update')}.grad" in {names[n] for n in node.needs}
    # Keeping everything then needs one gradient of a parameter at a time, not all of them.
    weights = sum(t.elements for t in workload.tensors if t.kind == "weight")
    assert keep_everything(graph).peak_bytes - graph.base_bytes < weights
