"""A workload of many repeated blocks, from two that have few of them.

The longer of the two must be the shorter one with one more run of operators, equal to the run
before it but for the numbers in names. Then the run can be repeated: names are counted on, an
operand that both runs share stays shared, one that moved from run to run moves on. Where the two
workloads do not differ in this way, there is no answer and the network must be traced whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mapper.workload.graph import Workload
from mapper.workload.operators import Access, Operator, Tensor

_NUMBER = re.compile(r"\d+")


class NotRegularError(Exception):
    """The workloads do not differ by one run of equal operators."""


def continued_workload(short: Workload, long: Workload, further: int) -> Workload:
    """``long`` with ``further`` more runs; raises ``NotRegularError``."""
    operators = _Operators(short, long).continued(further)
    weights = _continued_weights(_weights(short), _weights(long), further)
    tensors = {tensor.name: tensor for tensor in weights}
    for operator in operators:
        tensors |= {t.name: t for t in operator.tensors if t.name not in tensors}
    return Workload(
        name=long.name,
        tensors=tuple(tensors.values()),
        operators=tuple(operator.operator for operator in operators),
        folded=tuple(_continued_texts(short.folded, long.folded, further)),
    )


def counted_on(before: str, after: str, times: int) -> str:
    """``layer 1.x``, ``layer 2.x`` and 3: ``layer 5.x``; equal texts stay."""
    if before == after:
        return after
    if _NUMBER.sub("#", before) != _NUMBER.sub("#", after):
        raise NotRegularError(f"{before} and {after}")
    steps = [
        int(new) + (int(new) - int(old)) * times
        for old, new in zip(_NUMBER.findall(before), _NUMBER.findall(after), strict=True)
    ]
    numbers = iter(steps)
    return _NUMBER.sub(lambda _: str(next(numbers)), after)


@dataclass(frozen=True, slots=True)
class _Placed:
    """An operator with the records of its tensors, inputs first."""

    operator: Operator
    tensors: tuple[Tensor, ...]


class _Operators:
    """The operators of both workloads, aligned."""

    def __init__(self, short: Workload, long: Workload) -> None:
        self._short, self._long = _placed(short), _placed(long)
        self._run = len(self._long) - len(self._short)
        self._start = _common(self._short, self._long)
        if self._run < 1 or self._start < self._run:
            raise NotRegularError("no run of operators is added, or none is before it")

    def continued(self, further: int) -> list[_Placed]:
        start, run = self._start, self._run
        before, added = self._long[start - run : start], self._long[start : start + run]
        result = [*self._long[:start], *added]
        for times in range(1, further + 1):
            result += [_next(*pair, times) for pair in zip(before, added, strict=True)]
        rest = zip(self._short[start:], self._long[start + run :], strict=True)
        return result + [_next(*pair, further) for pair in rest]


def _placed(workload: Workload) -> list[_Placed]:
    return [
        _Placed(operator, tuple(workload.tensor(a.tensor) for a in operator.accesses))
        for operator in workload.operators
    ]


def _next(before: _Placed, after: _Placed, times: int) -> _Placed:
    """What follows on two operators that correspond to each other."""
    if _anonymous(before.operator) != _anonymous(after.operator):
        raise NotRegularError(f"{before.operator.name} and {after.operator.name} do different work")
    tensors = tuple(
        _next_tensor(*pair, times) for pair in zip(before.tensors, after.tensors, strict=True)
    )
    accesses = [
        replace(access, tensor=tensor.name)
        for access, tensor in zip(after.operator.accesses, tensors, strict=True)
    ]
    operator = replace(
        after.operator,
        name=counted_on(before.operator.name, after.operator.name, times),
        inputs=tuple(accesses[:-1]),
        output=accesses[-1],
    )
    return _Placed(operator, tensors)


def _next_tensor(before: Tensor, after: Tensor, times: int) -> Tensor:
    if replace(before, name="") != replace(after, name=""):
        raise NotRegularError(f"{before.name} and {after.name} are different tensors")
    return replace(after, name=counted_on(before.name, after.name, times))


def _anonymous(operator: Operator) -> Operator:
    def without_name(access: Access) -> Access:
        return replace(access, tensor="")

    return replace(
        operator,
        name="",
        inputs=tuple(map(without_name, operator.inputs)),
        output=without_name(operator.output),
    )


def _weights(workload: Workload) -> list[Tensor]:
    return [tensor for tensor in workload.tensors if tensor.kind == "weight"]


def _continued_weights(
    short: Sequence[Tensor], long: Sequence[Tensor], further: int
) -> list[Tensor]:
    start, run = _common(short, long), len(long) - len(short)
    if list(short[start:]) != list(long[start + run :]) or start < run:
        raise NotRegularError("other weights differ too")
    before, added = long[start - run : start], long[start : start + run]
    result = list(long[: start + run])
    for times in range(1, further + 1):
        result += [_next_tensor(*pair, times) for pair in zip(before, added, strict=True)]
    return result + list(long[start + run :])


def _continued_texts(short: Sequence[str], long: Sequence[str], further: int) -> list[str]:
    start, run = _common(short, long), len(long) - len(short)
    if start < run:
        raise NotRegularError("notes differ")
    before, added = long[start - run : start], long[start : start + run]
    result = list(long[: start + run])
    for times in range(1, further + 1):
        result += [counted_on(*pair, times) for pair in zip(before, added, strict=True)]
    rest = zip(short[start:], long[start + run :], strict=True)
    return result + [counted_on(*pair, further) for pair in rest]


def _common(short: Sequence[object], long: Sequence[object]) -> int:
    """How many items both begin with."""
    pairs = enumerate(zip(short, long, strict=False))
    return next((at for at, (one, other) in pairs if one != other), min(len(short), len(long)))
