"""Differential: the arena that tflite-micro itself reports, on files that are written here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("tflite", reason="reading .tflite files needs the schema's package")

from benchmarks.tflm_arena import planned
from benchmarks.tflm_networks import random_network
from mapper.memory_plan.planners import Request, plan
from mapper.workload.load import load_workload

GOLDEN = json.loads(
    (Path(__file__).parents[2] / "golden" / "tflm_heads.json").read_text(encoding="utf-8")
)
HEADS: dict[str, int] = GOLDEN["heads"]


def _written(folder: Path, name: str) -> Path:
    file = folder / name
    file.write_bytes(random_network(int(name.removesuffix(".tflite").rpartition("_")[2])))
    return file


def test_head_equals_the_interpreters_on_every_random_network(tmp_path: Path) -> None:
    """External: ``made by`` in the golden file says which command asked the interpreter."""
    ours = {name: planned(_written(tmp_path, name))[0] for name in HEADS}
    assert ours == HEADS


def test_ties_matter(tmp_path: Path) -> None:
    """Both sides: with the other order of equal sizes some of the networks would differ."""
    from mapper.memory_plan.arena import TFLM_ALIGNMENT, aligned, extent_bytes, first_fit
    from mapper.memory_plan.buffers import tflm_buffers
    from mapper.memory_plan.layers import layers_of

    differing = 0
    for name in list(HEADS)[:60]:
        workload = load_workload(str(_written(tmp_path, name)))
        buffers = tflm_buffers(workload, layers_of(workload))
        naive = sorted(buffers, key=lambda b: -aligned(b.size_bytes, TFLM_ALIGNMENT))
        placed = first_fit(naive, alignment=TFLM_ALIGNMENT)
        differing += extent_bytes(placed, TFLM_ALIGNMENT) != HEADS[name]
    assert differing > 0


@pytest.mark.parametrize("seed", range(0, 40, 8))
def test_the_planner_gives_the_same_from_an_imported_workload(seed: int, tmp_path: Path) -> None:
    name = f"random_{seed}.tflite"
    workload = load_workload(str(_written(tmp_path, name)))
    found = plan("tflm", Request(workload=workload, cycles=lambda *_: 1.0))
    assert found.pool_bytes == HEADS[name]
    assert found.lower_bound_bytes <= found.pool_bytes
    done = [layer for step in found.steps for layer in step.layers]
    assert sorted(done) == sorted(o.name for o in workload.operators)
