"""Import of ``.tflite`` files: what is computed, what is reported, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tflite", reason="reading .tflite files needs the schema's package")

from arch.errors import InputError
from benchmarks.tflite_files import Convolution, Network, convolution, dense
from benchmarks.tflm_networks import mean, padded, random_network, svdf, transposed
from mapper.memory_plan.layers import layers_of
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def _imported(network: Network, ends: tuple[int, int], folder: Path) -> Workload:
    file = folder / "network.tflite"
    file.write_bytes(network.file([ends[0]], [ends[1]]))
    return load_workload(str(file))


def _keyword_spotting(network: Network) -> tuple[int, int]:
    """The network of MLPerf Tiny's keyword spotting, as its reference file has it."""
    rng = _rng()
    source = network.tensor((1, 49, 10, 1))
    first = Convolution(channels=64, kernel=(10, 4), stride=(2, 2))
    made = convolution(network, source, first, rng)
    for _ in range(4):
        made = convolution(network, made, Convolution(channels=0, depthwise=True), rng)
        made = convolution(network, made, Convolution(channels=64, kernel=(1, 1)), rng)
    pooled = network.tensor((1, 1, 1, 64))
    sizes = {"FilterHeight": 25, "FilterWidth": 5, "StrideH": 25, "StrideW": 5}
    network.add("AVERAGE_POOL_2D", (made,), (pooled,), "Pool2DOptions", Padding=1, **sizes)
    shape = network.constant(np.array([1, 64], np.int32))
    flat = network.tensor((1, 64))
    network.add("RESHAPE", (pooled, shape), (flat,), "ReshapeOptions")
    return source, dense(network, flat, 12, rng)


def test_the_same_network_from_a_file_and_from_torch(tmp_path: Path) -> None:
    """Differential: the zoo's network and a file of it are the same layers on the board."""
    network = Network()
    mine = layers_of(_imported(network, _keyword_spotting(network), tmp_path))
    other = layers_of(load_workload("mlperf_kws"))
    assert sum(layer.macs for layer in mine) == 2_656_768  # MLPerf Tiny's reference file
    wanted = [(x.kind, x.macs, x.weight_bytes, x.output.size_bytes) for x in other if x.macs]
    assert [(x.kind, x.macs, x.weight_bytes, x.output.size_bytes) for x in mine if x.macs] == wanted


def test_a_padding_of_its_own_is_read_beyond_the_edge(tmp_path: Path) -> None:
    """Closed form: 8 x 8 with one zero around and a 3 x 3 window is 8 x 8 again."""
    network = Network()
    source = network.tensor((1, 8, 8, 4))
    workload = _imported(network, (source, padded(network, source, _rng())), tmp_path)
    (layer,) = layers_of(workload)
    assert (layer.output.height, layer.output.width, layer.rows.pad) == (8, 8, 1)
    assert layer.inputs[0].size_bytes == 8 * 8 * 4
    assert any("zeros read beyond the edge" in note for note in workload.folded)
    assert workload.runtime is not None
    assert [call.name for call in workload.runtime.calls] == ["inputs", "pad_0", "conv_2d_1"]
    assert workload.runtime.calls[1].operators == ()


def test_padding_to_keep_the_size_puts_the_odd_zero_at_the_end(tmp_path: Path) -> None:
    """Closed form: stride 2 over 8 with 3 taps needs one zero, which comes last."""
    network = Network()
    source = network.tensor((1, 8, 9, 2))
    what = Convolution(channels=4, stride=(2, 2))
    workload = _imported(network, (source, convolution(network, source, what, _rng())), tmp_path)
    (layer,) = layers_of(workload)
    assert (layer.rows.pad, layer.columns.pad) == (0, 1)
    assert (layer.output.height, layer.output.width) == (4, 5)


def test_a_dense_layer_reads_a_map_in_place(tmp_path: Path) -> None:
    """The map keeps its rows and columns; only the runtime copies it for its reshape."""
    network, rng = Network(), _rng()
    source = network.tensor((1, 6, 6, 3))
    made = convolution(network, source, Convolution(channels=5), rng)
    shape = network.constant(np.array([1, 180], np.int32))
    flat = network.tensor((1, 180))
    network.add("RESHAPE", (made, shape), (flat,), "ReshapeOptions")
    workload = _imported(network, (source, dense(network, flat, 7, rng)), tmp_path)
    first, second = layers_of(workload)
    assert (first.kind, second.kind) == ("conv2d", "dense")
    assert (second.inputs[0].height, second.inputs[0].width, second.macs) == (6, 6, 180 * 7)
    assert workload.runtime is not None
    assert len(workload.runtime.calls) == 4


@pytest.mark.parametrize(
    ("build", "macs"),
    [
        # Every input position meets every kernel element of every output channel once, but for
        # what falls over the edge: phases of 2 x 2, 2 x 1, 1 x 2 and 1 x 1 taps.
        (transposed, 6 * 6 * 4 * 9),
        (mean, 0),
        (svdf, 12 * 8 + 12 * 5),
    ],
)
def test_operators_with_scratch(build, macs: int, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    """Closed form of the work; scratch buffers live for the length of their call."""
    network = Network()
    source = network.tensor((1, 8) if build is svdf else (1, 6, 6, 4))
    result = build(network, source, _rng())
    workload = _imported(network, (source, result), tmp_path)
    channels = network.shape(result)[-1]
    assert workload.macs == (macs * channels if build is transposed else macs)
    assert workload.runtime is not None
    scratch = [b for b in workload.runtime.buffers if "scratch" in b.name]
    assert scratch
    assert all(b.first == b.last for b in scratch)
    assert workload.runtime.persistent_bytes == (2 * 12 * 5 if build is svdf else 0)


def test_unknown_operators_are_named_with_what_to_do(tmp_path: Path) -> None:
    network = Network()
    source = network.tensor((1, 4))
    made = network.tensor((1, 4))
    network.add("CUMSUM", (source,), (made,))
    with pytest.raises(InputError, match=r"CUMSUM cannot be imported; add .*@imports"):
        _imported(network, (source, made), tmp_path)


def test_files_that_are_none(tmp_path: Path) -> None:
    """Every damage is one clear message that names the file."""
    file = tmp_path / "x.tflite"
    for data, message in ((b"", "is empty"), (b"PK\x03\x04 something", "not a TensorFlow Lite")):
        file.write_bytes(data)
        with pytest.raises(InputError, match=message):
            load_workload(str(file))
    with pytest.raises(InputError, match="cannot be read"):
        load_workload(str(tmp_path / "missing.tflite"))
    file.write_bytes(random_network(1))
    with pytest.raises(InputError, match="takes no parameters"):
        load_workload(f"{file}:batch=2")


def test_damaged_files_are_refused_or_read_but_never_crash(tmp_path: Path) -> None:
    """Cut off anywhere, or with any byte changed: an ``InputError``, or a workload."""
    whole, rng = random_network(3), _rng()
    file = tmp_path / "x.tflite"
    refused = []
    for number in range(150):
        data = bytearray(whole)
        if number % 3 == 0:
            del data[int(rng.integers(8, len(data))) :]
        else:
            # Tables and offsets are at the front or the end, weights between.
            place = int(rng.integers(8, 2000)) if number % 3 == 1 else -int(rng.integers(1, 2000))
            data[place] = int(rng.integers(256))
        file.write_bytes(data)
        try:
            load_workload(str(file))
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert all("x.tflite" in message for message in refused)


def test_what_depends_on_values_is_refused_as_such(tmp_path: Path) -> None:
    """The handler's own message, not that something does not fit."""
    network = Network()
    source = network.tensor((1, 4))
    made = network.tensor((1, 4))
    network.add("WHILE", (source,), (made,))
    with pytest.raises(InputError, match="what it runs depends on values"):
        _imported(network, (source, made), tmp_path)
