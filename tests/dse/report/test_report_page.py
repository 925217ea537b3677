"""Is the written report complete, true to the study, self-contained and reproducible?"""

from __future__ import annotations

import csv
import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from evidence_stub import evidence
from synthetic_study import study

from arch.load import load_architecture
from dse.report import display, html
from dse.report.data import gather
from dse.report.files import FIGURES, fill, write
from dse.report.html import CONTENTS
from dse.study import Study
from dse.trial import TrialState

#: Attributes by which a page loads something.
LOADING = ("src", "href", "xlink:href", "srcset", "data", "poster", "action")


class Page(HTMLParser):
    """The parts of a page that the tests ask about."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.loads += [value for name, value in attrs if name in LOADING and value]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def report(searched: Study, directory: Path) -> Page:
    return Page(write(searched, evidence(searched), directory).read_text(encoding="utf-8"))


def text_of(searched: Study) -> str:
    """The text of the page alone, without drawing anything."""
    return "".join(Page(html.page(gather(searched, evidence(searched)), {}, "")).text)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Study:
    return study(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def directory(searched: Study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write(searched, evidence(searched), folder)
    return folder


@pytest.fixture(scope="module")
def page(directory: Path) -> Page:
    return Page((directory / "report.html").read_text(encoding="utf-8"))


def test_page_has_every_section_and_every_figure(page: Page, directory: Path) -> None:
    assert {anchor for anchor, _ in CONTENTS} <= set(page.ids)
    for name in FIGURES:
        assert f"plot-{name}" in page.ids
        assert (directory / "plots" / f"{name}.svg").read_bytes().startswith(b"<?xml")
        assert (directory / "plots" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_identifiers_are_unique(page: Page) -> None:
    repeated = {i for i in page.ids if page.ids.count(i) > 1}
    assert not repeated


def test_internal_links_lead_somewhere(page: Page, directory: Path) -> None:
    for target in page.loads:
        if target.startswith("#"):
            assert target[1:] in page.ids
        elif not target.startswith("data:image/png;base64,"):
            assert (directory / target).exists()


def test_nothing_is_loaded_from_outside(page: Page, directory: Path) -> None:
    assert not [
        target for target in page.loads if re.match(r"(\w+:)?//|data:text|javascript", target)
    ]
    assert not {"link", "iframe", "object", "embed"} & set(page.tags)
    text = (directory / "report.html").read_text(encoding="utf-8")
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_numbers_on_the_page_are_the_studys(page: Page, searched: Study) -> None:
    text = "\n".join(page.text)
    for trial in searched.pareto():
        for key in searched.objective_keys:
            assert display.value(key, trial.objectives[key]) in text
    chosen = searched.best("latency_ps")
    gain = display.change(
        "latency_ps", searched.start.objectives["latency_ps"], chosen.objectives["latency_ps"]
    )
    assert gain in text
    assert f"{len(searched.trials)} of 100 trials run" in text
    assert f"{searched.space.size:,} designs" in text


def test_text_of_the_configuration_is_escaped(directory: Path) -> None:
    text = (directory / "report.html").read_text(encoding="utf-8")
    assert "&lt;b&gt;not markup&lt;/b&gt; &amp; more" in text


def test_every_trial_is_in_the_last_table(page: Page, searched: Study) -> None:
    text = [t.strip() for t in page.text]
    assert all(text.count(f"#{t.number}") >= 1 for t in searched.trials)


def test_csv_has_the_front_in_full_precision(directory: Path, searched: Study) -> None:
    with (directory / "pareto.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(r["trial"]) for r in rows] == [t.number for t in searched.pareto()]
    for row, trial in zip(rows, searched.pareto(), strict=True):
        assert all(float(row[k]) == trial.objectives[k] for k in searched.objective_keys)
        assert {p: row[p] for p in trial.overrides} == {
            p: str(v) for p, v in trial.overrides.items()
        }


def test_designs_load_to_the_same_architecture(directory: Path, searched: Study) -> None:
    files = sorted((directory / "designs").iterdir())
    assert len(files) == len(searched.pareto())
    for trial in searched.pareto():
        name = f"edge_npu_trial{trial.number}"
        loaded = load_architecture(directory / "designs" / f"{name}.yaml")
        expected = searched.config.architecture(trial.overrides)
        assert loaded == dataclasses.replace(expected, name=name)


def test_equal_studies_give_equal_bytes(directory: Path, searched: Study, tmp_path: Path) -> None:
    write(searched, evidence(searched), tmp_path)
    first = {p.relative_to(directory): p.read_bytes() for p in directory.rglob("*") if p.is_file()}
    second = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    assert first == second


def test_files_of_an_earlier_report_are_replaced_and_others_kept(tmp_path: Path) -> None:
    folder = tmp_path / "designs"
    fill(folder, {"npu_trial1.yaml": b"one", "npu_trial2.yaml": b"two"}, ["npu_trial*.yaml"])
    (folder / "mine.yaml").write_bytes(b"mine")
    fill(folder, {"npu_trial2.yaml": b"new"}, ["npu_trial*.yaml"])
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {
        "mine.yaml": b"mine",
        "npu_trial2.yaml": b"new",
    }


def test_no_feasible_design_still_answers(tmp_path: Path) -> None:
    hopeless = study(tmp_path, 40, limit=0.2)
    assert not hopeless.feasible
    page = report(hopeless, tmp_path)
    text = "".join(page.text)
    assert "No design meets every limit: 40 designs evaluated" in text
    closest = min(
        (hopeless.start, *hopeless.trials), key=lambda t: (max(t.constraints.values()), t.number)
    )
    assert f"The closest is #{closest.number} ({display.typeset(closest.reason)})" in text
    assert list((tmp_path / "designs").iterdir()) == []


@pytest.mark.parametrize("count", [0, 1])
def test_a_search_that_hardly_began(count: int, tmp_path: Path) -> None:
    begun = study(tmp_path, count, stopped="interrupted")
    text = "".join(report(begun, tmp_path).text)
    assert "was interrupted" in text
    assert f"{count} of 100 trials run" in text


def test_one_objective_needs_no_compromise(tmp_path: Path) -> None:
    single = study(tmp_path, 40, objectives=("energy",))
    text = "".join(report(single, tmp_path).text)
    best = single.best("energy_pj")
    assert f"Build design #{best.number}" in text
    assert "compromise" not in text


def test_two_objectives_make_one_panel(tmp_path: Path) -> None:
    double = study(tmp_path, 40, objectives=("latency", "area"))
    page = report(double, tmp_path)
    assert "plot-pareto" in page.ids
    assert "Build design #" in "".join(page.text)


def test_five_objectives_are_drawn_in_pairs(tmp_path: Path) -> None:
    names = ("latency", "energy", "area", "power", "edp")
    page = report(study(tmp_path, 40, objectives=names), tmp_path)
    assert "plot-pareto" in page.ids


def test_a_start_that_fits_nothing_is_no_baseline(tmp_path: Path) -> None:
    """An unmapped start has no objectives at all, or bounds: no gain may be claimed over it."""
    original = study(tmp_path, 40)
    start = dataclasses.replace(
        original.start,
        state=TrialState.INFEASIBLE,
        reason="gbuf: needs 9, allowed 8 (bytes)",
        objectives={},
        constraints={"fits": 0.125},
        metrics=None,
    )
    text = "".join(report(dataclasses.replace(original, start=start), tmp_path).text)
    assert "itself is infeasible (gbuf: needs 9, allowed 8 (bytes))" in text
    assert "faster" not in text.split("2 The answer")[1].split("Why?")[0]


def test_infeasible_designs_have_bounds_not_results(tmp_path: Path) -> None:
    original = study(tmp_path, 40)
    unmapped = [t for t in original.trials if t.metrics is None]
    text = text_of(original)
    bound = display.value("latency_ps", unmapped[0].objectives["latency_ps"])
    assert f"≥ {bound}" in text


def test_failed_trials_do_not_stop_a_report(tmp_path: Path) -> None:
    original = study(tmp_path, 40)
    failed = dataclasses.replace(
        original.trials[-1],
        state=TrialState.FAILED,
        reason="a bug",
        objectives={},
        constraints={},
        metrics=None,
    )
    broken = dataclasses.replace(original, trials=(*original.trials[:-1], failed))
    assert "a bug" in text_of(broken)


def test_start_that_is_best_is_kept(tmp_path: Path) -> None:
    original = study(tmp_path, 1)
    only_start = dataclasses.replace(original, trials=())
    text = text_of(only_start)
    assert "Keep the starting design edge_npu" in text
