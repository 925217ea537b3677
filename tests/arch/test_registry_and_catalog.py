"""Registry and catalog: is every family and shipped file found, from anywhere, or refused?"""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from arch import catalog
from arch.errors import InputError, Problem, suggest
from arch.load import load_architecture
from arch.registry import family_named, family_names, register_family


def test_families_are_found_by_being_there() -> None:
    assert "spatial" in family_names()
    assert family_named("spatial") is family_named("spatial")


def test_a_second_family_of_a_name_is_fatal() -> None:
    family_names()
    with pytest.raises(RuntimeError, match="registered twice"):

        @register_family("spatial")
        class Second:
            pass


def test_an_unknown_family_is_an_input_error() -> None:
    with pytest.raises(InputError, match=r"unknown family 'spacial'.*did you mean 'spatial'\?"):
        family_named("spacial")


def test_a_name_is_found_from_any_folder(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert catalog.find("arch", "edge_npu").is_file()
    assert load_architecture("edge_npu").name == "edge_npu"


def test_a_path_is_itself(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("x: 1\n")
    assert catalog.find("arch", path) == path
    assert catalog.find("search", str(path)) == path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("edge_npuu", "did you mean 'edge_npu'?"),
        ("", "shipped: "),
        ("missing.yaml", "missing.yaml: no such file"),
        ("a/b", "a/b: no such file"),
    ],
)
def test_what_is_not_found_says_what_there_is(name: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        catalog.find("arch", name)
    assert message in str(error.value)


def test_an_unknown_kind_of_configuration_is_a_bug() -> None:
    with pytest.raises(ValueError, match="no kind of configuration 'archs'"):
        catalog.names("archs")


def test_loading_needs_no_array_library() -> None:
    code = (
        "import sys; from arch.load import load_architecture; load_architecture('edge_npu');"
        "heavy = {'numpy', 'torch', 'scipy', 'simpy', 'optuna'} & set(sys.modules);"
        "print(sorted(heavy))"
    )
    root = Path(catalog.__file__).parents[1]
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=False
    )
    assert (result.stdout, result.stderr) == ("[]\n", "")


def test_errors_read_as_one_line_per_problem_and_cross_processes() -> None:
    problems = [
        Problem("is wrong", where="a.b", file=Path("f.yaml"), line=3),
        Problem("is wrong too", where="c"),
        Problem("cannot be read", file=Path("g.yaml")),
    ]
    error = InputError(problems)
    lines = ["f.yaml:3: a.b: is wrong", "c: is wrong too", "g.yaml: cannot be read"]
    assert str(error).splitlines() == lines
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_architectures_cross_processes() -> None:
    architecture = load_architecture("tiny")
    assert pickle.loads(pickle.dumps(architecture)) == architecture


@pytest.mark.parametrize(
    ("name", "choices", "expected"),
    [
        ("gbfu", ["gbuf", "dram"], "did you mean 'gbuf'?"),
        ("GBUF", ["gbuf", "dram"], "did you mean 'gbuf'?"),
        ("xyz", ["gbuf", "dram"], ""),
        ("x", [], ""),
    ],
)
def test_suggestions(name: str, choices: list[str], expected: str) -> None:
    assert suggest(name, choices) == expected
