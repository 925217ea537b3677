"""The best mapping of every operator of a workload; equal operators are searched once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from arch.spec import Architecture
from mapper.cost import InfeasibleError, PriceList
from mapper.hierarchy import execution
from mapper.search.exact import SearchResult
from mapper.search.method import EXACT, Method
from mapper.search.methods import map_execution
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator
from mapper.workload.same_work import same_work

#: Finds the mapping of one operator.
Mapper = Callable[[Operator], SearchResult]


def map_workload(
    workload: Workload,
    architecture: Architecture,
    price: PriceList,
    objective: str = "edp",
    method: Method = EXACT,
) -> dict[str, SearchResult]:
    """Operator name -> result. ``calls`` of a repeated operator are zero: none were needed.

    Raises ``InfeasibleError`` for the first operator that the hardware cannot run; its calls are
    those of all operators up to that one.
    """
    found: dict[str, SearchResult] = {}
    try:
        for name, result in map_each(workload, architecture, price, objective, method):
            found[name] = result
    except InfeasibleError as error:
        error.calls += sum(result.calls for result in found.values())
        raise
    return found


def map_each(
    workload: Workload,
    architecture: Architecture,
    price: PriceList,
    objective: str = "edp",
    method: Method = EXACT,
) -> Iterator[tuple[str, SearchResult]]:
    """The results of ``map_workload`` one by one, in the order of the operators.

    Operators are searched by ``method.threads`` at once; results do not depend on how many.
    """

    def mapped(operator: Operator) -> SearchResult:
        run = execution(workload, operator, architecture)
        return map_execution(method, run, architecture.leakage_w, price, objective)

    first: dict[Hashable, Operator] = {}
    for operator in workload.operators:
        first.setdefault(same_work(workload, operator), operator)
    found = _each(list(first.values()), mapped, method.threads)
    known: dict[Hashable, SearchResult] = {}
    for operator in workload.operators:
        key = same_work(workload, operator)
        if first[key] is operator:
            known[key] = next(found)
            yield operator.name, known[key]
        else:
            mapping = replace(known[key].mapping, operator=operator.name)
            yield operator.name, replace(known[key], mapping=mapping, calls=0)


def _each(operators: Sequence[Operator], mapped: Mapper, threads: int) -> Iterator[SearchResult]:
    """The operators' results in order. Most of a search is compiled code, which runs beside
    other threads; the first error ends it."""
    if threads == 1 or len(operators) == 1:
        yield from map(mapped, operators)
        return
    with ThreadPoolExecutor(threads) as pool:
        try:
            for future in [pool.submit(mapped, operator) for operator in operators]:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
