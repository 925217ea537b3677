"""What a reference kernel is: its definition, its counts and the operator that it implements."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arch.datatypes import BITS
from mapper.workload.operators import Operator

if TYPE_CHECKING:
    import torch

#: Sizes by name, such as ``{"M": 512, "N": 512, "K": 64}``.
Params = Mapping[str, int]

#: ``run(*inputs, out=out)`` computes in place, so that the caller chooses every buffer.
Run = Callable[..., None]

#: What torch calls the formats of ``arch.datatypes`` that kernels compute in.
TORCH_NAMES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The least work of one call: every input is read once, every output written once."""

    flops: int
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel. ``reference`` is its definition; ``triton`` must compute the same.

    ``make_inputs(params, dtype, generator)`` draws random inputs on the generator's device;
    ``operator(params, dtype)`` is the same computation as the mapper sees it.
    """

    name: str
    params: tuple[str, ...]
    dtypes: tuple[str, ...]
    reference: Run
    triton: Run
    operator: Callable[[Params, str], Operator]
    counts: Callable[[Params, str], Counts]
    make_inputs: Callable[[Params, str, torch.Generator], tuple[torch.Tensor, ...]]
    output_shape: Callable[[Params], tuple[int, ...]]

    @property
    def implementations(self) -> Mapping[str, Run]:
        return {"torch": self.reference, "triton": self.triton}


def size_bytes(elements: int, dtype: str) -> int:
    return elements * BITS[dtype] // 8


def torch_dtype(dtype: str) -> torch.dtype:
    import torch

    found: torch.dtype = getattr(torch, TORCH_NAMES[dtype])
    return found


def normal(shape: tuple[int, ...], dtype: str, generator: torch.Generator) -> torch.Tensor:
    """Standard normal numbers; zeros would hide wrong indexing, and draw less power."""
    import torch

    return torch.randn(
        shape, dtype=torch_dtype(dtype), device=generator.device, generator=generator
    )


def poisoned(shape: tuple[int, ...], dtype: str, generator: torch.Generator) -> torch.Tensor:
    """An output in which an element that no kernel writes stays NaN."""
    import torch

    return torch.full(shape, float("nan"), dtype=torch_dtype(dtype), device=generator.device)


def triton_kernel(module: str, launcher: str) -> Run:
    """A Triton kernel, whose module is imported at the first call.

    Triton exists for few platforms, and a kernel's counts are needed on all of them.
    """

    def run(*inputs: torch.Tensor, out: torch.Tensor) -> None:
        launch: Run = getattr(
            importlib.import_module(f"kernels_ref.triton_kernels.{module}"), launcher
        )
        launch(*inputs, out=out)

    return run
