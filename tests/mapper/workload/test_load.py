"""What can be named, and what it costs to look at names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from arch.errors import InputError
from mapper.workload import zoo
from mapper.workload.load import check_workload, listings, load_workload


def test_names_need_no_torch() -> None:
    """Listing, checking and single operators must be quick, so torch stays unimported."""
    code = """
import sys
from mapper.workload.load import check_workload, listings, load_workload
listings()
check_workload("resnet18:batch=4")
load_workload("conv2d:C=8,H=8,K=8,R=3")
sys.exit("torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_everything_listed_can_be_checked() -> None:
    for listing in listings():
        if listing.kind != "operator":
            check_workload(listing.name)
    assert {listing.kind for listing in listings()} == {"network", "file", "operator"}


def test_aliases_are_the_same_network() -> None:
    assert zoo.describe("mobilenetv2") is zoo.describe("mobilenet_v2")
    assert load_workload("mobilenetv2") is load_workload("mobilenet_v2")


def test_networks_are_quantized_unless_asked_otherwise() -> None:
    assert {t.dtype for t in load_workload("resnet18").tensors} == {"int8"}
    assert {t.dtype for t in load_workload("resnet18:dtype=fp16").tensors} == {"fp16"}


def test_a_file_fixes_parameters(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\ndescription: a product\nworkload: gemm:M=2,N=3,K=4\n")
    assert load_workload(str(file)).macs == 24


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a\ndescription: b\nworklod: gemm:M=2\n", "did you mean 'workload'?"),
        ("name: a\ndescription: b\nworkload: gemm:M=2,N=1,K=0\n", "K: 0 is not allowed"),
        ("name: a\ndescription: b\nworkload: gpt2_short\n", "is itself a workload file"),
    ],
)
def test_mistakes_in_a_file(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        check_workload(str(file))
    assert message in str(caught.value)


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(InputError) as caught:
        load_workload("resnet19")
    message = str(caught.value)
    assert "did you mean 'resnet18'?" in message
    assert "resnet34" in message
    assert "hf:config.json" in message


def test_an_unknown_network_of_the_zoo() -> None:
    with pytest.raises(InputError, match="unknown network 'alexnet'"):
        zoo.describe("alexnet")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("net.txt", "files ending in '.txt' are no workloads"),
        ("folder/net", "files without an ending are no workloads"),
        ("net.json", "did you mean hf:net.json?"),
        ("net.pth:make", "allowed file.py:function (a torch module), file.onnx"),
    ],
)
def test_a_file_of_another_kind_is_not_a_misspelt_name(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_workload(spec)
    assert message in str(caught.value)
