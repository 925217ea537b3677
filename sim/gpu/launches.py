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

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.operators import Access, Operator
from sim.gpu.chip import BYTES
from sim.gpu.conv_call import TRANSPOSED, convolution_call, is_convolution, shape_of
from sim.gpu.demand import Call

FUSED, EAGER = "fused", "eager"
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
#: Normalizations that are a scale and a shift, those of images as a whole, and a softmax over an
#: axis that is not the last.
BY_STATISTICS = ("batch_norm", "rms_scale")
OF_IMAGES = ("group_norm", "instance_norm")
ACROSS = "softmax_over_axis"
#: A note of an importer: what became part of the operator that it names last.
FOLDED = re.compile(r"(?P<what>.+): (?P<why>.+) on the output path of (?P<operator>\S+)")
BIAS = "bias added"
#: In the name of a kernel that goes over another one's result.
AFTER = " / "
#: Bytes that the kernel model counts for an element of a streaming kernel.
STREAMED_BYTES = 2


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
    return _launch(workload, first)


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
        call, note = _moving(workload, operator, _wide(dtype))
    return Launch(name=operator.name, call=call, macs=operator.macs, note=note)


def _moving(workload: Workload, operator: Operator, dtype: str) -> tuple[Call, str]:
    """What is no product: along rows, rows of a table, or a stream of its operands."""
    if operator.kind == LOOKUP:
        # As many bytes read as written, and a table is in no cache.
        return Call(kind="ew_scale", params={"n": operator.points}, dtype=dtype), ""
    if operator.operation in ROWS and (row := _row(operator)):
        cols = math.prod(operator.extents[dim] for dim in row)
        params = {"R": operator.points // cols, "C": cols}
        note = "over another axis: as along rows" if operator.kind == ACROSS else ""
        return Call(kind=ROWS[operator.operation], params=params, dtype=dtype), note
    summed = operator.reduction_dims()
    if summed and not _slides(operator, summed):
        cols = math.prod(operator.extents[dim] for dim in summed)
        params = {"R": operator.points // cols, "C": cols}
        note = "" if _along_rows(operator, summed) else "along another axis: as a sum along rows"
        return Call(kind="row_sum", params=params, dtype=dtype), note
    return _streamed(workload, operator, dtype), ""


def _row(operator: Operator) -> frozenset[str]:
    """The loops over what is normalized together; none if it is by numbers known before."""
    if operator.kind in BY_STATISTICS or operator.reduction_dims():
        return frozenset()
    if operator.whole_dims:
        return operator.whole_dims
    loops = tuple(operator.extents)
    return frozenset(loops[1:] if operator.kind in OF_IMAGES else loops[-1:])


def _slides(operator: Operator, summed: frozenset[str]) -> bool:
    """Whether windows overlap or lie side by side, as in pooling."""
    axes = [axis for access in operator.inputs for axis in access.index]
    return any(set(axis.dims) & summed and set(axis.dims) - summed for axis in axes)


def _along_rows(operator: Operator, summed: frozenset[str]) -> bool:
    """Whether what is added up lies side by side: the input's last axes."""
    axes = [set(axis.dims) for axis in operator.inputs[0].index if axis.dims]
    inner = [bool(dims & summed) for dims in axes]
    return inner == sorted(inner)


def _streamed(workload: Workload, operator: Operator, dtype: str) -> Call:
    """Bytes read and written, each once; ``hot`` if operands are read in the result's order."""
    elements = [_touched(workload, operator, access) for access in operator.accesses]
    result = elements[-1]
    contiguous = operator.operation != "copy" and all(
        _order(access) == _order(operator.output)
        for access, count in zip(operator.inputs, elements, strict=False)
        if count >= result
    )
    plain = contiguous and all(count >= result for count in elements if count > 1)
    wider = max(1.0, BYTES[dtype] / STREAMED_BYTES)
    params = {"n": result, "tensors": sum(elements) / result * wider}
    kind = "hot" if plain or operator.reduction_dims() else "strided"
    return Call(kind=kind, params=params, dtype=dtype)


def _touched(workload: Workload, operator: Operator, access: Access) -> int:
    points = math.prod(operator.extents[dim] for dim in access.dims)
    return min(points, workload.tensor(access.tensor).elements)


def _order(access: Access) -> list[tuple[tuple[str, int], ...]]:
    return [axis.terms for axis in access.index if axis.terms]


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
    equal = all(_order(a) == _order(operator.output) for a in operator.inputs)
    if operator.operation != "add" or len(operator.inputs) != 2 or not equal:
        return None
    operands = {access.tensor for access in operator.inputs}
    found = [writer for tensor, writer in written.items() if tensor in operands]
    return found[-1] if found else None


def _with_sum(workload: Workload, launch: Launch, added: Operator, convolution: Operator) -> Launch:
    (other,) = (a for a in added.inputs if a.tensor != convolution.output.tensor)
    size = max(STREAMED_BYTES, BYTES[_wide(workload.tensor(other.tensor).dtype)])
    beside = _touched(workload, added, other) * size
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
        wider = max(1.0, BYTES[dtype] / STREAMED_BYTES)
        elements = workload.tensor(operator.output.tensor).elements
        params = {"n": elements, "tensors": 2 * wider}
        yield Launch(
            name=f"{launch.name}{AFTER}{short}{again}",
            call=Call(kind="hot", params=params, dtype=dtype),
            macs=0,
        )
