"""What the links of a network on the chip carry of a transfer."""

from __future__ import annotations

from arch.datatypes import whole
from arch.noc import Spread
from mapper.hierarchy import Execution
from mapper.mapping import Mapping
from mapper.program import Work

#: The axes of a compute unit that run along the rows and the columns of nodes.
AXES = ("rows", "cols")


def carried(
    run: Execution, mapping: Mapping, operand: int, work: Work
) -> tuple[tuple[str, Work], ...]:
    """Of bits that a network's memory reads for the compute unit, or that it writes for it.

    An operand that does not differ along an axis is wanted by all nodes along it. What returns
    comes evenly from all nodes.
    """
    spread = _spread(run, mapping, operand)
    return tuple(
        (
            link.name,
            Work(
                read_bits=whole(work.read_bits * link.loads[spread]),
                write_bits=whole(work.write_bits * link.loads[True, True]),
            ),
        )
        for link in run.links
    )


def _spread(run: Execution, mapping: Mapping, operand: int) -> Spread:
    """Along axes that are no rows or columns (lanes), every node has its own part."""
    if not set(AXES) & {axis.name for axis in run.intrinsic.axes}:
        return (True, True)
    dims = run.counts.operands[operand].dims
    rows, cols = (
        any(s.axis == axis and s.factor > 1 and s.dim in dims for s in mapping.spatial)
        for axis in AXES
    )
    return (rows, cols)
