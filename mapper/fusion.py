"""A fused group: operators executed tile by tile of the last one's output.

For every tile of the output, each operator of the group computes just what the next ones need
of its result, a *piece* of its loop nest. What passes between them stays in one on-chip memory
and never reaches the outermost one. Where neighbouring tiles need the same (the halo of a
convolution, the keys of an attention), it is kept if the group is ``retained`` and computed
again otherwise. With no tile loops the whole of each tensor is one tile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import dataclass

from mapper.legality import MappingError
from mapper.mapping import Loop, Mapping
from mapper.workload.graph import Workload
from mapper.workload.operators import Operator

#: Kinds that need a whole row, which is their last loop, before they can give any of it.
_ROW_KINDS = frozenset({"softmax", "layer_norm", "rms_norm"})
#: Operations that may look at everything, unless the kind says otherwise.
_NORMALIZING = frozenset({"softmax", "norm"})
#: Kinds of these operations that look at single elements.
_POINT_KINDS = frozenset({"batch_norm"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FusedMapping:
    """How a group runs.

    ``tiles`` are loops over the last operator's dimensions, outermost first. ``memory`` keeps
    what passes between operators, and of the tensors from outside the ``resident`` ones: their
    parts are loaded into it once per tile (once in all where every tile needs the same) instead
    of once per piece. ``mappings`` has one mapping per operator, that of its largest piece.
    """

    operators: tuple[str, ...]
    tiles: tuple[Loop, ...]
    memory: str
    resident: tuple[str, ...]
    retained: bool
    mappings: tuple[Mapping, ...]

    @property
    def name(self) -> str:
        first, last = self.operators[0], self.operators[-1]
        if first == last:
            return f"{first} in tiles"
        return f"{first} .. {last}" if len(self.operators) > 2 else f"{first} + {last}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The operators of a group and what passes in, between and out.

    ``internal`` tensors are written and read inside only; ``external`` ones are read from
    outside; ``result`` is the last operator's output.
    """

    operators: tuple[Operator, ...]
    internal: tuple[str, ...]
    external: tuple[str, ...]
    result: str

    def readers(self, tensor: str) -> Iterator[tuple[Operator, int]]:
        """Operators (with the operand's number) that read a tensor."""
        for operator in self.operators:
            for number, access in enumerate(operator.inputs):
                if access.tensor == tensor:
                    yield operator, number

    def writer(self, tensor: str) -> Operator:
        return next(o for o in self.operators if o.output.tensor == tensor)


def whole_dims(operator: Operator) -> frozenset[str]:
    """Loops that a piece must contain whole: sums, and rows that are normalized at once."""
    reduced = operator.reduction_dims() | operator.whole_dims
    if (
        operator.whole_dims
        or operator.operation not in _NORMALIZING
        or operator.kind in _POINT_KINDS
    ):
        return reduced
    if operator.kind in _ROW_KINDS:
        return reduced | {list(operator.extents)[-1]}
    return frozenset(operator.extents)


def group_of(workload: Workload, names: Iterable[str]) -> Group:
    """The group of these operators; ``MappingError`` if they cannot be one."""
    operators = tuple(workload.operator(name) for name in names)
    problem = why_not(workload, operators)
    if problem:
        raise MappingError(f"cannot fuse {', '.join(o.name for o in operators)}: {problem}")
    written = [o.output.tensor for o in operators]
    read = dict.fromkeys(a.tensor for o in operators for a in o.inputs)
    return Group(
        operators=operators,
        internal=tuple(written[:-1]),
        external=tuple(tensor for tensor in read if tensor not in written),
        result=written[-1],
    )


def why_not(workload: Workload, operators: tuple[Operator, ...]) -> str:
    """What keeps operators (in execution order) from being a group; empty if nothing does."""
    if not operators:
        return "a group has at least one operator"
    inside = {o.name for o in operators}
    for operator in operators[:-1]:
        tensor = operator.output.tensor
        problem = _not_passed_on(workload, tensor, inside)
        if problem:
            return f"{tensor} {problem}"
    return _not_last(workload, operators)


def _not_passed_on(workload: Workload, tensor: str, inside: set[str]) -> str:
    if workload.tensor(tensor).kind != "activation":
        return "is needed outside the group"
    writers = [o.name for o in workload.operators if o.output.tensor == tensor]
    readers = [o for o in workload.operators for a in o.inputs if a.tensor == tensor]
    if len(writers) > 1:
        return f"has {len(writers)} writers"
    if not readers:
        return "is never read"
    if not {o.name for o in readers} <= inside:
        return "is needed outside the group"
    if len({o.name for o in readers}) < len(readers):
        return "is read twice by one operator"
    return ""


def _not_last(workload: Workload, operators: tuple[Operator, ...]) -> str:
    last = operators[-1].output.tensor
    if any(a.tensor == last for o in operators for a in o.inputs):
        return f"{last} is read and written"
    if sum(o.output.tensor == last for o in workload.operators) > 1:
        return f"{last} has several writers"
    return ""


def tile_dims(operator: Operator) -> tuple[str, ...]:
    """Dimensions of the last operator that a group may be tiled over."""
    whole = whole_dims(operator)
    return tuple(dim for dim, e in operator.extents.items() if e > 1 and dim not in whole)


def check_tiles(last: Operator, tiles: tuple[Loop, ...]) -> None:
    """``MappingError`` unless the loops cut the last operator's output into tiles."""
    allowed = tile_dims(last)
    seen: list[str] = []
    for loop in tiles:
        if loop.dim not in allowed or loop.dim in seen:
            raise MappingError(
                f"{last.name}: cannot tile a group over {loop.dim!r}; each of "
                f"{', '.join(allowed) or 'no dimension'} may be tiled once"
            )
        if not 1 <= loop.tile <= last.extents[loop.dim]:
            raise MappingError(
                f"{last.name}: a tile of {loop.tile} of {loop.dim!r}; allowed 1 to "
                f"{last.extents[loop.dim]}"
            )
        seen.append(loop.dim)


#: dim -> first and one past the last index
Box = MappingABC[str, tuple[int, int]]
