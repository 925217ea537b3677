"""Do arbiters and bounded queues do what they say, in both engines?"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml

from arch import catalog
from arch.errors import InputError
from arch.load import load_architecture
from arch.spec import REQUESTERS, ROLES, Arbiter, Architecture
from mapper.cost import InfeasibleError, Price
from mapper.program import Node, Program, TileOp, Work
from mapper.workload.load import load_workload
from sim.deadlock import DeadlockError
from sim.engine import Listeners, simulate
from sim.models import cost_model
from sim.ports import Prices
from sim.process import Process
from sim.replay.engine import replay
from sim.schedule import PricedOp, build_schedule, busy_ps
from tests.conformance.mappings import random_mapping
from tests.sim.programs import PRICES, compute, hold, load, program, repeat, store
from tests.sim.random_programs import Shape, random_arbiters, random_prices, random_program
from tests.sim.reference import StuckError, reference_latency_ps

CASES = 96
CHUNKS = 6
#: Larger programs are not simulated in full.
MOST_OPERATIONS = 4000
#: One slot, but a tile inside a tile of the same stage needs two.
STUCK = hold(0, hold(0, compute(1), load=load(1), slots=1), load=load(1), slots=1)


def arbitrated(
    policy: str, queue: int | None = None, order: tuple[str, ...] = REQUESTERS
) -> Prices:
    """A main memory with one port and an arbiter."""
    arbiter = Arbiter(policy=policy, queue=queue, order=order)
    return {**PRICES, "dram": replace(PRICES["dram"], shared_port=True, arbiter=arbiter)}


def served(given: Program, prices: Prices, port: str = "dram") -> list[tuple[str, int, int]]:
    """Which operation the port served, from when to when."""
    seen: list[tuple[str, int, int]] = []

    def note(p: Process, op: PricedOp, at: int, spans: list[tuple[str, int, int]]) -> None:
        seen.extend((op.name, start, end) for name, start, end in spans if name == port)

    schedule = build_schedule(given, prices)
    listeners = Listeners(issue=note, skip=lambda skip: None)
    latency = simulate(schedule, skip_ahead=False, listeners=listeners)
    assert replay(schedule).latency_ps == latency
    return sorted(seen, key=lambda item: item[1])


def two_loaders() -> Program:
    inner = hold(1, compute(1), load=load(11), slots=4)
    return program(repeat(4, hold(0, inner, load=load(10), slots=4)))


def names(given: Program, prices: Prices) -> list[str]:
    return [name for name, _, _ in served(given, prices)]


def test_fifo_and_turns_alternate_where_the_lower_operand_has_priority() -> None:
    """Both loaders always want the port, and there is room for all that they load."""
    ten, eleven = "load 10", "load 11"
    assert names(two_loaders(), arbitrated("fifo", 8)) == [ten, eleven] * 4
    assert names(two_loaders(), arbitrated("round_robin")) == [ten, eleven] * 4
    assert names(two_loaders(), arbitrated("priority")) == [ten] * 4 + [eleven] * 4


def load_and_store() -> Program:
    return program(repeat(4, hold(0, hold(2, compute(1), store=store(10)), load=load(10))))


def test_loads_before_stores_or_the_other_way_round() -> None:
    """At 20 ps the first result has waited for 9 ps, and the next tile is asked for."""
    loads = names(load_and_store(), arbitrated("priority"))
    stores = names(load_and_store(), arbitrated("priority", order=("store",)))
    assert loads[:3] == ["load 10", "load 10", "load 10"]
    assert stores[:3] == ["load 10", "load 10", "store 10"]
    assert sorted(loads) == sorted(stores)


def test_in_turns_whoever_came_later_goes_first_if_it_is_its_turn() -> None:
    """While operand 0's tile is loaded, 2 asks at 10 ps and 1 at 20 ps."""
    early = hold(1, hold(2, compute(1), load=load(10, "y")), load=load(20, "x"))
    then = hold(1, hold(2, compute(1), load=load(5)), load=load(7))
    given = program(hold(0, early, then, load=load(100)))
    aside = Price(read_ps_per_bit=Fraction(1))
    both = {"x": aside, "y": aside}
    assert names(given, {**arbitrated("fifo", 4), **both}) == ["load 100", "load 5", "load 7"]
    assert names(given, {**arbitrated("round_robin"), **both}) == ["load 100", "load 7", "load 5"]


def crossing(bound: int | None) -> tuple[Program, Prices]:
    """Operand 2 goes through ``a`` and ``b``, 0 and 1 only through ``b``, 3 only through ``a``."""
    both = TileOp("both", (("a", Work(read_bits=10)), ("b", Work(write_bits=10))))
    node: Node = hold(3, compute(1), load=load(5, "a"))
    node = hold(2, node, load=both)
    node = hold(1, node, load=load(10, "b"))
    given = program(hold(0, node, load=load(100, "b")))
    port = Price(read_ps_per_bit=Fraction(1), write_ps_per_bit=Fraction(1), shared_port=True)
    prices = {
        **PRICES,
        "a": replace(port, arbiter=Arbiter(queue=4)),
        "b": replace(port, arbiter=Arbiter(queue=bound)),
    }
    return given, prices


def test_who_is_held_back_keeps_what_it_has_got() -> None:
    """Room for one: while operand 0 is served by ``b``, 1 waits there and 2 is held back, keeping
    ``a`` after its 10 ps, so that 3 does not get it before 100 ps."""
    assert served(*crossing(1), "a") == [("both", 0, 100), ("load 5", 100, 105)]
    assert served(*crossing(1), "b") == [
        ("load 100", 0, 100),
        ("load 10", 100, 110),
        ("both", 110, 120),
    ]


@pytest.mark.parametrize("bound", [None, 3, 100])
def test_with_room_for_all_nobody_is_held_back(bound: int | None) -> None:
    assert served(*crossing(bound), "a") == [("both", 0, 10), ("load 5", 10, 15)]


def test_back_pressure_is_a_cause_of_idle_time() -> None:
    """``a`` works for 15 ps and is kept for 90 ps more, then the last results take 16 ps."""
    given, prices = crossing(1)
    done = replay(build_schedule(given, prices), watched_port="a")
    assert done.latency_ps == 121
    assert done.lost_ps == (0, 0, 0, 0, 90)


def random_case(seed: int) -> tuple[Program, dict[str, Price]]:
    rng = np.random.default_rng(seed)
    shape = Shape(
        loops=int(rng.integers(1, 5)),
        count=int(rng.choice([6, 20, 60])),
        inputs=int(rng.integers(1, 5)),
        kept=0.9,
    )
    prices = random_arbiters(rng, random_prices(rng))
    return random_program(rng, shape), prices


def answer(given: Program, prices: Prices, engine: str, *, skip_ahead: bool) -> int | str:
    """The latency, or who waits for whom."""
    schedule = build_schedule(given, prices)
    try:
        if engine == "simpy":
            return simulate(schedule, skip_ahead=skip_ahead)
        return replay(schedule, skip_ahead=skip_ahead).latency_ps
    except DeadlockError as error:
        return str(error)


def check_equal(seed: int) -> bool:
    given, prices = random_case(seed)
    if sum(count for count, _ in given.tile_ops()) > MOST_OPERATIONS:
        return False
    expected = answer(given, prices, "simpy", skip_ahead=False)
    for engine in ("simpy", "replay"):
        assert answer(given, prices, engine, skip_ahead=True) == expected, f"seed {seed}"
    assert answer(given, prices, "replay", skip_ahead=False) == expected, f"seed {seed}"
    return True


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_engines_agree(chunk: int) -> None:
    """All policies, with and without bounds, skipping or not."""
    assert sum(check_equal(seed) for seed in range(chunk, CASES, CHUNKS)) > CASES // CHUNKS // 2


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(16))
def test_engines_agree_on_ten_thousand_programs(chunk: int) -> None:
    cases = range(CASES + chunk, CASES + 12_800, 16)
    assert sum(check_equal(seed) for seed in cases) > 10_000 // 16


@pytest.mark.parametrize("seed", range(80))
def test_engines_equal_the_unrolled_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = Shape(loops=int(rng.integers(1, 4)), count=4, inputs=int(rng.integers(1, 5)), kept=0.9)
    given = random_program(rng, shape)
    prices = random_arbiters(rng, random_prices(rng))
    try:
        expected: int | str = reference_latency_ps(given, prices)
    except StuckError:
        expected = "stuck"
    found = answer(given, prices, "replay", skip_ahead=True)
    assert ("stuck" if isinstance(found, str) else found) == expected


@pytest.mark.parametrize("seed", range(60))
def test_idle_time_is_accounted_for_with_arbiters(seed: int) -> None:
    given, prices = random_case(seed)
    schedule = build_schedule(given, prices)
    if sum(count for count, _ in given.tile_ops()) > MOST_OPERATIONS:
        return
    for port in schedule.ports:
        skipped = replay(schedule, watched_port=port)
        in_full = replay(schedule, watched_port=port, skip_ahead=False)
        assert min(skipped.lost_ps) >= 0
        assert sum(skipped.lost_ps) == sum(in_full.lost_ps)
        assert sum(skipped.lost_ps) <= skipped.latency_ps - busy_ps(schedule.body)[port]


def test_waiting_in_turns_is_skipped_too() -> None:
    given = program(repeat(10**6, hold(0, hold(2, compute(7), store=store(3)), load=load(5))))
    for policy in ("fifo", "priority", "round_robin"):
        schedule = build_schedule(given, arbitrated(policy, 1))
        assert replay(schedule).events < 200
        assert replay(schedule).latency_ps == simulate(schedule)


def deadlocked() -> tuple[Program, Prices]:
    """Loads one way and stores the other, through ports with room for one."""
    rng = np.random.default_rng(162)
    prices = random_prices(rng)
    shape = Shape(loops=3, count=4, inputs=int(rng.integers(2, 5)), kept=0.95)
    given = random_program(rng, shape)
    one = Arbiter(queue=1)
    memories = {k: replace(v, shared_port=True, arbiter=one) for k, v in prices.items()}
    return given, {**memories, "unit": prices["unit"]}


@pytest.mark.parametrize("engine", ["simpy", "replay"])
def test_a_deadlock_of_bounded_queues_names_the_circle(engine: str) -> None:
    message = answer(*deadlocked(), engine, skip_ahead=True)
    assert isinstance(message, str)
    first, one, other, *_ = message.splitlines()
    assert first == "processes wait for each other in a circle:"
    assert one == (
        "  load operand 1 in l1 waits for room in the queue of l1, "
        "which store operand 4 in l1 keeps"
    )
    assert other == (
        "  store operand 4 in l1 waits for room in the queue of l2, "
        "which load operand 1 in l1 keeps"
    )


def test_a_deadlock_of_a_program_names_the_circle() -> None:
    message = answer(program(STUCK), PRICES, "replay", skip_ahead=True)
    assert str(message).splitlines()[:3] == [
        "processes wait for each other in a circle:",
        "  compute waits for tile of operand 0 in gbuf, which load operand 0 in gbuf has to send",
        "  load operand 0 in gbuf waits for free slot of operand 0 in gbuf, "
        "which compute has to send",
    ]


def two_buffers(folder: Path) -> Architecture:
    """``edge_npu`` with a second buffer; every port of a memory has room for one that waits."""
    document = yaml.safe_load(catalog.find("arch", "edge_npu").read_text())
    document["name"] = "two_buffers"
    components = document["components"]
    tight = {"queue": 1, "shared_port": True}
    outer = components["gbuf"] | tight | {"size": "8 KiB"}
    inner = components["gbuf"] | tight | {"size": "2 KiB", "keeps": [*ROLES]}
    first = {"dram": components["dram"] | {"queue": 1}, "gbuf": outer, "l1": inner}
    document["components"] = first | {n: c for n, c in components.items() if n not in first}
    path = folder / "two_buffers.yaml"
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    return load_architecture(str(path))


def test_hardware_whose_queues_close_a_circle_cannot_run_the_mapping(tmp_path: Path) -> None:
    """One in sixty random mappings does; with room for three more none of them."""
    architecture, workload = two_buffers(tmp_path), load_workload("gemm:M=16,N=16,K=64")
    (operator,) = workload.operators
    wider = {f"{name}.queue": 4 for name in ("dram", "gbuf", "l1")}
    refused = []
    for seed in range(40):
        mapping = random_mapping(workload, operator, architecture, np.random.default_rng(seed))
        try:
            cost_model("event").evaluate(workload, architecture, {operator.name: mapping})
        except InfeasibleError as error:
            refused.append(str(error))
            roomy = architecture.with_overrides(wider)
            cost_model("event").evaluate(workload, roomy, {operator.name: mapping})
    assert refused
    assert all("processes wait for each other in a circle:" in text for text in refused)
    assert all("operand 0 is input, operand 1 is weight" in text for text in refused)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"dram.arbitration": "lottery"}, "fifo, priority, round_robin"),
        ({"dram.priority": ["store"]}, "is an order for 'arbitration: priority'"),
        ({"dram.arbitration": "priority", "dram.priority": ["stores"]}, "compute, load, store"),
        ({"dram.queue": 0}, "allowed 1 to 4096"),
        ({"wreg.queue": 2}, "allowed with 'per: chip'"),
        (
            {"dram.timing": "hbm2_8ch", "dram.bandwidth": "auto", "dram.queue": 4},
            "queues of its own",
        ),
    ],
)
def test_what_would_have_no_effect_is_refused(overrides: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_architecture("edge_npu", overrides)


def test_arbiters_come_from_the_architecture() -> None:
    overrides = {"dram.arbitration": "priority", "dram.priority": ["store"], "gbuf.queue": 2}
    architecture = load_architecture("edge_npu", overrides)
    assert architecture.component("dram").arbiter == Arbiter(policy="priority", order=("store",))
    assert architecture.component("gbuf").arbiter == Arbiter(queue=2)
