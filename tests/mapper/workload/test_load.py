"""What can be named, and what it costs to look at names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from arch.errors import InputError
from mapper.workload import zoo
from mapper.workload.load import (
    FILES,
    OPERATORS,
    check_workload,
    listings,
    load_workload,
    public_name,
)
from mapper.workload.names import ALIASES, by_spelling, spelling


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
        if listing.group != OPERATORS:
            check_workload(listing.name)
    assert {listing.group for listing in listings()} > {FILES, OPERATORS, "language models"}


NAMES = [listing.name for listing in listings()]


@pytest.mark.parametrize(
    ("other", "name"),
    [
        ("mobilenetv2", "mobilenet_v2"),
        ("ViT_B", "vit-b"),
        ("vit_s", "vit-s"),
        ("vit_b_16", "vit-b"),
        ("llama3-8b", "llama3.1-8b"),
        ("efficientnet-b0", "efficientnet_b0"),
        ("GEMM:M=2,N=2,K=2", "gemm:M=2,N=2,K=2"),
    ],
)
def test_other_names_are_the_same_network(other: str, name: str) -> None:
    assert load_workload(other) is load_workload(name)


def test_no_name_stands_for_two_networks() -> None:
    """Other names and spellings of all networks and operators, whoever defines them."""
    assert len({spelling(name) for name in NAMES}) == len(NAMES)
    for alias, name in ALIASES.items():
        assert name in NAMES
        assert spelling(alias) not in map(spelling, NAMES)
        assert public_name(alias) == name
    with pytest.raises(ValueError, match="two networks are named vit_b"):
        by_spelling([*NAMES, "vit_b"])
    with pytest.raises(ValueError, match="two networks are named gpt3"):
        by_spelling([*NAMES, "gpt3"])
    with pytest.raises(ValueError, match="which there is none of"):
        by_spelling(["resnet18"])


@pytest.mark.slow
def test_no_network_is_listed_twice() -> None:
    """Equal counts of parameters and products are equal names."""
    found: dict[tuple[int, int], str] = {}
    for listing in listings():
        if listing.group not in (FILES, OPERATORS, "recommendation"):
            workload = load_workload(listing.name)
            counts = (workload.parameters, workload.macs)
            assert found.setdefault(counts, listing.name) == listing.name


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
