"""``dse match``: which loops of an operator a hardware intrinsic can execute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from arch.errors import InputError, Problem, unknown
from arch.load import load_architecture
from dse.cli import arguments
from dse.cli.console import print_json, results, table
from dse.stream_workload import load_network
from mapper.intrinsics import Match, Pattern, matches, pattern_named, patterns_of
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

OVERVIEW = ("operator", "loops", ">direct", ">im2col", "a match with the most work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An operator and all its matches, those with the most work first."""

    operator: Operator
    matches: tuple[Match, ...]


def run(
    workload: arguments.Workload,
    intrinsic: Annotated[
        str | None, typer.Option(metavar="gemm|gemv|dot|conv", help="What the hardware executes.")
    ] = None,
    arch: Annotated[
        str | None,
        typer.Option("--arch", "-a", metavar="A", help="Or: the array of this architecture."),
    ] = None,
    op: Annotated[str | None, typer.Option(metavar="NAME", help="Only this operator.")] = None,
    fused: Annotated[
        bool, typer.Option("--fused", help="Let several loops stand for one of the intrinsic.")
    ] = False,
    as_json: arguments.Json = False,
) -> None:
    """List which loops of an operator a hardware intrinsic can execute.

    A loop can stand for one of the intrinsic if it indexes the corresponding operands. A match
    marked im2col needs data laid out anew first, because two of its loops share an index.
    """
    patterns = chosen_patterns(intrinsic, arch)
    network = load_network(workload)
    listed = [listing(o, patterns, fused) for o in products(network, op)]
    if as_json:
        print_json(document(network, patterns, listed))
    else:
        print_listed(network, patterns, listed)


def chosen_patterns(intrinsic: str | None, arch: str | None) -> tuple[Pattern, ...]:
    if (intrinsic is None) == (arch is None):
        message = "give either --intrinsic (gemm, gemv, dot or conv) or --arch"
        raise InputError(Problem(message, where="match"))
    if intrinsic is not None:
        return (pattern_named(intrinsic),)
    architecture = load_architecture(str(arch), {})
    found = [
        pattern
        for compute in architecture.computes
        for unit in compute.intrinsics
        if "mac" in unit.operations
        for pattern in patterns_of(unit)
    ]
    if not found:
        message = f"{architecture.name} has no unit that multiplies and accumulates"
        raise InputError(Problem(message, where="--arch"))
    return tuple(dict.fromkeys(found))


def products(workload: Workload, name: str | None) -> list[Operator]:
    """The operators that can match at all: all products, or the one that is asked for."""
    found = {operator.name: operator for operator in workload.operators if operator.macs}
    if name is None and found:
        return list(found.values())
    if name not in found:
        detail = unknown("operator", str(name), list(found)) if name else "it has no products"
        raise InputError(Problem(detail, where="--op" if name else f"workload {workload.name}"))
    return [found[name]]


def listing(operator: Operator, patterns: tuple[Pattern, ...], fused: bool) -> Listed:
    found = [m for pattern in patterns for m in matches(operator, pattern, fused=fused)]
    ranked = sorted(found, key=lambda m: (bool(m.im2col), -iterations(operator, m)))
    return Listed(operator=operator, matches=tuple(ranked))


def iterations(operator: Operator, match: Match) -> int:
    """Points of the loop nest that the match covers."""
    covered = 1
    for loop in match.loops:
        covered *= match.extent(operator, loop)
    return covered


def document(
    workload: Workload, patterns: tuple[Pattern, ...], listed: list[Listed]
) -> dict[str, Any]:
    return {
        "workload": workload.name,
        "intrinsics": {pattern.name: pattern.formula for pattern in patterns},
        "operators": [
            {
                "name": entry.operator.name,
                "extents": dict(entry.operator.extents),
                "matches": [match_document(entry.operator, m) for m in entry.matches],
            }
            for entry in listed
        ],
    }


def match_document(operator: Operator, match: Match) -> dict[str, Any]:
    return {
        "intrinsic": match.pattern.name,
        "loops": {loop: list(dims) for loop, dims in match.loops.items()},
        "extents": {loop: match.extent(operator, loop) for loop in match.loops},
        "swapped": match.swapped,
        "im2col": [list(pair) for pair in match.im2col],
        "steps": {"+".join(axis): list(steps) for axis, steps in match.steps.items()},
    }


def print_listed(workload: Workload, patterns: tuple[Pattern, ...], listed: list[Listed]) -> None:
    console = results()
    console.print(workload.name)
    for pattern in patterns:
        console.print(f"  {pattern.name}: {pattern.formula}")
    if len(listed) > 1:
        console.print(table("", OVERVIEW, map(overview_row, listed)))
        console.print("All matches of one operator: add --op NAME.")
        return
    (entry,) = listed
    loops = tuple(dict.fromkeys(loop for pattern in patterns for loop in pattern.loops))
    rows = (match_row(entry.operator, loops, match) for match in entry.matches)
    columns = (*loops, ">points covered", "first operand", "remarks")
    console.print(f"{entry.operator.name}: {extents_text(entry.operator)}")
    console.print(table("", columns, rows))
    direct = sum(not match.im2col for match in entry.matches)
    console.print(f"{len(entry.matches)} matches, {direct} without laying data out anew")


def overview_row(entry: Listed) -> tuple[str, ...]:
    direct = sum(not match.im2col for match in entry.matches)
    best = entry.matches[0] if entry.matches else None
    return (
        entry.operator.name,
        extents_text(entry.operator),
        str(direct),
        str(len(entry.matches) - direct),
        "none: no loops are coupled alike" if best is None else loops_text(best),
    )


def match_row(operator: Operator, loops: tuple[str, ...], match: Match) -> tuple[str, ...]:
    first = operator.inputs[1 if match.swapped else 0].tensor
    return (
        *("·".join(match.loops.get(loop, ())) or "-" for loop in loops),
        f"{iterations(operator, match):,}",
        first,
        "; ".join(remarks(match)),
    )


def remarks(match: Match) -> list[str]:
    shared = [f"im2col: {one} and {other} share an index" for one, other in match.im2col]
    return shared + [
        f"{'+'.join(axis)}: stride {steps[0]}, dilation {steps[1]}"
        for axis, steps in match.steps.items()
        if steps != (1, 1)
    ]


def loops_text(match: Match) -> str:
    filled = ((loop, dims) for loop, dims in match.loops.items() if dims)
    return ", ".join(f"{loop}: {'·'.join(dims)}" for loop, dims in filled)


def extents_text(operator: Operator) -> str:
    return " ".join(f"{dim}={extent}" for dim, extent in operator.extents.items())
