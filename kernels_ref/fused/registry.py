"""The fused kernels by name."""

from __future__ import annotations

from kernels_ref.fused.attention import ATTENTION
from kernels_ref.fused.integers import INTEGERS
from kernels_ref.fused.local import LOCAL
from kernels_ref.fused.products import PRODUCTS
from kernels_ref.fused.record import Fused
from kernels_ref.fused.rows import ROWS
from kernels_ref.fused.sequence import SEQUENCE
from kernels_ref.fused.sparse import SPARSE
from kernels_ref.fused.weights import WEIGHTS

FUSED: dict[str, Fused] = {
    kernel.name: kernel
    for family in (PRODUCTS, WEIGHTS, INTEGERS, SPARSE, ATTENTION, LOCAL, SEQUENCE, ROWS)
    for kernel in family
}
