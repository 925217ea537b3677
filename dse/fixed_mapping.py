"""Mappings that the user gives: presets by name, or a YAML file with loop nests.

The file holds, for each operator by name, what ``dse map --json`` prints as its ``mapping``.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from dataclasses import replace
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
from mapper.search.exact import SearchResult, map_execution
from mapper.search.presets import PRESETS, map_preset
from mapper.workload.graph import Workload
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


class MappingFile(StrictModel):
    """Mappings by operator."""

    mappings: dict[str, MappingConfig]


def map_as_given(
    given: str, workload: Workload, architecture: Architecture, price: PriceList, objective: str
) -> Iterator[tuple[str, SearchResult]]:
    """Each operator with the mapping of a preset or a file, and how far it is from the best."""
    leakage = architecture.leakage_w
    configs = None if given in PRESETS else _configs(given, workload)
    for operator in workload.operators:
        run = execution(workload, operator, architecture)
        if configs is None:
            yield operator.name, map_preset(given, run, leakage, price, objective)
            continue
        mapping = _mapping(run, configs[operator.name], given)
        try:
            metrics = cost_model("analytical").evaluate(
                replace(workload, operators=(operator,)), architecture, {operator.name: mapping}
            )
        except MappingError as error:
            raise InputError(Problem(str(error), where=given)) from error
        reached = {
            "latency": float(metrics.latency_ps),
            "energy": metrics.energy_pj,
            "edp": metrics.latency_ps * metrics.energy_pj,
        }[objective]
        best = map_execution(run, leakage, price, objective)
        yield (
            operator.name,
            SearchResult(
                mapping=mapping,
                calls=best.calls + 1,
                optimal=reached <= best.objective_value * (1 + 1e-9),
                objective_value=reached,
                lower_bound=min(best.objective_value, reached),
            ),
        )


def _configs(given: str, workload: Workload) -> MappingABC[str, MappingConfig]:
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
    missing = [name for name in names if name not in file.mappings]
    if missing:
        raise InputError(Problem(f"no mapping for {', '.join(missing)}", where=given))
    return file.mappings


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
    tensors = [access.tensor for access in operator.accesses]
    roles = [operator.role(number) for number in range(len(tensors))]
    for names in (tensors, roles):
        if level.keep in names:
            return Stage(names.index(level.keep), level.memory)
    message = unknown("tensor", level.keep, [*tensors, *dict.fromkeys(roles)])
    raise InputError(Problem(message, where=f"{given}: {operator.name}"))
