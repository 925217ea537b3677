"""``dse map`` where nothing fits: what is said, and when."""

from __future__ import annotations

from tests.cli.running import Dse

LAYER = ("--workload", "conv2d:C=8,H=10,K=8,R=3")


def test_the_causes_are_counted(dse: Dse) -> None:
    outcome = dse("map", "--arch", "eyeriss", *LAYER, "--set", "psum_spad.size=2 B")
    assert outcome.code == 3
    assert "mappings; of 20,000 drawn evenly" in outcome.err
    assert "capacity of psum_spad in bytes" in outcome.err
    assert "nearest needs" in outcome.err


def test_a_network_too_large_for_the_main_memory_is_not_searched_first(dse: Dse) -> None:
    for command in ("map", "simulate"):
        outcome = dse(
            command, "--arch", "ws16", "--workload", "resnet18", "--set", "dram.size=2 MiB"
        )
        assert outcome.code == 3
        assert "capacity of dram" in outcome.err
        assert "drawn evenly" not in outcome.err
