"""``dse overlap``: how far an operator's output may lie over its input in a small memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from arch.errors import InputError, Problem, unknown
from dse.cli import arguments
from dse.cli.console import print_json, results, table
from dse.stream_workload import load_network
from mapper.memory_plan.affine import Distances, Nest, distances, nest_of
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

COLUMNS = ("operator", "input", "loops", ">starts before", ">ring", ">apart")


@dataclass(frozen=True, slots=True)
class Row:
    """A nest as one of its inputs sees it."""

    operator: str
    source: str
    nest: Nest
    found: Distances

    @property
    def offset_bytes(self) -> int:
        return max(0, self.found.offset)

    @property
    def apart_bytes(self) -> int:
        return self.nest.input_bytes + self.nest.output_bytes

    @property
    def ring_bytes(self) -> int:
        largest = max(self.nest.input_bytes, self.nest.output_bytes)
        return max(self.offset_bytes + self.found.read, largest)


def run(
    workload: arguments.Workload,
    order: Annotated[
        str | None,
        typer.Option(metavar="LOOPS", help="Loops from the outermost, as in K,M,N. With --op."),
    ] = None,
    op: Annotated[str | None, typer.Option(metavar="NAME", help="Only this operator.")] = None,
    as_json: arguments.Json = False,
) -> None:
    """Say how far an operator's output may overwrite its input.

    It overwrites what was read for the last time. The offset is how many bytes before its input it
    may start, the least one, by integer
    programs over the loops; without --order they run in the order of the output's addresses,
    with sums in registers.
    """
    network = load_network(workload)
    loops = tuple(part.strip() for part in order.split(",")) if order else ()
    rows = [row for operator in chosen(network, op) for row in seen(network, operator, loops)]
    if as_json:
        print_json({"workload": network.name, "overlaps": [document(row) for row in rows]})
    else:
        results().print(table("", COLUMNS, [line(row) for row in rows]))


def chosen(network: Workload, name: str | None) -> list[Operator]:
    by_name = {operator.name: operator for operator in network.operators}
    if name is None:
        return list(network.operators)
    if name not in by_name:
        raise InputError(Problem(unknown("operator", name, list(by_name)), "--op"))
    return [by_name[name]]


def seen(network: Workload, operator: Operator, order: tuple[str, ...]) -> Iterator[Row]:
    """From each activation that the operator reads, in one way."""
    for source in dict.fromkeys(operator.inputs):
        if network.tensor(source.tensor).kind != "weight":
            nest = nest_of(network, operator, source, order)
            yield Row(operator.name, source.tensor, nest, distances(nest))


def line(row: Row) -> tuple[str, ...]:
    pairs = zip(row.nest.loops, row.nest.extents, strict=True)
    return (
        row.operator,
        row.source,
        " ".join(f"{loop}={extent}" for loop, extent in pairs),
        f"{row.offset_bytes:,} B",
        f"{row.ring_bytes:,} B",
        f"{row.apart_bytes:,} B",
    )


def document(row: Row) -> dict[str, Any]:
    return {
        "operator": row.operator,
        "input": row.source,
        "loops": dict(zip(row.nest.loops, row.nest.extents, strict=True)),
        "offset_bytes": row.offset_bytes,
        "ring_bytes": row.ring_bytes,
        "apart_bytes": row.apart_bytes,
    }
