"""Plans in which results lie over dying inputs, and files that carry them."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite", reason="reading .tflite files needs the schema's package")

import tflite

from benchmarks.tflite_files import Network
from benchmarks.tflm_arena import Interpreter
from benchmarks.tflm_networks import padded, random_network
from benchmarks.tflm_offline import random_layer, run_layer, run_networks
from mapper.memory_plan.buffers import file_task
from mapper.memory_plan.overlay import file_distances, layer_of, offline_offsets, overlay
from mapper.memory_plan.plan import Buffer
from mapper.memory_plan.planners import Request, plan
from mapper.workload.load import load_workload
from mapper.workload.tflite_import.embed import NAME, ONLINE, with_offline_plan
from mapper.workload.tflite_import.file import read_model
from mapper.workload.tflite_import.lifetimes import runtime_graph

PYTHON = os.environ.get("TFLM_PYTHON", "")
needs_interpreter = pytest.mark.skipif(
    not PYTHON, reason="TFLM_PYTHON names no Python that has tflite-micro (docs/validation.md)"
)


def _file(folder: Path, data: bytes) -> Path:
    file = folder / "network.tflite"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("seed", range(12))
def test_no_two_tensors_are_closer_than_allowed(seed: int, tmp_path: Path) -> None:
    """Conservation: together in time means apart in space, but for the stated overlaps."""
    task = file_task(runtime_graph(read_model(_file(tmp_path, random_network(seed))), {}))
    found = overlay(task)
    places = (*found.tensors, *found.online)
    for one, other in itertools.permutations(places, 2):
        if not one.buffer.meets(other.buffer) or one.offset_bytes > other.offset_bytes:
            continue
        pair = one.buffer.name, other.buffer.name
        apart = task.apart.get(pair, one.buffer.size_bytes)
        reverse = task.apart.get((pair[1], pair[0]))
        same_place = one.offset_bytes == other.offset_bytes and reverse == 0
        assert other.offset_bytes - one.offset_bytes >= apart or same_place
    assert found.head_bytes <= sum(p.buffer.size_bytes + 16 for p in places)


def test_overlaps_never_cost_memory(tmp_path: Path) -> None:
    """Monotone: with the runtime's own plan among the orders, ours is at most as large."""
    from benchmarks.tflm_arena import planned

    smaller = 0
    for seed in range(25):
        file = _file(tmp_path, random_network(seed))
        own = planned(file)[0]
        ours = overlay(file_task(runtime_graph(read_model(file), {}))).head_bytes
        assert ours <= own
        smaller += ours < own
    assert smaller > 0


def test_a_padding_is_furthest_ahead_at_the_last_value(tmp_path: Path) -> None:
    """Differential: the closed form and a walk over all values."""
    network, rng = Network(), np.random.default_rng(3)
    source = network.tensor((1, 4, 5, 3))
    result = padded(network, source, rng)
    model = read_model(_file(tmp_path, network.file([source], [result])))
    graph = runtime_graph(model, {})
    buffers = [
        Buffer(name=b.name, size_bytes=b.size_bytes, first=b.first, last=b.last)
        for b in graph.buffers
    ]
    positions = np.full((1, 6, 7, 3), -1)
    positions[0, 1:5, 1:6] = np.arange(60).reshape(4, 5, 3)
    flat = positions.ravel()
    # A value may be overwritten by the step that reads it, not by an earlier one.
    unread = [flat[i:][flat[i:] >= 0].min(initial=60) for i in range(len(flat))]
    walked = max(i - first for i, first in enumerate(unread) if first < 60)
    assert file_distances(model, buffers)["pad_0.out", "t0"] == walked


def test_results_of_the_network_are_never_overwritten(tmp_path: Path) -> None:
    """A tensor that is read by the last call and is a result itself stays whole."""
    network = Network()
    source = network.tensor((1, 4, 4, 2))
    middle = network.tensor((1, 4, 4, 2))
    last = network.tensor((1, 4, 4, 2))
    network.add("RELU", (source,), (middle,))
    network.add("RELU", (middle,), (last,))
    both = read_model(_file(tmp_path, network.file([source], [last, middle])))
    one = read_model(_file(tmp_path, network.file([source], [last])))
    sizes = [overlay(file_task(runtime_graph(model, {}))).head_bytes for model in (both, one)]
    assert sizes == [64, 32]


def test_a_planned_file_says_the_same_but_for_the_plan(tmp_path: Path) -> None:
    """The schema's own reader finds everything that was there, aligned as before, and the plan."""
    data = random_network(7)
    model = read_model(_file(tmp_path, data))
    count = len(model.graphs[0].tensors)
    changed = with_offline_plan(with_offline_plan(data, [5] * count), list(range(count)))
    planned = read_model(_file(tmp_path, changed))
    assert planned == replace(model, offline=tuple(range(count)))
    root = tflite.Model.GetRootAs(changed, 0)
    names = [root.Metadata(i).Name() for i in range(root.MetadataLength())]
    assert names == [NAME]
    buffer = root.Buffers(root.Metadata(0).Buffer())
    numbers = np.frombuffer(buffer.DataAsNumpy().tobytes(), np.int32)
    assert numbers.tolist() == [1, 0, count, *range(count)]
    for number in range(root.BuffersLength()):
        if root.Buffers(number).DataLength():
            start = root.Buffers(number)._tab.Vector(root.Buffers(number)._tab.Offset(4))
            assert start % 16 == 0


def test_offsets_are_by_tensor_number(tmp_path: Path) -> None:
    """Constants and scratch are left to the runtime."""
    model = read_model(_file(tmp_path, random_network(2)))
    found = overlay(file_task(runtime_graph(model, {})))
    offsets = offline_offsets(model, found.tensors)
    tensors = model.graphs[0].tensors
    assert len(offsets) == len(tensors)
    for tensor, offset in zip(tensors, offsets, strict=True):
        assert (offset == ONLINE) == (tensor.constant or tensor.variable)


def test_every_random_layer_may_overlap(tmp_path: Path) -> None:
    """The layers that the interpreter is asked about (slow test below) are really compared."""
    for seed in range(20):
        graph = read_model(_file(tmp_path, random_layer(seed)[1])).graphs[0]
        assert layer_of(graph, 0) is not None


@pytest.mark.slow
@needs_interpreter
def test_bit_exact_at_the_least_offset_and_corrupt_below(tmp_path: Path) -> None:
    """External, both sides of a gate: tflite-micro runs every layer with our offset, and one less.

    Below, a value may be overwritten whose change disappears in rounding.
    """
    with Interpreter(PYTHON) as interpreter:
        runs = [run_layer(seed, tmp_path, interpreter) for seed in range(60)]
    assert all(run.right == 6 for run in runs)
    assert sum(run.right_below < 6 for run in runs) >= 54


@pytest.mark.slow
@needs_interpreter
def test_planned_networks_give_the_same_results_in_the_arena_foretold(tmp_path: Path) -> None:
    """External: whole networks in tflite-micro, with its own plan and with ours."""
    files = []
    for seed in range(60):
        files.append(tmp_path / f"random_{seed}.tflite")
        files[-1].write_bytes(random_network(seed))
    with Interpreter(PYTHON) as interpreter:
        runs = list(run_networks(files, tmp_path, interpreter))
    assert len(runs) == 60
    assert all(run.right for run in runs)
    assert all(run.offline == run.foretold for run in runs)


@pytest.mark.parametrize("seed", range(4))
def test_the_runtimes_planner_follows_the_files_plan(seed: int, tmp_path: Path) -> None:
    data = random_network(seed)
    workload = load_workload(str(_file(tmp_path, data)))
    wanted = plan("tflm_offline", Request(workload=workload, cycles=lambda *_: 1.0))
    assert workload.runtime is not None
    offsets = offline_offsets(workload.runtime.source, wanted.placements)
    planned = load_workload(str(_file(tmp_path, with_offline_plan(data, offsets))))
    found = plan("tflm", Request(workload=planned, cycles=lambda *_: 1.0))
    assert found.pool_bytes == wanted.pool_bytes
    assert {p.buffer.name: p.offset_bytes for p in found.placements} == {
        p.buffer.name: p.offset_bytes for p in wanted.placements
    }
