"""The fused kernels by name."""

from __future__ import annotations

from kernels_ref.fused.attention import ATTENTION
from kernels_ref.fused.integers import INTEGERS
from kernels_ref.fused.products import PRODUCTS
from kernels_ref.fused.record import Fused
from kernels_ref.fused.rows import ROWS
from kernels_ref.fused.weights import WEIGHTS

FUSED: dict[str, Fused] = {
    kernel.name: kernel for kernel in (*PRODUCTS, *WEIGHTS, *INTEGERS, *ATTENTION, *ROWS)
}
