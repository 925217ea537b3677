"""Sums of products of table entries: what a cost is made of, over many mappings at once.

A mapping is one row of each group's table. A term is a coefficient times one entry per group;
entries that are the same in all rows become part of the coefficient, and all terms that depend
on one group alone become a single column. So a sum costs a look-up per group and little more.
Numbers are integers in 64-bit floats, exact below 2**53.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: An array of numpy or torch.
Array = Any

#: One entry per row of each group.
Product = tuple[FloatArray, ...]

#: Integers up to here are exact in 64-bit floats.
EXACT = float(1 << 53)


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """The entries of one group, and the number of the group."""

    group: int
    entries: Array


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sum:
    """``constant + columns + products``. ``most`` bounds the size of what is added up."""

    constant: float
    columns: tuple[Column, ...]
    products: tuple[tuple[Column, ...], ...]
    most: float

    def value(self, look_up: Callable[[Column], Array]) -> Array:
        """The sum of each mapping, or the constant alone. Inner groups are added last."""
        total: Array = self.constant
        for product in self.products:
            total = _plus(total, _multiplied([look_up(column) for column in product]))
        for column in self.columns:
            total = _plus(total, look_up(column))
        return total

    def placed(self, place: Callable[[Array], Array]) -> Sum:
        """The same with all entries where ``place`` puts them."""

        def move(columns: Iterable[Column]) -> tuple[Column, ...]:
            return tuple(Column(column.group, place(column.entries)) for column in columns)

        return Sum(
            constant=self.constant,
            columns=move(self.columns),
            products=tuple(move(product) for product in self.products),
            most=self.most,
        )


def _plus(total: Array, more: Array) -> Array:
    """The sum; nothing is added to nothing."""
    return more if isinstance(total, float) and total == 0.0 else total + more


def _multiplied(factors: Sequence[Array]) -> Array:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


class Terms:
    """Collects terms, then adds up what can be added before any mapping is known."""

    def __init__(self) -> None:
        self._constant = 0.0
        self._terms: dict[tuple[int, ...], tuple[float, Product]] = {}

    def add(self, coefficient: float, product: Product) -> None:
        key = tuple(id(entries) for entries in product)
        so_far, _ = self._terms.get(key, (0.0, product))
        self._terms[key] = so_far + coefficient, product

    def add_constant(self, value: float) -> None:
        self._constant += value

    def sum(self) -> Sum:
        constant, most = self._constant, abs(self._constant)
        columns: dict[int, FloatArray] = {}
        products = []
        for coefficient, product in self._terms.values():
            scale, varying = _split(coefficient, product)
            most += abs(scale) * math.prod(float(c.entries.max()) for c in varying)
            if scale == 0.0:
                continue
            if not varying:
                constant += scale
            elif len(varying) == 1:
                column = varying[0]
                columns[column.group] = columns.get(column.group, 0.0) + scale * column.entries
            else:
                first, *others = varying
                products.append((Column(first.group, scale * first.entries), *others))
        return Sum(
            constant=constant,
            columns=tuple(Column(group, columns[group]) for group in sorted(columns)),
            products=tuple(products),
            most=most,
        )


def _split(coefficient: float, product: Product) -> tuple[float, tuple[Column, ...]]:
    """The part that is the same for all rows, and the columns that vary."""
    varying = []
    for group, entries in enumerate(product):
        if (entries == entries[0]).all():
            coefficient *= float(entries[0])
        else:
            varying.append(Column(group, entries))
    return coefficient, tuple(varying)


def times(*products: Sequence[FloatArray]) -> Product:
    """The product of products, group by group."""
    return tuple(np.prod(entries, axis=0) for entries in zip(*products, strict=True))
