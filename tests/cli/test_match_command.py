"""Does ``dse match`` list matches for people and programs, and refuse what makes no sense?"""

from __future__ import annotations

import json

import pytest

from tests.cli.running import Dse

CONV = "conv2d:N=2,C=8,H=8,K=8,R=3"


def test_matches_of_one_operator(dse: Dse) -> None:
    outcome = dse("match", "-w", CONV, "--intrinsic", "gemm")
    assert outcome.code == 0, outcome.err
    assert "9 matches, 7 without laying data out anew" in outcome.out
    assert "im2col: P and R share an index" in outcome.out


def test_the_document_says_the_same(dse: Dse) -> None:
    outcome = dse("match", "-w", CONV, "--intrinsic", "gemm", "--fused", "--json")
    (operator,) = json.loads(outcome.out)["operators"]
    assert len(operator["matches"]) == 49
    assert operator["matches"][0]["loops"] == {"i": ["N", "P", "Q"], "j": ["K"], "k": ["C"]}
    assert operator["matches"][0]["extents"] == {"i": 2 * 8 * 8, "j": 8, "k": 8}


def test_the_array_of_an_architecture(dse: Dse) -> None:
    outcome = dse("match", "-w", CONV, "--arch", "edge_npu", "--fused")
    assert "rows as k, cols as n" in outcome.out
    assert "7 matches" in outcome.out


def test_a_network_is_an_overview(dse: Dse) -> None:
    outcome = dse("match", "-w", "gpt2:seq=16", "--intrinsic", "gemm")
    assert "add --op NAME" in outcome.out
    name = "layers.0.feed_forward.fc1"
    one = dse("match", "-w", "gpt2:seq=16", "--intrinsic", "gemm", "--op", name)
    assert "1 matches" in one.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either --intrinsic"),
        (("--intrinsic", "gemm", "--arch", "tiny"), "give either --intrinsic"),
        (("--intrinsic", "gemv2"), "did you mean 'gemv'?"),
        (("--intrinsic", "gemm", "--op", "conv2"), "did you mean 'conv2d'?"),
    ],
)
def test_what_makes_no_sense(dse: Dse, arguments: tuple[str, ...], message: str) -> None:
    outcome = dse("match", "-w", CONV, *arguments)
    assert outcome.code == 2
    assert message in outcome.err


@pytest.mark.parametrize("intrinsic", ["gemm", "gemv", "dot", "conv"])
def test_mttkrp_in_stages(dse: Dse, intrinsic: str) -> None:
    """Its two products match every intrinsic."""
    outcome = dse("match", "-w", "mttkrp:I=2,J=3,K=4,L=5", "--intrinsic", intrinsic, "--json")
    stages = json.loads(outcome.out)["operators"]
    assert len(stages) == 2
    assert all(stage["matches"] for stage in stages)
