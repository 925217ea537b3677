"""Repeated blocks of a torch module: layers that are alike and run one after the other.

Tracing takes time in proportion to the layers, and the layers of a large model are alike. So such
a model is traced with few of them (``shortened``), twice, and continued from the difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

#: Lists of fewer children are traced whole.
_FEWEST_CHILDREN = 12

#: Traced children of both shortened versions together, at most this part of all.
_WORTHWHILE = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Repetition:
    """A list of children in which, from some child on, every ``period``-th is alike.

    The module is traced with ``kept`` children and with ``kept + period``.
    """

    path: str
    container: nn.Module
    total: int
    period: int
    kept: int

    @property
    def further(self) -> int:
        """Periods that neither of the shortened versions has."""
        return (self.total - self.kept) // self.period - 1


def find_repetition(module: nn.Module) -> Repetition | None:
    """The repetition that saves the most tracing, if any is worthwhile."""
    from torch import nn

    found = [
        repetition
        for path, container in module.named_modules()
        if isinstance(container, (nn.ModuleList, nn.Sequential))
        and len(container) >= _FEWEST_CHILDREN
        for repetition in [_repetition(path, container)]
        if repetition is not None
    ]
    return max(found, key=_saved, default=None)


@contextmanager
def shortened(repetition: Repetition, count: int) -> Iterator[None]:
    """The module with only the first ``count`` children of the list, for a while."""
    modules = repetition.container._modules
    children = dict(modules)
    for name in list(children)[count:]:
        del modules[name]
    try:
        yield
    finally:
        modules.clear()
        modules.update(children)


def _saved(repetition: Repetition) -> int:
    first = next(iter(repetition.container.children()))
    return repetition.further * repetition.period * sum(1 for _ in first.modules())


def _repetition(path: str, container: nn.Module) -> Repetition | None:
    children = list(container._modules.values())
    total = len(children)
    for period in range(1, total // 4 + 1):
        start = total - period
        while start > 0 and _alike(children, start - 1, start - 1 + period):
            start -= 1
        fewest = start + 2 * period
        kept = fewest + (total - fewest) % period
        if 2 * kept + period <= _WORTHWHILE * total:
            return Repetition(path=path, container=container, total=total, period=period, kept=kept)
    return None


def _alike(children: Sequence[nn.Module | None], one: int, other: int) -> bool:
    """Whether two children differ in nothing but their numbers in the list."""
    return _same_child(children[one], children[other], (one, other))


Numbers = tuple[int, int]


def _same_module(one: nn.Module, other: nn.Module, numbers: Numbers) -> bool:
    if one is other:
        return True
    if type(one) is not type(other) or one.training != other.training:
        return False
    stored = (one._parameters, other._parameters), (one._buffers, other._buffers)
    if not all(_same_tensors(*pair) for pair in stored):
        return False
    if list(one._modules) != list(other._modules):
        return False
    pairs = zip(one._modules.values(), other._modules.values(), strict=True)
    return _same_attributes(one, other, numbers) and all(
        _same_child(left, right, numbers) for left, right in pairs
    )


def _same_child(one: nn.Module | None, other: nn.Module | None, numbers: Numbers) -> bool:
    """torch allows ``None`` where a module might be."""
    if one is None or other is None:
        return one is other
    return _same_module(one, other, numbers)


def _same_tensors(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return _described(one) == _described(other)


def _described(tensors: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if t is None else (t.shape, t.dtype) for name, t in tensors.items()}


def _same_attributes(one: nn.Module, other: nn.Module, numbers: Numbers) -> bool:
    """What the module's class has stored in it; torch's own bookkeeping is left out."""
    from torch import nn

    own = set(vars(nn.Module()))
    left = {name: value for name, value in vars(one).items() if name not in own}
    right = {name: value for name, value in vars(other).items() if name not in own}
    return left.keys() == right.keys() and all(
        _same_value(value, right[name], numbers) for name, value in left.items()
    )


def _same_value(one: Any, other: Any, numbers: Numbers) -> bool:
    if one is other or (isinstance(one, int) and (one, other) == numbers):
        return True
    if type(one) is not type(other):
        return False
    match one:
        case bool() | int() | float() | str():
            return bool(one == other)
        case tuple() | list():
            pairs = zip(one, other, strict=False)
            return len(one) == len(other) and all(_same_value(*pair, numbers) for pair in pairs)
        case dict():
            return one.keys() == other.keys() and all(
                _same_value(value, other[key], numbers) for key, value in one.items()
            )
    return False
