"""Matrix products and convolutions."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product as combinations

from mapper.workload.nests import ConvolutionShape, Nest, Window, convolution, gemm, gemv
from mapper.workload.operators import AffineIndex
from mapper.workload.parameters import Parameter, format_parameters
from mapper.workload.single.entry import Build, SingleOperator, require
from mapper.workload.transposed import (
    Phase,
    TransposedAxis,
    TransposedShape,
    phase_nest,
    phases,
)
from mapper.workload.writing.builder import Builder, Step

#: Names of the input's and the kernel's sizes, by rank; a missing one is like the one before.
_AXES = {1: (("L",), ("R",)), 2: (("H", "W"), ("R", "S")), 3: (("D", "H", "W"), ("T", "R", "S"))}

Numbers = Mapping[str, int]


def _contraction(builder: Builder, kind: str, nest: Nest, shapes: Sequence[Sequence[int]]) -> str:
    builder.input("input", shapes[0])
    builder.weight("weight", shapes[1])
    builder.result("output", shapes[2])
    step = Step(kind=kind, operation="mac", nest=nest)
    return builder.emit(kind, step, ["input", "weight"], into="output")


def _gemm(builder: Builder, v: Numbers, _: Mapping[str, str]) -> list[str]:
    m, n, k = v["M"], v["N"], v["K"]
    return [_contraction(builder, "gemm", gemm(m, n, k), ((m, k), (k, n), (m, n)))]


def _gemv(builder: Builder, v: Numbers, _: Mapping[str, str]) -> list[str]:
    m, k = v["M"], v["K"]
    return [_contraction(builder, "gemv", gemv(m, k), ((k,), (m, k), (m,)))]


def _per_axis(v: Numbers, names: Sequence[str]) -> tuple[int, ...]:
    """Sizes by name; one that is not given is like the one before it."""
    sizes: list[int] = []
    for name in names:
        sizes.append(v[name] if name in v else sizes[-1])
    return tuple(sizes)


def _convolution(name: str, rank: int) -> Build:
    def build(builder: Builder, v: Numbers, _: Mapping[str, str]) -> list[str]:
        size, kernel = (_per_axis(v, names) for names in _AXES[rank])
        dilation = (v["dilation"],) * rank
        same = tuple(d * (k // 2) for d, k in zip(dilation, kernel, strict=True))
        window = Window(
            kernel=kernel,
            stride=(v["stride"],) * rank,
            padding=(v["pad"],) * rank if "pad" in v else same,
            dilation=dilation,
        )
        outputs = tuple(window.output_size(axis, size[axis]) for axis in range(rank))
        require(name, *_group_rules(v), *_window_rules(rank, size, window, outputs))
        shape = ConvolutionShape(
            batch=v["N"],
            in_channels=v["C"],
            out_channels=v["K"],
            output_size=outputs,
            window=window,
            groups=v["groups"],
        )
        weight = (v["K"], v["C"] // v["groups"], *kernel)
        shapes = ((v["N"], v["C"], *size), weight, (v["N"], v["K"], *outputs))
        return [_contraction(builder, name, convolution(shape), shapes)]

    return build


def _group_rules(v: Numbers) -> list[tuple[bool, str]]:
    return [
        (v[key] % v["groups"] == 0, f"{key} = {v[key]} is not a multiple of groups = {v['groups']}")
        for key in ("C", "K")
    ]


def _window_rules(
    rank: int, size: Sequence[int], window: Window, outputs: Sequence[int]
) -> list[tuple[bool, str]]:
    return [
        (
            outputs[axis] >= 1,
            f"the kernel ({kernel_key} = {window.kernel[axis]}, dilation "
            f"{window.dilation[axis]}) is larger than the padded input "
            f"({key} = {size[axis]} + 2 * {window.padding[axis]})",
        )
        for axis, (key, kernel_key) in enumerate(zip(*_AXES[rank], strict=True))
    ]


def _transposed(name: str, rank: int) -> Build:
    """Phase by phase; ``weight`` is stored mirrored, ``[C, K / groups, R, S]``."""

    def build(builder: Builder, v: Numbers, _: Mapping[str, str]) -> list[str]:
        size, kernel = (_per_axis(v, names) for names in _AXES[rank])
        stride, pad = v["stride"], v["pad"]
        dilation = v["dilation"]
        outputs = tuple(
            (s - 1) * stride - 2 * pad + dilation * (k - 1) + 1
            for s, k in zip(size, kernel, strict=True)
        )
        gapless = min(kernel) >= stride and math.gcd(stride, dilation) == 1
        gaps = f"a kernel of {min(kernel)} leaves gaps at stride {stride}, dilation {dilation}"
        require(
            name,
            *_group_rules(v),
            (gapless, gaps),
            (min(outputs) >= 1, f"pad = {pad} leaves nothing of the output"),
        )
        shape = TransposedShape(
            batch=v["N"],
            in_channels=v["C"],
            out_channels=v["K"],
            kernel=kernel,
            groups=v["groups"],
        )
        builder.input("input", (v["N"], v["C"], *size))
        builder.weight("weight", (v["C"], v["K"] // v["groups"], *kernel))
        builder.result("output", (v["N"], v["K"], *outputs))
        axes = [
            phases(TransposedAxis(kernel=k, stride=stride, padding=pad, dilation=dilation), o)
            for k, o in zip(kernel, outputs, strict=True)
        ]
        for number, phase in enumerate(combinations(*axes)):
            nest = _interleaved(phase_nest(shape, phase), phase, stride)
            step = Step(kind=name, operation="mac", nest=nest)
            builder.emit(f"phase{number}", step, ["input", "weight"], into="output")
        return ["output"]

    return build


def _interleaved(nest: Nest, phase: Sequence[Phase], stride: int) -> Nest:
    """Outputs at their places in the whole: every ``stride``-th, from the phase's first."""
    places = tuple(
        AffineIndex(tuple((dim, step * stride) for dim, step in index.terms), axis.first)
        for index, axis in zip(nest.output[2:], phase, strict=True)
    )
    return Nest(extents=nest.extents, inputs=nest.inputs, output=(*nest.output[:2], *places))


_SIZES = {"L": "length", "D": "depth", "H": "height", "W": "width"}
_KERNELS = {"T": "depth", "R": "height", "S": "width"}


def _sizes(rank: int) -> list[Parameter]:
    sizes, kernels = _AXES[rank]
    found = []
    for what, names, words in (("input", sizes, _SIZES), ("kernel", kernels, _KERNELS)):
        for before, name in zip((None, *names), names, strict=False):
            word = "length" if rank == 1 else words[name]
            found.append(Parameter(name=name, help=f"{what} {word}", default_text=before))
    return found


def _convolution_parameters(rank: int) -> tuple[Parameter, ...]:
    sizes = _sizes(rank)
    same = " and ".join(f"dilation * ({name} // 2)" for name in _AXES[rank][1])
    return (
        Parameter(name="N", help="batch", default=1),
        Parameter(name="C", help="input channels"),
        *sizes[:rank],
        Parameter(name="K", help="output channels"),
        *sizes[rank:],
        Parameter(name="stride", help="step of the window, all axes", default=1),
        Parameter(
            name="pad",
            help="zeros on each side, all axes",
            low=0,
            default_text=f"{same}: size kept at stride 1, odd {_AXES[rank][1][0]}",
        ),
        Parameter(name="dilation", help="distance of the kernel's elements, all axes", default=1),
        Parameter(name="groups", help="groups; C for a depthwise convolution", default=1),
        *format_parameters("int8"),
    )


def _transposed_parameters(rank: int) -> tuple[Parameter, ...]:
    return (
        Parameter(name="N", help="batch", default=1),
        Parameter(name="C", help="input channels"),
        Parameter(name="K", help="output channels"),
        *_sizes(rank),
        Parameter(name="stride", help="distance of neighbouring inputs in the output", default=2),
        Parameter(name="pad", help="outputs cut off on each side", low=0, default=0),
        Parameter(name="dilation", help="distance of the kernel's elements, all axes", default=1),
        Parameter(name="groups", help="groups", default=1),
        *format_parameters("int8"),
    )


_INPUTS = {1: "N,C,L", 2: "N,C,H,W", 3: "N,C,D,H,W"}
_WEIGHTS = {1: "K,C/groups,R", 2: "K,C/groups,R,S", 3: "K,C/groups,T,R,S"}

ENTRIES = (
    SingleOperator(
        name="gemm",
        description="matrix product out[M,N] = in[M,K] * weight[K,N]",
        parameters=(
            Parameter(name="M", help="rows of the input and the output"),
            Parameter(name="N", help="columns of the weight and the output"),
            Parameter(name="K", help="length of the sums"),
            *format_parameters("int8"),
        ),
        build=_gemm,
    ),
    SingleOperator(
        name="gemv",
        description="matrix-vector product out[M] = weight[M,K] * in[K]",
        parameters=(
            Parameter(name="M", help="rows of the weight, length of the output"),
            Parameter(name="K", help="columns of the weight, length of the input"),
            *format_parameters("int8"),
        ),
        build=_gemv,
    ),
    *(
        SingleOperator(
            name=f"conv{rank}d",
            description=f"{rank}-D convolution, input {_INPUTS[rank]} and weight {_WEIGHTS[rank]}",
            parameters=_convolution_parameters(rank),
            build=_convolution(f"conv{rank}d", rank),
        )
        for rank in _AXES
    ),
    *(
        SingleOperator(
            name=f"conv_transpose{rank}d",
            description=f"transposed {rank}-D convolution (deconvolution), input {_INPUTS[rank]}",
            parameters=_transposed_parameters(rank),
            build=_transposed(f"conv_transpose{rank}d", rank),
        )
        for rank in _AXES
    ),
)
