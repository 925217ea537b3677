"""What runs on another operator's output path instead of as an operator of its own."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mapper.workload.output_path import BIAS_ADDED, output_path_note
from mapper.workload.torch_import.draft import DraftOperator
from mapper.workload.torch_import.registry import Call, Value
from mapper.workload.torch_import.storage import View

if TYPE_CHECKING:
    from torch.fx import Node

_PADS = ("aten.pad.", "aten.constant_pad_nd.")
_CONVOLUTIONS = ("aten.conv1d.", "aten.conv2d.", "aten.conv3d.")


def zeros_read_beyond_the_edge(node: Node) -> list[int] | None:
    """Zeros before each spatial axis, if a padding needs no copy: only convolutions read it.

    torch lists the amounts in pairs, from the last axis backwards.
    """
    if not str(node.target).startswith(_PADS):
        return None
    values = [*node.args[2:], *node.kwargs.values()]
    if any(value not in (None, 0, 0.0, "constant") for value in values):
        return None
    readers = [str(user.target).startswith(_CONVOLUTIONS) for user in node.users]
    amounts = node.args[1]
    assert isinstance(amounts, (list, tuple))
    numbers = [int(amount) for amount in amounts]  # type: ignore[arg-type]
    rank = len(node.meta["val"].shape) - 2
    if not all(readers) or len(numbers) > 2 * rank or min(numbers) < 0:
        return None
    before = numbers[::2][::-1]
    return [0] * (rank - len(before)) + before


def note_bias(call: Call, bias: View | None) -> None:
    """A bias initializes the accumulator or is added while results are written."""
    if bias is not None:
        note = output_path_note(f"{bias.storage.name}: {BIAS_ADDED}", call.name)
        call.draft.folded.append(note)


def fold_into_producer(call: Call, argument: str, what: str) -> Value | None:
    """The argument unchanged, if its producer can apply the call to each result as it leaves.

    Only where nobody else reads the result: another reader needs it without the change. A pure
    copy has no arithmetic on its way out.
    """
    producer: DraftOperator | None = call.sole_producer(argument)
    if producer is None or producer.kernel.operation == "copy":
        return None
    call.draft.folded.append(output_path_note(what, producer.name))
    view: View = call[argument]
    # A single element may get an axis from a constant.
    same = view.shape == call.shape or math.prod(view.shape) != math.prod(call.shape)
    return view if same else call.draft.reshape(view, call.shape)
