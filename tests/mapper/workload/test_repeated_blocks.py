"""Is a network whose blocks were traced only a few times the same as one traced whole?"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from arch.errors import InputError
from kernels_ref.library.eager_vit import vit
from mapper.workload.graph import Workload
from mapper.workload.torch_import.blocks import find_repetition
from mapper.workload.torch_import.continuation import NotRegularError, counted_on
from mapper.workload.torch_import.export import lower_traced, trace
from mapper.workload.torch_import.importing import import_module

LAYERS = 14


class Block(nn.Module):
    """A gated layer with a shortcut that knows its number, as those of many libraries do."""

    def __init__(self, number: int, width: int = 8, hidden: int = 16) -> None:
        super().__init__()
        self.number = number
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.down(torch.sigmoid(self.up(x)))
        return y


class Stack(nn.Module):
    """Blocks between a first and a last layer."""

    def __init__(self, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.first = nn.Linear(8, 8)
        self.blocks = nn.ModuleList(blocks)
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        y: Tensor = self.last(x)
        return y


class ByNumber(Stack):
    """Asks for a block by its number."""

    def forward(self, x: Tensor) -> Tensor:
        for number in range(LAYERS):
            x = self.blocks[number](x)
        return x


class Joined(Stack):
    """Every block reads all results so far, so no two do the same work."""

    def forward(self, x: Tensor) -> Tensor:
        results = [x]
        for block in self.blocks:
            results.append(block(torch.stack(results).sum(0)))
        return results[-1]


def whole(module: nn.Module) -> Workload:
    return lower_traced(trace(module, (torch.zeros(4, 8),)), name="test", dtype=None)


def imported(module: nn.Module) -> Workload:
    inputs = (torch.zeros(4, 8),)
    return import_module(module, lambda: trace(module, inputs), name="test", dtype=None)


def assert_same(found: Workload, expected: Workload, *, from_few: bool) -> None:
    assert found.operators == expected.operators
    assert set(found.tensors) == set(expected.tensors)
    notes = [note for note in found.folded if "equal to the blocks before" in note]
    assert tuple(note for note in found.folded if note not in notes) == expected.folded
    assert len(notes) == from_few


@pytest.mark.parametrize(
    "blocks",
    [
        [Block(n) for n in range(LAYERS)],
        [Block(n, hidden=24 if n % 2 else 16) for n in range(LAYERS + 9)],
        [Block(n, hidden=32 if n < 2 else 16) for n in range(LAYERS + 4)],
        [Block(0)] * LAYERS,
    ],
    ids=["equal", "alternating", "the first two differ", "one block many times"],
)
def test_few_blocks_give_the_whole(blocks: list[nn.Module]) -> None:
    module = Stack(blocks)
    assert find_repetition(module) is not None
    assert_same(imported(module), whole(module), from_few=True)
    assert len(module.blocks) == len(blocks)


def test_an_encoder() -> None:
    with torch.device("meta"):
        module, inputs = vit("ti", batch=1)
        expected = lower_traced(trace(module, inputs), name="vit", dtype="int8")
        found = import_module(module, lambda: trace(module, inputs), name="vit", dtype="int8")
    assert_same(found, expected, from_few=True)


@pytest.mark.parametrize("kind", [ByNumber, Joined])
def test_what_is_not_regular_is_traced_whole(kind: type[Stack]) -> None:
    module = kind([Block(n) for n in range(LAYERS)])
    assert_same(imported(module), whole(module), from_few=False)


@pytest.mark.parametrize(
    "blocks",
    [
        [Block(n) for n in range(5)],
        [Block(n, hidden=16 + n) for n in range(LAYERS)],
        [*(Block(n) for n in range(LAYERS - 1)), nn.Linear(8, 8)],
    ],
    ids=["few", "all different", "the last one differs"],
)
def test_lists_without_a_repetition(blocks: list[nn.Module]) -> None:
    assert find_repetition(Stack(blocks)) is None


def test_a_blocks_own_setting_tells_it_apart() -> None:
    """An attribute may only differ by being the block's number."""
    blocks = [Block(n) for n in range(LAYERS)]
    blocks[-1].number = 3
    assert find_repetition(Stack(list(blocks))) is None


def test_mistakes_in_a_block_are_reported_as_ever() -> None:
    class Broken(Block):
        def forward(self, x: Tensor) -> Tensor:
            return torch.fft.fft(x).real

    with pytest.raises(InputError, match=r"aten\.fft_fft"):
        imported(Stack([Broken(n) for n in range(LAYERS)]))


def test_numbers_are_counted_on() -> None:
    assert counted_on("h.1.attn.out", "h.2.attn.out", 3) == "h.5.attn.out"
    assert counted_on("block3.add_4", "block3.add_6", 2) == "block3.add_10"
    assert counted_on("mask", "mask", 7) == "mask"
    with pytest.raises(NotRegularError):
        counted_on("add", "add_2", 1)
