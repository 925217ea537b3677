"""A memory plan as text: a line per kernel with the pool drawn in characters."""

from __future__ import annotations

from rich.console import Console

from dse.cli.console import table
from mapper.memory_plan.picture import live_at, strip
from mapper.memory_plan.plan import MemoryPlan, Step

#: Characters for the pool.
CELLS = 56


def print_plan(console: Console, plan: MemoryPlan) -> None:
    """The pool at each step, and what the marks mean."""
    kind = "ring" if plan.is_ring else "arena"
    extra = "".join(f" + {name} {size:,} B" for name, size in plan.extra_bytes.items())
    bound = "" if plan.pool_bytes == plan.lower_bound_bytes else _bound(plan)
    console.print(
        f"memory: planner {plan.planner}, {kind} of {plan.pool_bytes:,} B{extra}{bound}",
        soft_wrap=True,
    )
    rows = [
        (_name(step), f"{live_at(plan, number):,} B", strip(plan, number, CELLS))
        for number, step in enumerate(plan.steps)
    ]
    console.print(table("", ("kernel", ">in use", "pool, from address 0"), rows))
    console.print("< written   > read for the last time   # both   = kept   w workspace   . free")


def _bound(plan: MemoryPlan) -> str:
    return f" (no plan of this kind needs less than {plan.lower_bound_bytes:,} B)"


def _name(step: Step) -> str:
    if step.is_call:
        return step.name
    if len(step.layers) == 1:
        return step.layers[0]
    patches = f", {step.patches} patches" if step.patches > 1 else ", by rows"
    return f"{step.layers[0]} + {len(step.layers) - 1}{patches}"
