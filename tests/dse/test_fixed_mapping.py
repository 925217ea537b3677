"""Are mappings that the user gives evaluated as the search evaluates its own?"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from arch.errors import InputError
from dse.cli.nest import nest_document
from dse.fixed_mapping import map_as_given
from mapper.hierarchy import execution
from mapper.search.exact import map_operator
from mapper.search.presets import PRESETS
from sim.prices import price
from tests.mapper import operators
from tests.mapper.hardware import architectures

WORKLOAD = operators.product(6, 4, 5)
OPERATOR = WORKLOAD.operators[0]
DEVICE = architectures()["weight_stationary"]


def written(path: Path, **changes: object) -> str:
    """The optimum as ``dse map --json`` prints it, in a file."""
    best = map_operator(WORKLOAD, OPERATOR, DEVICE, price).mapping
    document = nest_document(execution(WORKLOAD, OPERATOR, DEVICE), best) | changes
    path.write_text(yaml.safe_dump({"mappings": {OPERATOR.name: document}}))
    return str(path)


def test_the_optimum_read_back_is_the_optimum(tmp_path: Path) -> None:
    given = written(tmp_path / "best.yaml")
    ((name, result),) = map_as_given(given, WORKLOAD, DEVICE, price, "edp")
    best = map_operator(WORKLOAD, OPERATOR, DEVICE, price)
    assert name == OPERATOR.name
    assert result.optimal
    assert result.objective_value == pytest.approx(best.objective_value, rel=1e-9)


def test_a_preset_is_never_better_than_the_optimum() -> None:
    best = map_operator(WORKLOAD, OPERATOR, DEVICE, price)
    ((_, result),) = map_as_given("weight_stationary", WORKLOAD, DEVICE, price, "edp")
    assert result.lower_bound == best.objective_value
    assert result.gap >= 0
    assert result.mapping.made_by == "weight_stationary"


@pytest.mark.parametrize("preset", [p for p in PRESETS if p != "weight_stationary"])
def test_what_the_array_cannot_unroll_is_refused(preset: str) -> None:
    with pytest.raises(InputError, match=preset):
        list(map_as_given(preset, WORKLOAD, DEVICE, price, "edp"))


def test_mistakes_say_what_is_meant(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'weight_stationary'"):
        list(map_as_given("weight_stationry", WORKLOAD, DEVICE, price, "edp"))
    misspelt = written(tmp_path / "keep.yaml", nest=[{"keep": "wieght", "memory": "buffer"}])
    with pytest.raises(InputError, match="did you mean 'weight'"):
        list(map_as_given(misspelt, WORKLOAD, DEVICE, price, "edp"))
    empty = written(tmp_path / "empty.yaml", nest=[])
    with pytest.raises(InputError, match=r"elements of .* are left below the last loop"):
        list(map_as_given(empty, WORKLOAD, DEVICE, price, "edp"))
    with pytest.raises(InputError, match="there is no file"):
        list(map_as_given("nowhere.yaml", WORKLOAD, DEVICE, price, "edp"))
