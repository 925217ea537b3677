"""Random well-formed programs and prices, for differential and property tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from arch.spec import PLAIN, REQUESTERS, Arbiter
from mapper.cost import Price
from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work

#: Memories from the outermost inwards; every operand starts in the first.
MEMORIES = ("dram", "l2", "l1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large the random programs are, and how likely an operand is kept in a memory."""

    loops: int = 4
    count: int = 6
    ragged: float = 0.5
    inputs: int = 2
    kept: float = 0.6


def random_prices(rng: np.random.Generator) -> dict[str, Price]:
    """Times per bit are fractions; about half of the memories have one shared port."""
    prices = {
        name: Price(
            read_ps_per_bit=Fraction(int(rng.integers(0, 12)), int(rng.integers(1, 4))),
            write_ps_per_bit=Fraction(int(rng.integers(0, 12)), int(rng.integers(1, 4))),
            shared_port=bool(rng.integers(2)),
            latency_ps=int(rng.choice([0, 3, 40, 700])),
            read_pj_per_bit=float(rng.integers(1, 9)),
            write_pj_per_bit=float(rng.integers(1, 9)),
        )
        for name in MEMORIES
    }
    prices["unit"] = Price(
        step_ps=int(rng.integers(0, 9)),
        latency_ps=int(rng.choice([0, 5, 60, 900])),
        operation_pj=0.5,
    )
    return prices


def random_arbiters(rng: np.random.Generator, prices: dict[str, Price]) -> dict[str, Price]:
    """The same prices; about half of the components have an arbiter or a bounded queue, and most
    memories one port."""

    def arbiter() -> Arbiter:
        order = rng.permutation(REQUESTERS)[: int(rng.integers(1, 4))]
        queue = int(rng.integers(1, 4))
        return Arbiter(
            policy=str(rng.choice(["fifo", "priority", "round_robin"])),
            order=tuple(str(kind) for kind in order),
            queue=queue if rng.random() < 0.4 else None,
        )

    return {
        name: replace(
            price,
            arbiter=arbiter() if rng.random() < 0.6 else PLAIN,
            shared_port=price.shared_port or rng.random() < 0.5,
        )
        for name, price in prices.items()
    }


def random_program(rng: np.random.Generator, shape: Shape) -> Program:
    """Inputs and an output, staged in random memories, under loops in random order."""
    items: list[tuple[str, int, str, int]] = []
    for operand in range(shape.inputs + 1):
        kept = [m for m in MEMORIES[1:] if rng.random() < shape.kept]
        items += [("stage", operand, memory, int(rng.integers(1, 4))) for memory in kept]
    order = rng.permutation(len(items))
    stages = _inwards([items[i] for i in order])
    nest = list(stages)
    for number in range(int(rng.integers(1, shape.loops + 1))):
        place = int(rng.integers(0, len(nest) + 1))
        nest.insert(place, ("loop", number, "", int(rng.integers(2, shape.count + 1))))
    return Program(operator="random", body=_lower(rng, tuple(nest), shape, {}))


def _inwards(stages: list[tuple[str, int, str, int]]) -> list[tuple[str, int, str, int]]:
    """The same stages with those of one operand in the order of the memories."""
    queues = {
        operand: sorted((s for s in stages if s[1] == operand), key=lambda s: MEMORIES.index(s[2]))
        for operand in {stage[1] for stage in stages}
    }
    return [queues[stage[1]].pop(0) for stage in stages]


def _lower(
    rng: np.random.Generator,
    nest: tuple[tuple[str, int, str, int], ...],
    shape: Shape,
    at: dict[int, str],
) -> tuple[Node, ...]:
    if not nest:
        steps = int(rng.integers(0, 30))
        works = [("unit", Work(steps=steps, operations=steps))]
        works += [
            (at.get(operand, "dram"), Work(read_bits=_bits(rng))) for operand in range(shape.inputs)
        ]
        output = at.get(shape.inputs, "dram")
        works += [(output, Work(read_bits=_bits(rng), write_bits=_bits(rng)))]
        used = [work for work in works if rng.random() < 0.8]
        return (Compute(TileOp("compute", tuple(used))),)
    (kind, number, memory, amount), rest = nest[0], nest[1:]
    if kind == "loop":
        body = _lower(rng, rest, shape, at)
        nodes: tuple[Node, ...] = (Repeat(amount, f"d{number}", 0, 1, body),)
        if rng.random() < shape.ragged:
            nodes += (Repeat(1, f"d{number}", amount, 1, _lower(rng, rest, shape, at)),)
        return nodes
    parent, name = at.get(number, "dram"), f"t{number}@{memory}"
    load = _transfer(rng, f"load {name}", parent, memory)
    is_output = number == shape.inputs
    store = _transfer(rng, f"store {name}", memory, parent) if is_output else None
    if is_output and rng.random() < 0.5:
        load = None
    body = _lower(rng, rest, shape, {**at, number: memory})
    return (Hold(number, memory, amount, 64, load, store, body),)


def _transfer(rng: np.random.Generator, name: str, source: str, target: str) -> TileOp:
    bits = _bits(rng)
    return TileOp(name, ((source, Work(read_bits=bits)), (target, Work(write_bits=bits))))


def _bits(rng: np.random.Generator) -> int:
    return int(rng.choice([0, 1, 7, 8, 30, 200]))
