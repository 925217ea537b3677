"""Do names with parameters give the operators that they say, and are wrong ones explained?"""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from arch.errors import InputError
from mapper.workload.load import load_workload
from mapper.workload.parameters import Parameter, split_spec, usage

small = st.integers(1, 64)


def error(spec: str) -> str:
    with pytest.raises(InputError) as caught:
        load_workload(spec)
    return str(caught.value)


@given(small, small, small)
def test_gemm_counts(m: int, n: int, k: int) -> None:
    workload = load_workload(f"gemm:M={m},N={n},K={k},dtype=fp16")
    (operator,) = workload.operators
    assert workload.macs == m * n * k
    assert workload.parameters == k * n
    assert dict(operator.extents) == {"M": m, "N": n, "K": k}
    assert [operator.dim_class(dim) for dim in "MNK"] == ["m", "n", "k"]
    assert operator.accumulator_dtype == "fp32"


def test_gemv_is_a_weight_times_a_vector() -> None:
    workload = load_workload("gemv:M=4096,K=1024")
    (operator,) = workload.operators
    assert (workload.macs, workload.parameters) == (4096 * 1024, 4096 * 1024)
    assert [operator.dim_class(dim) for dim in "MK"] == ["n", "k"]
    assert operator.accumulator_dtype == "int32"


@given(
    st.integers(1, 4),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.integers(1, 16),
    st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(1, 2)),
)
def test_conv2d_counts(
    groups: int, channels: tuple[int, int], size: int, window: tuple[int, int, int]
) -> None:
    """MACs and parameters by the closed form; 2 * dilation * (R // 2) zeros by default."""
    (c, k), (kernel, stride, dilation) = channels, window
    out = (size + 2 * dilation * (kernel // 2) - dilation * (kernel - 1) - 1) // stride + 1
    assume(out >= 1)
    workload = load_workload(
        f"conv2d:N=2,C={c * groups},H={size},K={k * groups},R={kernel},stride={stride},"
        f"dilation={dilation},groups={groups}"
    )
    assert workload.tensor("output").shape == (2, k * groups, out, out)
    assert workload.parameters == k * groups * c * kernel**2
    assert workload.macs == 2 * k * groups * out**2 * c * kernel**2


def test_conv2d_defaults() -> None:
    """W follows H, S follows R, and odd kernels keep the size at stride 1."""
    workload = load_workload("conv2d:C=64,H=56,K=64,R=3")
    assert workload.tensor("input").shape == (1, 64, 56, 56)
    assert workload.tensor("weight").shape == (64, 64, 3, 3)
    assert workload.tensor("output").shape == (1, 64, 56, 56)
    assert workload.macs == 56 * 56 * 64 * 64 * 9


def test_zero_padding_can_be_asked_for() -> None:
    assert load_workload("conv2d:C=1,H=5,K=1,R=3,pad=0").tensor("output").shape == (1, 1, 3, 3)


def test_depthwise_channels_are_shared_by_all_operands() -> None:
    (operator,) = load_workload("conv2d:C=32,H=8,K=32,R=3,groups=32").operators
    assert operator.extents["G"] == 32
    assert operator.dim_class("G") == "b"


def test_all_problems_are_listed_at_once() -> None:
    lines = error("gemm:M=0,N=x,L=4").splitlines()
    assert lines == [
        "workload gemm: unknown parameter 'L'; allowed M, N, K, dtype, weights, sparsity",
        "workload gemm: M: 0 is not allowed; allowed an integer 1 to 2147483647",
        "workload gemm: N: 'x' is not an integer; allowed an integer 1 to 2147483647",
        "workload gemm: K: must be given (length of the sums); allowed an integer 1 to 2147483647",
    ]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("gemmm:M=1", "unknown workload 'gemmm'"),
        ("gemmm:M=1", "did you mean 'gemm'?"),
        ("resnet18:bacth=2", "did you mean 'batch'?"),
        ("resnet18:batch=-1", "batch: -1 is not allowed"),
        ("resnet18:image=16", "image: 16 is not allowed; allowed an integer 32 to 8192"),
        ("vit-s:image=100", "allowed an integer 16 to 8192, a multiple of 16"),
        ("resnet18:dtype=itn8", "did you mean 'int8'?"),
        ("gpt2:seq=1025", "allowed an integer 1 to 1024"),
        ("llama3-8b:phase=deocde", "did you mean 'decode'?"),
        ("gemm:M=1,M=2,N=1,K=1", "M is given twice"),
        ("gemm:M", "'M' is not key=value"),
        ("gemm:M=1,,N=1,K=1", "'' is not key=value"),
        ("gemm:M=1.5,N=1,K=1", "'1.5' is not an integer"),
        ("gemm:M=٣,N=1,K=1", "is not an integer"),
        ("", "unknown workload ''"),
        ("conv2d:C=3,H=4,K=8,R=9,pad=0,groups=2", "C = 3 is not a multiple of groups = 2"),
        ("conv2d:C=3,H=4,K=8,R=9,pad=0", "the kernel (R = 9, dilation 1) is larger than"),
    ],
)
def test_wrong_names_and_values(spec: str, message: str) -> None:
    assert message in error(spec)


def test_a_spec_is_a_name_and_pairs() -> None:
    assert split_spec("gemm: M = 4 ,N=2") == ("gemm", {"M": "4", "N": "2"})
    assert split_spec("gemm") == ("gemm", {})


def test_usage_shows_what_must_be_given() -> None:
    parameters = (Parameter(name="M", help="rows"), Parameter(name="N", help="columns", default=2))
    assert usage("gemm", parameters) == "gemm:M=,N=2"
