"""Ports: the resources of every fidelity, and how long work occupies them."""

from __future__ import annotations

from collections.abc import Mapping

from mapper.cost import Price
from mapper.program import Work

#: component name -> its price
Prices = Mapping[str, Price]


def port_name(component: str, port: str) -> str:
    """``"gbuf.read"``, or ``"array"`` for the only port of a component."""
    return f"{component}.{port}" if port else component


def ports_of(component: str) -> tuple[str, ...]:
    """The names that the ports of a component may have."""
    return tuple(port_name(component, port) for port in ("", "read", "write"))


def occupancy_ps(work: Mapping[str, Work], prices: Prices) -> dict[str, int]:
    """How long the work keeps each port busy; ports that it does not use are absent."""
    return {
        port_name(component, port): busy
        for component, amount in work.items()
        for port, busy in prices[component].occupancy(amount).items()
        if busy
    }


def sources(works: Mapping[str, Work]) -> list[str]:
    """The components that an operation reads or computes with, whose latency it sees.

    A tile that is all padding moves nothing; it asks where it would come from, the first, all the
    same.
    """
    read = [name for name, work in works.items() if work.read_bits or work.steps]
    return read or list(works)[:1]
