"""Random int8 networks as ``.tflite`` files: branches, residuals, paddings, scratch of kernels.

The same seed makes the same file. Results of a layer may be read much later, so that the arena
has holes; sizes repeat, so that ties are decided by the order of tensors.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.tflite_files import Convolution, Network, convolution, dense

CHANNELS = (4, 8, 12, 16)
SIDES = (6, 8, 9, 12)
#: Results that are still open to be read, and layers of a network.
OPEN, LAYERS = 4, (6, 18)

Layer = Callable[[Network, int, np.random.Generator], int]


def random_network(seed: int) -> bytes:
    """A file with one input and one or two results."""
    rng = np.random.default_rng(seed)
    network = Network()
    source = network.tensor((1, _one(rng, SIDES), _one(rng, SIDES), _one(rng, CHANNELS)))
    open_results = [source]
    for _ in range(int(rng.integers(*LAYERS))):
        read = open_results[int(rng.integers(len(open_results)))]
        made = _joined(network, read, open_results, rng)
        if made is None:
            made = LAYER_KINDS[int(rng.integers(len(LAYER_KINDS)))](network, read, rng)
        open_results = [*open_results, made][-OPEN:]
    last = open_results[-1]
    results = [dense(network, last, 5, rng)]
    if rng.random() < 0.3:
        results.append(softmax(network, results[0], rng))
    elif rng.random() < 0.4:
        results.append(svdf(network, results[0], rng))
    extra = [last] if rng.random() < 0.3 and last != source else []
    return network.file([source], [results[-1], *extra])


def _one(rng: np.random.Generator, values: tuple[int, ...]) -> int:
    return values[int(rng.integers(len(values)))]


def _joined(network: Network, read: int, others: list[int], rng: np.random.Generator) -> int | None:
    """An addition or a concatenation with an earlier result of fitting shape."""
    shape = network.shape(read)
    same = [o for o in others if o != read and network.shape(o) == shape]
    beside = [o for o in others if o != read and network.shape(o)[:3] == shape[:3]]
    if same and rng.random() < 0.6:
        made = network.tensor(shape)
        network.add("ADD", (read, same[0]), (made,), "AddOptions")
        return made
    if beside and rng.random() < 0.5 and shape[3] + network.shape(beside[0])[3] <= 64:
        made = network.tensor((*shape[:3], shape[3] + network.shape(beside[0])[3]))
        network.add("CONCATENATION", (read, beside[0]), (made,), "ConcatenationOptions", Axis=3)
        return made
    return None


def _pointwise(network: Network, source: int, rng: np.random.Generator) -> int:
    return convolution(
        network, source, Convolution(channels=_one(rng, CHANNELS), kernel=(1, 1)), rng
    )


def _spatial(network: Network, source: int, rng: np.random.Generator) -> int:
    step = 2 if min(network.shape(source)[1:3]) >= 6 and rng.random() < 0.3 else 1
    what = Convolution(channels=_one(rng, CHANNELS), stride=(step, step))
    return convolution(network, source, what, rng)


def _depthwise(network: Network, source: int, rng: np.random.Generator) -> int:
    return convolution(network, source, Convolution(channels=0, depthwise=True), rng)


def padded(network: Network, source: int, rng: np.random.Generator) -> int:
    """A padding of its own, then a convolution without."""
    _, height, width, channels = network.shape(source)
    amounts = network.constant(np.array([[0, 0], [1, 1], [1, 1], [0, 0]], np.int32))
    wide = network.tensor((1, height + 2, width + 2, channels))
    network.add("PAD", (source, amounts), (wide,), "PadOptions")
    return convolution(network, wide, Convolution(channels=_one(rng, CHANNELS), padding=1), rng)


def _pool(network: Network, source: int, rng: np.random.Generator) -> int:
    _, height, width, channels = network.shape(source)
    if min(height, width) < 4:
        return _depthwise(network, source, rng)
    made = network.tensor((1, height // 2, width // 2, channels))
    kind = "AVERAGE_POOL_2D" if rng.random() < 0.5 else "MAX_POOL_2D"
    sizes = {"StrideH": 2, "StrideW": 2, "FilterHeight": 2, "FilterWidth": 2}
    network.add(kind, (source,), (made,), "Pool2DOptions", Padding=1, **sizes)
    return made


def transposed(network: Network, source: int, rng: np.random.Generator) -> int:
    """Its kernel asks for 32-bit sums of the whole result."""
    _, height, width, channels = network.shape(source)
    if height * width > 100:
        return _pool(network, source, rng)
    target = _one(rng, CHANNELS)
    shape = network.constant(np.array([1, 2 * height, 2 * width, target], np.int32))
    weight = network.constant(
        rng.integers(-127, 128, (target, 3, 3, channels), dtype=np.int8),
        scale=0.01,
        channels_axis=0,
    )
    made = network.tensor((1, 2 * height, 2 * width, target))
    options = {"Padding": 0, "StrideH": 2, "StrideW": 2}
    network.add(
        "TRANSPOSE_CONV", (shape, weight, source), (made,), "TransposeConvOptions", **options
    )
    return made


def mean(network: Network, source: int, rng: np.random.Generator) -> int:
    """Its kernel asks for sums, counters and axes; the result scales the map's channels."""
    shape = network.shape(source)
    axes = network.constant(np.array([1, 2], np.int32))
    means = network.tensor((1, 1, 1, shape[3]))
    network.add("MEAN", (source, axes), (means,), "ReducerOptions", KeepDims=True)
    made = network.tensor(shape)
    network.add("MUL", (source, means), (made,), "MulOptions")
    return made


def _reshaped(network: Network, source: int, rng: np.random.Generator) -> int:
    """There and back: two copies for the runtime, nothing to compute."""
    shape = network.shape(source)
    flat = (1, shape[1] * shape[2], 1, shape[3])
    made = source
    for target in (flat, shape):
        sizes = network.constant(np.array(target, np.int32))
        result = network.tensor(target)
        network.add("RESHAPE", (made, sizes), (result,), "ReshapeOptions")
        made = result
    return made


def softmax(network: Network, source: int, rng: np.random.Generator) -> int:
    made = network.tensor(network.shape(source), scale=1 / 256, zero_point=-128)
    network.add("SOFTMAX", (source,), (made,), "SoftmaxOptions", Beta=1.0)
    return made


def svdf(network: Network, source: int, rng: np.random.Generator) -> int:
    """A layer with a state, which is no part of the arena's plan."""
    batch, length = network.shape(source)
    filters, steps, rank = 12, 5, 2
    features = network.constant(rng.integers(-9, 9, (filters, length), dtype=np.int8), scale=0.02)
    times = network.constant(rng.integers(-9, 9, (filters, steps), dtype=np.int16), scale=0.02)
    bias = network.constant(np.zeros(filters // rank, np.int32), scale=0.01)
    state = network.tensor((batch, filters * steps), "int16", variable=True)
    made = network.tensor((batch, filters // rank))
    inputs = (source, features, times, bias, state)
    network.add("SVDF", inputs, (made,), "SVDFOptions", Rank=rank)
    return made


LAYER_KINDS: tuple[Layer, ...] = (
    _pointwise,
    _pointwise,
    _spatial,
    _spatial,
    _depthwise,
    padded,
    _pool,
    transposed,
    mean,
    _reshaped,
)
