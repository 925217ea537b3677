"""Which kernels a GPU's libraries run for a workload graph, in the order of its operators.

Scores, softmax and context of an attention become one fused kernel. Convolutions count as the
matrix product that they are. What is neither a product nor along rows is elementwise. Products
keep the graph's number format; all else is bf16 at the narrowest, as libraries have it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from arch.errors import InputError, Problem
from mapper.cost import InfeasibleError
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from sim.gpu.chip import BYTES, Chip
from sim.gpu.demand import Array, Call, Demand
from sim.gpu.event import block_times
from sim.gpu.power import Load, Machine, steady
from sim.gpu.predict import GpuModel, load_of

SCORES, SOFTMAX, CONTEXT = "attention_scores", "softmax", "attention_context"
LOOKUP = "lookup"
#: The one structure of zeros that tensor cores have instructions for.
SPARSE = "2:4"
#: Both products in one operator; its loop ``p`` runs over the two.
STREAMING = "attention"
#: What the loops of attention run over, by the names of importers (capitals) and of operators of
#: our own; loops of other names by what they index.
ATTENTION_LOOPS = {
    "B": "batch",
    "H": "groups",
    "G": "repeats",
    "M": "queries",
    "L": "keys",
    "D": "width",
    "b": "batch",
    "g": "groups",
    "r": "repeats",
    "m": "queries",
    "l": "keys",
    "d": "width",
    "p": "products",
}
ATTENTION_CLASSES = {"b": "groups", "m": "queries", "n": "keys", "k": "width"}
#: Operations along rows, and the library kernel that does them.
ROWS = {"softmax": "row_softmax", "norm": "row_layernorm"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel: the operator it is named after, and its multiply-accumulates.

    ``useful_macs`` leaves out those that a causal mask sets to zero.
    """

    name: str
    call: Call
    macs: int

    @property
    def useful_macs(self) -> float:
        p = self.call.params
        if not p.get("causal"):
            return float(self.macs)
        return float(self.macs * (1 - (p["Sq"] - 1) / (2 * p["Skv"])))


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRun:
    """A workload run again and again, all of it at one clock; arrays have a value per launch.

    The clock is the highest at which the analytical times keep the power within its limit, for all
    three fidelities. ``least_us`` is what the peaks of tensor cores and HBM and the power limit
    alone would take, ``times_us`` the kernel model, ``event_us`` its thread blocks over time, of
    which ``dispatch_us`` is because blocks do not start at once. ``peak_us`` is what
    the peak of the tensor cores at the highest clock would take. ``energy_uj`` is above the idle
    power, ``hbm_uj`` the part of it that is spent in the HBM.
    """

    launches: tuple[Launch, ...]
    least_us: Array
    times_us: Array
    event_us: Array
    dispatch_us: Array
    core_us: Array
    memory_us: Array
    peak_us: Array
    energy_uj: Array
    hbm_uj: Array
    read_bytes: Array
    written_bytes: Array


def launches(workload: Workload) -> Iterator[Launch]:
    """The kernels of a workload."""
    operators = workload.operators
    skipped: set[str] = set()
    for number, operator in enumerate(operators):
        if operator.name in skipped:
            continue
        fused = operators[number : number + 3]
        if [o.kind for o in fused] == [SCORES, SOFTMAX, CONTEXT]:
            skipped |= {o.name for o in fused}
            yield _attention(workload, fused)
        else:
            yield _launch(workload, operator)


def _attention(workload: Workload, fused: Sequence[Operator]) -> Launch:
    scores, softmax, context = fused
    causal = f"causal mask applied by {softmax.name}" in workload.folded
    return Launch(
        name=scores.name.removesuffix("scores") + "attention",
        call=_sdpa(workload, scores, causal=causal),
        macs=scores.macs + context.macs,
    )


def _sdpa(workload: Workload, scores: Operator, *, causal: bool) -> Call:
    """Fused attention with the sizes of its first product, by what each loop runs over."""
    size = dict.fromkeys(ATTENTION_LOOPS.values(), 1)
    for dim, extent in scores.extents.items():
        role = ATTENTION_LOOPS.get(dim) or ATTENTION_CLASSES[scores.dim_class(dim)]
        size[role] *= extent
    params = {
        "B": size["batch"],
        "H": size["groups"] * size["repeats"],
        "Hkv": size["groups"],
        "Sq": size["queries"],
        "Skv": size["keys"],
        "D": size["width"],
        "causal": int(causal),
    }
    return Call(kind="sdpa", params=params, dtype=_wide(_dtype(workload, scores)))


def _launch(workload: Workload, operator: Operator) -> Launch:
    dtype = _dtype(workload, operator)
    if operator.operation != "mac" or operator.kind == STREAMING:
        _structure(workload, operator)
    if operator.kind == STREAMING:
        call = _sdpa(workload, operator, causal=False)
    elif operator.operation == "mac":
        call = _product(operator, dtype, sparse=_structure(workload, operator) is not None)
    else:
        call = _moving(operator, _wide(dtype))
    return Launch(name=operator.name, call=call, macs=operator.macs)


def _moving(operator: Operator, dtype: str) -> Call:
    """What is no product: along rows, rows of a table, or element by element."""
    if operator.operation in ROWS:
        *rows, cols = operator.extents.values()
        params = {"R": math.prod(rows), "C": cols}
        return Call(kind=ROWS[operator.operation], params=params, dtype=dtype)
    if operator.kind == LOOKUP:
        # As many bytes read as written.
        return Call(kind="ew_scale", params={"n": operator.points}, dtype=dtype)
    contiguous = len(operator.extents) <= 2 and operator.operation != "copy"
    params = {"n": operator.points, "tensors": len(operator.inputs) + 1}
    return Call(kind="hot" if contiguous else "strided", params=params, dtype=dtype)


def _product(operator: Operator, dtype: str, *, sparse: bool) -> Call:
    size = dict.fromkeys("bmnk", 1)
    for dim, extent in operator.extents.items():
        size[operator.dim_class(dim)] *= extent
    params = {"M": size["m"], "N": size["n"], "K": size["k"]}
    if size["b"] == 1:
        return Call(kind="gemm_2of4" if sparse else "gemm", params=params, dtype=dtype)
    if sparse:
        raise InputError(Problem(f"{operator.name} is a batch; 2:4 sparse kernels have none"))
    return Call(kind="bmm", params={"B": size["b"], **params}, dtype=_wide(dtype))


def _structure(workload: Workload, operator: Operator) -> str | None:
    """How the weights of a product are sparse, if they are; ``InputError`` if no kernel has it."""
    found = [workload.tensor(a.tensor).sparsity for a in operator.accesses]
    structures = [None if sparsity is None else sparsity.structure for sparsity in found]
    if not any(structures):
        return None
    if operator.operation == "mac" and structures == [None, SPARSE, None]:
        return SPARSE
    message = f"{operator.name} is sparse; the kernel model has {SPARSE} sparse weights of products"
    raise InputError(Problem(message, where=f"workload {workload.name}"))


def _dtype(workload: Workload, operator: Operator) -> str:
    """Of the last input: a lookup's first one are indices."""
    dtype = workload.tensor(operator.inputs[-1].tensor).dtype
    if dtype not in BYTES and operator.operation == "mac":
        message = f"{operator.name} is in {dtype}; the kernel model has {', '.join(BYTES)}"
        raise InputError(Problem(message, where=f"workload {workload.name}"))
    return dtype


def _wide(dtype: str) -> str:
    return dtype if dtype in ("bf16", "fp16", "fp32") else "bf16"


def run_workload(workload: Workload, model: GpuModel) -> GpuRun:
    """Times and energies of every launch, the workload being repeated without a pause."""
    chosen = tuple(launches(workload))
    calls = [launch.call for launch in chosen]
    load = in_order(load_of(calls, model))
    whole = replace(load, owner=np.zeros_like(load.owner), devices=np.ones(1))
    slowdown = _slowdown(whole, model.machine)
    demand = load.demand
    times = demand.time_us(slowdown)
    peak = np.array([launch.useful_macs / _rate(launch.call, model.chip) for launch in chosen])
    energy = model.machine.energy_uj(load, np.full_like(times, slowdown), times)
    blocks = [block_times(demand, number, slowdown, model.chip) for number in range(len(calls))]
    return GpuRun(
        launches=chosen,
        least_us=_least(demand, peak * slowdown, times, energy, model),
        times_us=times,
        event_us=np.array([found.time_us for found in blocks]),
        dispatch_us=np.array([found.time_us - found.together_us for found in blocks]),
        core_us=demand.core_us * slowdown,
        memory_us=demand.memory_us,
        peak_us=peak,
        energy_uj=energy,
        hbm_uj=demand.hbm_bytes * load.prices.hbm_pj_per_byte * 1e-6,
        read_bytes=demand.hbm_bytes - demand.written_bytes,
        written_bytes=demand.written_bytes,
    )


def _slowdown(load: Load, machine: Machine) -> float:
    """Of the one call; ``InfeasibleError`` if even the lowest clock draws more than the limit."""
    found = steady(load, machine)
    power_w, limit_w = float(found.power_w[0]), machine.chip.power_limit_w
    if power_w > machine.limit_w * (1 + 1e-9):
        detail = f"power at the lowest clock is {power_w:.1f} W, limit {limit_w:g} W"
        raise InfeasibleError(limit="power_limit", needed=power_w, allowed=limit_w, detail=detail)
    return float(found.slowdown[0])


def in_order(load: Load) -> Load:
    """Kernels in the order of their calls, each of which is one kernel."""
    order = np.argsort(load.owner)
    return Load(
        demand=load.demand.reordered(order),
        owner=load.owner[order],
        prices=load.prices.reordered(order),
        devices=load.devices,
    )


def _least(demand: Demand, peak: Array, times: Array, energy: Array, model: GpuModel) -> Array:
    """Roofline: peaks of the tensor cores and of the HBM and, over the whole, of the power."""
    chip = model.chip
    roof = np.maximum(peak, demand.hbm_bytes / chip.hbm_bytes_per_us)
    if (roof > times * (1 + 1e-9)).any():
        number = int(np.argmax(roof / times))
        raise ArithmeticError(f"kernel {number}: {times[number]} us beats its roof {roof[number]}")
    needed = float(energy.sum()) / (model.machine.limit_w - chip.idle_w)
    missing = max(0.0, needed - float(roof.sum()))
    room = times - roof
    return np.asarray(roof + room * min(1.0, missing / max(float(room.sum()), 1e-12)))


def _rate(call: Call, chip: Chip) -> float:
    """Multiply-adds per microsecond of the whole GPU."""
    rate = chip.sparse_rate if call.kind == "gemm_2of4" else chip.rate
    return rate(call.dtype) * chip.sms * chip.clock_mhz
