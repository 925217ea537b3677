"""Small programs built by hand, with prices in round numbers (one picosecond per bit or step)."""

from __future__ import annotations

from fractions import Fraction

from mapper.cost import Price
from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work

#: Separate ports; a bit takes 1 ps on each, a step 1 ps.
PRICES = {
    "dram": Price(read_ps_per_bit=Fraction(1), write_ps_per_bit=Fraction(1)),
    "gbuf": Price(),
    "unit": Price(step_ps=1),
}


def compute(steps: int) -> Compute:
    return Compute(TileOp("compute", (("unit", Work(steps=steps)),)))


def load(bits: int, source: str = "dram", target: str = "gbuf") -> TileOp:
    works = ((source, Work(read_bits=bits)), (target, Work(write_bits=bits)))
    return TileOp(f"load {bits}", works)


def store(bits: int, source: str = "gbuf", target: str = "dram") -> TileOp:
    works = ((source, Work(read_bits=bits)), (target, Work(write_bits=bits)))
    return TileOp(f"store {bits}", works)


def hold(
    operand: int,
    *body: Node,
    load: TileOp | None = None,
    store: TileOp | None = None,
    slots: int = 2,
    memory: str = "gbuf",
) -> Hold:
    return Hold(
        operand=operand,
        memory=memory,
        slots=slots,
        size_bits=8,
        load=load,
        store=store,
        body=body,
    )


def repeat(count: int, *body: Node) -> Repeat:
    return Repeat(count, "d", 0, 1, body)


def program(*body: Node) -> Program:
    return Program(operator="op", body=body)
