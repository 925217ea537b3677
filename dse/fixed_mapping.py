"""Mappings that the user gives: presets by name, or a YAML file.

The file holds, for each operator by name, what ``dse map --json`` prints as its ``mapping``, and
constraints: what is left open is then searched.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

from pydantic import Field

from arch.errors import InputError, Problem, unknown
from arch.schema import StrictModel
from arch.spec import Architecture
from arch.strict_yaml import read, validate
from mapper.cost import PriceList
from mapper.hierarchy import Execution, execution
from mapper.legality import MappingError
from mapper.mapping import Loop, Mapping, Spatial, Stage
from mapper.search.constraints import Constraint
from mapper.search.exact import ROUNDING, SearchResult, map_execution
from mapper.search.presets import PRESETS, map_preset
from mapper.search.space import constrained_orders
from mapper.workload.graph import Workload
from mapper.workload.same_work import same_work
from sim.models import cost_model


class LevelConfig(StrictModel):
    """A loop (``loop``, ``tile``) or a stage (``keep``, ``memory``)."""

    loop: str | None = None
    tile: int | None = None
    keep: str | None = None
    memory: str | None = None


class SpatialConfig(StrictModel):
    """``factor`` neighbours of ``dim`` at once along ``axis``."""

    dim: str
    axis: str
    factor: int


class MappingConfig(StrictModel):
    """One operator's loop nest, from the outermost level inwards."""

    nest: list[LevelConfig]
    spatial: list[SpatialConfig] = Field(default=[])
    compute: str | None = None
    intrinsic: str | None = None
    made_by: str = "file"


class UnrolledConfig(StrictModel):
    """``dim`` may be unrolled along ``axis``; just so often, if ``factor`` is given."""

    dim: str
    axis: str
    factor: int | None = None


class TileConfig(StrictModel):
    """The tile of ``dim`` while ``keep`` is in ``memory``."""

    dim: str
    keep: str
    memory: str
    tile: int


class StageConfig(StrictModel):
    """``keep`` is brought into ``memory``."""

    keep: str
    memory: str


class ConstraintConfig(StrictModel):
    """What mappings of the operators whose names match must be like.

    Nothing is unrolled but what ``spatial`` lists, if it is given; stages of ``order`` come in this
    order, from the outermost.
    """

    operators: str = "*"
    spatial: list[UnrolledConfig] | None = None
    tiles: list[TileConfig] = Field(default=[])
    order: list[StageConfig] = Field(default=[])


class MappingFile(StrictModel):
    """Mappings by operator, and constraints on those of the others."""

    mappings: dict[str, MappingConfig] = Field(default={})
    constraints: list[ConstraintConfig] = Field(default=[])


def map_as_given(
    given: str, workload: Workload, architecture: Architecture, price: PriceList, objective: str
) -> Iterator[tuple[str, SearchResult]]:
    """Each operator with the mapping of a preset or a file, and how far it is from the best."""
    file = None if given in PRESETS else _file(given, workload)
    known: dict[Hashable, SearchResult] = {}
    for operator in workload.operators:
        run = execution(workload, operator, architecture)
        goal = Goal(architecture, price, objective)
        if file is not None and operator.name in file.mappings:
            mapping = _mapping(run, file.mappings[operator.name], given)
            yield operator.name, _priced(replace(workload, operators=(operator,)), mapping, goal)
            continue
        asked = given if file is None else _constraint(run, file, given)
        key = same_work(workload, operator), asked
        if key not in known:
            known[key] = _searched(run, asked, goal)
            yield operator.name, known[key]
        else:
            mapping = replace(known[key].mapping, operator=operator.name)
            yield operator.name, replace(known[key], mapping=mapping, calls=0)


@dataclass(frozen=True, slots=True)
class Goal:
    """What mappings are for."""

    architecture: Architecture
    price: PriceList
    objective: str

    def best(self, run: Execution) -> SearchResult:
        return map_execution(run, self.architecture.leakage_w, self.price, self.objective)


def _searched(run: Execution, asked: str | Constraint, goal: Goal) -> SearchResult:
    """The best mapping of a preset or within a constraint."""
    leakage_w = goal.architecture.leakage_w
    if isinstance(asked, str):
        return map_preset(asked, run, leakage_w, goal.price, goal.objective)
    best = goal.best(run)
    orders = tuple(constrained_orders(run, asked))
    if not orders:
        message = "no order of stages is as asked for: a memory further out comes first"
        raise InputError(Problem(message, where=f"operator {run.operator.name}"))
    found = map_execution(run, leakage_w, goal.price, goal.objective, orders)
    return replace(
        found,
        calls=found.calls + best.calls,
        optimal=found.objective_value <= best.objective_value,
        lower_bound=best.objective_value,
    )


def _priced(alone: Workload, mapping: Mapping, goal: Goal) -> SearchResult:
    """A mapping of the workload's only operator, beside the best one of the mapspace, which it need
    not be in."""
    (operator,) = alone.operators
    try:
        mappings = {operator.name: mapping}
        metrics = cost_model("analytical").evaluate(alone, goal.architecture, mappings)
    except MappingError as error:
        raise InputError(Problem(str(error), where=mapping.made_by)) from error
    reached = {
        "latency": float(metrics.latency_ps),
        "energy": metrics.energy_pj,
        "edp": metrics.latency_ps * metrics.energy_pj,
    }[goal.objective]
    best = goal.best(execution(alone, operator, goal.architecture))
    return SearchResult(
        mapping=mapping,
        calls=best.calls + 1,
        optimal=abs(reached / best.objective_value - 1) <= ROUNDING,
        objective_value=reached,
        lower_bound=best.objective_value,
    )


def _file(given: str, workload: Workload) -> MappingFile:
    if Path(given).suffix not in (".yaml", ".yml"):
        raise InputError(
            Problem(f"{unknown('preset', given, list(PRESETS))}, or a .yaml file", "--mapping")
        )
    if not Path(given).is_file():
        raise InputError(Problem(f"there is no file {given}", where="--mapping"))
    file: MappingFile = validate(read(Path(given)), MappingFile)
    names = [operator.name for operator in workload.operators]
    for name in file.mappings:
        if name not in names:
            raise InputError(Problem(unknown("operator", name, names), where=given))
    for config in file.constraints:
        if not any(fnmatch(name, config.operators) for name in names):
            message = f"no operator is called {config.operators!r}; there are {', '.join(names)}"
            raise InputError(Problem(message, where=given))
    missing = [name for name in names if name not in file.mappings]
    if missing and not file.constraints:
        raise InputError(Problem(f"no mapping for {', '.join(missing)}", where=given))
    return file


def _constraint(run: Execution, file: MappingFile, given: str) -> Constraint:
    """What the file asks of an operator."""
    configs = [c for c in file.constraints if fnmatch(run.operator.name, c.operators)]
    unrolled = [s for c in configs for s in c.spatial or ()]
    where = f"{given}: {run.operator.name}"
    axes = [axis.name for axis in run.intrinsic.axes]
    for one in unrolled:
        _known("dim", one.dim, list(run.operator.extents), where)
        _known("axis", one.axis, axes, where)
    for tile in (t for c in configs for t in c.tiles):
        _known("dim", tile.dim, list(run.operator.extents), where)
    return Constraint(
        unrolled=frozenset((s.dim, s.axis) for s in unrolled)
        if any(c.spatial is not None for c in configs)
        else None,
        factors=tuple((s.dim, s.axis, s.factor) for s in unrolled if s.factor is not None),
        tiles=tuple(
            (t.dim, _stage(run, t.keep, t.memory, where), t.tile) for c in configs for t in c.tiles
        ),
        order=tuple(_stage(run, s.keep, s.memory, where) for c in configs for s in c.order),
    )


def _known(what: str, name: str, allowed: list[str], where: str) -> None:
    if name not in allowed:
        raise InputError(Problem(unknown(what, name, allowed), where=where))


def _stage(run: Execution, keep: str, memory: str, where: str) -> tuple[int, str]:
    operand = _operand(run, keep, where)
    _known("memory", memory, [m.name for m in run.paths[operand][1:]], where)
    return operand, memory


def _mapping(run: Execution, config: MappingConfig, given: str) -> Mapping:
    return Mapping(
        operator=run.operator.name,
        compute=config.compute or run.compute.name,
        intrinsic=config.intrinsic or run.intrinsic.name,
        nest=tuple(_level(run, level, given) for level in config.nest),
        spatial=tuple(Spatial(s.dim, s.axis, s.factor) for s in config.spatial),
        made_by=config.made_by,
    )


def _level(run: Execution, level: LevelConfig, given: str) -> Loop | Stage:
    operator = run.operator
    if level.loop is not None and level.tile is not None and level.keep is None:
        return Loop(level.loop, level.tile)
    if level.keep is None or level.memory is None or level.loop is not None:
        message = "a level is {loop: DIM, tile: N} or {keep: TENSOR, memory: NAME}"
        raise InputError(Problem(message, where=f"{given}: {operator.name}"))
    return Stage(_operand(run, level.keep, f"{given}: {operator.name}"), level.memory)


def _operand(run: Execution, keep: str, where: str) -> int:
    """The number of an operand, by its tensor or its role."""
    operator = run.operator
    tensors = [access.tensor for access in operator.accesses]
    roles = [operator.role(number) for number in range(len(tensors))]
    for names in (tensors, roles):
        if keep in names:
            return names.index(keep)
    raise InputError(
        Problem(unknown("tensor", keep, [*tensors, *dict.fromkeys(roles)]), where=where)
    )
