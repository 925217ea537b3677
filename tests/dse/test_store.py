"""Does the study file keep exactly what was recorded, and refuse what does not belong to it?"""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import toy_problem

from arch.errors import InputError
from dse.config import from_plain, to_plain
from dse.store import FILE, Store, load_study, recorded_trials
from dse.trial import Trial, TrialState

WORKLOADS = {"toy": "f00d"}


def trial(number: int, state: TrialState = TrialState.COMPLETE) -> Trial:
    return Trial(
        number=number,
        overrides={"array.rows": 8, "gbuf.size": "64 KiB"},
        state=state,
        reason="",
        objectives={"latency_ps": 0.1 + 0.2, "energy_pj": 1e300, "area_mm2": 3.0},
        constraints={"area": -0.25},
        metrics={"toy": {"latency_ps": 2**60 + 1, "operators": [{"name": "a"}]}},
        fidelity="analytical",
        seed=1,
        cost_model_calls=7,
        seconds=0.5,
        config_hash="abc",
        version="source",
        sampler_state={"generation": 2},
    )


def test_trials_come_back_as_they_were_in_number_order(tmp_path: Path) -> None:
    recorded = [trial(2), trial(0), trial(1, TrialState.INFEASIBLE)]
    with Store.create(tmp_path, toy_problem.config(), WORKLOADS) as store:
        for one in recorded:
            store.record(one)
        assert store.trials() == (recorded[1], recorded[2], recorded[0])
    study = load_study(tmp_path)
    assert study.start == recorded[1]
    assert study.trials == (recorded[2], recorded[0])
    assert study.start.seconds == 0.5


def test_the_configuration_comes_back_as_it_was(tmp_path: Path) -> None:
    config = toy_problem.config("nsga2", description="with\nlines")
    with Store.create(tmp_path, config, WORKLOADS) as store:
        store.record(trial(0))
    assert load_study(tmp_path).config == config
    assert from_plain(json.loads(json.dumps(to_plain(config)))) == config


def test_a_study_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with Store.create(tmp_path, toy_problem.config(), WORKLOADS) as store:
        store.record(trial(0))
        assert load_study(tmp_path).stopped == "running"
        assert load_study(tmp_path).start == trial(0)


def test_a_finished_trial_is_never_replaced_but_a_failed_one_is(tmp_path: Path) -> None:
    with Store.create(tmp_path, toy_problem.config(), WORKLOADS) as store:
        store.record(trial(0))
        store.record(replace(trial(0), reason="again"))
        store.record(trial(1, TrialState.FAILED))
        store.record(trial(1))
        assert store.trials() == (trial(0), trial(1))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    config = toy_problem.config()
    with (
        Store.create(tmp_path, config, WORKLOADS),
        pytest.raises(InputError, match="in use by another search"),
    ):
        Store.resume(tmp_path, config, WORKLOADS)
    Store.resume(tmp_path, config, WORKLOADS).close()


def test_a_directory_with_a_study_is_not_overwritten(tmp_path: Path) -> None:
    Store.create(tmp_path, toy_problem.config(), WORKLOADS).close()
    with pytest.raises(InputError, match="holds a study already"):
        Store.create(tmp_path, toy_problem.config(), WORKLOADS)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": 2}, "seed: was 1, is 2"),
        ({"batch": 2}, "batch: was 4, is 2"),
        ({"fidelity": "event"}, "fidelity: was .analytical., is .event."),
        ({"constraints": ()}, "constraints: was"),
        ({"base": {**toy_problem.config().base, "clock": "2 GHz"}}, "base: was"),
    ],
)
def test_resuming_another_question_is_refused_and_says_what_differs(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    config = toy_problem.config()
    Store.create(tmp_path, config, WORKLOADS).close()
    with pytest.raises(InputError, match=said):
        Store.resume(tmp_path, replace(config, **changes), WORKLOADS)
    assert replace(config, **changes).hash != config.hash


def test_resuming_with_a_workload_that_has_changed_is_refused(tmp_path: Path) -> None:
    Store.create(tmp_path, toy_problem.config(), WORKLOADS).close()
    with pytest.raises(InputError, match="workload toy: the network"):
        Store.resume(tmp_path, toy_problem.config(), {"toy": "beef"})


def test_a_budget_may_be_extended(tmp_path: Path) -> None:
    config = toy_problem.config(trials=20)
    Store.create(tmp_path, config, WORKLOADS).close()
    more = replace(config, trials=40, description="more", text="# edited\n")
    assert more.hash == config.hash
    with Store.resume(tmp_path, more, WORKLOADS) as store:
        store.record(trial(0))
    assert load_study(tmp_path).config.trials == 40


def test_a_malformed_record_is_named(tmp_path: Path) -> None:
    with Store.create(tmp_path, toy_problem.config(), WORKLOADS) as store:
        store.record(trial(0))
    with sqlite3.connect(tmp_path / FILE) as connection:
        connection.execute("UPDATE trial SET record = '{}'")
    connection.close()
    with pytest.raises(InputError, match="a malformed record of trial 0: KeyError: 'state'"):
        load_study(tmp_path)


@pytest.mark.parametrize("value", ["{}", "[]", "no json"])
def test_malformed_facts_are_named(tmp_path: Path, value: str) -> None:
    with Store.create(tmp_path, toy_problem.config(), WORKLOADS) as store:
        store.record(trial(0))
        store.put(config=value)
    with pytest.raises(InputError, match="malformed facts of the run"):
        load_study(tmp_path)
    with pytest.raises(InputError, match="malformed facts of the run"):
        Store.resume(tmp_path, toy_problem.config(), WORKLOADS)


def test_what_is_not_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no study"):
        load_study(tmp_path)
    (tmp_path / FILE).write_bytes(b"not a database, and long enough to be read as a header" * 9)
    with pytest.raises(InputError, match="is not a study"):
        load_study(tmp_path)
    (tmp_path / FILE).unlink()
    sqlite3.connect(tmp_path / FILE).close()
    with pytest.raises(InputError, match="is not a study"):
        load_study(tmp_path)
    (tmp_path / FILE).unlink()
    with Store.create(tmp_path, toy_problem.config(), WORKLOADS) as store:
        with pytest.raises(InputError, match="without any trial"):
            load_study(tmp_path)
        assert recorded_trials(tmp_path) == ()
        store.put(schema="99")
    with pytest.raises(InputError, match="format 99"):
        load_study(tmp_path)
