"""Are mappings that the user gives evaluated as the search evaluates its own?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from arch.errors import InputError
from arch.load import load_architecture
from dse.cli.nest import nest_document
from dse.fixed_mapping import Goal, map_as_given
from mapper.hierarchy import execution
from mapper.legality import staged_tiles
from mapper.mapping import Stage
from mapper.search.exact import map_operator
from mapper.search.method import PRESET_NAMES
from mapper.search.presets import PRESETS
from mapper.workload.load import load_workload
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


def test_a_mapping_better_than_the_searched_ones_is_outside_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound stays what the search proved; the gap is negative and nothing is called optimal."""
    best = map_operator(WORKLOAD, OPERATOR, DEVICE, price)
    worse = replace(best, objective_value=2 * best.objective_value)
    monkeypatch.setattr(Goal, "best", lambda goal, run: worse)
    given = written(tmp_path / "best.yaml")
    ((_, result),) = map_as_given(given, WORKLOAD, DEVICE, price, "edp")
    assert result.outside
    assert not result.optimal
    assert result.lower_bound == worse.objective_value
    assert result.gap == pytest.approx(-0.5)
    assert not best.outside


def constrained(path: Path, **constraint: object) -> str:
    path.write_text(yaml.safe_dump({"constraints": [constraint]}))
    return str(path)


def test_the_optimum_asked_for_in_part_is_the_optimum(tmp_path: Path) -> None:
    """Its unrolling, one of its tiles and its stages, as constraints: the search fills in."""
    run = execution(WORKLOAD, OPERATOR, DEVICE)
    best = map_operator(WORKLOAD, OPERATOR, DEVICE, price)
    stages = [level for level in best.mapping.nest if isinstance(level, Stage)]
    first = staged_tiles(run, best.mapping)[0]
    tensors = [access.tensor for access in OPERATOR.accesses]
    file = constrained(
        tmp_path / "some.yaml",
        spatial=[{"dim": s.dim, "axis": s.axis, "factor": s.factor} for s in best.mapping.spatial],
        tiles=[
            {"dim": d, "keep": tensors[first.operand], "memory": first.memory.name, "tile": size}
            for d, size in first.tiles.items()
        ],
        order=[{"keep": tensors[s.operand], "memory": s.memory} for s in stages],
    )
    ((_, result),) = map_as_given(file, WORKLOAD, DEVICE, price, "edp")
    assert result.optimal
    assert result.objective_value == best.objective_value


def test_what_is_asked_for_is_what_is_found(tmp_path: Path) -> None:
    file = constrained(
        tmp_path / "fixed.yaml",
        operators=f"{OPERATOR.name[0]}*",
        spatial=[{"dim": "K", "axis": "rows", "factor": 1}, {"dim": "N", "axis": "cols"}],
        tiles=[{"dim": "M", "keep": "weight", "memory": "buffer", "tile": 2}],
        order=[{"keep": "input", "memory": "buffer"}, {"keep": "weight", "memory": "buffer"}],
    )
    ((_, result),) = map_as_given(file, WORKLOAD, DEVICE, price, "edp")
    staged = staged_tiles(execution(WORKLOAD, OPERATOR, DEVICE), result.mapping)
    in_buffer = [tile for tile in staged if tile.memory.name == "buffer"]
    assert all(s.dim == "N" for s in result.mapping.spatial)
    assert next(t for t in in_buffer if t.operand == 1).tiles["M"] == 2
    assert [t.operand for t in in_buffer if t.operand < 2] == [0, 1]
    assert result.gap >= 0


@pytest.mark.parametrize(
    ("constraint", "complaint"),
    [
        ({"spatial": [{"dim": "K", "axis": "rows", "factor": 77}]}, "K over rows cannot be 77"),
        ({"spatial": [{"dim": "Z", "axis": "rows"}]}, "unknown dim 'Z'"),
        ({"spatial": [{"dim": "K", "axis": "row"}]}, "did you mean 'rows'"),
        (
            {"tiles": [{"dim": "M", "keep": "weight", "memory": "buffr", "tile": 2}]},
            "did you mean 'buffer'",
        ),
        ({"operators": "conv*"}, "no operator is called"),
    ],
)
def test_constraints_that_cannot_be_are_refused(
    tmp_path: Path, constraint: dict[str, object], complaint: str
) -> None:
    with pytest.raises(InputError, match=complaint):
        list(
            map_as_given(
                constrained(tmp_path / "bad.yaml", **constraint), WORKLOAD, DEVICE, price, "edp"
            )
        )


def test_row_stationary_repeats_filter_rows_over_the_array() -> None:
    """Eyeriss' 12 rows hold a 3-row filter four times."""
    workload = load_workload("conv2d:C=64,H=28,K=64,R=3")
    eyeriss = load_architecture("eyeriss")
    ((_, result),) = map_as_given("row_stationary", workload, eyeriss, price, "edp")
    on_rows = {s.dim: s.factor for s in result.mapping.spatial if s.axis == "rows"}
    assert on_rows["R"] == 3
    assert on_rows.get("C", 1) * on_rows.get("K", 1) == 4
    assert {s.dim for s in result.mapping.spatial} <= {"R", "P", "C", "K"}


def test_presets_leave_operators_that_are_no_products_alone() -> None:
    workload = load_workload("resnet18:image=32")
    found = dict(
        map_as_given("weight_stationary", workload, load_architecture("ws16"), price, "edp")
    )
    assert list(found) == [operator.name for operator in workload.operators]
    made_by = {found[o.name].mapping.made_by for o in workload.operators if o.operation != "mac"}
    assert made_by == {"exact"}
    assert tuple(PRESETS) == PRESET_NAMES
