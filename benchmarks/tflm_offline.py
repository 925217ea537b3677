"""Our offsets in TensorFlow Lite Micro: results over their inputs, run by its own interpreter.

    python -m benchmarks.tflm_offline --python tflm/bin/python [FILE_OR_FOLDER ...]

Single random int8 layers first: the result at 0 and the input at the least offset ``d`` must give
what the layer gives with both apart; at ``d - 1`` some value is overwritten too early. Then whole
networks: random ones, and those of the files given, planned by ``tflm_offline``.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.tflite_files import Convolution, Network, convolution, dense
from benchmarks.tflm_arena import Interpreter, found, written
from mapper.memory_plan.buffers import file_task
from mapper.memory_plan.offsets import overlap
from mapper.memory_plan.overlay import layer_of, offline_offsets, overlay
from mapper.workload.tflite_import.embed import ONLINE, with_offline_plan
from mapper.workload.tflite_import.file import read_model
from mapper.workload.tflite_import.lifetimes import runtime_graph

#: Inputs that every layer and every network is run on.
SEEDS = range(6)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRun:
    """How many of the inputs gave the right result, with the offset and with one less."""

    name: str
    offset: int
    span: int
    apart: int
    right: int
    right_below: int


def random_layer(seed: int) -> tuple[str, bytes]:
    """One convolution, depthwise convolution or dense layer."""
    rng = np.random.default_rng(seed)
    network = Network()
    height, width, channels, target = (int(rng.integers(1, 13)) for _ in range(4))
    if seed % 4 == 3:
        source = network.tensor((1, height, 1, channels))
        result = dense(network, source, int(rng.integers(2, 24)), rng)
        name = f"dense {height * channels} -> {network.shape(result)[1]}"
        return name, network.file([source], [result])
    source = network.tensor((1, height, width, channels))
    kernel = int(rng.choice([1, 3, 5])), int(rng.choice([1, 3, 5]))
    padding = int(kernel[0] <= height and kernel[1] <= width and rng.random() < 0.4)
    what = Convolution(
        channels=target,
        kernel=kernel,
        stride=(int(rng.integers(1, 3)),) * 2,
        padding=padding,
        depthwise=seed % 4 == 2,
    )
    result = convolution(network, source, what, rng)
    shapes = ("x".join(map(str, network.shape(t)[1:])) for t in (source, result))
    kind = "depthwise" if what.depthwise else "conv"
    edge = "valid" if padding else "same"
    title = f"{kind} {kernel[0]}x{kernel[1]} stride {what.stride[0]} {edge} {' -> '.join(shapes)}"
    return title, network.file([source], [result])


def run_layer(seed: int, folder: Path, interpreter: Interpreter) -> LayerRun:
    """With both apart, at the least offset, and one byte below it."""
    name, data = random_layer(seed)
    file = folder / "layer.tflite"
    file.write_bytes(data)
    graph = read_model(file).graphs[0]
    layer = layer_of(graph, 0)
    assert layer is not None
    least = overlap(layer).offset
    wanted = interpreter.ask(file, SEEDS)["results"]
    right = []
    for offset in (least, least - 1):
        places = [ONLINE] * len(graph.tensors)
        places[graph.outputs[0]], places[graph.inputs[0]] = max(0, -offset), max(0, offset)
        file.write_bytes(with_offline_plan(data, places))
        made = interpreter.ask(file, SEEDS)["results"]
        right.append(sum(a == b for a, b in zip(made, wanted, strict=True)))
    sizes = layer.inputs[0].size_bytes, layer.output.size_bytes
    return LayerRun(
        name=name,
        offset=least,
        span=max(least + sizes[0], sizes[1]),
        apart=sum(sizes),
        right=right[0],
        right_below=right[1],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRun:
    """Heads as reported with the runtime's own plan and with ours, and as we foretold."""

    name: str
    online: int
    foretold: int
    offline: int
    right: bool


def run_networks(
    files: Sequence[Path], folder: Path, interpreter: Interpreter
) -> Iterator[NetworkRun]:
    for file in files:
        before = interpreter.ask(file, SEEDS)
        if "head" not in before:
            continue
        model = read_model(file)
        plan = overlay(file_task(runtime_graph(model, {})))
        changed = folder / "planned.tflite"
        changed.write_bytes(
            with_offline_plan(file.read_bytes(), offline_offsets(model, plan.tensors))
        )
        after = interpreter.ask(changed, SEEDS)
        yield NetworkRun(
            name=file.name,
            online=before["head"],
            foretold=plan.head_bytes,
            offline=after.get("head", 0),
            right=after.get("results") == before["results"],
        )


def _layers_table(rows: list[LayerRun]) -> Table:
    table = Table("layer", "offset d", "bytes", "apart", "right at d", "right at d - 1")
    for row in rows:
        runs = f"{row.right}/{len(SEEDS)}", f"{row.right_below}/{len(SEEDS)}"
        table.add_row(row.name, str(row.offset), f"{row.span:,}", f"{row.apart:,}", *runs)
    right = sum(row.right == len(SEEDS) for row in rows)
    broken = sum(row.right_below < len(SEEDS) for row in rows)
    table.caption = (
        f"bit-exact at d: {right} of {len(rows)}; corrupt at d - 1: {broken} of {len(rows)} "
        "(elsewhere the overwritten value does not show after rounding)"
    )
    return table


def _networks_table(rows: list[NetworkRun]) -> Table:
    table = Table("file", "arena B", "with our offsets B", "change", "foretold B", "results")
    for row in rows:
        change = f"{row.offline / row.online - 1:+.1%}"
        numbers = f"{row.online:,}", f"{row.offline:,}", change, f"{row.foretold:,}"
        table.add_row(row.name, *numbers, "equal" if row.right else "DIFFERENT")
    equal = sum(row.right for row in rows)
    exact = sum(row.foretold == row.offline for row in rows)
    table.caption = (
        f"results equal: {equal} of {len(rows)}; head as foretold: {exact} of {len(rows)}"
    )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--python", required=True, help="Python that has tflite-micro")
    parser.add_argument("--layers", type=int, default=60)
    parser.add_argument("--networks", type=int, default=20)
    given = parser.parse_args()
    console = Console(width=150)
    with tempfile.TemporaryDirectory() as name, Interpreter(given.python) as interpreter:
        folder = Path(name)
        layers = [run_layer(seed, folder, interpreter) for seed in range(given.layers)]
        console.print(_layers_table(layers))
        files = found(given.files) or written(folder, given.networks)
        console.print(_networks_table(list(run_networks(files, folder, interpreter))))


if __name__ == "__main__":
    main()
