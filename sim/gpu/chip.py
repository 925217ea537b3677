"""What the kernel model needs to know of a GPU: peaks from its data sheet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mapper.cost import InfeasibleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """Rates are per SM and clock cycle, at ``clock_mhz``; bandwidths in bytes per microsecond.

    ``mma`` is multiply-adds of the tensor cores by data type (dense), ``fma`` those of the CUDA
    cores in fp32. ``calibration`` scales the fitted constants of the GPU that was measured.
    """

    name: str
    sms: int
    clock_mhz: float
    least_clock_mhz: float
    mma: Mapping[str, float] = field(hash=False)
    #: With 2:4 sparse weights, zeros counted, where there are such instructions.
    sparse_mma: Mapping[str, float] = field(hash=False, default_factory=dict)
    fma: float
    sfu: float
    hbm_bytes_per_us: float
    l2_bytes: int
    l2_bytes_per_us: float
    #: Shared memory of one SM.
    shared_bytes: int
    link_bytes_per_us: float
    power_limit_w: float
    idle_w: float
    #: Name of the tensor-core instructions that its libraries use: ``wgmma`` or ``mma``.
    tensor_path: str
    efficiency: float = 1.0

    def rate(self, dtype: str) -> float:
        """Multiply-adds of an SM in a cycle; fp32 is what the CUDA cores do."""
        if dtype in self.mma:
            return self.mma[dtype]
        if dtype == "fp32":
            return self.fma
        detail = f"{self.name} has no tensor cores for {dtype}; it has {', '.join(self.mma)}"
        raise InfeasibleError(limit="data type", needed=1, allowed=0, detail=detail)

    def sparse_rate(self, dtype: str) -> float:
        """Of products with 2:4 sparse weights, zeros counted."""
        if dtype in self.sparse_mma:
            return self.sparse_mma[dtype]
        has = ", ".join(self.sparse_mma) or "none"
        detail = f"{self.name} has no 2:4 sparse tensor cores for {dtype}; it has {has}"
        raise InfeasibleError(limit="data type", needed=1, allowed=0, detail=detail)


#: Bytes of an element.
BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1, "int8": 1}


def chip_scale(chip: Chip) -> float:
    """Throughput constants are of 132 SMs at 1980 MHz (an H200)."""
    return 132 * 1980 / (chip.sms * chip.clock_mhz)
