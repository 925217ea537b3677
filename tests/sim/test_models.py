"""Do the three fidelities and their metrics say what they should, on cases done by hand?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from arch.spec import Architecture
from mapper.cost import InfeasibleError, Metrics
from mapper.mapping import Loop, Mapping, Spatial, Stage
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.operators import Access, AffineIndex, Operator, Tensor
from sim.memory import peak_live_bytes
from sim.models import FIDELITIES, cost_model

#: On ``tiny``: 4x4 output-stationary at 1 GHz, DRAM 4 B/ns, buffer 8 B/ns each way.
GEMM = "gemm:M=8,N=8,K=16"


def gemm_mapping(operator: str = "gemm") -> Mapping:
    """Everything in the buffer at once, then 4x4 output tiles in the array."""
    return Mapping(
        operator=operator,
        compute="array",
        intrinsic="output_stationary_4x4",
        nest=(
            Stage(0, "buffer"),
            Stage(1, "buffer"),
            Stage(2, "buffer"),
            Loop("M", 4),
            Loop("N", 4),
            Stage(2, "acc"),
            Loop("K", 1),
        ),
        spatial=(Spatial("M", "rows", 4), Spatial("N", "cols", 4)),
        made_by="hand",
    )


@pytest.fixture
def tiny() -> Architecture:
    return load_architecture("tiny")


def evaluate(fidelity: str, architecture: Architecture) -> Metrics:
    workload = load_workload(GEMM)
    return cost_model(fidelity).evaluate(workload, architecture, {"gemm": gemm_mapping()})


def test_roofline_by_hand(tiny: Architecture) -> None:
    """1024 products on 16 lanes need 64 ns; 128 + 128 + 64 bytes at 4 B/ns need 80 ns."""
    metrics = evaluate("roofline", tiny)
    assert metrics.latency_ps == 80_000
    assert metrics.operators[0].bound_by == "dram"
    assert metrics.components["array"].busy_ps == 64_000


def test_roofline_knows_the_compute_bound_too(tiny: Architecture) -> None:
    metrics = evaluate("roofline", tiny.with_overrides({"dram.bandwidth": "8 B/cycle"}))
    assert metrics.latency_ps == 64_000
    assert metrics.operators[0].bound_by == "array"
    assert metrics.components["array"].utilization == 1.0


def test_of_equally_busy_components_the_compute_unit_binds(tiny: Architecture) -> None:
    """320 bytes at 5 B/ns take the 64 ns of the array."""
    metrics = evaluate("roofline", tiny.with_overrides({"dram.bandwidth": "5 B/cycle"}))
    assert metrics.components["dram"].busy_ps == metrics.components["array"].busy_ps == 64_000
    assert metrics.operators[0].bound_by == "array"


def test_roofline_does_not_depend_on_the_mapping(tiny: Architecture) -> None:
    workload = load_workload(GEMM)
    inner = (Loop("M", 1), Loop("N", 1), Stage(2, "acc"), Loop("K", 1))
    slow = replace(gemm_mapping(), nest=(*gemm_mapping().nest[:3], *inner), spatial=())
    model = cost_model("roofline")
    assert model.evaluate(workload, tiny, {"gemm": slow}).latency_ps == 80_000
    event = cost_model("event").evaluate(workload, tiny, {"gemm": slow})
    assert event.components["array"].busy_ps == 1024 * 1000


def test_analytical_is_the_busiest_port(tiny: Architecture) -> None:
    """The buffer is read at 8 B/ns: 64 steps of 4 + 4 bytes and 64 results; DRAM needs 80 ns."""
    metrics = evaluate("analytical", tiny)
    assert metrics.latency_ps == 80_000
    assert metrics.components["buffer"].busy_ps == 72_000
    assert metrics.components["buffer"].read_bytes == 64 * 8 + 64


def test_analytical_counts_round_trips_per_slot(tiny: Architecture) -> None:
    """Four loads of a double-buffered tile, each a microsecond away, two under way at a time."""
    far = tiny.with_overrides({"dram.latency": "1 us"})
    first, second, third, *inner = gemm_mapping().nest
    loops, rest = inner[:2], inner[2:]
    mapping = replace(gemm_mapping(), nest=(second, third, *loops, first, *rest))
    workload = load_workload(GEMM)
    metrics = cost_model("analytical").evaluate(workload, far, {"gemm": mapping})
    assert metrics.latency_ps == 4 * 1_000_000 // 2
    assert metrics.operators[0].bound_by == "latency"
    careful = cost_model("event").evaluate(workload, far, {"gemm": mapping})
    assert careful.latency_ps >= metrics.latency_ps


def test_event_adds_what_cannot_overlap(tiny: Architecture) -> None:
    """One tile of each operand: load 64 ns and DRAM's 20 ns, compute 64, store 16 and the
    buffer's 1: the store is done when its data is in the DRAM."""
    metrics = evaluate("event", tiny)
    pipeline = 7_000  # (4 + 4 - 2) ns of skew and one stage, see `tiny`
    assert metrics.latency_ps == 64_000 + 20_000 + 64_000 + pipeline + 16_000 + 1_000
    assert metrics.operators[0].bound_by == "latency"


def test_memory_peaks(tiny: Architecture) -> None:
    metrics = evaluate("event", tiny)
    assert metrics.memory == {"dram": 128 + 128 + 64, "buffer": 128 + 128 + 64, "acc": 8}


def test_energy_power_and_area(tiny: Architecture) -> None:
    quick, careful = evaluate("analytical", tiny), evaluate("event", tiny)
    assert careful.dynamic_energy_pj == quick.dynamic_energy_pj
    leakage = tiny.leakage_w * careful.latency_ps
    assert careful.energy_pj == pytest.approx(careful.dynamic_energy_pj + leakage)
    assert careful.power_w == pytest.approx(careful.energy_pj / careful.latency_ps)
    assert careful.area_mm2 == tiny.area_mm2
    macs_pj = 1024 * 0.2
    dram_pj = (128 + 128 + 64) * 80
    assert careful.components["array"].energy_pj - macs_pj == pytest.approx(
        tiny.component("array").leakage_w * careful.latency_ps
    )
    assert quick.components["dram"].energy_pj == pytest.approx(dram_pj)


@pytest.mark.parametrize("fidelity", FIDELITIES)
def test_equal_operators_cost_the_same_and_add_up(fidelity: str, tiny: Architecture) -> None:
    model = cost_model(fidelity)
    one = model.evaluate(chain(1), tiny, {"gemm0": gemm_mapping("gemm0")})
    mappings = {name: gemm_mapping(name) for name in ("gemm0", "gemm1")}
    both = model.evaluate(chain(2), tiny, mappings)
    assert both.latency_ps == 2 * one.latency_ps
    assert both.dynamic_energy_pj == pytest.approx(2 * one.dynamic_energy_pj)
    assert [o.name for o in both.operators] == ["gemm0", "gemm1"]
    assert both.operators[0].latency_ps == both.operators[1].latency_ps == one.latency_ps


def test_operators_that_differ_only_in_mapping_or_data_type_are_told_apart(
    tiny: Architecture,
) -> None:
    model, workload = cost_model("event"), chain(2)
    first, second = gemm_mapping("gemm0"), gemm_mapping("gemm1")
    stages, loops, rest = second.nest[:3], second.nest[3:5], second.nest[5:]
    reloading = replace(second, nest=(*stages[1:], *loops, stages[0], *rest))
    one, other = model.evaluate(workload, tiny, {"gemm0": first, "gemm1": reloading}).operators
    extra = other.components["dram"].read_bytes - one.components["dram"].read_bytes
    assert extra == 3 * 128  # four columns of tiles read the input anew
    wide = [replace(t, dtype="int32") if t.name == "t2" else t for t in workload.tensors]
    widened = replace(workload, tensors=tuple(wide))
    one, other = model.evaluate(widened, tiny, {"gemm0": first, "gemm1": second}).operators
    assert other.components["dram"].write_bytes == 4 * one.components["dram"].write_bytes


def test_an_unknown_fidelity_is_bad_input() -> None:
    with pytest.raises(InputError, match=r"allowed roofline, analytical, event; did you mean 'ev"):
        cost_model("evnt")


def test_a_missing_mapping_is_named(tiny: Architecture) -> None:
    with pytest.raises(ValueError, match="no mapping for gemm1"):
        cost_model("event").evaluate(chain(2), tiny, {"gemm0": gemm_mapping("gemm0")})


def test_weights_and_live_activations_must_fit_the_outermost_memory(tiny: Architecture) -> None:
    workload = load_workload("gemm:M=8192,N=8192,K=16")
    mappings = {"gemm": gemm_mapping()}
    with pytest.raises(InfeasibleError, match="capacity of dram in bytes") as refusal:
        cost_model("roofline").evaluate(workload, tiny, mappings)
    assert refusal.value.needed == 8192 * 16 * 2 + 8192**2
    assert refusal.value.allowed == 64 * 2**20


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_chain_keeps_two_activations_and_all_weights(length: int) -> None:
    assert peak_live_bytes(chain(length)) == 256 * length + 128 + 128


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_skip_connection_keeps_its_tensor_alive(length: int) -> None:
    assert peak_live_bytes(with_skip(chain(length))) == 256 * length + 3 * 128


def test_a_tensor_of_four_bit_values_is_half_as_large() -> None:
    workload = chain(1)
    packed = replace(workload, tensors=tuple(replace(t, dtype="int4") for t in workload.tensors))
    assert peak_live_bytes(packed) * 2 == peak_live_bytes(workload)


def chain(length: int) -> Workload:
    """``t1 = t0 * w0``, ``t2 = t1 * w1``, ...: activations of 8x16 bytes, weights of 16x16."""
    kinds = ["input", *["activation"] * (length - 1), "output"]
    tensors = [
        Tensor(name=f"t{i}", shape=(8, 16), dtype="int8", kind=kind) for i, kind in enumerate(kinds)
    ]
    tensors += [
        Tensor(name=f"w{i}", shape=(16, 16), dtype="int8", kind="weight") for i in range(length)
    ]
    operators = [
        Operator(
            name=f"gemm{i}",
            kind="gemm",
            operation="mac",
            extents={"M": 8, "N": 16, "K": 16},
            inputs=(access(f"t{i}", "M", "K"), access(f"w{i}", "K", "N")),
            output=access(f"t{i + 1}", "M", "N"),
            accumulator_dtype="int32",
        )
        for i in range(length)
    ]
    return Workload(name="chain", tensors=tuple(tensors), operators=tuple(operators))


def with_skip(workload: Workload) -> Workload:
    """The input of the chain added to its result."""
    last = workload.operators[-1].output.tensor
    add = Operator(
        name="add",
        kind="add",
        operation="add",
        extents={"M": 8, "N": 16},
        inputs=(access("t0", "M", "N"), access(last, "M", "N")),
        output=access("sum", "M", "N"),
        accumulator_dtype="int8",
    )
    tensors = [replace(t, kind="activation") if t.name == last else t for t in workload.tensors]
    tensors.append(Tensor(name="sum", shape=(8, 16), dtype="int8", kind="output"))
    return replace(workload, tensors=tuple(tensors), operators=(*workload.operators, add))


def access(tensor: str, *dims: str) -> Access:
    return Access(tensor, tuple(AffineIndex(((dim, 1),)) for dim in dims))
