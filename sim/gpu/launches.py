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

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from mapper.workload.output_path import (
    BIAS_ADDED,
    SCALE_AND_SHIFT,
    OnOutputPath,
    on_output_paths,
)
from sim.gpu.attention_call import (
    CHUNK,
    FUSED_ATTENTION,
    SCORES,
    attention_launches,
    in_parts,
    inside,
    reason_against,
)
from sim.gpu.chip import BYTES
from sim.gpu.conv_call import TRANSPOSED, convolution_call, is_convolution, shape_of
from sim.gpu.demand import Call
from sim.gpu.formats import product_format, spared_weights, wide
from sim.gpu.launch import Launch, noted
from sim.gpu.moving import LOOKUP, STREAMED_BYTES, in_order_of, moving, touched

FUSED, EAGER = "fused", "eager"
#: The one structure of zeros that tensor cores have instructions for.
SPARSE = "2:4"
#: The kernel of its own that it would be; everything else goes over the tensor as a clamp does.
EAGER_KINDS = {SCALE_AND_SHIFT: "batch_norm", BIAS_ADDED: "bias"}
#: In the name of a kernel that goes over another one's result.
AFTER = " / "


def launches(workload: Workload, epilogues: str = FUSED) -> Iterator[Launch]:
    """The kernels of a workload."""
    after = _eager_kernels(workload) if epilogues == EAGER else {}
    sums = _residual_sums(workload) if epilogues == FUSED else {}
    done = {operator.name for operator in sums.values()}
    for group, note in _groups(workload):
        if group[0].name in done:
            continue
        *before, launch = _launches_of(workload, group, note)
        if group[-1].name in sums:
            launch = _with_sum(workload, launch, sums[group[-1].name], group[-1])
        yield from before
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


def kernel_groups(workload: Workload) -> list[Sequence[Operator]]:
    """Operators that run together, in order."""
    return [group for group, _ in _groups(workload)]


def never_written(groups: Sequence[Sequence[Operator]]) -> frozenset[str]:
    """Tensors that stay within kernels: what fused attention has between its products."""
    return frozenset(name for group in groups if group[0].kind == SCORES for name in inside(group))


def _groups(workload: Workload) -> Iterator[tuple[Sequence[Operator], str]]:
    """Operators that one kernel computes together, and why others are not that could be."""
    operators = workload.operators
    readers = Counter(access.tensor for o in operators for access in o.inputs)
    number = 0
    while number < len(operators):
        kind, note = operators[number].kind, ""
        near = operators[number : number + 3]
        count = 1
        if kind == CHUNK or (operators[number].operation == "copy" and kind != LOOKUP):
            count = _parts(operators[number:])
        elif kind.startswith(TRANSPOSED):
            count = _phases(operators[number:])
        elif in_parts(near):
            note = reason_against(near, readers)
            count = 1 if note else 3
        yield operators[number : number + count], note
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
    """How many from the first on fill one tensor: one kernel joins what copies read, and another
    computes all chunks of an attention."""
    first = operators[0]
    same = ((o.kind, o.output.tensor) == (first.kind, first.output.tensor) for o in operators)
    return sum(1 for _ in takewhile(bool, same))


def _launches_of(workload: Workload, group: Sequence[Operator], note: str) -> Iterator[Launch]:
    first = group[0]
    if first.kind in FUSED_ATTENTION or (first.kind == SCORES and len(group) > 1):
        for operator in group:
            _check_dense(workload, operator)
        yield from attention_launches(workload, group)
    elif is_convolution(first) and not _is_sparse(workload, first):
        yield _convolution(workload, group)
    elif first.operation == "mac":
        yield noted(_product(workload, first), note)
    else:
        yield _moving(workload, group)


def _moving(workload: Workload, group: Sequence[Operator]) -> Launch:
    found = []
    for operator in group:
        _check_dense(workload, operator)
        found.append(moving(workload, operator, _dtype(workload, operator)))
    call, note = found[0]
    if len(group) > 1:
        sums = {key: sum(each.params[key] for each, _ in found) for key in ("n", "moved")}
        call = replace(call, params=sums)
    return Launch(name=group[0].name, call=call, macs=0, note=note)


def _convolution(workload: Workload, group: Sequence[Operator]) -> Launch:
    first = group[0]
    shape = shape_of(first)
    whole = replace(shape, images=shape.images * len(group))
    dtype, mixed = product_format(workload, first)
    if mixed:
        message = f"{first.name} has {mixed}; GPU libraries have no such convolutions"
        raise InputError(Problem(message, where=f"workload {workload.name}"))
    call, note = convolution_call(whole, dtype)
    macs = sum(operator.macs for operator in group)
    launch = Launch(name=first.name, call=call, macs=macs, note=note)
    phases = f"{len(group)} phases: as one convolution" if len(group) > 1 else ""
    return noted(launch, phases)


def _product(workload: Workload, operator: Operator) -> Launch:
    size = dict.fromkeys("bmnk", 1)
    for dim, extent in operator.extents.items():
        size[operator.dim_class(dim)] *= extent
    dtype, note = product_format(workload, operator)
    params = {"M": size["m"], "N": size["n"], "K": size["k"]}
    call = Call(kind="gemm", params=params, dtype=dtype)
    if size["b"] > 1:
        call = Call(kind="bmm", params={"B": size["b"], **params}, dtype=wide(dtype))
    launch = Launch(name=operator.name, call=call, macs=operator.macs, note=note)
    if call.dtype != dtype:
        launch = noted(launch, f"batch in {dtype}: in {call.dtype}, as libraries have batches")
    if _is_sparse(workload, operator):
        return _sparse(workload, launch)
    if note:
        less, widened = spared_weights(workload, operator, call)
        return replace(launch, spared_bytes=less, widened=widened)
    return launch


def _sparse(workload: Workload, dense: Launch) -> Launch:
    where = f"workload {workload.name}"
    if dense.call.kind == "bmm":
        message = f"{dense.name} is a batch; 2:4 sparse kernels have none"
        raise InputError(Problem(message, where=where))
    if dense.note:
        message = f"{dense.name} has {dense.note}; 2:4 sparse kernels need equal formats"
        raise InputError(Problem(message, where=where))
    return replace(dense, call=replace(dense.call, kind="gemm_2of4"))


def _is_sparse(workload: Workload, operator: Operator) -> bool:
    """Whether the weights of a product are 2:4 sparse; ``InputError`` if no kernel has it."""
    found = [workload.tensor(a.tensor).sparsity for a in operator.accesses]
    structures = [None if sparsity is None else sparsity.structure for sparsity in found]
    if not any(structures):
        return False
    if operator.operation == "mac" and structures == [None, SPARSE, None]:
        return True
    message = f"{operator.name} is sparse; the kernel model has {SPARSE} sparse weights of products"
    raise InputError(Problem(message, where=f"workload {workload.name}"))


def _check_dense(workload: Workload, operator: Operator) -> None:
    if _is_sparse(workload, operator):
        message = f"{operator.name} is sparse; 2:4 sparse kernels are of products"
        raise InputError(Problem(message, where=f"workload {workload.name}"))


def _dtype(workload: Workload, operator: Operator) -> str:
    """Of what is no product, by its last input: a lookup's first one are indices."""
    return wide(workload.tensor(operator.inputs[-1].tensor).dtype)


def _residual_sums(workload: Workload) -> dict[str, Operator]:
    """By convolution (the last phase of one) the sum that its epilogue can do: the only reader of
    what it computes, which is no result of the network, and the other operand is there already."""
    readers = Counter(access.tensor for o in workload.operators for access in o.inputs)
    written: dict[str, Operator] = {}
    found: dict[str, Operator] = {}
    for operator in workload.operators:
        last = _last_written(operator, written)
        if last is not None and is_convolution(last) and _is_read_once(workload, last, readers):
            found.setdefault(last.name, operator)
        written[operator.output.tensor] = operator
    return found


def _is_read_once(workload: Workload, writer: Operator, readers: Mapping[str, int]) -> bool:
    name = writer.output.tensor
    return readers[name] == 1 and workload.tensor(name).kind == "activation"


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
    size = max(STREAMED_BYTES, BYTES[wide(workload.tensor(other.tensor).dtype)])
    beside = touched(workload, added, other) * size
    name = f"{launch.name} + {added.name.rpartition('.')[2]}"
    return replace(launch, name=name, beside_bytes=beside)


def _eager_kernels(workload: Workload) -> dict[str, list[OnOutputPath]]:
    """By operator what the importer folded into it, in order."""
    found: dict[str, list[OnOutputPath]] = defaultdict(list)
    for folded in on_output_paths(workload):
        found[folded.operator].append(folded)
    return found


def _following(
    operator: Operator, workload: Workload, done: Sequence[OnOutputPath], launch: Launch
) -> Iterator[Launch]:
    """Kernels after one that go over its result, each reading and writing it."""
    kinds = Counter[str]()
    for folded in done:
        if folded.why == BIAS_ADDED and not is_convolution(operator):
            continue
        short = folded.what.rpartition(".")[2]
        kinds[short] += 1
        again = f" {kinds[short]}" if kinds[short] > 1 else ""
        dtype = wide(_dtype(workload, operator))
        elements = workload.tensor(operator.output.tensor).elements
        moved = 2 * elements * max(STREAMED_BYTES, BYTES[dtype])
        yield Launch(
            name=f"{launch.name}{AFTER}{short}{again}",
            call=Call(
                kind=EAGER_KINDS.get(folded.why, "clamp"),
                params={"n": elements, "moved": moved},
                dtype=dtype,
            ),
            macs=0,
            is_after=True,
        )
