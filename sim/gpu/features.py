"""What the corrections of predicted times are functions of: sizes, alignments, how full waves are.

Every feature is the logarithm (to base 2) of a size or of a ratio, a small number, or an alignment;
``time`` is what the kernel model predicts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from sim.gpu.chip import BYTES
from sim.gpu.convolution import correction_group, output_side
from sim.gpu.demand import Array, Call, sizes
from sim.gpu.products import RESULT_BYTES

Features = Mapping[str, Array]

#: Of an H200, on which the corrections were fitted; so that they do not depend on the chip.
SMS = 132
CLOCK_MHZ = 1980.0
HBM_BYTES_PER_US = 4.3e6
#: Half-precision multiply-adds of an SM in a cycle that kernels reach.
RATE = 1400.0
#: Rows that blocks of 128 threads work on at the same time.
ROWS_AT_ONCE = 16 * SMS
ROW_KINDS = ("row_softmax", "row_layernorm", "row_sum")
#: Largest power of two that alignments are told apart by.
MOST_ALIGNED = 32

#: Tiles (rows, columns, step) that cuDNN's names show, as gauges of how a convolution is cut.
TILES = (
    (64, 64, 64),
    (128, 128, 64),
    (256, 64, 32),
    (128, 64, 64),
    (64, 128, 64),
    (256, 128, 64),
    (128, 32, 32),
    (256, 32, 32),
    (64, 32, 64),
    (128, 256, 32),
)

#: Tiles whose last wave of a convolution is looked at.
WAVES = ((64, 64), (128, 64), (64, 128), (256, 64), (128, 128), (256, 128))

#: Tiles of products (rows, columns).
PRODUCT_TILES = (
    (64, 64),
    (64, 128),
    (128, 64),
    (128, 128),
    (128, 256),
    (256, 128),
    (64, 256),
    (256, 64),
    (192, 128),
    (128, 192),
)


def aligned(size: Array) -> Array:
    whole = size.astype(np.int64)
    return np.asarray(np.minimum(whole & -whole, MOST_ALIGNED), dtype=np.float64)


def _types(calls: Sequence[Call]) -> dict[str, Array]:
    return {
        name: np.array([float(call.dtype == name) for call in calls])
        for name in ("fp16", "fp32", "fp8", "int8")
    }


def _logs(found: Mapping[str, Array]) -> dict[str, Array]:
    """To base 2, all at once, which is faster for few calls."""
    return dict(zip(found, np.log2(list(found.values())), strict=True))


def _waves(blocks: Array) -> Array:
    """How full the last wave is."""
    return np.asarray(blocks / SMS % 1)


def _convolution(calls: Sequence[Call], time_us: Array) -> dict[str, Array]:
    n, c, h, k, r, stride, groups = sizes(calls, "N", "C", "H", "K", "R", "stride", "groups")
    size = np.array([float(BYTES[call.dtype]) for call in calls])
    side = output_side(h, r, stride)
    pixels, depth, width = n * side**2, c / groups, k / groups
    padded = [np.ceil(v / (16 / size)) * 16 / size for v in (depth, width)]
    inputs, result, weights = n * h * h * c * size, pixels * k * size, k * depth * r * r * size
    found = {
        "input": inputs,
        "result": result,
        "weights": weights,
        "pixels": pixels,
        "rows": n * side,
        "images": n,
        "C": c,
        "K": k,
        "groups": groups,
        "depth": depth,
        "width": width,
        "sum": depth * r * r,
        "input per result": inputs / result,
        "weights per activation": weights / (inputs + result),
        "multiply-adds": pixels * k * depth * r * r / (SMS * 128 * CLOCK_MHZ) / time_us,
        "traffic": (inputs + result + weights) / HBM_BYTES_PER_US / time_us,
        "padded input": (inputs * (1 + padded[0] / depth)) / HBM_BYTES_PER_US / time_us,
        "padded result": 2 * result * padded[1] / width / HBM_BYTES_PER_US / time_us,
        "blocks of 64": np.ceil(pixels / 64) * np.ceil(width / 64) * groups,
        "blocks of 128": np.ceil(pixels / 128) * np.ceil(width / 128) * groups,
        "steps": r * r * np.ceil(padded[0] / 32),
        "image": side**2,
        "results of a group": pixels * width,
        "multiply-adds in all": pixels * k * depth * r * r,
        "blocks of 256x64": np.ceil(pixels / 256) * np.ceil(width / 64) * groups,
        "blocks of 256x128": np.ceil(pixels / 256) * np.ceil(width / 128) * groups,
        "time": time_us,
    }
    tiles = _tile_times(pixels, padded, r, groups, size)
    best = np.minimum.reduce(list(tiles.values()))
    found |= {name: tile_us / best for name, tile_us in tiles.items()}
    found["best tile"] = best / time_us
    logs = _logs(found)
    chosen = {"which tile": np.argmin(list(tiles.values()), axis=0).astype(np.float64)}
    return logs | chosen | _divisions(calls, padded)


def _divisions(calls: Sequence[Call], padded: Sequence[Array]) -> dict[str, Array]:
    """How a convolution's sizes divide by what kernels work in, and small numbers."""
    n, c, h, k, r, stride, groups = sizes(calls, "N", "C", "H", "K", "R", "stride", "groups")
    side = output_side(h, r, stride)
    pixels, depth, width = n * side**2, c / groups, k / groups
    return {
        "H": h,
        "side": side,
        "R": r,
        "stride": stride,
        "H per R": h / r,
        "H odd": h % 2,
        "depthwise": (groups == c).astype(np.float64),
        "square": (depth == width).astype(np.float64),
        "padding of depth": padded[0] / depth,
        "padding of width": padded[1] / width,
        "depth beyond 64": depth % 64,
        "width beyond 64": width % 64,
        "depth beyond 32": depth % 32,
        "width beyond 32": width % 32,
        "depth aligned": aligned(depth),
        "width aligned": aligned(width),
        "C aligned": aligned(c),
        "K aligned": aligned(k),
        "side aligned": aligned(side),
        "pixels aligned": aligned(pixels),
        "sum beyond 64": depth * r * r % 64,
        "C beyond 64": c % 64,
        "K beyond 64": k % 64,
    } | {
        f"wave of {rows}x{cols}": _waves(np.ceil(pixels / rows) * np.ceil(width / cols) * groups)
        for rows, cols in WAVES
    }


def _tile_times(
    pixels: Array, padded: Sequence[Array], r: Array, groups: Array, size: Array
) -> dict[str, Array]:
    found = {}
    for rows, cols, step in TILES:
        blocks = np.ceil(pixels / rows) * np.ceil(padded[1] / cols) * groups
        cycles = np.maximum(rows * cols * step / RATE, step * (rows + cols) * size / 60)
        steps = r * r * np.ceil(padded[0] / step)
        waves = np.ceil(blocks / SMS)
        found[f"tile {rows}x{cols}"] = waves * (steps * cycles + 1500) / CLOCK_MHZ
    return found


def _product(calls: Sequence[Call], time_us: Array) -> dict[str, Array]:
    batch, m, n, k = sizes(calls, "B", "M", "N", "K")
    size = np.array([float(BYTES[call.dtype]) for call in calls])
    moved = batch * (m * k + n * k + m * n) * size
    found = {
        "batch": batch,
        "M": m,
        "N": n,
        "K": k,
        "multiply-adds": batch * m * n * k / (SMS * 128 * CLOCK_MHZ) / time_us,
        "traffic": moved / HBM_BYTES_PER_US / time_us,
        "moved": moved,
        "time": time_us,
        "blocks": batch * np.ceil(m / 128) * np.ceil(n / 128),
        "shape": m / n,
    }
    result_size = np.array([RESULT_BYTES.get(call.dtype, BYTES[call.dtype]) for call in calls])
    results, operands = batch * m * n * result_size, batch * (m * k + n * k) * size
    found |= {
        "results": results,
        "operands": operands,
        "result traffic": results / HBM_BYTES_PER_US / time_us,
        "operand traffic": operands / HBM_BYTES_PER_US / time_us,
        "result per operand": results / operands,
        "A": m * k * size,
        "B": n * k * size,
        "result": m * n,
    }
    found |= _product_tiles((batch, m, n, k * size), time_us)
    waves = {
        f"wave of {a}x{b}": _waves(batch * np.ceil(m / a) * np.ceil(n / b))
        for a, b in ((64, 64), (128, 128), (128, 256), (256, 128))
    }
    ends = {f"{name} beyond 64": v % 64 for name, v in (("M", m), ("N", n), ("K", k))}
    steps = {"N aligned": aligned(n), "K aligned": aligned(k), "M aligned": aligned(m)}
    steps |= {"result row": n * result_size % 128, "row": k * size % 128, "M beyond 128": m % 128}
    return _logs(found) | waves | ends | steps


def _product_tiles(extents: tuple[Array, ...], time_us: Array) -> dict[str, Array]:
    """Times of products cut into tiles, as gauges; depth in bytes."""
    batch, m, n, depth_bytes = extents
    found = {}
    for rows, cols in PRODUCT_TILES:
        waves = np.ceil(batch * np.ceil(m / rows) * np.ceil(n / cols) / SMS)
        cycles = max(rows * cols / 16, (rows + cols) * 128 / 60)
        steps = np.ceil(depth_bytes / 128)
        found[f"{rows}x{cols}"] = waves * (steps * cycles + rows * cols / 5 + 800) / CLOCK_MHZ
    best = np.minimum.reduce(list(found.values()))
    return {name: tile_us / best for name, tile_us in found.items()} | {"best": best / time_us}


def _attention(calls: Sequence[Call], time_us: Array) -> dict[str, Array]:
    b, h, hkv, sq, skv, d = sizes(calls, "B", "H", "Hkv", "Sq", "Skv", "D")
    (causal,) = sizes(calls, "causal")
    size = np.array([float(BYTES[call.dtype]) for call in calls])
    moved = 2 * b * d * size * (h * sq + hkv * skv)
    heads, tiles = b * hkv, b * h * np.ceil(sq / 128)
    found = {
        "batch": b,
        "heads": h,
        "KV heads": hkv,
        "sharing": h / hkv,
        "queries": sq,
        "keys": skv,
        "depth": d,
        "blocks of keys": heads,
        "blocks of queries": tiles,
        "traffic": moved / HBM_BYTES_PER_US / time_us,
        "multiply-adds": 2 * b * h * sq * skv * d / (SMS * 1024 * CLOCK_MHZ) / time_us,
        "moved": moved,
        "time": time_us,
    }
    return _logs(found) | {
        "causal": causal,
        "wave of keys": _waves(heads),
        "wave of queries": _waves(tiles),
        "keys beyond 128": skv % 128,
        "queries beyond 128": sq % 128,
    }


def _rows(calls: Sequence[Call], time_us: Array) -> dict[str, Array]:
    count, cols = sizes(calls, "R", "C")
    size = np.array([float(BYTES[call.dtype]) for call in calls])
    found = {
        "rows": count,
        "columns": cols,
        "moved": count * cols * size,
        "row bytes": cols * size,
        "together": np.minimum(count, ROWS_AT_ONCE) * cols * size,
        "values of a thread": np.ceil(cols / 1024),
        "traffic": count * cols * size / HBM_BYTES_PER_US / time_us,
        "time": time_us,
    }
    kinds = {
        name: np.array([float(call.kind == name) for call in calls])
        for name in ("row_softmax", "row_layernorm")
    }
    ends = {
        "wave of rows": _waves(count),
        "aligned": aligned(cols),
        "beyond 1024": cols % 1024,
        "filling": cols / 2 ** np.ceil(np.log2(np.maximum(cols, 2))),
    }
    return _logs(found) | kinds | ends


Maker = Callable[[Sequence[Call], Array], dict[str, Array]]

#: By the kinds of calls whose times are corrected: the group of the corrections, and features.
MAKERS: dict[str, tuple[Callable[[Call], str], Maker]] = {
    "conv2d": (correction_group, _convolution),
    "gemm": (lambda call: "gemm", _product),
    "bmm": (lambda call: "bmm", _product),
    "sdpa": (lambda call: "sdpa", _attention),
    **dict.fromkeys(ROW_KINDS, (lambda call: "rows", _rows)),
}


def group_of(call: Call) -> str | None:
    """Which corrections a call has, if any."""
    return MAKERS[call.kind][0](call) if call.kind in MAKERS else None


def features(calls: Sequence[Call], time_us: Array) -> Features:
    """Of calls of one kind with the predicted times."""
    with np.errstate(divide="ignore"):
        found = MAKERS[calls[0].kind][1](calls, time_us)
    return {**_types(calls), **found}
