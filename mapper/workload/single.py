"""Workloads of one operator: ``gemm:M=512,N=512,K=512``, ``conv2d:C=64,H=56,K=64,R=3``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from arch.datatypes import accumulator_of
from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.nests import ConvolutionShape, Nest, Window, convolution, gemm, gemv
from mapper.workload.operators import Access, Operator, Tensor
from mapper.workload.parameters import Parameter, Value, dtype_parameter


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleOperator:
    """A nameable operator: its parameters and the shapes and loops they give."""

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    build: Callable[[Mapping[str, int]], tuple[Nest, tuple[tuple[int, ...], ...]]]


def single_workload(entry: SingleOperator, values: Mapping[str, Value]) -> Workload:
    """The operator alone; its tensors are called ``input``, ``weight`` and ``output``."""
    dtype = str(values["dtype"])
    sizes = {name: value for name, value in values.items() if isinstance(value, int)}
    nest, shapes = entry.build(sizes)
    names = ("input", "weight", "output")
    return Workload(
        name=f"{entry.name}:{','.join(f'{key}={value}' for key, value in values.items())}",
        tensors=tuple(
            Tensor(name=name, shape=shape, dtype=dtype, kind=name)
            for name, shape in zip(names, shapes, strict=True)
        ),
        operators=(
            Operator(
                name=entry.name,
                kind=entry.name,
                operation="mac",
                extents=nest.extents,
                inputs=tuple(map(Access, names, nest.inputs)),
                output=Access("output", nest.output),
                accumulator_dtype=accumulator_of(dtype),
            ),
        ),
    )


def _gemm(v: Mapping[str, int]) -> tuple[Nest, tuple[tuple[int, ...], ...]]:
    m, n, k = v["M"], v["N"], v["K"]
    return gemm(m, n, k), ((m, k), (k, n), (m, n))


def _gemv(v: Mapping[str, int]) -> tuple[Nest, tuple[tuple[int, ...], ...]]:
    m, k = v["M"], v["K"]
    return gemv(m, k), ((k,), (m, k), (m,))


def _conv2d(v: Mapping[str, int]) -> tuple[Nest, tuple[tuple[int, ...], ...]]:
    size = (v["H"], v.get("W", v["H"]))
    kernel = (v["R"], v.get("S", v["R"]))
    dilation = (v["dilation"],) * 2
    same = tuple(d * (k // 2) for d, k in zip(dilation, kernel, strict=True))
    padding = (v["pad"],) * 2 if "pad" in v else same
    window = Window(kernel=kernel, stride=(v["stride"],) * 2, padding=padding, dilation=dilation)
    output_size = tuple(window.output_size(axis, size[axis]) for axis in range(2))
    _check_convolution(v, size, window, output_size)
    shape = ConvolutionShape(
        batch=v["N"],
        in_channels=v["C"],
        out_channels=v["K"],
        output_size=output_size,
        window=window,
        groups=v["groups"],
    )
    weight = (v["K"], v["C"] // v["groups"], *kernel)
    return convolution(shape), ((v["N"], v["C"], *size), weight, (v["N"], v["K"], *output_size))


def _check_convolution(
    v: Mapping[str, int], size: tuple[int, ...], window: Window, output_size: tuple[int, ...]
) -> None:
    where = "workload conv2d"
    problems = [
        Problem(f"{key} = {v[key]} is not a multiple of groups = {v['groups']}", where=where)
        for key in ("C", "K")
        if v[key] % v["groups"]
    ]
    for axis, (key, kernel_key) in enumerate((("H", "R"), ("W", "S"))):
        if output_size[axis] < 1:
            message = (
                f"the kernel ({kernel_key} = {window.kernel[axis]}, dilation "
                f"{window.dilation[axis]}) is larger than the padded input "
                f"({key} = {size[axis]} + 2 * {window.padding[axis]})"
            )
            problems.append(Problem(message, where=where))
    if problems:
        raise InputError(problems)


_CONV2D = (
    Parameter(name="N", help="batch", default=1),
    Parameter(name="C", help="input channels"),
    Parameter(name="H", help="input height"),
    Parameter(name="W", help="input width", default_text="H"),
    Parameter(name="K", help="output channels"),
    Parameter(name="R", help="kernel height"),
    Parameter(name="S", help="kernel width", default_text="R"),
    Parameter(name="stride", help="step of the window, both axes", default=1),
    Parameter(
        name="pad",
        help="zeros on each side, both axes",
        low=0,
        default_text="dilation * (R // 2) and dilation * (S // 2): size kept at stride 1, odd R",
    ),
    Parameter(name="dilation", help="distance of the kernel's elements, both axes", default=1),
    Parameter(name="groups", help="groups; C for a depthwise convolution", default=1),
    dtype_parameter("int8"),
)

SINGLE_OPERATORS = {
    entry.name: entry
    for entry in (
        SingleOperator(
            name="gemm",
            description="matrix product out[M,N] = in[M,K] * weight[K,N]",
            parameters=(
                Parameter(name="M", help="rows of the input and the output"),
                Parameter(name="N", help="columns of the weight and the output"),
                Parameter(name="K", help="length of the sums"),
                dtype_parameter("int8"),
            ),
            build=_gemm,
        ),
        SingleOperator(
            name="gemv",
            description="matrix-vector product out[M] = weight[M,K] * in[K]",
            parameters=(
                Parameter(name="M", help="rows of the weight, length of the output"),
                Parameter(name="K", help="columns of the weight, length of the input"),
                dtype_parameter("int8"),
            ),
            build=_gemv,
        ),
        SingleOperator(
            name="conv2d",
            description="2-D convolution, input N,C,H,W and weight K,C/groups,R,S",
            parameters=_CONV2D,
            build=_conv2d,
        ),
    )
}
