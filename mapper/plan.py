"""A plan: how a whole workload runs, operator by operator or group by group, in which order.

``mapper.cost.Mappings`` is the plain case: operators in the workload's order, every tensor in
the outermost memory between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass, field

from arch.datatypes import Bits
from mapper.fusion import FusedMapping
from mapper.mapping import Mapping
from mapper.placement import tensor_bits
from mapper.workload.graph import Workload

Unit = Mapping | FusedMapping


def operators_of(unit: Unit) -> tuple[str, ...]:
    return unit.operators if isinstance(unit, FusedMapping) else (unit.operator,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """``units`` run one after the other. ``homes`` are the tensors that stay in an on-chip
    memory from the unit that writes them to the last one that reads them. With several cores,
    ``cores[i]`` runs unit ``i``, and tensors stay on the core of the units that touch them."""

    units: tuple[Unit, ...]
    homes: MappingABC[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()

    @property
    def order(self) -> tuple[str, ...]:
        """The operators, as they are run."""
        return tuple(name for unit in self.units for name in operators_of(unit))

    def on_chip(self, workload: Workload) -> frozenset[str]:
        """Tensors that never reach the outermost memory."""
        inside = {
            workload.operator(name).output.tensor
            for unit in self.units
            for name in operators_of(unit)[:-1]
        }
        return frozenset(inside | set(self.homes))

    def occupied(self, workload: Workload) -> Iterator[dict[str, Bits]]:
        """Per unit, the bits that tensors at home on the chip (of its core) take in each memory."""
        cores = self.cores or (0,) * len(self.units)
        lifetimes = self._lifetimes(workload)
        for position in range(len(self.units)):
            taken: dict[str, Bits] = {}
            for tensor, memory in self.homes.items():
                first, last = lifetimes[tensor]
                if first <= position <= last and cores[first] == cores[position]:
                    bits = tensor_bits(workload.tensor(tensor))
                    taken[memory] = taken.get(memory, 0) + bits
            yield taken

    def _lifetimes(self, workload: Workload) -> dict[str, tuple[int, int]]:
        touched: dict[str, list[int]] = {}
        for position, unit in enumerate(self.units):
            for name in operators_of(unit):
                for access in workload.operator(name).accesses:
                    touched.setdefault(access.tensor, []).append(position)
        return {tensor: (at[0], at[-1]) for tensor, at in touched.items()}

    def bytes_saved(self, workload: Workload) -> int:
        """What would otherwise be written to the outermost memory and read back."""
        readers: dict[str, int] = {}
        for operator in workload.operators:
            for access in operator.inputs:
                readers[access.tensor] = readers.get(access.tensor, 0) + 1
        return sum(
            (1 + readers.get(tensor, 0)) * int(-(-tensor_bits(workload.tensor(tensor)) // 8))
            for tensor in self.on_chip(workload)
        )
