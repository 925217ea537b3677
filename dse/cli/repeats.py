"""Operators of repeated layers as one row: a decoder of 126 layers stays readable."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mapper.cost import OperatorMetrics

#: The first part of a dotted name that is a number: the index of a layer.
_INDEX = re.compile(r"(?<=\.)\d+(?=\.|$)")


@dataclass(frozen=True, slots=True)
class Repeated:
    """``times`` operators that cost the same; ``sample`` is the first of them."""

    name: str
    times: int
    sample: OperatorMetrics


def repeated(operators: Iterable[OperatorMetrics], kinds: dict[str, str]) -> list[Repeated]:
    """Operators that differ in nothing but the layer's index, in order of their first.

    The name says which layers: ``layers.0-2,5.attention.q``.
    """
    groups: dict[tuple[object, ...], list[OperatorMetrics]] = {}
    for one in operators:
        pattern = _INDEX.sub("{}", one.name, count=1)
        costs = (one.latency_ps, one.energy_pj, one.bound_by, one.macs)
        groups.setdefault((pattern, kinds.get(one.name), *costs), []).append(one)
    return [Repeated(_name(found), len(found), found[0]) for found in groups.values()]


def _name(found: list[OperatorMetrics]) -> str:
    if len(found) == 1:
        return found[0].name
    indices = [int(match.group()) for one in found if (match := _INDEX.search(one.name))]
    return _INDEX.sub(_ranges(indices), found[0].name, count=1)


def _ranges(indices: list[int]) -> str:
    """``0-2,5`` for 0, 1, 2 and 5."""
    runs: list[list[int]] = []
    for index in sorted(indices):
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
