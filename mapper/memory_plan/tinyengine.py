"""TinyEngine's memory: first fit by size, depthwise layers in place, shared kernel buffers.

As its scheduler does (mit-han-lab/tinyengine): a depthwise layer writes into its own input, one
channel at a time through a buffer, so both are one rectangle of the input's size. Two more
buffers are shared by all layers, each as large as the largest need: ``im2col`` (two columns of
a convolution's window as int16, or one padded channel of a depthwise layer as int16) and
``kernel`` (the weights of convolutions larger than 1 x 1, as int16).
"""

from __future__ import annotations

from collections.abc import Sequence

from mapper.memory_plan.arena import extent_bytes, first_fit
from mapper.memory_plan.layers import Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.plan import Buffer, MemoryPlan, Step, live_bytes

#: Bytes of the values that kernels unpack to.
UNPACKED_BYTES = 2
#: Columns of the window matrix that a convolution prepares at a time.
COLUMNS = 2


def plan(layers: Sequence[Layer]) -> MemoryPlan:
    """The plan of layers in their order."""
    buffers = _in_place(layers)
    placements = first_fit(sorted(buffers, key=lambda b: -b.size_bytes))
    return MemoryPlan(
        planner="tinyengine",
        pool_bytes=extent_bytes(placements),
        is_ring=False,
        placements=tuple(placements),
        steps=tuple(Step(name=x.name, layers=(x.name,), layer_macs=(x.macs,)) for x in layers),
        extra_bytes={
            "im2col": max(map(im2col_bytes, layers)),
            "kernel": max(map(kernel_bytes, layers)),
        },
        lower_bound_bytes=live_bytes(buffers),
    )


def _in_place(layers: Sequence[Layer]) -> list[Buffer]:
    """One buffer per rectangle: the output of a depthwise layer extends its input's life.

    Only where nobody else reads the input afterwards.
    """
    buffers = lifetimes(layers)
    host = {name: name for name in buffers}
    for step, layer in enumerate(layers):
        if layer.kind == "depthwise" and buffers[layer.inputs[0].name].last == step:
            host[layer.output.name] = host[layer.inputs[0].name]
    merged: dict[str, Buffer] = {}
    for name, buffer in buffers.items():
        first = merged.get(host[name])
        merged[host[name]] = buffer if first is None else _joined(first, buffer)
    return list(merged.values())


def _joined(host: Buffer, guest: Buffer) -> Buffer:
    return Buffer(
        name=f"{host.name} + {guest.name}",
        size_bytes=max(host.size_bytes, guest.size_bytes),
        first=min(host.first, guest.first),
        last=max(host.last, guest.last),
    )


def im2col_bytes(layer: Layer) -> int:
    source = layer.inputs[0]
    if layer.kind == "depthwise":
        height = source.height + 2 * layer.rows.pad
        width = source.width + 2 * layer.columns.pad
        return UNPACKED_BYTES * height * width
    if layer.kind == "conv2d":
        return UNPACKED_BYTES * COLUMNS * layer.rows.size * layer.columns.size * source.channels
    return 0


def kernel_bytes(layer: Layer) -> int:
    if layer.kind != "conv2d" or layer.is_pointwise:
        return 0
    return UNPACKED_BYTES * layer.weight_bytes
