"""Does Optuna read the exported study as the same study?"""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
import toy_problem
from toy_problem import Toy

from arch.errors import InputError
from dse.export import export_optuna
from dse.search import SearchRun, search_with


def test_optuna_finds_the_same_trials_and_the_same_front(tmp_path: Path) -> None:
    config = toy_problem.config(trials=30)
    run = SearchRun(config=config, run_dir=tmp_path / "run")
    study = search_with(run, Toy(), {})
    url = export_optuna(study, tmp_path / "optuna.sqlite")
    loaded = optuna.load_study(storage=url, study_name="toy")
    assert [t.user_attrs["number"] for t in loaded.trials] == list(range(31))
    assert loaded.metric_names == list(study.objective_keys)
    front = {t.user_attrs["number"] for t in loaded.best_trials}
    assert front == {t.number for t in study.pareto()}
    first = study.trials[0]
    assert loaded.trials[1].params == {k: str(v) for k, v in first.overrides.items()}


def test_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    config = toy_problem.config(trials=1)
    study = search_with(SearchRun(config=config, run_dir=tmp_path / "run"), Toy(), {})
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        export_optuna(study, tmp_path / "mine")
    assert (tmp_path / "mine").read_text() == "mine"
