"""The form of a search configuration file (what depends on the architecture: load_config)."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from arch.schema import StrictModel
from dse.quantities import QUANTITIES
from mapper.search.method import BUDGET, METHODS

MappingMethod = Literal[
    "exact", "heuristic", "annealing", "climbing", "genetic", "q_learning", "random"
]
assert set(METHODS) == set(MappingMethod.__args__)  # type: ignore[attr-defined]
Objective = Literal["latency", "energy", "area", "ram", "size", "power", "edp"]
assert set(QUANTITIES) == set(Objective.__args__)  # type: ignore[attr-defined]


def _distinct(values: list[Any]) -> list[Any]:
    repeated = [v for i, v in enumerate(values) if v in values[:i]]
    if repeated:
        raise ValueError(f"lists {repeated[0]!r} more than once")
    return values


def _named_once(workloads: list[WorkloadModel]) -> list[WorkloadModel]:
    """Twice the same would be one network, simulated once; a weight says that it counts more."""
    try:
        _distinct([workload.workload for workload in workloads])
    except ValueError as error:
        raise ValueError(f"{error}; give it a weight instead") from None
    return workloads


def _spelled_out(workload: object) -> object:
    """A plain specification stands for itself with weight 1."""
    return {"workload": workload} if isinstance(workload, str) else workload


class WorkloadModel(StrictModel):
    """One of several workloads, and how much it counts."""

    workload: str
    weight: Annotated[float, Field(gt=0, le=1e9)] = 1.0


PlainOrWeighted = Annotated[
    WorkloadModel, BeforeValidator(_spelled_out, json_schema_input_type=str | WorkloadModel)
]


class MappingModel(StrictModel):
    """How each design's mapping is found: the best one for ``objective``.

    ``budget`` is calls of the cost function per operator, for all methods but ``exact``; their
    random numbers follow the search's ``seed``.
    """

    objective: Literal["edp", "latency", "energy"] = "edp"
    method: MappingMethod = "exact"
    budget: Annotated[int, Field(ge=1, le=10_000_000)] = BUDGET
    fusion: bool = False
    """Search the whole schedule: operators fused over tiles, tensors kept on the chip."""

    @model_validator(mode="after")
    def _one_search(self) -> Self:
        if self.fusion and self.method != "exact":
            raise ValueError(f"with fusion mappings are exact; leave out '{self.method}'")
        return self


class SearchModel(StrictModel):
    """A search configuration, before the architecture is known."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=100)]
    description: str = ""
    workloads: Annotated[list[PlainOrWeighted], Field(min_length=1), AfterValidator(_named_once)]
    arch: str
    parameters: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    mapping: MappingModel = MappingModel()
    objectives: Annotated[list[Objective], Field(min_length=1), AfterValidator(_distinct)]
    constraints: dict[Objective, str] = Field(default={})
    fidelity: Literal["roofline", "analytical", "event"] = "analytical"
    sampler: str | dict[str, Any] = "bayes"
    trials: Annotated[int, Field(ge=1, le=1_000_000)]
    batch: Annotated[int, Field(ge=1, le=1000)] = 4
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1


#: Keys of a parameter: exactly one of the first four, ``step`` with ``range``.
FORMS = ("choices", "pow2", "range", "tie")
