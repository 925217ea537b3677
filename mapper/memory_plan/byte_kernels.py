"""Kernels that read and write a pool of bytes one at a time, compiled.

A map is nine numbers: the address of its region, the row and column at which the region begins, the
rows and columns that it has (what lies beyond wraps around inside), the map's own height, width and
channels, and the number of its first value. A byte of the pool has a value and, in ``holds``, the
number of the value that was written there; a kernel that finds another number than that of the
value that it wants returns the position of that input, else -1.

A kernel makes a segment of channels of one output pixel in registers, from what it reads at that
moment, and then stores it; segment by segment, pixel by pixel.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mapper.compiled import compiled

Ints = NDArray[np.int64]
Int8 = NDArray[np.int8]

MIX, FILTER, MEAN, SUM = range(4)
ADDRESS, TOP, LEFT, ROWS, COLUMNS, HEIGHT, WIDTH, CHANNELS, FIRST = range(9)
SIZE, STRIDE, DILATION, PAD = range(4)
#: Sums are scaled down by this many bits before they are saturated to int8.
SHIFT = 7


@compiled
def address_of(of: Ints, pool_bytes: int, pixel: int) -> int:
    """Where a pixel's first channel lies."""
    row = (pixel // of[WIDTH] - of[TOP]) % of[ROWS]
    column = (pixel % of[WIDTH] - of[LEFT]) % of[COLUMNS]
    return int((of[ADDRESS] + (row * of[COLUMNS] + column) * of[CHANNELS]) % pool_bytes)


@compiled
def store(pool: Int8, holds: Ints, of: Ints, pixel: int, first: int, values: Ints) -> None:
    """Channels from ``first`` on."""
    at = address_of(of, len(pool), pixel) + first
    number = of[FIRST] + pixel * of[CHANNELS] + first
    for i in range(len(values)):
        pool[(at + i) % len(pool)] = values[i]
        holds[(at + i) % len(pool)] = number + i


@compiled
def load(pool: Int8, holds: Ints, of: Ints, pixel: int, first: int, into: Ints) -> bool:
    """As many channels from ``first`` on as there is room for; whether all are still there."""
    at = address_of(of, len(pool), pixel) + first
    number = of[FIRST] + pixel * of[CHANNELS] + first
    for i in range(len(into)):
        address = (at + i) % len(pool)
        if holds[address] != number + i:
            return False
        into[i] = pool[address]
    return True


@compiled
def window_of(kind: int, windows: Ints, source: Ints, at: tuple[int, int], into: Ints) -> int:
    """Weight number and pixel of everything that output pixel ``at`` reads; how much that is."""
    if kind == MIX and windows[0, SIZE] == 0:
        for pixel in range(source[HEIGHT] * source[WIDTH]):
            into[pixel, 0] = into[pixel, 1] = pixel
        return int(source[HEIGHT] * source[WIDTH])
    count = 0
    for r in range(windows[0, SIZE]):
        row = at[0] * windows[0, STRIDE] - windows[0, PAD] + r * windows[0, DILATION]
        for s in range(windows[1, SIZE]):
            column = at[1] * windows[1, STRIDE] - windows[1, PAD] + s * windows[1, DILATION]
            if 0 <= row < source[HEIGHT] and 0 <= column < source[WIDTH]:
                into[count, 0] = r * windows[1, SIZE] + s
                into[count, 1] = row * source[WIDTH] + column
                count += 1
    return count


@compiled
def mixed(weights: Int8, values: Ints, taps: Ints, channels: int) -> int:
    """A sum over the window and all channels."""
    total = 0
    for tap in range(len(taps)):
        for channel in range(channels):
            total += weights[taps[tap, 0], channel] * values[tap * channels + channel]
    return total >> SHIFT


@compiled
def filtered(kind: int, weights: Int8, values: Ints, taps: Ints, made: tuple[int, int]) -> int:
    """A sum over the window of the channel that is ``made`` (of how many)."""
    total = 0
    for tap in range(len(taps)):
        value = values[tap * made[1] + made[0]]
        total += weights[taps[tap, 0], 0] * value if kind == FILTER else value
    return total >> SHIFT if kind == FILTER else total // len(taps)


@compiled
def run_pixels(
    task: tuple[int, Ints, Int8, int],
    pixels: tuple[int, int],
    memory: tuple[Int8, Ints],
    maps: tuple[Ints, Ints],
    room: tuple[Ints, Ints, Ints],
) -> int:
    """Output pixels from the first up to the last.

    ``task``: kind, windows, weights, channels of a segment. ``maps``: the output, and a row for
    each input. ``room``: for the window, for what is read, for what is made.
    """
    kind, windows, weights, segment = task
    pool, holds = memory
    target, sources = maps
    taps, values, made = room
    for pixel in range(pixels[0], pixels[1]):
        at = (pixel // target[WIDTH], pixel % target[WIDTH])
        count = window_of(kind, windows, sources[0], at, taps)
        for first in range(0, target[CHANNELS], segment):
            size = min(segment, target[CHANNELS] - first)
            made[:size] = 0
            start, read = (0, sources[0, CHANNELS]) if kind == MIX else (first, size)
            for i in range(len(sources)):
                for tap in range(count):
                    into = values[tap * read : (tap + 1) * read]
                    if not load(pool, holds, sources[i], taps[tap, 1], start, into):
                        return i
                for k in range(size):
                    if kind == MIX:
                        made[k] += mixed(weights[first + k], values, taps[:count], read)
                    elif kind == SUM:
                        made[k] += values[k]
                    else:
                        one = weights[first + k]
                        made[k] += filtered(kind, one, values, taps[:count], (k, read))
            for k in range(size):
                made[k] = min(max(made[k], -128), 127)
            store(pool, holds, target, pixel, first, made[:size])
    return -1


@compiled
def run_in_place(
    task: tuple[int, Ints, Int8, int],
    memory: tuple[Int8, Ints],
    maps: tuple[Ints, Ints],
    room: tuple[Ints, Ints, Ints],
) -> int:
    """A depthwise layer over its own input: a channel is copied aside, then its results are stored.

    ``room`` has a place for one channel of the input instead of a window's values.
    """
    kind, windows, weights, _ = task
    pool, holds = memory
    target, sources = maps
    taps, values, made = room
    inputs = sources[0, HEIGHT] * sources[0, WIDTH]
    for channel in range(target[CHANNELS]):
        for pixel in range(inputs):
            if not load(pool, holds, sources[0], pixel, channel, values[pixel : pixel + 1]):
                return 0
        for pixel in range(target[HEIGHT] * target[WIDTH]):
            at = (pixel // target[WIDTH], pixel % target[WIDTH])
            count = window_of(kind, windows, sources[0], at, taps)
            total = 0
            for tap in range(count):
                total += weights[channel, taps[tap, 0], 0] * values[taps[tap, 1]]
            made[0] = min(max(total >> SHIFT, -128), 127)
            store(pool, holds, target, pixel, channel, made[:1])
    return -1
