"""A user's own file as a workload: what it returns, and how its mistakes are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from arch.errors import InputError
from mapper.workload.load import check_workload, load_workload

NET = """
import torch
from torch import nn

def make():
    return nn.Linear(8, 4), torch.zeros(3, 8)

def in_a_tuple():
    return nn.Linear(8, 4), (torch.zeros(3, 8),)

def sized(batch: int, width=8, *, bias=True):
    return nn.Linear(8, width, bias=bias), torch.zeros(batch, 8)

def with_format(dtype=3):
    return make()

def by_name():
    return nn.Linear(8, 4), {"input": torch.zeros(3, 8)}

def looks_at_values():
    widths = [int(w) for w in torch.linspace(4, 8, 2)]
    return nn.Linear(*widths), torch.zeros(3, widths[0])

def noisy():
    print("hello")
    return make()

def fails():
    return nn.Linear(8, missing)

def leaves():
    raise SystemExit(3)

def alone():
    return nn.Linear(8, 4)

def reversed_pair():
    return torch.zeros(3, 8), nn.Linear(8, 4)

class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x

def branches():
    return Branch(), torch.zeros(3)
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    file = tmp_path / "net.py"
    file.write_text(NET)
    return file


def line_of(text: str) -> int:
    return 1 + next(at for at, line in enumerate(NET.splitlines()) if text in line)


def error(spec: str) -> str:
    with pytest.raises(InputError) as caught:
        load_workload(spec)
    return str(caught.value)


def test_a_function_is_a_workload(net: Path) -> None:
    workload = load_workload(f"{net}:make")
    assert workload.name == "net.py:make"
    assert (workload.macs, workload.parameters) == (3 * 8 * 4, 8 * 4 + 4)
    assert {t.dtype for t in workload.tensors} == {"fp32"}


@pytest.mark.parametrize("function", ["in_a_tuple", "by_name"])
def test_forms_of_inputs(net: Path, function: str) -> None:
    assert load_workload(f"{net}:{function}").macs == 3 * 8 * 4


def test_the_type_can_be_replaced(net: Path) -> None:
    workload = load_workload(f"{net}:make:dtype=int8")
    assert {t.dtype for t in workload.tensors} == {"int8"}


def test_arguments_are_parameters(net: Path) -> None:
    workload = load_workload(f"{net}:sized:batch=5,width=6,dtype=int8")
    assert (workload.name, workload.macs) == ("net.py:sized:batch=5,width=6", 5 * 8 * 6)
    assert load_workload(f"{net}:sized:batch=2").macs == 2 * 8 * 8
    assert "batch: must be given (argument of sized)" in error(f"{net}:sized")
    assert "unknown parameter 'bias'" in error(f"{net}:sized:batch=1,bias=3")
    assert "must not have an argument named dtype" in error(f"{net}:with_format")


def test_code_that_looks_at_values_runs_too(net: Path) -> None:
    assert load_workload(f"{net}:looks_at_values").macs == 3 * 4 * 8


def test_prints_do_not_reach_standard_output(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    load_workload(f"{net}:noisy")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "hello" in captured.err


def test_files_beside_it_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "sibling_of_net.py").write_text("WIDTH = 8\n")
    file = tmp_path / "net.py"
    file.write_text(f"from sibling_of_net import WIDTH\n{NET.replace('8', 'WIDTH')}")
    assert load_workload(f"{file}:make").macs == 3 * 8 * 4


def test_mistakes_are_reported_at_the_users_line(net: Path) -> None:
    message = error(f"{net}:fails")
    assert message.startswith(f"{net}:{line_of('missing')}: fails() fails: NameError")
    assert error(f"{net}:leaves").startswith(f"{net}:{line_of('SystemExit')}: leaves() fails")


def test_a_branch_on_values_is_reported_at_its_line(net: Path) -> None:
    message = error(f"{net}:branches")
    assert message.startswith(f"{net}:{line_of('x.sum()')}: the module cannot be traced")


@pytest.mark.parametrize(
    ("function", "returned"),
    [("alone", "returned Linear"), ("reversed_pair", "returned tuple of Tensor, Linear")],
)
def test_other_results_are_refused(net: Path, function: str, returned: str) -> None:
    message = error(f"{net}:{function}")
    assert returned in message
    assert "expected a torch.nn.Module and its example inputs" in message


def test_a_function_must_be_named(net: Path) -> None:
    assert "it has make, in_a_tuple, sized" in error(str(net))


def test_dataclasses_can_be_defined(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    sizes = "@dataclass\nclass Sizes:\n    width: int = 8\n"
    future = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    file.write_text(f"{future}{sizes}{NET.replace('8', 'Sizes().width')}")
    assert load_workload(f"{file}:make").macs == 3 * 8 * 4


def test_the_function_must_exist(net: Path) -> None:
    assert "did you mean 'make'?" in error(f"{net}:maek")


def test_the_file_must_exist(tmp_path: Path) -> None:
    assert "cannot be read: No such file" in error(f"{tmp_path / 'none.py'}:make")


def test_the_file_must_be_python(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("def make(:\n")
    assert error(f"{file}:make").startswith(f"{file}:1: is not valid Python")


def test_a_failing_import_is_reported_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text("import nowhere_to_be_found\ndef make(): ...\n")
    assert error(f"{file}:make").startswith(f"{file}:1: cannot be imported: ModuleNotFoundError")


def test_checking_does_not_run_the_file(net: Path) -> None:
    check_workload(f"{net}:fails")
    with pytest.raises(InputError, match="unknown parameter 'dtpe'"):
        check_workload(f"{net}:make:dtpe=int8")
