"""Stored tensors and the views that torch takes of them, as affine addresses.

Torch code reshapes, permutes and slices freely; hardware stores a tensor once. A ``View`` maps
each of its axes to a step along one stored axis. Splitting an axis is always possible: heads of
a projection are ``64 * head + element`` on its columns. Joining two stored axes changes how the
tensor is stored, so that whoever wrote ``[head, element]`` now writes ``64 * head + element``:
axes forward to the axis that they became part of, and earlier addresses stay valid.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mapper.workload.operators import AffineIndex


@dataclass(eq=False, slots=True, kw_only=True)
class Axis:
    """One stored axis. ``padded``: some operator reads beyond its ends, so it must stay alone."""

    size: int
    padded: bool = False
    part_of: tuple[Axis, int] | None = None

    def stored(self) -> tuple[Axis, int]:
        """The axis that this one is part of now, and its step there."""
        axis, step = self, 1
        while axis.part_of is not None:
            axis, factor = axis.part_of
            step *= factor
        return axis, step


@dataclass(eq=False, slots=True, kw_only=True)
class Storage:
    """A tensor while the graph is being built. ``constant``: known before the network runs;
    ``blank``: nothing was written to it when it was made."""

    name: str
    dtype: str
    kind: str
    axes: list[Axis]
    constant: bool = False
    blank: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    def join(self, outer: Axis, inner: Axis) -> Axis:
        """Store two axes as one, ``inner`` varying fastest."""
        joined = Axis(size=outer.size * inner.size)
        outer.part_of, inner.part_of = (joined, inner.size), (joined, 1)
        self.axes[self.axes.index(outer)] = joined
        self.axes.remove(inner)
        return joined


@dataclass(frozen=True, slots=True)
class ViewAxis:
    """``size`` positions, ``step`` apart on a stored axis; without one, a broadcast."""

    size: int
    axis: Axis | None = None
    step: int = 0

    def stored(self) -> tuple[Axis | None, int]:
        if self.axis is None:
            return None, 0
        axis, factor = self.axis.stored()
        return axis, self.step * factor


@dataclass(frozen=True, slots=True)
class View:
    """A tensor as torch sees it. ``origin`` is where index zero lies, per stored axis."""

    storage: Storage
    axes: tuple[ViewAxis, ...]
    origin: tuple[tuple[Axis, int], ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    def start(self, axis: Axis) -> int:
        """Position of the view's first element on a stored axis."""
        return sum(
            offset * step
            for part, offset in self.origin
            for stored, step in (part.stored(),)
            if stored is axis
        )

    def covers(self, view_axis: ViewAxis) -> bool:
        """Whether this axis of the view is the whole of one stored axis."""
        axis, step = view_axis.stored()
        return (
            axis is not None and step == 1 and axis.size == view_axis.size and self.start(axis) == 0
        )

    def address(self, index: Sequence[AffineIndex]) -> tuple[AffineIndex, ...]:
        """One expression per stored axis for one expression per axis of the view."""
        terms: dict[Axis, dict[str, int]] = {axis: {} for axis in self.storage.axes}
        offsets = {axis: self.start(axis) for axis in self.storage.axes}
        for view_axis, expression in zip(self.axes, index, strict=True):
            axis, step = view_axis.stored()
            if axis is None:
                continue
            offsets[axis] += step * expression.offset
            for dim, coefficient in expression.terms:
                terms[axis][dim] = terms[axis].get(dim, 0) + step * coefficient
        return tuple(
            AffineIndex(tuple(terms[axis].items()), offsets[axis]) for axis in self.storage.axes
        )


def fresh(storage: Storage) -> View:
    """All of a storage, as it is stored."""
    return View(storage, tuple(ViewAxis(axis.size, axis, 1) for axis in storage.axes))


def permute(view: View, order: Sequence[int]) -> View:
    return replace(view, axes=tuple(view.axes[axis] for axis in order))


def narrow(view: View, dim: int, start: int, size: int, step: int = 1) -> View:
    """``size`` positions of one axis from ``start``, every ``step``-th."""
    old = view.axes[dim]
    kept = replace(old, size=size, step=old.step * step)
    moved = _shift(view, old, start)
    return replace(moved, axes=(*view.axes[:dim], kept, *view.axes[dim + 1 :]))


def select(view: View, dim: int, position: int) -> View:
    """One position of an axis, which disappears."""
    moved = _shift(view, view.axes[dim], position)
    return replace(moved, axes=(*view.axes[:dim], *view.axes[dim + 1 :]))


def insert(view: View, dim: int, size: int = 1) -> View:
    """A new axis along which the values repeat."""
    return replace(view, axes=(*view.axes[:dim], ViewAxis(size), *view.axes[dim:]))


def broadcast(view: View, shape: Sequence[int]) -> View:
    """Expanded to ``shape`` by torch's rules: missing leading axes and axes of size 1 repeat."""
    missing = len(shape) - len(view.axes)
    axes = [ViewAxis(size) for size in shape[:missing]]
    for axis, size in zip(view.axes, shape[missing:], strict=True):
        axes.append(axis if axis.size == size else ViewAxis(size))
    return replace(view, axes=tuple(axes))


def reshape(view: View, shape: Sequence[int]) -> View | None:
    """The same elements in row-major order under another shape; ``None`` if not affine."""
    axes: list[ViewAxis] = []
    for old, new in _groups(view.shape, shape):
        joined = view.axes[old[0]] if old else ViewAxis(1)
        for position in old[1:]:
            merged = _join(view, joined, view.axes[position])
            if merged is None:
                return None
            joined = merged
        axes += _split(joined, new)
    return replace(view, axes=tuple(axes))


def join_leading(view: View, keep: int) -> View:
    """Leading axes joined as far as possible, the last ``keep`` left alone."""
    leading = list(view.axes[: len(view.axes) - keep])
    joined: list[ViewAxis] = []
    for axis in leading:
        merged = _join(view, joined[-1], axis) if joined else None
        joined[-1:] = [merged] if merged is not None else [*joined[-1:], axis]
    return replace(view, axes=(*joined, *view.axes[len(leading) :]))


def _shift(view: View, view_axis: ViewAxis, positions: int) -> View:
    axis, step = view_axis.stored()
    if axis is None or positions == 0:
        return view
    return replace(view, origin=(*view.origin, (axis, positions * step)))


def _join(view: View, outer: ViewAxis, inner: ViewAxis) -> ViewAxis | None:
    if outer.size == 1 or inner.size == 1:
        return inner if outer.size == 1 else outer
    size = outer.size * inner.size
    (outer_axis, outer_step), (inner_axis, inner_step) = outer.stored(), inner.stored()
    if outer_axis is inner_axis and outer_step == inner_step * inner.size:
        return ViewAxis(size, inner_axis, inner_step)
    if outer_axis is None or inner_axis is None or outer_axis is inner_axis:
        return None
    if outer_axis.padded or inner_axis.padded:
        return None
    if outer_step * inner_axis.size != inner_step * inner.size:
        return None  # stepping past the end of the inner axis is not the next outer position
    return ViewAxis(size, view.storage.join(outer_axis, inner_axis), inner_step)


def _split(axis: ViewAxis, sizes: Sequence[int]) -> list[ViewAxis]:
    return [
        ViewAxis(size, axis.axis, axis.step * math.prod(sizes[position + 1 :]))
        for position, size in enumerate(sizes)
    ]


def _groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Shortest runs of old axes (positions) and new axes (sizes) that hold the same elements."""
    groups: list[tuple[list[int], list[int]]] = []
    unused = iter([position for position, size in enumerate(old) if size != 1])
    taken: list[int] = []
    sizes: list[int] = []
    for size in new:
        sizes.append(size)
        while math.prod(old[position] for position in taken) < math.prod(sizes):
            taken.append(next(unused))
        if math.prod(old[position] for position in taken) == math.prod(sizes):
            groups.append((taken, sizes))
            taken, sizes = [], []
    return groups
