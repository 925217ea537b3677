"""Does ``dse overlap`` say the least offset for people and programs, and refuse nonsense?"""

from __future__ import annotations

import json

import pytest

from tests.cli.running import Dse

GEMM = "gemm:M=2,N=2,K=3"


def test_the_example_of_vmcu_needs_seven_bytes(dse: Dse) -> None:
    outcome = dse("overlap", "-w", GEMM)
    assert outcome.code == 0
    assert "M=2 N=2 K=3" in outcome.out
    assert "7 B" in outcome.out


def test_json_has_the_offset_of_other_orders(dse: Dse) -> None:
    outcome = dse("overlap", "-w", GEMM, "--order", "N,M,K", "--json")
    (row,) = json.loads(outcome.out)["overlaps"]
    assert list(row["loops"]) == ["N", "M", "K"]
    assert row["offset_bytes"] > 1
    assert row["ring_bytes"] <= row["apart_bytes"] == 10


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--order", "M,N"), "operator gemm has M, N, K"),
        (("--op", "relu"), "unknown operator 'relu'; allowed gemm"),
    ],
)
def test_what_makes_no_sense(dse: Dse, options: tuple[str, ...], message: str) -> None:
    outcome = dse("overlap", "-w", GEMM, *options)
    assert outcome.code == 2
    assert message in outcome.err
