"""Is what the importer merged counted, listed and handed to programs?"""

from __future__ import annotations

import json
from dataclasses import replace

from dse.cli.folded import folded_lines, folded_summary
from mapper.workload.load import load_workload
from tests.cli.running import Dse

NETWORK = "mobilenet_v1:image=32,width=0.25"


def test_notes_are_counted_by_their_reason() -> None:
    workload = load_workload(NETWORK)
    summary = folded_summary(workload)
    assert "27 scale and shift merged, 27 clamped" in summary
    counted = sum(int(part.split()[0]) for part in summary.split(", "))
    assert counted == len(workload.folded)


def test_lines_stand_for_all_notes() -> None:
    lines = folded_lines(load_workload(NETWORK))
    times = [int(line.rpartition(" (")[2].split()[0]) for line in lines if line.endswith("times)")]
    single = sum(not line.endswith("times)") for line in lines)
    assert sum(times) + single == len(load_workload(NETWORK).folded)


def test_commands_show_them(dse: Dse) -> None:
    shown = dse("show", NETWORK)
    assert "features.#.norm: scale and shift merged" in shown.out
    command = ("simulate", "-a", "edge_npu", "-w", NETWORK, "--fidelity", "analytical")
    assert "folded   27 scale and shift merged" in dse(*command).out
    document = json.loads(dse(*command, "--json").out)
    assert document["folded"] == list(load_workload(NETWORK).folded)


def test_names_of_operators_and_numbers_in_names_do_not_split_a_reason() -> None:
    notes = [
        note
        for layer in range(32)
        for note in (
            f"layers.{layer}.attn.slice_scatter: updates caches_{layer}_0 in place",
            f"layers.{layer}.attn.slice_scatter_2: updates caches_{layer}_1 in place",
            f"scale of the scores on the output path of layers.{layer}.attn.scores",
            f"causal mask applied by layers.{layer}.attn.softmax",
        )
    ]
    workload = replace(load_workload(NETWORK), folded=tuple(notes))
    expected = "64 updates caches in place, 32 scale of the scores, 32 causal mask"
    assert folded_summary(workload) == expected
