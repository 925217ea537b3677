"""Operators of torch that are put together from others, and what cannot be imported."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from arch.errors import InputError
from tests.mapper.workload.interpreter import run
from tests.mapper.workload.test_semantics import Function, assert_same, imported, random

COMPUTED: dict[str, tuple[Callable[..., Tensor], tuple[tuple[int, ...], ...]]] = {
    "einsum with ellipsis": (
        lambda a, b: torch.einsum("...ij,...jk->...ik", a, b),
        ((2, 3, 4), (2, 4, 3)),
    ),
    "einsum broadcast": (lambda a, b: torch.einsum("...i,...i->...", a, b), ((2, 1, 5), (3, 5))),
    "einsum of three": (
        lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c),
        ((3, 4), (4, 5), (5, 2)),
    ),
    "einsum of a diagonal": (lambda a: torch.einsum("ii->i", a), ((5, 5),)),
    "einsum with diagonals": (
        lambda a, b: torch.einsum("bii,bij->bj", a, b),
        ((2, 4, 4), (2, 4, 3)),
    ),
    "roll of two axes": (lambda x: torch.roll(x, (1, -2), (1, 2)), ((2, 4, 5),)),
    "roll of all": (lambda x: torch.roll(x, 3), ((4, 5),)),
    "flip": (lambda x: x.flip(0, 2), ((2, 3, 4),)),
    "reflection": (lambda x: functional.pad(x, (2, 1, 1, 2), mode="reflect"), ((1, 2, 4, 5),)),
    "replication": (lambda x: functional.pad(x, (2, 0, 1, 3), mode="replicate"), ((1, 2, 4, 5),)),
    "circular": (lambda x: functional.pad(x, (2, 1, 0, 3), mode="circular"), ((1, 2, 4, 5),)),
    "windows": (lambda x, y: x.unfold(1, 3, 2) + y, ((2, 9), (2, 4, 3))),
    "im2col": (lambda x: functional.unfold(x, (3, 2), padding=1, stride=2), ((1, 2, 5, 6),)),
    "diagonal above": (lambda x: torch.diagonal(x, 1, 0, 2), ((3, 2, 4),)),
    "every second": (
        lambda x, y: functional.interpolate(x, size=(2, 3)) + y,
        ((1, 2, 4, 9), (1, 2, 2, 3)),
    ),
    "larger by a fraction": (lambda x: functional.interpolate(x, size=(7, 11)), ((1, 2, 4, 9),)),
    "smaller by a fraction": (
        lambda x: functional.interpolate(x, size=(3, 4), mode="nearest-exact"),
        ((1, 2, 4, 9),),
    ),
    "columns to an image": (
        lambda x: functional.fold(x, (4, 6), 2, stride=2),
        ((2, 12, 6),),
    ),
    "overlapping columns": (
        lambda x: functional.fold(x, (6, 5), (3, 2), (1, 2), (1, 0), (2, 1)),
        ((2, 18, 9),),
    ),
    "columns with gaps": (lambda x: functional.fold(x, (5, 8), 2, stride=3), ((1, 8, 6),)),
    "uneven windows": (lambda x: functional.adaptive_avg_pool2d(x, (3, 4)), ((1, 2, 8, 7),)),
    "uneven largest": (lambda x: functional.adaptive_max_pool2d(x, 5), ((1, 2, 7, 8),)),
    "running sum": (lambda x: torch.cumsum(x, 1), ((2, 5, 3),)),
    "running product": (lambda x: torch.cumprod(x, -1), ((4, 6),)),
    "gated": (lambda x: functional.glu(x, 1), ((3, 4),)),
    "product and sum": (lambda a, b, c: torch.addcmul(a, b, c), ((3, 4), (3, 4), (3, 4))),
    "Kronecker": (lambda a, b: torch.kron(a, b), ((2, 3), (3, 2))),
    "third power": (lambda a: torch.matrix_power(a, 3), ((4, 4),)),
}


@pytest.mark.parametrize("name", COMPUTED)
def test_they_compute_what_torch_computes(name: str) -> None:
    function, shapes = COMPUTED[name]
    assert_same(Function(function), *(random(*shape) for shape in shapes))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(7, 3), (10, 8), (4, 5)])
def test_interpolation_reads_what_torch_weighs(mode: str, size: tuple[int, int]) -> None:
    """One element at a time set to one: where it has a weight in torch, it is read here."""

    def resized(x: Tensor) -> Tensor:
        return functional.interpolate(x, size=size, mode=mode)

    workload = imported(Function(resized), (random(1, 1, 5, 4),))
    for place in range(20):
        one = torch.zeros(20, dtype=torch.float64)
        one[place] = 1
        image = one.reshape(1, 1, 5, 4)
        (name,) = [t.name for t in workload.tensors if t.kind == "output"]
        (given,) = [t.name for t in workload.tensors if t.kind == "input"]
        read = run(workload, {given: image.numpy()})[name].reshape(size)
        weighed = resized(image).numpy().reshape(size)
        assert (read != 0)[weighed != 0].all()
    taps = {"bilinear": 2, "bicubic": 4}[mode]
    assert sum(o.points for o in workload.operators) == size[0] * size[1] * taps**2


def test_samples_at_places_that_data_says() -> None:
    """Four neighbours of each place; their weights once for all channels."""
    module = Function(lambda x, g: functional.grid_sample(x, g))
    weights, sums = imported(module, (random(2, 3, 5, 6), random(2, 4, 7, 2))).operators
    assert (weights.kind, weights.points) == ("grid_weights", 2 * 4 * 7 * 2 * 4)
    assert (sums.kind, sums.points) == ("grid_sample", 2 * 3 * 4 * 7 * 4)


def test_a_pool_is_undone_in_its_windows() -> None:
    def undone(x: Tensor) -> Tensor:
        return functional.max_unpool2d(*functional.max_pool2d(x, 2, return_indices=True), 2)

    *_, operator = imported(Function(undone), (random(1, 2, 6, 8),)).operators
    assert (operator.kind, operator.points) == ("max_unpool", 2 * 6 * 8)


#: Modules whose products torch counts itself.
COUNTED: dict[str, tuple[nn.Module, tuple[Tensor, ...]]] = {
    "two-way GRU": (nn.GRU(5, 6, 2, bidirectional=True), (random(4, 2, 5),)),
    "LSTM cell": (nn.LSTMCell(5, 6), (random(2, 5),)),
    "weights by norm": (
        nn.utils.parametrizations.weight_norm(nn.Linear(4, 5)),
        (random(2, 4),),
    ),
    "reflected": (nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), (random(1, 4, 7, 7),)),
}


@pytest.mark.parametrize("name", COUNTED)
def test_products_are_those_that_torch_counts(name: str) -> None:
    module, inputs = COUNTED[name]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module.eval()(*inputs)
    assert 2 * imported(module, inputs).macs == counter.get_total_flops()


def test_a_two_way_lstm_has_the_known_number_of_products() -> None:
    """Closed form: four gates of both layers and directions, from inputs and from states."""
    workload = imported(nn.LSTM(5, 6, 2, bidirectional=True), (random(4, 3, 5),))
    assert workload.macs == 4 * 3 * 2 * (4 * 6) * ((5 + 6) + (12 + 6))


def test_indices_along_any_axis_read_so_many_slices() -> None:
    indices = torch.tensor([0, 2, 2])
    module = Function(lambda x, i: torch.index_select(x, 1, i) * 2.5)
    workload = imported(module, (random(2, 4, 3), indices))
    lookup = next(o for o in workload.operators if o.kind == "lookup")
    assert lookup.points == 2 * 3 * 3


def test_two_indices_at_once_are_one_position() -> None:
    """As for the last token of each text: a row and a position in it."""
    rows, places = torch.arange(3), torch.tensor([1, 0, 1])
    workload = imported(Function(lambda x, i, j: x[i, j] + 1), (random(3, 4, 5), rows, places))
    position, lookup, *_ = workload.operators
    assert (position.kind, position.points) == ("flat_index", 3)
    assert (lookup.kind, lookup.points) == ("lookup", 3 * 5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_looked_up_and_reduced(mode: str) -> None:
    module = nn.EmbeddingBag(10, 4, mode=mode)
    for given in (
        (torch.ones(3, 2, dtype=torch.long),),
        (torch.ones(6, dtype=torch.long), torch.tensor([0, 2, 4])),
    ):
        rows, reduced = imported(module, given).operators
        assert (rows.kind, rows.points, reduced.points) == ("lookup", 6 * 4, 3 * 2 * 4)
    with pytest.raises(InputError, match="7 indices in 3 bags are not equally many each"):
        imported(module, (torch.ones(7, dtype=torch.long), torch.tensor([0, 2, 4])))


def test_a_running_sum_is_not_cut_along_its_axis() -> None:
    (workload,) = (imported(Function(lambda x: torch.cumsum(x, 1)), (random(2, 5, 3),)),)
    (operator,) = workload.operators
    (whole,) = operator.whole_dims
    assert operator.extents[whole] == 5


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: torch.linalg.svd(x)[1], r"aten.linalg_svd .* add a function with @lowers"),
        (lambda x: torch.linalg.inv(x), r"aten.linalg_inv .* add a function with @lowers"),
        (lambda x: x[x > 0] * 2, "depends on data, so that its work cannot be counted"),
        (lambda x: torch.histc(x, 4) + torch.linalg.svd(x)[1], r"(?s)aten.histc.*aten.linalg_svd"),
    ],
)
def test_what_cannot_be_imported_is_named_as_written(
    function: Callable[..., Tensor], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        imported(Function(function), (random(4, 4),))
