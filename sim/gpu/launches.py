"""Which kernels a GPU's libraries run for a workload graph, in the order of its operators.

Scores, softmax and context of an attention become one fused kernel, phases of a transposed
convolution one convolution. What is neither a product, a convolution nor along rows streams its
operands. Products keep the graph's number format; all else is bf16 at the narrowest, as libraries
have it. ``epilogues`` says what becomes of what the importer folded into another operator:

``fused``: it costs nothing, and a residual sum is read in the epilogue of the convolution before
it; ``eager``: what torch does without a compiler, one more kernel each, but for the biases of
products.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from sim.gpu.chip import BYTES
from sim.gpu.conv_call import TRANSPOSED, convolution_call, is_convolution, shape_of
from sim.gpu.demand import Call
from sim.gpu.moving import LOOKUP, STREAMED_BYTES, in_order_of, moving, touched

FUSED, EAGER = "fused", "eager"
SCORES, SOFTMAX, CONTEXT = "attention_scores", "softmax", "attention_context"
#: The one structure of zeros that tensor cores have instructions for.
SPARSE = "2:4"
#: Both products in one operator; its loop ``p`` runs over the two.
STREAMING = "attention"
#: What the loops of attention run over; loops of other names by what they index.
ATTENTION_LOOPS = {
    "B": "batch",
    "H": "groups",
    "G": "repeats",
    "M": "queries",
    "L": "keys",
    "D": "width",
    "P": "products",
}
ATTENTION_CLASSES = {"b": "groups", "m": "queries", "n": "keys", "k": "width"}
#: A note of an importer: what became part of the operator that it names last.
FOLDED = re.compile(r"(?P<what>.+): (?P<why>.+) on the output path of (?P<operator>\S+)")
BIAS = "bias added"
#: The kernel of its own that it would be; everything else goes over the tensor as a clamp does.
EAGER_KINDS = {"scale and shift merged": "batch_norm", BIAS: "bias"}
#: In the name of a kernel that goes over another one's result.
AFTER = " / "


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One kernel: the operator it is named after, and its multiply-accumulates.

    ``useful_macs`` leaves out those that a causal mask sets to zero. ``beside_bytes`` are read by
    its epilogue. ``note`` says in which way it is not what the operator is.
    """

    name: str
    call: Call
    macs: int
    beside_bytes: int = 0
    note: str = ""

    @property
    def useful_macs(self) -> float:
        p = self.call.params
        if not p.get("causal"):
            return float(self.macs)
        return float(self.macs * (1 - (p["Sq"] - 1) / (2 * p["Skv"])))


def launches(workload: Workload, epilogues: str = FUSED) -> Iterator[Launch]:
    """The kernels of a workload."""
    after = _eager_kernels(workload) if epilogues == EAGER else {}
    sums = _residual_sums(workload) if epilogues == FUSED else {}
    inside = {operator.name for operator in sums.values()}
    for group in _groups(workload):
        if group[0].name in inside:
            continue
        launch = _launch_of(workload, group)
        if group[0].name in sums:
            launch = _with_sum(workload, launch, sums[group[0].name], group[0])
        yield launch
        yield from _following(group[-1], workload, after.get(group[-1].name, []), launch)


def notes_of(found: Sequence[Launch]) -> tuple[str, ...]:
    """What kernels were counted as, with how many of them, and the first one's name."""
    names: dict[str, list[str]] = defaultdict(list)
    for launch in found:
        if launch.note:
            names[launch.note].append(launch.name)
    return tuple(
        f"{each[0]}{f' and {len(each) - 1} more' if len(each) > 1 else ''}: {note}"
        for note, each in names.items()
    )


def _groups(workload: Workload) -> Iterator[Sequence[Operator]]:
    """Operators that one kernel computes together."""
    operators = workload.operators
    number = 0
    while number < len(operators):
        fused = operators[number : number + 3]
        count = 1
        if [o.kind for o in fused] == [SCORES, SOFTMAX, CONTEXT]:
            count = 3
        elif operators[number].kind.startswith(TRANSPOSED):
            count = _phases(operators[number:])
        elif operators[number].operation == "copy" and operators[number].kind != LOOKUP:
            count = _parts(operators[number:])
        yield operators[number : number + count]
        number += count


def _phases(operators: Sequence[Operator]) -> int:
    """How many operators from the first on are phases of the same size of one convolution."""
    first, count = operators[0], 0
    for other in operators:
        same = other.kind == first.kind and other.output.tensor == first.output.tensor
        if not same or other.extents != first.extents:
            break
        count += 1
    return count


def _parts(operators: Sequence[Operator]) -> int:
    """How many copies from the first on fill one tensor: one kernel joins what they read."""
    first = operators[0]
    same = ((o.kind, o.output.tensor) == (first.kind, first.output.tensor) for o in operators)
    return sum(1 for _ in takewhile(bool, same))


def _launch_of(workload: Workload, group: Sequence[Operator]) -> Launch:
    first = group[0]
    if first.kind == SCORES and len(group) > 1:
        return _attention(workload, group)
    if is_convolution(first) and _structure(workload, first) is None:
        shape = shape_of(first)
        whole = replace(shape, images=shape.images * len(group))
        call, note = convolution_call(whole, _dtype(workload, first))
        if len(group) > 1:
            note = ", ".join(filter(None, [f"{len(group)} phases: as one convolution", note]))
        macs = sum(operator.macs for operator in group)
        return Launch(name=first.name, call=call, macs=macs, note=note)
    launch = _launch(workload, first)
    if len(group) > 1:
        each = [_launch(workload, operator).call.params for operator in group]
        whole_params = {key: sum(params[key] for params in each) for key in ("n", "moved")}
        return replace(launch, call=replace(launch.call, params=whole_params))
    return launch


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
    dtype, note = _dtype(workload, operator), ""
    if operator.operation != "mac" or operator.kind == STREAMING:
        _structure(workload, operator)
    if operator.kind == STREAMING:
        call = _sdpa(workload, operator, causal=False)
    elif operator.operation == "mac":
        call = _product(operator, dtype, sparse=_structure(workload, operator) is not None)
    else:
        call, note = moving(workload, operator, _wide(dtype))
    return Launch(name=operator.name, call=call, macs=operator.macs, note=note)


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


def _residual_sums(workload: Workload) -> dict[str, Operator]:
    """By convolution the sum that its epilogue can do: the only reader of what it computes, and the
    other operand is there already."""
    readers = Counter(access.tensor for o in workload.operators for access in o.inputs)
    written: dict[str, Operator] = {}
    found: dict[str, Operator] = {}
    for operator in workload.operators:
        last = _last_written(operator, written)
        if last is not None and is_convolution(last) and readers[last.output.tensor] == 1:
            found.setdefault(last.name, operator)
        written[operator.output.tensor] = operator
    return found


def _last_written(operator: Operator, written: dict[str, Operator]) -> Operator | None:
    """Of the operands of a sum of two equal tensors the one that was computed last."""
    equal = all(in_order_of(a) == in_order_of(operator.output) for a in operator.inputs)
    if operator.operation != "add" or len(operator.inputs) != 2 or not equal:
        return None
    operands = {access.tensor for access in operator.inputs}
    found = [writer for tensor, writer in written.items() if tensor in operands]
    return found[-1] if found else None


def _with_sum(workload: Workload, launch: Launch, added: Operator, convolution: Operator) -> Launch:
    (other,) = (a for a in added.inputs if a.tensor != convolution.output.tensor)
    size = max(STREAMED_BYTES, BYTES[_wide(workload.tensor(other.tensor).dtype)])
    beside = touched(workload, added, other) * size
    name = f"{launch.name} + {added.name.rpartition('.')[2]}"
    return replace(launch, name=name, beside_bytes=beside)


def _eager_kernels(workload: Workload) -> dict[str, list[str]]:
    """By operator what the importer folded into it, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for note in workload.folded:
        if (match := FOLDED.fullmatch(note)) is not None:
            found[match["operator"]].append(f"{match['what']}: {match['why']}")
    return found


def _following(
    operator: Operator, workload: Workload, folded: Sequence[str], launch: Launch
) -> Iterator[Launch]:
    """Kernels after one that go over its result, each reading and writing it."""
    kinds = Counter[str]()
    for note in folded:
        what, _, why = note.partition(": ")
        if why == BIAS and not is_convolution(operator):
            continue
        short = what.rpartition(".")[2]
        kinds[short] += 1
        again = f" {kinds[short]}" if kinds[short] > 1 else ""
        dtype = _wide(_dtype(workload, operator))
        elements = workload.tensor(operator.output.tensor).elements
        moved = 2 * elements * max(STREAMED_BYTES, BYTES[dtype])
        yield Launch(
            name=f"{launch.name}{AFTER}{short}{again}",
            call=Call(
                kind=EAGER_KINDS.get(why, "clamp"),
                params={"n": elements, "moved": moved},
                dtype=dtype,
            ),
            macs=0,
        )
