"""The kernels by name."""

from __future__ import annotations

from kernels_ref import elementwise, gemm, softmax
from kernels_ref.kernel import Kernel

KERNELS: dict[str, Kernel] = {
    module.KERNEL.name: module.KERNEL for module in (gemm, softmax, elementwise)
}
