"""Small workloads with everything that makes counting hard: ragged tiles, padding, stride."""

from __future__ import annotations

from arch.datatypes import accumulator_of
from arch.spec import Architecture
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.operators import Access, AffineIndex, Operator, Tensor

CONTRACTIONS = (
    "gemm:M=20,N=36,K=28",
    "gemm:M=7,N=5,K=96",
    "gemv:M=50,K=24",
    "conv2d:C=3,H=6,W=4,K=5,R=3,S=1",
    "conv2d:C=2,H=9,W=5,K=4,R=3,S=1,stride=2",
    "conv2d:C=4,H=4,W=3,K=4,R=3,groups=4",
)


def workloads_for(architecture: Architecture) -> tuple[Workload, ...]:
    """What the units of the architecture can do, in a data type that they offer."""
    products, sums = _dtypes(architecture, "mac"), _dtypes(architecture, "add")
    specs = [f"{spec},dtype={products[0]}" for spec in CONTRACTIONS if products]
    blocks = [residual_block(dtype) for dtype in products[:1] if dtype in sums]
    workloads = (*map(load_workload, specs), *blocks)
    assert workloads, f"no workload for {architecture.name}: override `workloads`"
    return workloads


def _dtypes(architecture: Architecture, operation: str) -> list[str]:
    return [
        dtype
        for unit in architecture.computes
        for intrinsic in unit.intrinsics
        if operation in intrinsic.operations
        for dtype in intrinsic.dtypes
    ]


def residual_block(dtype: str) -> Workload:
    """``x + a(b(x))`` with two equal products, so that one lowered program serves both."""
    rows, width = 12, 16
    tensors = [
        Tensor(name=name, shape=(rows, width), dtype=dtype, kind=kind)
        for name, kind in (
            ("x", "input"),
            ("hidden", "activation"),
            ("product", "activation"),
            ("sum", "output"),
        )
    ]
    tensors += [
        Tensor(name=name, shape=(width, width), dtype=dtype, kind="weight") for name in ("a", "b")
    ]
    add = Operator(
        name="add",
        kind="add",
        operation="add",
        extents={"m": rows, "n": width},
        inputs=(_access("x", "m", "n"), _access("product", "m", "n")),
        output=_access("sum", "m", "n"),
        accumulator_dtype=dtype,
    )
    first = _product("first", _access("x", "m", "k"), "b", "hidden", dtype)
    second = _product("second", _access("hidden", "m", "k"), "a", "product", dtype)
    return Workload(name="residual_block", tensors=tuple(tensors), operators=(first, second, add))


def _product(name: str, source: Access, weight: str, target: str, dtype: str) -> Operator:
    return Operator(
        name=name,
        kind="gemm",
        operation="mac",
        extents={"m": 12, "n": 16, "k": 16},
        inputs=(source, _access(weight, "k", "n")),
        output=_access(target, "m", "n"),
        accumulator_dtype=accumulator_of(dtype),
    )


def _access(tensor: str, *dims: str) -> Access:
    return Access(tensor, tuple(AffineIndex(((dim, 1),)) for dim in dims))
