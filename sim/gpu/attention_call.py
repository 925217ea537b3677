"""The kernels that attention of a workload graph is: fused ones, or two products and a softmax.

Scores, softmax and context, a streaming attention, or chunks of a causal one are one fused kernel,
where the library has one (heads of up to 256 elements) and nobody else reads the scores. What it
has none for runs as torch's own fallback does: the products and the softmax one after the other.
Causal queries are the last of the positions; a fused kernel skips the keys after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from sim.gpu.demand import Call
from sim.gpu.formats import attention_format, narrow_caches, note_of, spared
from sim.gpu.launch import Launch, noted

SCORES, CONTEXT = "attention_scores", "attention_context"
#: With a mask among its inputs, or without.
SOFTMAX = ("softmax", "masked_softmax")
#: Both products in one operator; its loop ``P`` runs over the two.
STREAMING = "attention"
CHUNK = "causal_attention"
BACKWARD = "attention_backward"
#: One operator that a kernel computes.
FUSED_ATTENTION = (STREAMING, CHUNK, BACKWARD)
#: Fused kernels of cuDNN and of FlashAttention end here (cuDNN 9 documentation, scaled dot product
#: attention; github.com/Dao-AILab/flash-attention, README).
MOST_HEAD = 256
#: What the loops of attention run over; loops of other names by what they index.
LOOPS = {
    "B": "batch",
    "H": "groups",
    "G": "repeats",
    "M": "queries",
    "L": "keys",
    "D": "width",
    "P": "products",
    "again": "products",
}
CLASSES = {"b": "groups", "m": "queries", "n": "keys", "k": "width"}
#: Products of a forward pass.
FORWARD = 2
#: cuDNN's backward pass takes 2.7, 2.8 and 3.3 forward passes on an H200
#: (``flash_attention_backward`` in kernels_ref/data/h200_fused.csv, less the predicted forward
#: pass); the two operators have 7 products between them, against 2.
BACKWARD_SHARE = 0.8
APART = ": as two products and a softmax"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Of an attention; ``products`` is 2 forwards. ``value`` elements of a value matter."""

    batch: int
    groups: int
    repeats: int
    queries: int
    keys: int
    width: int
    products: int
    value: int
    causal: bool

    @property
    def pairs(self) -> int:
        return self.batch * self.groups * self.repeats * self.queries * self.keys

    @property
    def masked(self) -> int:
        """Pairs whose key is after the query."""
        if not self.causal:
            return 0
        heads = self.batch * self.groups * self.repeats
        return heads * self.queries * (self.queries - 1) // 2

    @property
    def stored(self) -> int:
        """Elements of keys; there are as many of values."""
        return self.batch * self.groups * self.keys * self.width


def in_parts(operators: Sequence[Operator]) -> bool:
    """Whether the first three are scores, softmax and context of one attention."""
    if len(operators) < 3:
        return False
    scores, softmax, context = operators[:3]
    return (
        (scores.kind, context.kind) == (SCORES, CONTEXT)
        and softmax.kind in SOFTMAX
        and softmax.inputs[0].tensor == scores.output.tensor
        and context.inputs[0].tensor == softmax.output.tensor
    )


def reason_against(operators: Sequence[Operator], readers: Mapping[str, int]) -> str:
    """Why no fused kernel computes the first three; empty if one does."""
    if any(readers[name] > 1 for name in inside(operators[:3])):
        return f"its scores are read elsewhere too (as by a backward pass){APART}"
    return _too_wide(_shape(operators[0]).width)


def inside(parts: Sequence[Operator]) -> tuple[str, ...]:
    """Tensors between scores, softmax and context, which a fused kernel never writes."""
    return tuple(operator.output.tensor for operator in parts[:-1])


def _too_wide(width: int) -> str:
    if width <= MOST_HEAD:
        return ""
    return f"heads of {width}, where fused kernels end at {MOST_HEAD}{APART}"


def attention_launches(workload: Workload, group: Sequence[Operator]) -> Iterator[Launch]:
    """Of operators that are one attention."""
    first = group[0]
    if first.kind == SCORES:
        name, counted = f"{first.name.removesuffix('scores')}attention", [first]
        shape = _shape(first, causal=group[1].causal)
    else:
        name, counted = first.name, list(group)
        shape = _joined([_shape(operator, causal=operator.causal) for operator in group])
    caches = [group[0].inputs[1].tensor, group[-1].inputs[1].tensor]
    dtype = attention_format(workload, first, caches)
    narrow = narrow_caches(workload, first, caches)
    launch = Launch(
        name=name,
        call=_fused(shape, dtype),
        macs=sum(operator.macs for operator in group),
        useful_share=(shape.pairs - shape.masked) / sum(_shape(o).pairs for o in counted),
        spared_bytes=sum(spared(workload, cache, dtype, shape.stored) for cache in narrow),
    )
    notes = (note_of(workload, narrow, dtype), _window(first, shape), _backward(first))
    reason = _too_wide(shape.width)
    if reason and first.kind == BACKWARD:
        where = f"workload {workload.name}"
        raise InputError(Problem(f"{first.name}: {reason}; form=parts has those", where=where))
    launch = noted(launch, *notes)
    if reason:
        yield from _apart(launch, shape, reason)
    else:
        yield launch


def _shape(operator: Operator, *, causal: bool = False) -> Shape:
    """Sizes of an attention by its first product or its one operator."""
    size = dict.fromkeys(LOOPS.values(), 1)
    for dim, extent in operator.extents.items():
        role = LOOPS.get(dim) or CLASSES[operator.dim_class(dim)]
        size[role] *= extent
    value = size["width"]
    if operator.kind == SCORES:
        size["products"] = FORWARD
    elif operator.kind in FUSED_ATTENTION:
        value = round(size["width"] * (2 * operator.ops_per_point - 1))
    return Shape(**size, value=value, causal=causal and size["queries"] > 1)


def _joined(chunks: Sequence[Shape]) -> Shape:
    """Chunks of queries, each of which sees the keys up to its last one."""
    queries = sum(chunk.queries for chunk in chunks)
    return replace(chunks[-1], queries=queries, causal=chunks[-1].causal or len(chunks) > 1)


def _fused(shape: Shape, dtype: str) -> Call:
    """A backward pass is as forward ones of a larger batch."""
    batch: float = shape.batch
    if shape.products != FORWARD:
        batch *= shape.products / FORWARD * BACKWARD_SHARE
    params = {
        "B": batch,
        "H": shape.groups * shape.repeats,
        "Hkv": shape.groups,
        "Sq": shape.queries,
        "Skv": shape.keys,
        "D": shape.width,
        "causal": int(shape.causal),
    }
    if shape.causal and shape.keys > shape.queries:
        params["past"] = shape.keys - shape.queries
    return Call(kind="sdpa", params=params, dtype=dtype)


def _apart(whole: Launch, shape: Shape, reason: str) -> Iterator[Launch]:
    """Products of all heads that share their keys, and a softmax of what lies between."""
    batch, rows = shape.batch * shape.groups, shape.repeats * shape.queries
    dtype, spared_bytes = whole.call.dtype, whole.spared_bytes // 2
    macs = whole.macs * shape.width // (shape.width + shape.value)
    first = _batched(batch, rows, shape.keys, shape.width, dtype)
    last = _batched(batch, rows, shape.value, shape.keys, dtype)
    between = Call(kind="row_softmax", params={"R": batch * rows, "C": shape.keys}, dtype=dtype)
    part = replace(whole, spared_bytes=spared_bytes, note="")
    scores = replace(part, name=f"{whole.name}.scores", call=first, macs=macs)
    yield noted(scores, reason, whole.note)
    yield Launch(name=f"{whole.name}.softmax", call=between, macs=0)
    yield replace(part, name=f"{whole.name}.context", call=last, macs=whole.macs - macs)


def _batched(batch: int, m: int, n: int, k: int, dtype: str) -> Call:
    sizes = {"M": m, "N": n, "K": k}
    if batch == 1:
        return Call(kind="gemm", params=sizes, dtype=dtype)
    return Call(kind="bmm", params={"B": batch, **sizes}, dtype=dtype)


def _window(operator: Operator, shape: Shape) -> str:
    """Keys that slide along with the queries."""
    axes = [set(axis.dims) for axis in operator.inputs[1].index]
    if any({"L", "M"} <= dims for dims in axes):
        return f"a window of {shape.keys} keys: as so many keys for every query"
    return ""


def _backward(operator: Operator) -> str:
    if operator.kind != BACKWARD:
        return ""
    return f"as forward kernels with {BACKWARD_SHARE:g} of its products"
