"""What a convolution would take with each of the tiles that a library has kernels for.

Which one it takes is the library's choice and not known; the times with all of them tell the
corrections what is at stake. A kernel works on so many tiles at once; each walks the sum in steps
(all taps of a few channels), and input and result pass at a bandwidth.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from sim.gpu.chip import BYTES
from sim.gpu.convolution import CHANNEL_BYTES, output_side
from sim.gpu.demand import Array, Call, sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvTile:
    """``padded``: whether the channels of every tap are padded to the tile's depth, or all taps
    together."""

    rows: int
    columns: int
    depth: int
    at_once: int
    padded: bool
    step_us: float
    tile_us: float
    start_us: float
    bytes_per_us: float

    @classmethod
    def started(cls, tile: tuple[int, int, int], *, at_once: int, padded: bool) -> ConvTile:
        """With constants to start a fit from."""
        rows, columns, depth = tile
        return cls(
            rows=rows,
            columns=columns,
            depth=depth,
            at_once=at_once,
            padded=padded,
            step_us=3e-7 * rows * columns * depth,
            tile_us=0.5,
            start_us=2.0,
            bytes_per_us=3e6,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Of every convolution: rows, columns and channels of a group's product, with channels padded
    to what is read at once; taps; groups; and bytes of input and result."""

    pixels: Array
    width: Array
    depth: Array
    taps: Array
    groups: Array
    moved: Array


def work_of(calls: Sequence[Call]) -> Work:
    n, c, h, k, r, stride, groups = sizes(calls, "N", "C", "H", "K", "R", "stride", "groups")
    size = np.array([float(BYTES[call.dtype]) for call in calls])
    pixels = n * output_side(h, r, stride) ** 2
    used = np.where(r < stride, (r / stride) ** 2, 1.0)
    unit = CHANNEL_BYTES / size
    return Work(
        pixels=pixels,
        width=k / groups,
        depth=np.ceil(c / groups / unit) * unit,
        taps=r * r,
        groups=groups,
        moved=(n * h * h * c * used + pixels * k) * size,
    )


def tile_times(tiles: Sequence[ConvTile], work: Work) -> Array:
    """A row for each tile, a column for each convolution."""
    table = np.array(
        [
            (t.rows, t.columns, t.depth, t.at_once, t.padded, t.step_us, t.tile_us, t.start_us)
            for t in tiles
        ],
        dtype=np.float64,
    )
    rows, columns, depth, at_once, padded, step_us, tile_us, start_us = table.T[:, :, None]
    rate = np.array([t.bytes_per_us for t in tiles])[:, None]
    blocks = np.ceil(work.pixels / rows) * np.ceil(work.width / columns) * work.groups
    sums = work.taps * work.depth
    steps = np.where(padded > 0, work.taps * np.ceil(work.depth / depth), np.ceil(sums / depth))
    walked = np.ceil(blocks / at_once) * (steps * step_us + tile_us)
    return np.asarray(start_us + np.maximum(walked, work.moved / rate))


@cache
def fitted_tiles() -> dict[str, ConvTile]:
    """By engine, bits of the type, and tile: those of an H200."""
    text = (files("sim") / "gpu" / "data" / "h200_convolution_tiles.json").read_text()
    return {name: ConvTile(**found) for name, found in json.loads(text).items()}
