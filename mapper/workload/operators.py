"""Operators: einsum-like loop nests over affine index maps.

An operator is a perfect loop nest over named dimensions. Each access maps the loop indices to
the axes of a tensor by affine expressions, so stride, dilation, padding, groups and sliding
windows are all data: a convolution reads its input at ``p * stride + r * dilation - pad``, and
with groups at channel ``g * (channels of a group) + c``.

A tensor has one stored shape, and every operator addresses it in that shape. Views (reshape,
permute, slices, attention heads) exist only in the index expressions: head ``h`` of a
projection is read at ``h * (head size) + d``. So data is never counted twice, and which operator
depends on which can be read from the tensors' names.

The number of distinct elements that a tile touches on an axis is at most the span of its
expression and at most the product of the tile's extents in it; both bounds hold at once
(``h * 64 + d`` over 2 heads and 8 elements touches 16, though it spans 72).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from arch.datatypes import Bits, Sparsity, bits_of
from arch.spec import VECTOR_OPERATIONS as VECTOR_OPERATIONS


@dataclass(frozen=True, slots=True)
class AffineIndex:
    """``sum(coefficient * dim) + offset``: the position on one axis of a tensor.

    Positions outside ``[0, size of the axis)`` are padding: they are read as the reduction's
    neutral element and move no data.
    """

    terms: tuple[tuple[str, int], ...]
    offset: int = 0

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dim for dim, _ in self.terms)


@dataclass(frozen=True, slots=True)
class Access:
    """How an operator reads or writes a tensor: one affine expression per tensor axis."""

    tensor: str
    index: tuple[AffineIndex, ...]

    @property
    def dims(self) -> frozenset[str]:
        return frozenset(dim for axis in self.index for dim in axis.dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A named array. ``kind`` is ``input``, ``weight``, ``activation`` or ``output``.

    A sparse tensor (``sparsity``) is kept compressed in every memory.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    kind: str  # see TENSOR_KINDS
    sparsity: Sparsity | None = None

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def bits(self) -> Bits:
        """Stored bits per element, with its shares of scales and of sparsity's metadata."""
        dense = bits_of(self.dtype)
        return dense if self.sparsity is None else self.sparsity.stored_bits(dense)


@dataclass(frozen=True, slots=True, kw_only=True)
class SideWork:
    """What another unit does meanwhile, such as the softmax inside a streaming attention.

    ``operation`` (a vector operation) once at each point of ``dims``, each of ``ops_per_point``
    scalar operations.
    """

    operation: str
    dims: tuple[str, ...]
    ops_per_point: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """``output[...] (op)= f(inputs[...])`` for all points of ``extents``.

    ``kind`` is what a person calls it (``conv2d``, ``gemm``, ``softmax``); ``operation`` is
    what the hardware must be able to do at each point: ``mac`` for contractions, otherwise
    one of ``arch.spec.VECTOR_OPERATIONS``. ``ops_per_point`` counts scalar operations a point
    (5 for a softmax: subtract, exponent, sum, reciprocal, multiply). A contraction's
    first input has the role ``input``, its second ``weight``. Partial sums have
    ``accumulator_dtype``.

    Fields for operators that are more than one product or one pass: ``issues_per_point`` is
    how often the unit issues for a point; ``whole_dims`` are never cut into tiles in a shared
    memory (a softmax needs its row, a streaming attention its head); ``dim_classes`` replace
    the classes that follow from the accesses; ``side`` is what other units do meanwhile.

    ``causal`` marks an attention (its softmax, if it is in parts) whose queries are the last of
    its positions and see no later keys. Loop nests compute hidden scores nevertheless; kernels
    that skip them need to know.
    """

    name: str
    kind: str
    operation: str
    extents: Mapping[str, int] = field(hash=False)
    inputs: tuple[Access, ...]
    output: Access
    accumulator_dtype: str
    ops_per_point: Bits = 1
    issues_per_point: Bits = 1
    whole_dims: frozenset[str] = frozenset()
    dim_classes: tuple[tuple[str, str], ...] = ()
    side: tuple[SideWork, ...] = ()
    causal: bool = False

    @property
    def points(self) -> int:
        return math.prod(self.extents.values())

    @property
    def macs(self) -> int:
        """Multiply-accumulates; padding positions count, as in every published MAC count."""
        return self.operations if self.operation == "mac" else 0

    @property
    def operations(self) -> int:
        return math.ceil(self.points * self.ops_per_point)

    @property
    def accesses(self) -> tuple[Access, ...]:
        """Inputs in order, then the output."""
        return (*self.inputs, self.output)

    def role(self, operand: int) -> str:
        """The role (``input``, ``weight``, ``output``) of ``accesses[operand]``."""
        if operand == len(self.inputs):
            return "output"
        return "weight" if self.operation == "mac" and operand == 1 else "input"

    def reduction_dims(self) -> frozenset[str]:
        return frozenset(self.extents) - self.output.dims

    def dim_class(self, dim: str) -> str:
        """``m``, ``n``, ``k`` or ``b`` (see ``arch.spec.DIM_CLASSES``), or as given."""
        for named, given in self.dim_classes:
            if named == dim:
                return given
        if dim not in self.output.dims:
            return "k"
        if self.operation != "mac" or dim not in self.inputs[1].dims:
            return "m"
        return "b" if dim in self.inputs[0].dims else "n"


#: ``input`` comes from outside (network inputs, constants, caches), ``weight`` is a parameter,
#: ``activation`` and ``output`` are produced by operators; ``host`` as well, but it waits outside
#: the device: its traffic counts, its room does not.
TENSOR_KINDS = ("input", "weight", "activation", "output", "host")
