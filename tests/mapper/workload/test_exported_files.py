"""Are programs saved by torch.export imported, with their open sizes given?"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, export, save

from arch.errors import InputError
from mapper.workload.load import check_workload, load_workload
from mapper.workload.torch_import.export import lower_traced, trace


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)
        self.fc = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.conv(x))
        rows = y.flatten(2).transpose(1, 2).reshape(x.shape[0] * x.shape[2] * x.shape[3], 8)
        out: Tensor = self.fc(rows)
        return out


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("programs") / "net.pt2"
    sizes = {"x": {0: Dim("batch", min=1, max=64), 2: Dim("height"), 3: Dim("width")}}
    save(export(Net(), (torch.zeros(2, 3, 8, 8),), dynamic_shapes=sizes), path)
    return path


def test_open_sizes_give_what_tracing_with_them_gives(file: Path) -> None:
    found = load_workload(f"{file}:x.0=5,x.2=6,x.3=7")
    expected = lower_traced(trace(Net(), (torch.zeros(5, 3, 6, 7),)), name="net.pt2", dtype=None)
    assert found.operators == expected.operators
    assert found.tensors == expected.tensors


def test_the_type_can_be_replaced(file: Path) -> None:
    workload = load_workload(f"{file}:x.0=1,x.2=8,x.3=8,dtype=int8")
    assert {t.dtype for t in workload.tensors} == {"int8"}


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("", "x.0: must be given (axis 0 of input x); allowed an integer 1 to 64"),
        (":x.0=65,x.2=8,x.3=8", "x.0: 65 is not allowed"),
        (":x.0=1,x.2=8,x.3=8,x.1=3", "unknown parameter 'x.1'"),
    ],
)
def test_sizes_that_cannot_be(file: Path, parameters: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_workload(f"{file}{parameters}")
    assert message in str(caught.value)


def test_a_program_without_open_sizes_needs_none(tmp_path: Path) -> None:
    path = tmp_path / "fixed.pt2"
    save(export(nn.Linear(8, 4), (torch.zeros(3, 8),)), path)
    assert load_workload(str(path)).macs == 3 * 8 * 4


def test_files_that_are_no_programs(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    with pytest.raises(InputError, match="there is no such file"):
        check_workload(str(path))
    path.write_text("nothing")
    check_workload(str(path))  # only that it exists: reading it needs torch
    with pytest.raises(InputError, match=r"is not a program saved by torch\.export"):
        load_workload(str(path))


class Halved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        half: Tensor = self.down(image)
        return half.add_(1).softmax(1)


def test_a_size_may_be_a_formula_of_another(tmp_path: Path) -> None:
    """An even height is given as the height."""
    example, file = (torch.zeros(2, 3, 8, 8),), tmp_path / "halved.pt2"
    sizes = {"image": {0: Dim("batch", min=1, max=64), 2: 2 * Dim("half")}}
    save(export(Halved(), example, dynamic_shapes=sizes), file)
    found = load_workload(f"{file}:image.0=3,image.2=12")
    expected = trace(Halved(), (torch.zeros(3, 3, 12, 8),))
    assert found.operators == lower_traced(expected, name="halved.pt2", dtype=None).operators
    with pytest.raises(InputError, match=r"image.2 is 13; allowed: 2\*"):
        load_workload(f"{file}:image.0=3,image.2=13")


class Ellipsis(nn.Module):
    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return torch.einsum("...ij,...jk->...ik", left, right)


def test_operators_known_by_their_parts_are_written_out(tmp_path: Path) -> None:
    example, file = (torch.zeros(2, 3, 4), torch.zeros(2, 4, 5)), tmp_path / "parts.pt2"
    batch = Dim("batch", min=1, max=64)
    save(export(Ellipsis(), example, dynamic_shapes=({0: batch}, {0: batch})), file)
    assert load_workload(f"{file}:left.0=7").macs == 7 * 3 * 4 * 5
