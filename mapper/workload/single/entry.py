"""What can be named as a single operator: its parameters and how it is built from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from arch.datatypes import sparsity
from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.parameters import Parameter, Value, only_one_of, parse_parameters
from mapper.workload.writing.builder import Builder, Formats

#: Adds operators to the builder; returns the tensors that leave it.
Build = Callable[[Builder, Mapping[str, int], Mapping[str, str]], Sequence[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SingleOperator:
    """A nameable operator, or the few that a fused one is made of.

    ``build`` gets the whole numbers and the texts among the parameters' values. With
    ``free_sizes``, parameters of one letter that are not listed are sizes of loops. At most one of
    ``exclusive`` may be given. ``settle`` adds values that follow from others, and refuses those
    that do not go together. ``group`` is what it is listed under.
    """

    name: str
    description: str
    parameters: tuple[Parameter, ...]
    build: Build
    free_sizes: bool = False
    exclusive: tuple[str, ...] = ()
    group: str = "operators"
    settle: Callable[[Mapping[str, Value]], Mapping[str, Value]] | None = None

    def parse(self, given: Mapping[str, str]) -> dict[str, Value]:
        """Checked values of everything given or with a default; all problems at once."""
        only_one_of(self.name, given, self.exclusive)
        sizes = [key for key in given if self.free_sizes and len(key) == 1 and key.isalpha()]
        named = (*self.parameters, *(Parameter(name=key, help="a loop's size") for key in sizes))
        values = parse_parameters(self.name, named, given)
        if self.settle is None:
            return values
        settled = self.settle(values)
        return {each.name: settled[each.name] for each in named if each.name in settled}


def single_workload(entry: SingleOperator, values: Mapping[str, Value]) -> Workload:
    """The operator alone, under the name that gives it again."""
    builder = Builder(formats_of(values))
    numbers = {name: value for name, value in values.items() if isinstance(value, int)}
    texts = {name: value for name, value in values.items() if isinstance(value, str)}
    outputs = entry.build(builder, numbers, texts)
    title = f"{entry.name}:{','.join(f'{key}={value}' for key, value in values.items())}"
    return builder.workload(title, outputs)


def formats_of(values: Mapping[str, Value]) -> Formats:
    """From ``dtype``, ``weights``, ``cache`` and ``sparsity``, those that there are."""
    dtype = str(values["dtype"])
    return Formats(
        activations=dtype,
        weights=str(values.get("weights", dtype)),
        cache=str(values.get("cache", dtype)),
        weight_sparsity=sparsity(str(values.get("sparsity", "1"))),
        activation_sparsity=sparsity(str(values.get("input_sparsity", "1"))),
    )


def require(name: str, *rules: tuple[bool, str]) -> None:
    """``InputError`` with the message of every rule that does not hold."""
    problems = [Problem(message, where=f"workload {name}") for holds, message in rules if not holds]
    if problems:
        raise InputError(problems)
