"""Why an operator cannot be mapped, as a table beside the error."""

from __future__ import annotations

from arch.spec import Architecture
from dse.cli.console import messages, table
from mapper.cost import InfeasibleError
from mapper.hierarchy import execution
from mapper.search.rejections import Cause, rejections
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from sim.prices import price

COLUMNS = ("exceeded", ">mappings", ">nothing else", ">nearest needs", ">there is")


def print_rejections(workload: Workload, operator: Operator, architecture: Architecture) -> None:
    """What mappings of the operator exceed; nothing if it has none to begin with."""
    try:
        run = execution(workload, operator, architecture)
    except InfeasibleError:
        return
    found = rejections(run, price)
    console = messages()
    console.print(
        f"{operator.name} has {found.mapspace:.3g} mappings; of {found.drawn:,} drawn evenly:"
    )
    console.print(table("", COLUMNS, (_row(cause, found.drawn) for cause in found.causes)))


def _row(cause: Cause, drawn: int) -> tuple[str, ...]:
    return (
        cause.limit,
        f"{100 * cause.count / drawn:.1f} %",
        f"{100 * cause.alone / drawn:.1f} %",
        f"{cause.nearest:,.0f}",
        f"{cause.allowed:,.0f}",
    )
