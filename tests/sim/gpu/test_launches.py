"""Does every operator become the library call that it is, and is said what is not?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mapper.workload.load import load_workload
from sim.gpu.convolution import output_side
from sim.gpu.launch import Launch
from sim.gpu.launches import EAGER, FUSED, launches, notes_of


def only(spec: str) -> Launch:
    (launch,) = launches(load_workload(spec))
    return launch


def sizes(launch: Launch) -> Any:
    return launch.call.kind, dict(launch.call.params)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("side", [7, 8, 56, 57])
@pytest.mark.parametrize("kernel", [1, 3, 7])
def test_a_square_convolution_is_the_same_call(kernel: int, side: int, stride: int) -> None:
    text = f"conv2d:N=2,C=32,H={side},K=64,R={kernel},stride={stride},pad={kernel // 2},dtype=bf16"
    launch = only(text)
    expected = {"N": 2, "C": 32, "K": 64, "R": kernel, "stride": stride, "groups": 1}
    kind, params = sizes(launch)
    found_side = params.pop("H")
    assert (kind, params, launch.note) == ("conv2d", expected, "")
    same = output_side(found_side, kernel, stride) == output_side(side, kernel, stride)
    assert same
    assert 0 <= found_side - side < stride or found_side == side


@pytest.mark.parametrize(
    "spec",
    [
        "conv2d:C=64,H=57,K=64,R=4,S=4,stride=4,pad=0,dtype=bf16",
        "conv2d:C=64,H=56,K=64,R=3,dilation=3,dtype=bf16",
        "conv2d:C=64,H=56,W=28,K=128,R=3,S=3,stride=2,dtype=bf16",
        "conv2d:C=64,H=40,W=33,K=128,R=5,S=5,dtype=bf16",
        "conv1d:C=64,L=512,K=64,R=4,groups=64,dtype=bf16",
        "conv_transpose2d:C=64,K=32,H=14,W=14,R=4,S=4,stride=2,pad=1,dtype=bf16",
    ],
)
def test_another_shape_has_as_many_pixels_and_says_so(spec: str) -> None:
    network = load_workload(spec)
    (launch,) = launches(network)
    kind, p = sizes(launch)
    assert kind == "conv2d"
    assert launch.note
    macs = (
        p["N"]
        * float(output_side(p["H"], p["R"], p["stride"])) ** 2
        * (p["K"] * p["C"] * p["R"] ** 2 / p["groups"])
    )
    assert macs == pytest.approx(network.macs, rel=0.06)
    assert launch.macs == network.macs


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("conv2d:C=8,H=16,W=16,K=4,R=1,S=7,dtype=bf16", {"M": 256, "N": 4, "K": 56}),
        ("conv3d:C=16,D=8,H=8,W=8,K=32,T=3,R=3,S=3,dtype=bf16", {"M": 512, "N": 32, "K": 432}),
        ("conv1d:C=64,L=511,K=32,R=5,dtype=bf16", {"M": 511, "N": 32, "K": 320}),
        ("conv2d:C=64,H=14,K=32,R=3,dtype=int8", {"M": 196, "N": 32, "K": 576}),
    ],
)
def test_what_no_measured_kernel_is_like_is_the_matrix_product(
    spec: str, expected: dict[str, int]
) -> None:
    launch = only(spec)
    assert sizes(launch) == ("gemm", expected)
    assert "matrix product" in launch.note


def test_groups_are_kept() -> None:
    _, depthwise = sizes(only("conv2d:C=96,H=14,K=96,R=3,groups=96,dtype=bf16"))
    _, grouped = sizes(only("conv2d:C=64,H=14,K=128,R=3,groups=4,dtype=bf16"))
    assert (depthwise["C"], depthwise["K"], depthwise["groups"]) == (96, 96, 96)
    assert (grouped["C"], grouped["K"], grouped["groups"]) == (64, 128, 4)


@pytest.mark.parametrize("epilogues", [FUSED, EAGER])
@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2", "vit-ti"])
def test_no_operation_is_lost(name: str, epilogues: str) -> None:
    network = load_workload(f"{name}:batch=2,dtype=bf16")
    found = list(launches(network, epilogues))
    assert sum(launch.macs for launch in found) == network.macs
    assert len({launch.name for launch in found}) == len(found)


def test_what_is_folded_is_in_the_epilogue_or_a_kernel_of_its_own() -> None:
    network = load_workload("resnet18:batch=2,dtype=bf16")
    convolutions = [o for o in network.operators if o.kind == "conv2d"]
    fused, eager = (list(launches(network, how)) for how in (FUSED, EAGER))
    # Residual sums are in the epilogue of a convolution, the classifier's bias in its product's.
    assert len(fused) == len(network.operators) - 8
    assert sum(launch.beside_bytes > 0 for launch in fused) == 8
    # A kernel for each of 20 normalizations and 17 clamps.
    assert len(eager) == len(network.operators) + len(convolutions) + 17


def test_pools_and_means_of_images_read_their_input_once() -> None:
    pool = only("pool2d:C=64,H=56,W=56,R=3,S=3,stride=2,pad=1,dtype=bf16")
    moved = 2 * 64 * (56 * 56 + 28 * 28)
    assert sizes(pool) == ("max_pool", {"n": 64 * 28 * 28, "moved": moved, "R": 3, "side": 28})
    network = load_workload("resnet18:batch=4,dtype=bf16")
    (mean,) = [launch for launch in launches(network) if launch.name == "avgpool"]
    expected = {"n": 4 * 512, "moved": 2 * 4 * 512 * (49 + 1), "side": 7}
    assert sizes(mean) == ("mean", expected)


def test_sums_go_along_rows() -> None:
    along = only("reduce:rows=128,columns=77,kind=max,along=columns,dtype=bf16")
    assert sizes(along) == ("row_sum", {"R": 128, "C": 77})
    other = only("reduce:rows=128,columns=77,kind=sum,along=rows,dtype=bf16")
    assert sizes(other) == ("row_sum", {"R": 77, "C": 128})
    assert notes_of([along, other]) == ("reduce: along another axis: as a sum along rows",)


def test_what_one_call_joins_is_one_kernel() -> None:
    """DenseNet concatenates 58 times; the four reductions of its size do not."""
    network = load_workload("densenet121:dtype=bf16")
    joins = [launch for launch in launches(network) if launch.call.kind == "join"]
    copies = [o for o in network.operators if o.operation == "copy"]
    assert len(joins) == len({o.output.tensor for o in copies}) == 58
    assert sum(j.call.params["n"] for j in joins) == sum(o.points for o in copies)


def test_normalizations_go_along_what_they_normalize() -> None:
    image = "N=2,C=64,H=14,W=14"
    group = only(f"group_norm:{image},groups=8,dtype=bf16")
    assert sizes(group) == ("row_layernorm", {"R": 16, "C": 8 * 14 * 14})
    assert only(f"batch_norm:{image},dtype=bf16").call.kind == "batch_norm"
    assert sizes(only("layer_norm:rows=5,columns=768,dtype=bf16"))[1] == {"R": 5, "C": 768}


SUMS = """
import torch
from torch import nn


class Up(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.t = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.u = nn.ConvTranspose2d(8, 8, 2, stride=2)

    def forward(self, x, y):
        return self.u(self.t(x)) + self.c(y)


class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.d = nn.Conv2d(8, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)

    def forward(self, x):
        y, z = self.c(x), self.d(x)
        return z + y, z


def up():
    return Up(), (torch.zeros(1, 8, 8, 8), torch.zeros(1, 8, 16, 16))


def both():
    return Both(), torch.zeros(1, 8, 8, 8)
"""


@pytest.fixture
def sums(tmp_path: Path) -> str:
    file = tmp_path / "sums.py"
    file.write_text(SUMS)
    return str(file)


def test_a_sum_after_the_phases_of_a_convolution_is_read_in_their_epilogue(sums: str) -> None:
    network = load_workload(f"{sums}:up:dtype=bf16")
    found = list(launches(network))
    (added,) = (launch for launch in found if launch.beside_bytes)
    assert added.beside_bytes == 8 * 16 * 16 * 2
    assert added.name.endswith(" + add")
    assert len(found) == 3


def test_what_is_a_result_too_is_written_before_it_is_added(sums: str) -> None:
    network = load_workload(f"{sums}:both:dtype=bf16")
    found = list(launches(network))
    assert len(found) == 3
    assert not any(launch.beside_bytes for launch in found)


@pytest.mark.parametrize("dtype", ["int8", "fp8"])
def test_batches_in_eight_bits_say_that_libraries_have_none(dtype: str) -> None:
    launch = only(f"bmm:B=8,M=512,N=512,K=512,dtype={dtype}")
    assert launch.call.dtype == "bf16"
    assert launch.note == f"batch in {dtype}: in bf16, as libraries have batches"
    assert only("bmm:B=8,M=512,N=512,K=512,dtype=fp16").note == ""
