"""What becomes of a torch graph: what is folded, copied, named, typed, and what is refused?"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from arch.errors import InputError
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.torch_import.export import lower_traced, trace
from mapper.workload.torch_import.registry import LOWERINGS, lowers


def imported(module: nn.Module, *inputs: Tensor, dtype: str | None = None) -> Workload:
    return lower_traced(trace(module, inputs), name="test", dtype=dtype)


class Function(nn.Module):
    """A function of tensors, with two layers to use, as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.linear = nn.Linear(8, 8)

    def forward(self, *inputs: Tensor) -> object:
        return self.function(self, *inputs)


def kinds(function: Callable[..., object], *inputs: Tensor) -> list[str]:
    return [operator.kind for operator in imported(Function(function), *inputs).operators]


IMAGE = torch.zeros(1, 4, 8, 8)
ROWS = torch.zeros(5, 8)


def test_batch_norm_bias_and_relu_leave_only_the_convolution() -> None:
    layers = nn.Sequential(nn.Conv2d(4, 6, 3), nn.BatchNorm2d(6), nn.ReLU6(inplace=True))
    workload = imported(layers, IMAGE)
    assert [operator.name for operator in workload.operators] == ["0"]
    assert workload.folded == (
        "0.bias: bias added on the output path of 0",
        "1: scale and shift merged on the output path of 0",
        "2: clamped on the output path of 0",
    )
    assert workload.parameters == 6 * 4 * 9 + 6 + 6 + 6


def test_a_clamp_is_not_folded_where_someone_reads_the_unclamped_value() -> None:
    def function(net: Function, x: Tensor) -> Tensor:
        y = net.conv(x)
        return y + functional.relu(y)

    assert kinds(function, IMAGE) == ["conv2d", "clamp", "add"]


def test_a_clamp_of_the_input_has_no_producer() -> None:
    assert kinds(lambda net, x: functional.relu(x), IMAGE) == ["clamp"]


def test_a_norm_before_the_convolution_stays() -> None:
    """Merging forwards would change the padding; only the convolution before it absorbs it."""
    layers = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))
    assert [o.kind for o in imported(layers, IMAGE).operators] == ["batch_norm", "conv2d"]


def test_constants_scale_on_the_output_path() -> None:
    assert kinds(lambda net, x: net.linear(x) * 0.5 + 1, ROWS) == ["gemm"]
    assert kinds(lambda net, x: x * 0.5, ROWS) == ["mul"]
    assert kinds(lambda net, x: net.linear(x) * x, ROWS) == ["gemm", "mul"]


def test_views_move_nothing() -> None:
    def function(net: Function, x: Tensor) -> Tensor:
        heads = net.linear(x).view(5, 2, 4).transpose(0, 1).contiguous()
        return functional.dropout(heads.transpose(0, 1).reshape(5, 8), training=False) + x

    assert kinds(function, ROWS) == ["gemm", "add"]


def test_what_does_not_depend_on_the_input_is_computed_beforehand() -> None:
    workload = imported(Function(lambda net, x: x + torch.arange(8).cos().roll(1)), ROWS)
    assert [operator.kind for operator in workload.operators] == ["add"]
    assert [t.kind for t in workload.tensors if t.name == "roll.constant"] == ["input"]


def test_in_place_changes_are_seen_through_aliases() -> None:
    def function(net: Function, x: Tensor) -> Tensor:
        y = net.linear(x)
        alias = y.view(-1)
        alias.mul_(x.view(-1))
        return y

    workload = imported(Function(function), ROWS)
    (output,) = [t.name for t in workload.tensors if t.kind == "output"]
    assert [operator.kind for operator in workload.operators] == ["gemm", "mul"]
    assert workload.operators[-1].output.tensor == output


def test_a_concatenation_is_one_copy_per_part_into_one_tensor() -> None:
    workload = imported(Function(lambda net, x: torch.cat((x, net.conv(x)), 1)), IMAGE)
    assert [operator.kind for operator in workload.operators] == ["conv2d", "copy", "copy"]
    assert {operator.output.tensor for operator in workload.operators[1:]} == {"cat.out"}
    assert workload.tensor("cat.out").shape == (1, 8, 8, 8)


def test_an_embedding_moves_one_row_per_index() -> None:
    workload = imported(nn.Embedding(10, 4), torch.zeros(2, 3, dtype=torch.int64), dtype="int8")
    (lookup,) = workload.operators
    assert (lookup.operation, lookup.points) == ("copy", 6 * 4)
    dtypes = [workload.tensor(access.tensor).dtype for access in lookup.accesses]
    assert dtypes == ["int32", "int8", "int8"]


def test_zeros_before_a_convolution_are_not_copied() -> None:
    def function(net: Function, x: Tensor) -> Tensor:
        return net.conv(functional.pad(x, (0, 1, 0, 1)))

    workload = imported(Function(function), IMAGE)
    assert [operator.kind for operator in workload.operators] == ["conv2d"]
    assert any("zeros read beyond the edge" in note for note in workload.folded)
    both = kinds(lambda net, x: net.conv(padded := functional.pad(x, (1, 1))) + padded, IMAGE)
    assert both == ["pad", "conv2d", "add"]


def test_interpolation_is_a_weighted_sum_of_neighbours() -> None:
    def function(net: Function, x: Tensor) -> Tensor:
        return functional.interpolate(x, scale_factor=3, mode="bilinear")

    (operator,) = imported(Function(function), IMAGE).operators
    assert operator.kind == "upsample_bilinear2d"
    assert operator.points == 4 * (3 * 8) ** 2 * 2 * 2
    assert operator.operations == 2 * operator.points


def test_grouped_heads_share_keys() -> None:
    """4 query heads over 2 key heads: the group loop does not index the key."""

    def function(net: Function, q: Tensor, k: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, k, enable_gqa=True)

    workload = imported(Function(function), torch.zeros(1, 4, 5, 8), torch.zeros(1, 2, 5, 8))
    scores, softmax, context = workload.operators
    assert (scores.extents["H"], scores.extents["G"]) == (2, 2)
    assert scores.dim_class("G") == context.dim_class("G") == "m"
    assert scores.macs == context.macs == 4 * 5 * 5 * 8
    assert softmax.points == 4 * 5 * 5


def test_a_mask_is_read_by_the_softmax() -> None:
    def function(net: Function, q: Tensor, mask: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    workload = imported(Function(function), torch.zeros(2, 4, 5, 8), torch.zeros(2, 1, 1, 5))
    assert [len(operator.inputs) for operator in workload.operators] == [2, 2, 2]


@pytest.mark.parametrize("causal", [False, True])
def test_a_causal_mask_is_known_of_the_softmax(causal: bool) -> None:
    def function(net: Function, q: Tensor) -> Tensor:
        return functional.scaled_dot_product_attention(q, q, q, is_causal=causal)

    workload = imported(Function(function), torch.zeros(2, 4, 5, 8))
    assert [operator.causal for operator in workload.operators] == [False, causal, False]


def test_types_are_those_of_the_module_unless_replaced() -> None:
    layer = nn.Linear(8, 8).to(torch.bfloat16)
    kept = imported(layer, ROWS.to(torch.bfloat16))
    replaced = imported(layer, ROWS.to(torch.bfloat16), dtype="int4")
    assert {t.dtype for t in kept.tensors} == {"bf16"}
    assert {t.dtype for t in replaced.tensors} == {"int4"}
    assert (kept.operators[0].accumulator_dtype, replaced.operators[0].accumulator_dtype) == (
        "fp32",
        "int32",
    )


def test_a_result_that_is_only_read_narrower_is_stored_narrower() -> None:
    narrow = imported(Function(lambda net, x: net.linear(x).to(torch.bfloat16) * 2), ROWS)
    assert [(o.kind, narrow.tensor(o.output.tensor).dtype) for o in narrow.operators] == [
        ("gemm", "bf16")
    ]
    wide = imported(Function(lambda net, x: net.linear(x.to(torch.float64).float())), ROWS)
    assert wide.tensor(wide.operators[0].inputs[0].tensor).dtype == "fp32"

    def both(net: Function, x: Tensor) -> object:
        y = net.linear(x)
        return y.to(torch.bfloat16) + y.sin().to(torch.bfloat16), y

    (gemm, *_) = imported(Function(both), ROWS).operators
    assert gemm.accumulator_dtype == "fp32"
    assert imported(Function(both), ROWS).tensor(gemm.output.tensor).dtype == "fp32"


def test_one_parameter_used_twice_is_one_tensor() -> None:
    module = Function(lambda net, x: net.linear(net.linear(x)))
    workload = imported(module, ROWS)
    assert [operator.name for operator in workload.operators] == ["linear", "linear_2"]
    assert workload.parameters == sum(p.numel() for p in module.parameters())


def test_operators_are_named_after_their_modules() -> None:
    names = [operator.name for operator in load_workload("resnet18").operators]
    assert names[:5] == ["conv1", "maxpool", "layer1.0.conv1", "layer1.0.conv2", "layer1.0.add"]
    assert names[-2:] == ["avgpool", "fc"]


def test_an_unknown_operator_is_named_with_its_place() -> None:
    with pytest.raises(InputError, match=r"torch operator aten\.fft_fft .*test_torch_import\.py"):
        imported(Function(lambda net, x: torch.fft.fft(x + 1).real), ROWS)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda net, x: functional.pad(x, (-1, 1)), "by negative amounts"),
        (lambda net, x: x[x[0, 0].long(), :, x[0, 0].long()] + 1, "only neighbouring axes"),
        (lambda net, x: x, "nothing to compute"),
    ],
)
def test_what_cannot_be_imported_says_why(function: Callable[..., object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        imported(Function(function), IMAGE)


def test_an_operator_has_one_lowering() -> None:
    with pytest.raises(ValueError, match=r"aten\.add has two lowerings"):
        lowers("aten.add")(LOWERINGS["aten.add"])


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_are_written_out_as_steps(kind: str, gates: int) -> None:
    """Closed form: inputs and state are multiplied with each gate's matrices at every step."""
    layer = getattr(torch.nn, kind)(8, 16, batch_first=True)
    workload = imported(layer, torch.zeros(2, 5, 8))
    assert workload.macs == 2 * 5 * gates * 16 * (8 + 16)
