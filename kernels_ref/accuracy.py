"""How far a result may be from the exact one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernels_ref.kernel import Kernel

if TYPE_CHECKING:
    import torch

# The result is computed in fp32 and rounded once to its format, so that its relative error is at
# most half a unit in the last place: significands have 8 (bf16), 11 and 24 bits (IEEE 754-2019,
# table 3.5). For fp32, whose rounding errors add up in the sums, 16 times that.
TOLERANCE = {"bf16": 2.0**-8, "fp16": 2.0**-11, "fp32": 2.0**-20}


def relative_error(kernel: Kernel, inputs: tuple[torch.Tensor, ...], result: torch.Tensor) -> float:
    """Distance from the reference in fp64, relative in the 2-norm; NaN if any element is."""
    import torch

    exact = torch.empty(result.shape, dtype=torch.float64, device=result.device)
    kernel.reference(*(x.double() for x in inputs), out=exact)
    return float((result - exact).norm() / exact.norm())
