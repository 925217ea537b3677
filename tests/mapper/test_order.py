"""The order of fewest live bytes against all orders, and its lower bound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from mapper.order import best_order, peak_bytes, reordered
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.nests import at
from mapper.workload.operators import Access, Operator, Tensor
from sim.memory import peak_live_bytes


def random_graph(rng: np.random.Generator, operators: int) -> Workload:
    """Every operator adds up one to three earlier tensors into a new one of random size."""
    sizes = [int(s) for s in rng.integers(1, 30, operators + 1)]
    tensors = [Tensor(name="t0", shape=(sizes[0],), dtype="int8", kind="input")]
    made = []
    for number in range(1, operators + 1):
        count = int(rng.integers(1, min(number, 3) + 1))
        read = rng.choice(number, count, replace=False)
        kind = "output" if number == operators else "activation"
        tensors.append(Tensor(name=f"t{number}", shape=(sizes[number],), dtype="int8", kind=kind))
        made.append(
            Operator(
                name=f"o{number}",
                kind="add",
                operation="add",
                extents={"D": 1},
                inputs=tuple(Access(f"t{i}", at("D")) for i in read),
                output=Access(f"t{number}", at("D")),
                accumulator_dtype="int8",
            )
        )
    return Workload(name="random", tensors=tuple(tensors), operators=tuple(made))


def legal_orders(workload: Workload) -> list[Workload]:
    producer = {o.output.tensor: o.name for o in workload.operators}
    found = []
    for order in itertools.permutations(workload.operators):
        done: set[str] = set()
        for operator in order:
            if any(
                producer.get(a.tensor, operator.name) not in done
                for a in operator.inputs
                if a.tensor in producer
            ):
                break
            done.add(operator.name)
        else:
            found.append(reordered(workload, [o.name for o in order]))
    return found


@pytest.mark.parametrize("seed", range(20))
def test_equals_the_best_of_all_orders(seed: int) -> None:
    workload = random_graph(np.random.default_rng(seed), 6)
    order = best_order(workload)
    peaks = [peak_live_bytes(other) for other in legal_orders(workload)]
    assert order.peak_bytes == min(peaks)
    assert order.optimal
    assert peak_live_bytes(reordered(workload, order.operators)) == order.peak_bytes


@pytest.mark.parametrize("seed", range(10))
def test_a_narrow_search_keeps_an_honest_bound(seed: int) -> None:
    workload = random_graph(np.random.default_rng(100 + seed), 7)
    exact = best_order(workload)
    for beam in (1, 2, 3):
        narrow = best_order(workload, beam)
        assert narrow.lower_bound_bytes <= exact.peak_bytes <= narrow.peak_bytes
        assert narrow.peak_bytes <= peak_bytes(workload)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_networks_as_they_come_are_already_in_the_best_order(name: str) -> None:
    workload = load_workload(name)
    order = best_order(workload)
    assert order.optimal
    weights = sum(t.elements for t in workload.tensors if t.kind == "weight")
    assert order.peak_bytes == peak_bytes(workload) == peak_live_bytes(workload) - weights
