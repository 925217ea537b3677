"""Do the counts of a kernel equal the arithmetic, its real buffers and the mapper's operator?"""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from kernels_ref.kernel import Kernel, normal, poisoned
from kernels_ref.registry import KERNELS
from mapper.workload.graph import Workload
from mapper.workload.operators import Tensor

SIZES = {
    "gemm": [{"M": 1, "N": 1, "K": 1}, {"M": 33, "N": 7, "K": 130}],
    "row_softmax": [{"rows": 1, "cols": 1}, {"rows": 5, "cols": 77}],
    "ew_add": [{"elements": 1}, {"elements": 1025}],
}
CASES = [
    pytest.param(kernel, params, dtype, id=f"{kernel.name}-{dtype}-{i}")
    for kernel in KERNELS.values()
    for dtype in kernel.dtypes
    for i, params in enumerate(SIZES[kernel.name])
]


@pytest.mark.parametrize(("kernel", "params", "dtype"), CASES)
def test_bytes_are_those_of_the_tensors(kernel: Kernel, params: dict[str, int], dtype: str) -> None:
    generator = torch.Generator()
    inputs = kernel.make_inputs(params, dtype, generator)
    out = poisoned(kernel.output_shape(params), dtype, generator)
    counts = kernel.counts(params, dtype)
    assert counts.read_bytes == sum(x.nbytes for x in inputs)
    assert counts.write_bytes == out.nbytes


@pytest.mark.parametrize(("kernel", "params", "dtype"), CASES)
def test_flops_are_those_of_the_operator(
    kernel: Kernel, params: dict[str, int], dtype: str
) -> None:
    operator = kernel.operator(params, dtype)
    # A multiply-accumulate is one operation of the mapper and two FLOPs.
    assert kernel.counts(params, dtype).flops == operator.operations + operator.macs


@pytest.mark.parametrize(("kernel", "params", "dtype"), CASES)
def test_the_operator_fits_the_tensors(kernel: Kernel, params: dict[str, int], dtype: str) -> None:
    operator = kernel.operator(params, dtype)
    inputs = kernel.make_inputs(params, dtype, torch.Generator())
    shapes = [*(tuple(x.shape) for x in inputs), kernel.output_shape(params)]
    kinds = ["input"] * len(inputs) + ["output"]
    tensors = tuple(
        Tensor(name=access.tensor, shape=shape, dtype=dtype, kind=kind)
        for access, shape, kind in zip(operator.accesses, shapes, kinds, strict=True)
    )
    # The graph checks ranks, index ranges and data types.
    workload = Workload(name=kernel.name, tensors=tensors, operators=(operator,))
    assert operator.points == math.prod(operator.extents.values())
    assert workload.macs == operator.macs


@pytest.mark.parametrize("params", SIZES["gemm"])
def test_gemm_flops_are_what_torch_counts(params: dict[str, int]) -> None:
    kernel = KERNELS["gemm"]
    inputs = kernel.make_inputs(params, "bf16", torch.Generator())
    with FlopCounterMode(display=False) as counter:
        torch.matmul(*inputs)
    assert kernel.counts(params, "bf16").flops == counter.get_total_flops()


def test_gemm_weights_are_column_major() -> None:
    a, b = KERNELS["gemm"].make_inputs({"M": 3, "N": 5, "K": 7}, "fp16", torch.Generator())
    assert (a.stride(), b.stride()) == ((7, 1), (1, 7))


def test_inputs_are_drawn_from_the_generator() -> None:
    same = [normal((4,), "fp32", torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert torch.equal(same[0], same[1])
    assert not torch.equal(same[0], same[2])


def test_an_unwritten_output_is_not_a_number() -> None:
    assert poisoned((3, 2), "bf16", torch.Generator()).isnan().all()


def test_descriptions_import_neither_torch_nor_triton() -> None:
    program = (
        "import sys, kernels_ref.registry as r; "
        "r.KERNELS['gemm'].counts({'M': 2, 'N': 2, 'K': 2}, 'bf16'); "
        "print(sorted({'torch', 'triton'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"
