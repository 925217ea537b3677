"""TinyEngine's memory: first fit by size, depthwise layers in place, shared kernel buffers.

As its scheduler does (mit-han-lab/tinyengine): a depthwise layer writes into its own input, one
channel at a time through a buffer, so both are one rectangle of the input's size. Two more
buffers are shared by all layers, each as large as the largest need: ``im2col`` (two columns of
a convolution's window as int16, or one padded channel of a depthwise layer as int16) and
``kernel`` (the weights of convolutions larger than 1 x 1, as int16).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mapper.memory_plan.arena import extent_bytes, first_fit
from mapper.memory_plan.layers import Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.plan import Buffer, MemoryPlan, Placement, Step, live_bytes

#: Bytes of the values that kernels unpack to.
UNPACKED_BYTES = 2
#: Columns of the window matrix that a convolution prepares at a time.
COLUMNS = 2


def plan(layers: Sequence[Layer]) -> MemoryPlan:
    """The plan of layers in their order."""
    lives = lifetimes(layers)
    hosts = _hosts(layers, lives)
    buffers = _rectangles(lives, hosts)
    placements = first_fit(sorted(buffers.values(), key=lambda b: -b.size_bytes))
    starts = {p.buffer.name: p.offset_bytes for p in placements}
    return MemoryPlan(
        planner="tinyengine",
        pool_bytes=extent_bytes(placements),
        is_ring=False,
        placements=tuple(
            Placement(buffer=buffer, offset_bytes=starts[hosts[name]])
            for name, buffer in lives.items()
        ),
        steps=tuple(_step(layer, hosts) for layer in layers),
        extra_bytes={
            "im2col": max(map(im2col_bytes, layers)),
            "kernel": max(map(kernel_bytes, layers)),
        },
        lower_bound_bytes=live_bytes(list(buffers.values())),
    )


def _step(layer: Layer, hosts: Mapping[str, str]) -> Step:
    return Step(
        name=layer.name,
        layers=(layer.name,),
        layer_macs=(layer.macs,),
        in_place=hosts[layer.output.name] != layer.output.name,
    )


def _hosts(layers: Sequence[Layer], lives: Mapping[str, Buffer]) -> dict[str, str]:
    """The map whose place each map has: that of a depthwise layer's input, where nobody needs it
    afterwards; else its own."""
    found = {name: name for name in lives}
    for step, layer in enumerate(layers):
        source = layer.inputs[0]
        dies = lives[source.name].last == step and layer.may_overwrite(source)
        if layer.kind == "depthwise" and dies:
            found[layer.output.name] = found[source.name]
    return found


def _rectangles(lives: Mapping[str, Buffer], hosts: Mapping[str, str]) -> dict[str, Buffer]:
    """One buffer per place, for as long as it is somebody's."""
    found: dict[str, Buffer] = {}
    for name, buffer in lives.items():
        host = found.get(hosts[name])
        found[hosts[name]] = buffer if host is None else _joined(host, buffer)
    return found


def _joined(host: Buffer, guest: Buffer) -> Buffer:
    return Buffer(
        name=host.name,
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
