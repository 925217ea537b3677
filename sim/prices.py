"""The price list: what a component's work costs in time and energy, by the type of component.

Each module in ``sim/devices`` registers the prices of its component types with ``@prices``. A
type has exactly the price registered for it: a subclass does not inherit one, since a price
that nobody wrote for it would be a guess.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from arch.spec import Architecture, Component
from mapper.cost import Price, PriceList
from sim.ports import Prices

_PRICED: dict[type[Component], Callable[[Any], Price]] = {}
_Priced = TypeVar("_Priced", bound=Component)


def prices(
    component: type[_Priced],
) -> Callable[[Callable[[_Priced], Price]], Callable[[_Priced], Price]]:
    """Decorator: the function is the price of components of exactly this type."""

    def register(function: Callable[[_Priced], Price]) -> Callable[[_Priced], Price]:
        if component in _PRICED:
            first, second = _PRICED[component].__module__, function.__module__
            raise RuntimeError(f"{component.__name__} is priced by both {first} and {second}")
        _PRICED[component] = function
        return function

    return register


@cache
def import_devices() -> None:
    """Runs every module of ``sim/devices``, which registers its prices and models."""
    package = importlib.import_module("sim.devices")
    for module in sorted(info.name for info in pkgutil.iter_modules(package.__path__)):
        importlib.import_module(f"sim.devices.{module}")


def price(component: Component) -> Price:
    """The price of a component. A type that no device module prices is a mistake in the family."""
    import_devices()
    kind = type(component)
    if kind not in _PRICED:
        known = ", ".join(sorted(priced.__name__ for priced in _PRICED))
        raise LookupError(
            f"no price for {kind.__name__} ({component.name}): register one in sim/devices; "
            f"there are prices for {known}"
        )
    return _PRICED[kind](component)


def price_all(architecture: Architecture, price_of: PriceList) -> Prices:
    """Every component's price, by name."""
    return {component.name: price_of(component) for component in architecture.components}
