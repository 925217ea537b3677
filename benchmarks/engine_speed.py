"""Print how fast the engines are, in CPU time on one core.

    python benchmarks/engine_speed.py [ITERATIONS]

Nothing is skipped in the first table, so that every iteration is simulated. An *operation* is
one tile transfer or computation that requests its ports; an *event* is an operation or a token
(a tile, a free slot, results) that one process sends to another and that is received once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from fractions import Fraction

from mapper.cost import Price
from mapper.program import Compute, Hold, Node, Program, Repeat, TileOp, Work
from sim.engine import simulate
from sim.replay.engine import replay
from sim.schedule import Schedule, build_schedule

PRICES = {
    "dram": Price(read_ps_per_bit=Fraction(1), write_ps_per_bit=Fraction(1), shared_port=True),
    "gbuf": Price(latency_ps=3),
    "unit": Price(step_ps=1, latency_ps=20),
}


def tile(inputs: int) -> Node:
    """A computation on ``inputs`` loaded tiles, whose result is stored."""
    node: Node = Compute(TileOp("compute", (("unit", Work(steps=17)),)))
    node = _hold(9, None, _move("gbuf", "dram", 3), node)
    for operand in range(inputs):
        node = _hold(operand, _move("dram", "gbuf", 5), None, node)
    return node


def _move(source: str, target: str, bits: int) -> TileOp:
    return TileOp("move", ((source, Work(read_bits=bits)), (target, Work(write_bits=bits))))


def _hold(operand: int, load: TileOp | None, store: TileOp | None, body: Node) -> Hold:
    return Hold(
        operand=operand, memory="gbuf", slots=2, size_bits=8, load=load, store=store, body=(body,)
    )


def schedule(inputs: int, iterations: int) -> Schedule:
    body = (Repeat(iterations, "d", 0, 1, (tile(inputs),)),)
    return build_schedule(Program(operator="benchmark", body=body), PRICES)


def seconds(run: Callable[[], object]) -> float:
    started = time.process_time()
    run()
    return time.process_time() - started


def main() -> None:
    iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    replay(schedule(1, 10))  # compiled now, or read from the cache
    print("every iteration simulated, one core")
    print(f"{'engine':<8}{'inputs':>7}{'operations':>13}{'M operations/s':>16}{'M events/s':>12}")
    for inputs in (1, 2):
        _row("replay", inputs, iterations, lambda s: replay(s, skip_ahead=False))
        _row("simpy", inputs, iterations // 50, lambda s: simulate(s, skip_ahead=False))
    print("\nten million iterations, skipping ahead")
    print(f"{'engine':<8}{'milliseconds':>13}")
    given = schedule(2, 10**7)
    print(f"{'replay':<8}{1e3 * seconds(lambda: replay(given)):>13.2f}")
    print(f"{'simpy':<8}{1e3 * seconds(lambda: simulate(given)):>13.2f}")


def _row(name: str, inputs: int, iterations: int, run: Callable[[Schedule], object]) -> None:
    given = schedule(inputs, iterations)
    took = seconds(lambda: run(given))
    operations = (inputs + 2) * iterations
    tokens = 2 * inputs + 3  # a tile and a free slot per hold, and results for the store
    events = operations + tokens * iterations
    per_second = f"{operations / took / 1e6:>16.2f}{events / took / 1e6:>12.2f}"
    print(f"{name:<8}{inputs:>7}{operations:>13,}{per_second}")


if __name__ == "__main__":
    main()
