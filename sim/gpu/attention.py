"""Scaled dot-product attention as cuDNN computes it: fused, tile by tile of the keys.

Several queries (``prefill``): persistent thread blocks of two warp groups take 128 queries of one
head and go through the keys, 128 at a time; two products and one exponential per score. One query
(``decode``): a block takes the queries of all heads that share their keys, and the keys may be
split among blocks, whose results a second kernel merges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sim.gpu.chip import BYTES, Chip
from sim.gpu.demand import Array, Call, Constants, Demand, missing_share, sizes, warm_up_us

QUERY_TILE = 128
KEY_TILE = 128
DECODE_TILE = 128
#: Of the kernel for fp32.
PLAIN_TILE = 64
#: Blocks fit into an SM while the depths of their heads add up to less than this: a block for a
#: depth of 128 takes 86 KB of the 227 KB of shared memory.
SHARED_DEPTH = 338


def attention_key(call: Call) -> str:
    if BYTES[call.dtype] > 2:
        return "sdpa.grouped32" if call.params["H"] != call.params["Hkv"] else "sdpa.plain32"
    return "sdpa.decode" if call.params["Sq"] == 1 else "sdpa.prefill"


def attention(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    functions = {
        "sdpa.decode": _decode,
        "sdpa.prefill": _prefill,
        "sdpa.plain32": _plain,
        "sdpa.grouped32": _unfused,
    }
    return functions[attention_key(calls[0])](calls, constants, chip)


def _head_depth(depth: Array) -> Array:
    """Kernels exist for 64, 128 and 256 values per head."""
    return np.asarray(np.maximum(64, 2 ** np.ceil(np.log2(depth))))


def _traffic(calls: Sequence[Call]) -> Array:
    b, h, hkv, sq, skv, d = sizes(calls, "B", "H", "Hkv", "Sq", "Skv", "D")
    size = np.array([float(BYTES[c.dtype]) for c in calls])
    return np.asarray(b * d * size * 2 * (h * sq + hkv * skv))


def _past(calls: Sequence[Call]) -> Array:
    """Keys before the first query's own, where a causal mask sees those too: chunked prefill.

    None as ``is_causal`` of torch has it: its first query sees the first key alone.
    """
    return np.array([float(call.params.get("past", 0)) for call in calls])


def _steps(query_tiles: Array, key_tiles: Array, causal: Array, past_tiles: Array) -> Array:
    """Key tiles that the query tiles of one head visit: all, or those up to the diagonal."""
    triangle = query_tiles * (query_tiles + 1) / 2 + query_tiles * past_tiles
    triangle = np.minimum(triangle, query_tiles * key_tiles)
    return np.where(causal > 0, triangle, query_tiles * key_tiles)


def _prefill(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    b, h, sq, skv, d, causal = sizes(calls, "B", "H", "Sq", "Skv", "D", "causal")
    depth = _head_depth(d)
    query_tiles, key_tiles = np.ceil(sq / QUERY_TILE), np.ceil(skv / KEY_TILE)
    past_tiles = _past(calls) / KEY_TILE
    per_head = _steps(query_tiles, key_tiles, causal, past_tiles)
    tiles = b * h * query_tiles
    rate = np.array([chip.rate(c.dtype) for c in calls]) * constants["rate"]
    products = 2 * QUERY_TILE * KEY_TILE * depth / rate / chip.efficiency
    exponentials = QUERY_TILE * KEY_TILE / chip.sfu * constants["exponential"]
    step_us = (products + exponentials) / chip.clock_mhz
    mean_steps = per_head / query_tiles
    even = tiles / chip.sms
    # Tiles of a triangle are of all lengths; keys before it are the same for all.
    uneven = np.minimum(1, query_tiles * (query_tiles + 1) / 2 / per_head)
    waves = np.where(causal > 0, np.maximum(1, even + constants["tail"] * uneven), np.ceil(even))
    last = np.minimum(query_tiles + np.ceil(past_tiles), key_tiles)
    longest = np.where((causal > 0) & (even <= 1), last, mean_steps)
    tile_us = constants["tile_us"] + constants["depth_us"] * depth / 128
    moved = _traffic(calls)
    core = waves * (longest * step_us + tile_us)
    unmasked = np.ceil(even) * (key_tiles * step_us + tile_us)
    core = np.where(past_tiles > 0, np.minimum(core, unmasked), core)
    demand = _demand(
        calls, moved, core, constants, chip, b * h * per_head * 2 * QUERY_TILE * KEY_TILE * depth
    )
    rounds = np.ceil(even)
    return replace(demand, rounds=rounds, last_share=even - rounds + 1)


def _plain(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    """On the CUDA cores: 64 queries a block, 64 keys a step; blocks on one SM share its pipes."""
    b, h, sq, skv, d, causal = sizes(calls, "B", "H", "Sq", "Skv", "D", "causal")
    query_tiles, key_tiles = np.ceil(sq / PLAIN_TILE), np.ceil(skv / PLAIN_TILE)
    past_tiles = _past(calls) / PLAIN_TILE
    per_head = _steps(query_tiles, key_tiles, causal, past_tiles)
    blocks = b * h * query_tiles
    per_sm = np.ceil(blocks / chip.sms)
    last = np.minimum(query_tiles + np.ceil(past_tiles), key_tiles)
    steps = np.where(per_sm <= 1, last, per_head / query_tiles)
    steps = np.where(causal > 0, steps, key_tiles)
    work = constants["work_us"] + constants["depth_us"] * d / 128
    step_us = (constants["latency_us"] ** 3 + (per_sm * work) ** 3) ** (1 / 3)
    # Constants are of 128 lanes at 1980 MHz (an H200).
    slower = 128 * 1980 / (chip.fma * chip.clock_mhz)
    core = (steps * step_us + per_sm * constants["tile_us"]) * slower / chip.efficiency
    macs = 2 * b * h * per_head * PLAIN_TILE**2 * d
    return _demand(calls, _traffic(calls), core, constants, chip, macs)


def _demand(
    calls: Sequence[Call], moved: Array, core: Array, constants: Constants, chip: Chip, macs: Array
) -> Demand:
    b, h, sq, skv = sizes(calls, "B", "H", "Sq", "Skv")
    zeros = np.zeros_like(moved)
    return Demand(
        core_us=core,
        memory_us=moved / (chip.hbm_bytes_per_us * constants["hbm"]),
        fixed_us=warm_up_us(moved, constants) + zeros,
        overlap=zeros + constants["overlap"],
        macs=macs,
        scalar=b * h * sq * skv,
        hbm_bytes=moved,
        l2_bytes=moved,
        written_bytes=_results(calls),
        rounds=zeros + 1,
        last_share=zeros + 1,
    )


def _results(calls: Sequence[Call]) -> Array:
    b, h, sq, d = sizes(calls, "B", "H", "Sq", "D")
    return np.asarray(b * h * sq * d * np.array([float(BYTES[c.dtype]) for c in calls]))


def _splits(blocks: Array, key_tiles: Array, sms: int) -> Array:
    """As many parts of the keys as bring two blocks to every SM, were half of them idle without."""
    wanted = 2 ** np.floor(np.log2(np.maximum(2 * sms / blocks, 1)))
    most = 2 ** np.floor(np.log2(key_tiles))
    return np.where(2 * blocks > sms, 1.0, np.minimum(wanted, most))


def _decode(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    b, hkv, skv, d = sizes(calls, "B", "Hkv", "Skv", "D")
    depth = _head_depth(d)
    key_tiles = np.ceil(skv / DECODE_TILE)
    splits = _splits(b * hkv, key_tiles, chip.sms)
    steps = np.ceil(key_tiles / splits)
    blocks = b * hkv * splits
    slots = chip.sms * np.floor(SHARED_DEPTH / depth)
    waves = np.maximum(1, blocks / slots + np.where(blocks > slots, constants["tail"], 0))
    moved = _traffic(calls)
    deeper = (depth / 128) ** constants["power"]
    step_us = constants["step_us"] + constants["depth_us"] * deeper
    step_us = step_us * (1 + constants["miss_stretch"] * missing_share(moved, constants))
    core = waves * (steps * step_us + constants["tile_us"] * deeper)
    per_block = moved / (np.minimum(blocks, slots) * constants["block_bytes_per_us"])
    memory = np.maximum(moved / (chip.hbm_bytes_per_us * constants["hbm"]), per_block)
    macs = 2 * b * hkv * 16 * skv * depth
    demand = _demand(calls, moved, core, constants, chip, macs)
    merge_us = np.where(splits > 1, constants["merge_us"], 0.0)
    return replace(demand, memory_us=memory, fixed_us=demand.fixed_us + merge_us)


def _unfused(calls: Sequence[Call], constants: Constants, chip: Chip) -> Demand:
    """Keys and values repeated for every head, then products and a softmax of stored scores."""
    b, h, sq, skv, d = sizes(calls, "B", "H", "Sq", "Skv", "D")
    scores, copies = b * h * sq * skv * 4, b * h * skv * d * 4 * 2
    moved = scores * constants["score_passes"] + copies * constants["copy_passes"]
    core = 2 * b * h * sq * skv * d / (chip.fma * constants["rate"] * chip.sms) / chip.clock_mhz
    return _demand(calls, moved, core, constants, chip, 2 * b * h * sq * skv * d)
