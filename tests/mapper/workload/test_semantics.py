"""Does an imported operator, executed by its definition, compute what torch computes?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.torch_import.export import lower_traced, trace
from tests.mapper.workload.interpreter import run

EXAMPLES = settings(max_examples=25, deadline=None)


class Function(nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Tensor:
        return self.function(*inputs)


def imported(module: nn.Module, inputs: tuple[Tensor, ...]) -> Workload:
    return lower_traced(trace(module, inputs), name="test", dtype=None)


def assert_same(module: nn.Module, *inputs: Tensor) -> Workload:
    """Runs both and compares the single output, element by element in row-major order."""
    workload = imported(module, inputs)
    zeros = {t.name: np.zeros(1) for t in workload.tensors if t.name.endswith(".zero")}
    names = [t.name for t in workload.tensors if t.kind == "input" and t.name not in zeros]
    values = zeros | {name: x.double().numpy() for name, x in zip(names, inputs, strict=True)}
    for name, parameter in module.named_parameters():
        weight = parameter.detach().double().numpy()
        mirrored = any(f"{name}: stored mirrored" in note for note in workload.folded)
        values[name] = np.flip(weight, range(2, weight.ndim)) if mirrored else weight
    (output,) = [t.name for t in workload.tensors if t.kind == "output"]
    with torch.no_grad():
        expected = module.double()(*(x.double() if x.is_floating_point() else x for x in inputs))
    result = run(workload, values)[output]
    np.testing.assert_allclose(result.reshape(expected.shape), expected.numpy(), atol=1e-6)
    return workload


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


@st.composite
def convolutions(draw: st.DrawFn) -> tuple[nn.Module, Tensor]:
    groups = draw(st.sampled_from((1, 2, 3)))
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    dilation = draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))
    padding = draw(st.tuples(*(st.integers(0, k // 2) for k in kernel)))
    size = draw(st.tuples(st.integers(1, 7), st.integers(1, 7)))
    for s, k, d, p in zip(size, kernel, dilation, padding, strict=True):
        assume(s + 2 * p >= d * (k - 1) + 1)
    channels = groups * draw(st.integers(1, 2))
    module = nn.Conv2d(
        channels,
        groups * draw(st.integers(1, 2)),
        kernel,
        stride=draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        padding=padding,
        dilation=dilation,
        groups=groups,
        bias=False,
    )
    return module, random(draw(st.integers(1, 2)), channels, *size)


@EXAMPLES
@given(convolutions())
def test_convolution(case: tuple[nn.Module, Tensor]) -> None:
    assert_same(*case)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Conv1d(2, 3, 3, stride=2, padding=1, bias=False), (2, 2, 9)),
        (nn.Conv3d(2, 2, 2, padding=1, bias=False), (1, 2, 3, 4, 3)),
        (nn.Conv2d(4, 4, 3, padding="same", bias=False), (1, 4, 5, 5)),
        (nn.Conv2d(4, 4, (2, 4), padding="same", bias=False), (1, 4, 5, 6)),
        (nn.Conv2d(6, 6, 3, groups=6, padding=1, bias=False), (1, 6, 5, 5)),
        (nn.ConvTranspose2d(3, 4, 2, 2, bias=False), (2, 3, 3, 4)),
        (nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2, bias=False), (1, 4, 3, 4)),
        (nn.ConvTranspose2d(2, 2, (4, 3), (2, 1), (1, 0), bias=False), (1, 2, 4, 3)),
        (nn.ConvTranspose1d(2, 3, 5, 3, 1, bias=False), (1, 2, 4)),
        (nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, dilation=2, bias=False), (1, 4, 5)),
        (nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, dilation=3, bias=False), (1, 4, 5)),
        (nn.ConvTranspose1d(4, 6, 3, 4, 2, 1, dilation=6, bias=False), (1, 4, 5)),
        (nn.ConvTranspose1d(2, 3, 2, 3, bias=False), (1, 2, 4)),
        (
            nn.ConvTranspose2d(4, 6, 3, (3, 2), 1, (1, 0), 2, False, (2, 1)),
            (2, 4, 5, 4),
        ),
        (nn.Linear(5, 3, bias=False), (2, 4, 5)),
        (nn.Linear(5, 3, bias=False), (5,)),
        (nn.MaxPool2d(3, 2, 1), (1, 2, 7, 6)),
        (nn.MaxPool2d(2, 2, ceil_mode=True), (1, 2, 5, 5)),
        (nn.MaxPool2d(3, 1, dilation=2), (2, 7, 7)),
        (nn.MaxPool1d(2), (1, 3, 8)),
        (nn.AvgPool2d(2), (1, 3, 6, 4)),
        (nn.AvgPool2d(3, 2, 1), (1, 2, 6, 6)),
        (nn.AdaptiveAvgPool2d(1), (2, 3, 4, 5)),
        (nn.AdaptiveAvgPool2d((2, 1)), (1, 3, 4, 5)),
        (nn.Softmax(-1), (2, 3, 5)),
        (nn.ZeroPad2d((1, 2, 0, 3)), (1, 2, 3, 4)),
        (
            nn.Sequential(nn.ZeroPad2d((1, 2, 0, 3)), nn.Conv2d(2, 3, 3, 2, 1, bias=False)),
            (1, 2, 3, 4),
        ),
        (nn.Upsample(scale_factor=2), (1, 2, 3, 2)),
        (nn.PixelShuffle(2), (1, 8, 2, 3)),
        (nn.PixelUnshuffle(2), (1, 2, 4, 6)),
        (nn.SiLU(), (3, 4)),
    ],
    ids=lambda value: str(value).replace(" ", ""),
)
def test_layer(module: nn.Module, shape: tuple[int, ...]) -> None:
    assert_same(module, random(*shape))


def test_attention_with_grouped_heads() -> None:
    """Projections, four query heads on two key heads, softmax and the way back, with a batch."""
    assert_same(GroupedAttention(), random(2, 5, 12))


class GroupedAttention(nn.Module):
    """As a decoder writes it: heads split from the columns, transposed, joined again."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(12, 12, bias=False)
        self.key_value = nn.Linear(12, 12, bias=False)
        self.out = nn.Linear(12, 7, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, _ = x.shape
        query = self.query(x).view(batch, rows, 4, 3).transpose(1, 2)
        key, value = (
            part.view(batch, rows, 2, 3).transpose(1, 2) for part in self.key_value(x).chunk(2, -1)
        )
        context = functional.scaled_dot_product_attention(
            query, key, value, scale=1.0, enable_gqa=True
        )
        y: Tensor = self.out(context.transpose(1, 2).reshape(batch, rows, 12))
        return y


class PatchTokens(nn.Module):
    """Patches as tokens after a class token, and back to one image: a vision transformer's ends."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 4, 2, 2, bias=False)
        self.token = nn.Parameter(random(1, 1, 4))
        self.head = nn.Linear(4, 5, bias=False)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1)
        y: Tensor = self.head(x)
        return y


def test_patches_become_tokens() -> None:
    assert_same(PatchTokens(), random(2, 3, 4, 6))


class TokensToImage(nn.Module):
    """Tokens read as an image by a padded convolution: zeros, not neighbours, beyond the edge."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 4, bias=False)
        self.conv = nn.Conv2d(4, 2, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        image = self.embed(x).transpose(1, 2).reshape(x.shape[0], 4, 3, 5)
        y: Tensor = self.conv(image)
        return y


def test_padding_at_the_edge_of_a_view_reads_zeros() -> None:
    workload = assert_same(TokensToImage(), random(2, 15, 3))
    assert [op.kind for op in workload.operators] == ["gemm", "copy", "conv2d"]


FUNCTIONS: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "matmul": (torch.matmul, ((2, 3, 4), (2, 4, 5))),
    "matmul_broadcast": (torch.matmul, ((2, 1, 3, 4), (5, 4, 2))),
    "matmul_rows": (torch.matmul, ((2, 3, 4), (4, 5))),
    "matmul_vector": (torch.matmul, ((3, 4), (4,))),
    "vector_matmul": (torch.matmul, ((4,), (4, 3))),
    "dot": (torch.dot, ((6,), (6,))),
    "einsum": (lambda a, b: torch.einsum("bik,kbj->ijb", a, b), ((2, 3, 4), (4, 2, 5))),
    "add_broadcast": (torch.add, ((2, 3, 4), (3, 1))),
    "mul": (torch.mul, ((2, 3), (2, 3))),
    "maximum": (torch.maximum, ((4,), (4,))),
    "sum": (lambda a: a.sum(1), ((2, 3, 4),)),
    "mean_all": (lambda a: a.mean(), ((2, 3),)),
    "amax": (lambda a: a.amax((0, 2), keepdim=True), ((2, 3, 4),)),
    "cat": (lambda a, b: torch.cat((a, b), -1), ((2, 3), (2, 4))),
    "cat_rows": (lambda a, b, c: torch.cat((a, b), 1) @ c, ((2, 2, 4), (2, 3, 4), (4, 5))),
    "stack": (lambda a, b: torch.stack((a, b), 1), ((2, 3), (2, 3))),
    "roll": (lambda a: torch.roll(a, 2, -1), ((2, 5),)),
    "repeat": (lambda a: a.repeat(2, 3, 1), ((2, 4),)),
    "repeat_interleave": (lambda a: a.repeat_interleave(3, 1), ((2, 2, 3),)),
    "slice": (lambda a, b: a[:, 1::2] + b, ((2, 6), (3,))),
    "unbind": (lambda a: a.unbind(1)[1] + a.unbind(1)[0], ((2, 2, 3),)),
    "split": (lambda a: a.split([1, 3], 1)[1] + a[:, :3], ((2, 4),)),
    "incompatible_reshape": (lambda a, b: a.reshape(6, 4) + b, ((4, 6), (6, 4))),
    "transposed_reshape": (
        lambda a: a.transpose(0, 2).reshape(4, 6) @ a.reshape(6, 4),
        ((2, 3, 4),),
    ),
    "window_partition": (
        lambda a: (a.view(2, 2, 2, 3, 5).permute(0, 2, 1, 3, 4).reshape(4, 6, 5)).mean(1),
        ((4, 6, 5),),
    ),
    "movedim": (lambda a: a.movedim(0, 2) + a.movedim((0, 1), (2, 0)), ((2, 2, 2),)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(name: str) -> None:
    function, shapes = FUNCTIONS[name]
    assert_same(Function(function), *(random(*shape) for shape in shapes))


sizes = st.integers(1, 6)


@EXAMPLES
@given(sizes, sizes, sizes)
def test_single_gemm(m: int, n: int, k: int) -> None:
    a, b = random(m, k).numpy(), random(k, n).numpy()
    result = run(load_workload(f"gemm:M={m},N={n},K={k},dtype=fp32"), {"input": a, "weight": b})
    np.testing.assert_allclose(result["output"], a @ b, atol=1e-5)


@EXAMPLES
@given(sizes, sizes)
def test_single_gemv(m: int, k: int) -> None:
    matrix, vector = random(m, k).numpy(), random(k).numpy()
    result = run(load_workload(f"gemv:M={m},K={k}"), {"input": vector, "weight": matrix})
    np.testing.assert_allclose(result["output"], matrix @ vector, atol=1e-5)


@EXAMPLES
@given(convolutions())
def test_single_conv2d(case: tuple[nn.Module, Tensor]) -> None:
    """The same convolution by its parameters, with equal steps along both axes."""
    conv: Any
    conv, data = case
    n, c, h, w = data.shape
    pad, stride, dilation = conv.padding[0], conv.stride[0], conv.dilation[0]
    r, s = conv.kernel_size
    assume(w + 2 * pad >= dilation * (s - 1) + 1 and h + 2 * pad >= dilation * (r - 1) + 1)
    assume(pad <= dilation * (min(r, s) - 1))  # a window of padding alone is refused
    workload = load_workload(
        f"conv2d:N={n},C={c},H={h},W={w},K={conv.out_channels},R={r},S={s},stride={stride},"
        f"pad={pad},dilation={dilation},groups={conv.groups}"
    )
    weight = conv.weight.detach().double()
    expected = functional.conv2d(
        data.double(), weight, None, stride, pad, dilation, groups=conv.groups
    )
    result = run(workload, {"input": data.numpy(), "weight": weight.numpy()})
    np.testing.assert_allclose(result["output"], expected.numpy(), atol=1e-6)
