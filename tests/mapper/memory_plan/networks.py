"""Random small layers and networks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mapper.memory_plan.affine import Linear, Nest
from mapper.memory_plan.layers import FeatureMap, Layer, Window


def layer(
    name: str,
    kind: str,
    inputs: Sequence[FeatureMap],
    channels: int = 0,
    windows: tuple[Window, Window] = (Window(), Window()),
) -> Layer:
    """A layer whose output follows from its input and windows."""
    source = inputs[0]
    rows, columns = windows
    same = kind in ("depthwise", "pool", "elementwise")
    height, width = (
        (1, 1) if kind == "dense" else (_out(source.height, rows), _out(source.width, columns))
    )
    output = FeatureMap(
        name=f"{name}.out",
        height=height,
        width=width,
        channels=source.channels if same else channels,
    )
    taps = rows.size * columns.size
    macs = height * width * output.channels * taps * (1 if same else source.channels)
    return Layer(
        name=name,
        kind=kind,
        inputs=tuple(inputs),
        output=output,
        rows=rows,
        columns=columns,
        macs=macs,
        operations=macs,
        weight_bytes=taps * output.channels * (1 if same else source.channels),
    )


def _out(size: int, window: Window) -> int:
    """The number of outputs with as much padding behind as in front."""
    return (size + 2 * window.pad - window.reach) // window.stride + 1


def random_layer(rng: np.random.Generator) -> Layer:
    """One layer of any kind; windows cover their input."""
    while True:
        kind = str(rng.choice(["conv2d", "depthwise", "dense", "pool"]))
        height, width, channels, out = (int(x) for x in rng.integers(1, [6, 6, 4, 5]))
        if kind == "dense":
            source = FeatureMap(name="in", height=1, width=1, channels=channels * height)
            return layer("one", kind, (source,), out * width)
        windows = _random_window(rng), _random_window(rng)
        if all(_covers(w, s) for w, s in zip(windows, (height, width), strict=True)):
            source = FeatureMap(name="in", height=height, width=width, channels=channels)
            return layer("one", kind, (source,), out, windows)


def _covers(window: Window, size: int) -> bool:
    """Whether there is an output, and every position of the input is read."""
    count = _out(size, window)
    return count > 0 and (count - 1) * window.stride - window.pad + window.reach >= size


def _random_window(rng: np.random.Generator) -> Window:
    size = int(rng.integers(1, 4))
    return Window(
        size=size,
        stride=int(rng.integers(1, min(size, 2) + 1)),
        pad=int(rng.integers(0, size // 2 + 1)),
    )


def bottleneck(
    name: str, source: FeatureMap, channels: tuple[int, int], kernel: int, stride: int
) -> list[Layer]:
    """An inverted bottleneck: expanded and output channels; residual where shapes allow."""
    window = Window(size=kernel, stride=stride, pad=kernel // 2)
    expand = layer(f"{name}.expand", "conv2d", (source,), channels[0])
    filters = layer(f"{name}.depthwise", "depthwise", (expand.output,), windows=(window, window))
    project = layer(f"{name}.project", "conv2d", (filters.output,), channels[1])
    found = [expand, filters, project]
    if stride == 1 and channels[1] == source.channels:
        found.append(layer(f"{name}.add", "elementwise", (source, project.output)))
    return found


def tiny_network(rng: np.random.Generator) -> list[Layer]:
    """A stem, three bottlenecks, pooling and a classifier."""
    side = int(rng.integers(8, 13))
    image = FeatureMap(name="image", height=side, width=side, channels=3)
    window = Window(size=3, stride=2, pad=1)
    found = [layer("stem", "conv2d", (image,), 4, (window, window))]
    for number in range(3):
        source = found[-1].output
        out = source.channels if rng.random() < 0.6 else int(rng.integers(2, 9))
        stride = 1 if source.height < 4 or rng.random() < 0.6 else 2
        sizes = (int(rng.integers(4, 13)), out)
        found += bottleneck(f"b{number}", source, sizes, int(rng.choice([3, 5])), stride)
    last = found[-1].output
    whole = Window(size=last.height), Window(size=last.width)
    found.append(layer("mean", "pool", (last,), windows=whole))
    found.append(layer("classes", "dense", (found[-1].output,), 5))
    return found


def nest(one: Layer) -> Nest:
    """A layer's kernel as loops: output rows, columns and channels, then window and channels."""
    source, target = one.inputs[0], one.output
    mixes = one.kind in ("conv2d", "dense")
    rows, columns = (
        (Window(size=source.height), Window(size=source.width))
        if one.kind == "dense"
        else (one.rows, one.columns)
    )
    c, k, w = source.channels, target.channels, source.width
    same = 0 if mixes else 1
    down = (rows.stride, 0, 0, rows.dilation, 0, 0)
    along = (0, columns.stride, 0, 0, columns.dilation, 0)
    channel = (0, 0, same, 0, 0, 1 - same)
    weighted = zip(down, along, channel, strict=True)
    return Nest(
        loops=("p", "q", "k", "r", "s", "c"),
        extents=(target.height, target.width, k, rows.size, columns.size, c if mixes else 1),
        stored_loops=3,
        write=Linear((target.width * k, k, 1, 0, 0, 0)),
        write_bytes=1,
        output_bytes=target.size_bytes,
        read=Linear(
            tuple(w * c * d + c * a + b for d, a, b in weighted),
            -c * (w * rows.pad + columns.pad),
        ),
        read_bytes=1,
        input_bytes=source.size_bytes,
        inside=(
            (Linear(down, -rows.pad), source.height),
            (Linear(along, -columns.pad), source.width),
        ),
    )
