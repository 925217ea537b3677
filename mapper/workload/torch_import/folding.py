"""What runs on another operator's output path instead of as an operator of its own."""

from __future__ import annotations

from mapper.workload.torch_import.draft import DraftOperator
from mapper.workload.torch_import.registry import Call, Value
from mapper.workload.torch_import.storage import View


def note_bias(call: Call, bias: View | None) -> None:
    """A bias initializes the accumulator or is added while results are written."""
    if bias is not None:
        call.draft.folded.append(
            f"{bias.storage.name}: bias added on the output path of {call.name}"
        )


def fold_into_producer(call: Call, argument: str, what: str) -> Value | None:
    """The argument unchanged, if its producer can apply the call to each result as it leaves.

    Only where nobody else reads the result: another reader needs it without the change. A pure
    copy has no arithmetic on its way out.
    """
    producer: DraftOperator | None = call.sole_producer(argument)
    if producer is None or producer.kernel.operation == "copy":
        return None
    call.draft.folded.append(f"{what} on the output path of {producer.name}")
    value: Value = call[argument]
    return value
