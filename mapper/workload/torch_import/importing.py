"""A torch module as a workload: traced and lowered, repeated blocks only as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from arch.errors import InputError
from mapper.workload.graph import Workload
from mapper.workload.torch_import.blocks import Repetition, find_repetition, shortened
from mapper.workload.torch_import.continuation import NotRegularError, continued_workload
from mapper.workload.torch_import.export import Traced, lower_traced, trace

if TYPE_CHECKING:
    import torch

Lower = Callable[[], Workload]


def import_built(
    build: Callable[[], tuple[torch.nn.Module, Sequence[Any]]], *, name: str, dtype: str | None
) -> Workload:
    """Import what ``build`` returns, made on the meta device so that weights take no memory."""
    import torch

    with torch.device("meta"):
        # Tensors that the network makes while it runs must be on the same device.
        module, inputs = build()
        return import_module(module, lambda: trace(module, inputs), name=name, dtype=dtype)


def import_module(
    module: torch.nn.Module, traced: Callable[[], Traced], *, name: str, dtype: str | None
) -> Workload:
    """The workload of ``module``, which ``traced`` traces as it is at the moment."""

    def lower() -> Workload:
        return lower_traced(traced(), name=name, dtype=dtype)

    repetition = find_repetition(module)
    if repetition is None:
        return lower()
    return _from_few_blocks(repetition, lower) or lower()


def _from_few_blocks(repetition: Repetition, lower: Lower) -> Workload | None:
    """The whole from two shortened versions, if these differ by one more block and nothing else."""
    try:
        with shortened(repetition, repetition.kept):
            short = lower()
        with shortened(repetition, repetition.kept + repetition.period):
            long = lower()
        whole = continued_workload(short, long, repetition.further)
    except (NotRegularError, InputError, IndexError):
        # A module that asks for a child by its number cannot be shortened; other mistakes in it
        # are found again when it is traced whole.
        return None
    return replace(whole, folded=(*whole.folded, _note(repetition)))


def _note(repetition: Repetition) -> str:
    first = repetition.kept
    last = repetition.total - 1
    return (
        f"{repetition.path}.{first} to {repetition.path}.{last}: equal to the blocks before, "
        f"traced once"
    )
