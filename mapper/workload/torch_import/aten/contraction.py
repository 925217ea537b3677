"""Matrix products: everything that is a sum of products of two tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from arch.errors import InputError, Problem
from mapper.workload.nests import Nest, at
from mapper.workload.torch_import.draft import Kernel
from mapper.workload.torch_import.folding import note_bias
from mapper.workload.torch_import.registry import Call, Value, lowers
from mapper.workload.torch_import.storage import View, broadcast, insert, join_leading

Dims = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """``out[output] += left[left_dims] * right[right_dims]``; equal names are one loop."""

    kind: str
    left: View
    left_dims: Dims
    right: View
    right_dims: Dims
    output_dims: Dims

    @property
    def kernel(self) -> Kernel:
        sizes = {
            **dict(zip(self.left_dims, self.left.shape, strict=True)),
            **dict(zip(self.right_dims, self.right.shape, strict=True)),
        }
        summed = [dim for dim in sizes if dim not in self.output_dims]
        nest = Nest(
            extents={dim: sizes[dim] for dim in (*self.output_dims, *summed)},
            inputs=(at(*self.left_dims), at(*self.right_dims)),
            output=at(*self.output_dims),
        )
        return Kernel(kind=self.kind, operation="mac", nest=nest)


def emit_product(call: Call, name: str, product: Product) -> View:
    """The product as an operator; its result has one axis per output loop."""
    kernel = product.kernel
    shape = [kernel.nest.extents[dim] for dim in product.output_dims]
    return call.draft.emit(name, kernel, [product.left, product.right], shape, call.dtype)


@lowers("aten.linear")
def lower_linear(call: Call) -> Value:
    """``out[..., N] = in[..., K] * weight[N, K]``."""
    note_bias(call, call["bias"])
    return _rows_times_matrix(call, call["input"], call["weight"], ("N", "K"))


@lowers("aten.matmul", "aten.mm", "aten.bmm")
def lower_matmul(call: Call) -> Value:
    left, right = (value for value in call.arguments.values() if isinstance(value, View))
    return _matmul(call, left, right)


@lowers("aten.mv", "aten.dot")
def lower_vector_product(call: Call) -> Value:
    left, right = (value for value in call.arguments.values() if isinstance(value, View))
    return _matmul(call, left, right)


@lowers("aten.addmm", "aten.baddbmm")
def lower_biased_matmul(call: Call) -> Value:
    note_bias(call, call["self"])
    left, right = [v for n, v in call.arguments.items() if n != "self" and isinstance(v, View)]
    return _matmul(call, left, right)


@lowers("aten.einsum")
def lower_einsum(call: Call) -> Value:
    """Two operands, every index once in each: a product as it stands."""
    equation = call["equation"].replace(" ", "")
    if not is_plain_product(equation):
        message = f"{call.name}: einsum {equation!r} cannot be imported, not even in parts"
        raise InputError(Problem(message, where="workload"))
    terms, _, output = equation.partition("->")
    dims = terms.split(",")
    left, right = call["tensors"]
    product = Product(
        kind="einsum",
        left=left,
        left_dims=dims[0],
        right=right,
        right_dims=dims[1],
        output_dims=output,
    )
    return emit_product(call, call.name, product)


def is_plain_product(equation: str) -> bool:
    """Two operands, an explicit result, no index twice in one operand, no ellipsis."""
    terms, arrow, _ = equation.replace(" ", "").partition("->")
    dims = terms.split(",")
    once = all(len(set(term)) == len(term) for term in dims)
    return bool(arrow) and "." not in equation and len(dims) == 2 and once


def _matmul(call: Call, left: View, right: View) -> View:
    """torch.matmul: vectors count as one row or one column, leading axes are a batch."""
    if len(left.axes) == 1:
        left = insert(left, 0)
    if len(right.axes) == 1:
        right = insert(right, 1)
    if len(right.axes) == 2:
        return _rows_times_matrix(call, left, right, ("K", "N"))
    rank = max(len(left.axes), len(right.axes)) - 2
    sizes = [max(pair) for pair in zip(_batch(left, rank), _batch(right, rank), strict=True)]
    batch = batch_dims(rank)
    product = Product(
        kind="bmm",
        left=broadcast(left, (*sizes, *left.shape[-2:])),
        left_dims=(*batch, "M", "K"),
        right=broadcast(right, (*sizes, *right.shape[-2:])),
        right_dims=(*batch, "K", "N"),
        output_dims=(*batch, "M", "N"),
    )
    return call.draft.reshape(emit_product(call, call.name, product), call.shape)


def _rows_times_matrix(call: Call, data: View, matrix: View, matrix_dims: Dims) -> View:
    """All leading axes are rows, joined to one loop ``M`` where the storage allows it."""
    joined = join_leading(data, 1)
    rows = row_dims(len(joined.axes) - 1)
    product = Product(
        kind="gemm",
        left=joined,
        left_dims=(*rows, "K"),
        right=matrix,
        right_dims=matrix_dims,
        output_dims=(*rows, "N"),
    )
    return call.draft.reshape(emit_product(call, call.name, product), call.shape)


def row_dims(rank: int) -> tuple[str, ...]:
    """``M`` for the innermost of the row loops, ``M1``, ``M2`` ... outwards."""
    return tuple("M" if level == 0 else f"M{level}" for level in reversed(range(rank)))


def batch_dims(rank: int) -> tuple[str, ...]:
    """``B``, ``H``: a batch and its heads; with more axes ``B0``, ``B1``, ..., ``H``."""
    if rank <= 2:
        return ("B", "H")[:rank]
    return (*(f"B{level}" for level, _ in zip(count(), range(rank - 1), strict=False)), "H")


def _batch(view: View, rank: int) -> tuple[int, ...]:
    leading = view.shape[:-2]
    return (1,) * (rank - len(leading)) + leading
