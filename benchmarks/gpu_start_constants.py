"""Where the fit of the GPU kernel model's constants starts: by class of kernels.

Guesses of their order of magnitude, of which ``benchmarks/calibrate_gpu.py`` makes the constants.
"""

from __future__ import annotations

from sim.gpu.blocks import families
from sim.gpu.catalogue import CATALOGUES, Kernel

Constants = dict[str, float]

COMMON = {"launch_us": 2.1, "miss_us": 0.8, "resident_bytes": 2e5, "hbm": 0.88, "overlap": 4.0}
TILES = {
    **COMMON,
    "rate": 0.75,
    "load": 0.6,
    "block_bytes_per_us": 8e4,
    "tile_cycles": 60.0,
    "step_cycles": 15.0,
    "reduce_us": 2.5,
    "again_us": 0.5,
    "kept": 0.7,
    "reread": 0.03,
    "shared_sectors": 0.6,
}
BLOCKS = {
    **{k: v for k, v in COMMON.items() if k != "launch_us"},
    "reduce_us": 2.2,
    "reduce_passes": 1.0,
    "shared_sectors": 0.1,
}


def family(
    rate: float,
    latency_cycles: float,
    memory_cycles: float,
    element_latency: float,
    launch_us: float = 2.0,
) -> Constants:
    return {
        "rate": rate,
        "load_cycles": 0.08,
        "step_cycles": 10.0,
        "latency_cycles": latency_cycles,
        "memory_cycles": memory_cycles,
        "element_latency": element_latency,
        "round_cycles": 300.0,
        "result_cycles": 0.2,
        "launch_us": launch_us,
    }


#: Starts of the families of ``sim/gpu/catalogue.py``: fits to rows whose tiles and splits are known
#: from the profiler (kernels_ref/data/h200_launched.csv, h200_hard_launched.csv).
FAMILIES = {
    "mma_odd": family(800, 400, 1000, 0.19),
    "wmma_odd": family(560, 1000, 80, 0.2),
    "mma_even": family(960, 120, 370, 0.013, 3.0),
    "wmma_even": family(200, 850, 75, 0.15, 1.5),
    "mma_int8": family(3060, 195, 274, 0.01, 2.5),
    "simt": family(118, 190, 460, 0.26),
    "few": family(30, 300, 500, 0.1),
    "wgmma": family(1500, 150, 500, 0.02, 4.0),
    "mma": family(900, 150, 500, 0.02, 3.0),
    "direct": family(40, 300, 500, 0.1, 3.0),
}


def block_starts() -> dict[str, Constants]:
    """Every class of blocks: what its families need, and what they share."""
    return {
        name: BLOCKS
        | {
            f"{family}.{constant}": value
            for family in families(_kernels_of(name))
            for constant, value in FAMILIES[family].items()
        }
        for name in CATALOGUES
        if not name.endswith((".few", ".direct", ".ampere"))
    }


def _kernels_of(name: str) -> tuple[Kernel, ...]:
    """All kernels that calls of a class may run."""
    more = CATALOGUES["conv2d.direct"][0] if name.startswith("conv2d") else ()
    return CATALOGUES.get(f"{name}.few", CATALOGUES[name])[0] + more


ROWS = {
    **COMMON,
    "row_latency_ns": 300.0,
    "element_latency_ns": 0.3,
    "row_ns": 0.1,
    "element_ns": 0.001,
    "wide": 1.2,
    "miss_stretch": 0.5,
    "wide_row": 1.2,
    "heavy": 1.3,
    "second_pass": 0.1,
    "spilled": 0.2,
}
OF_ROWS_ALONE = ("wide", "miss_stretch", "wide_row", "heavy", "second_pass", "spilled")
VECTORS = {k: v for k, v in ROWS.items() if k not in OF_ROWS_ALONE} | {"rows": 0.1}
PREFILL = {
    **COMMON,
    "rate": 0.9,
    "exponential": 0.5,
    "tail": 0.5,
    "tile_us": 1.0,
    "depth_us": 0.5,
}
STARTS: dict[str, Constants] = {
    "ew": {**COMMON, "launch_us": 1.15, "cycles": 0.02},
    "row": {**ROWS, "launch_us": 1.3},
    "sdpa.prefill": {**PREFILL, "launch_us": 4.0},
    "sdpa.plain32": {
        **COMMON,
        "launch_us": 4.0,
        "latency_us": 6.0,
        "work_us": 2.0,
        "depth_us": 4.0,
        "tile_us": 1.0,
    },
    "sdpa.grouped32": {
        **COMMON,
        "launch_us": 30.0,
        "rate": 0.8,
        "score_passes": 8.0,
        "copy_passes": 4.0,
    },
    "sdpa.decode": {
        **COMMON,
        "tail": 0.5,
        "tile_us": 0.5,
        "depth_us": 0.5,
        "step_us": 0.5,
        "merge_us": 2.0,
        "power": 1.0,
        "block_bytes_per_us": 6e4,
        "miss_stretch": 0.3,
    },
    "gemm": TILES,
    "gemm.vector": {**VECTORS},
    "bmm": TILES,
    "conv2d.plain": TILES,
    "conv2d.depthwise": {
        **COMMON,
        "output_cycles": 5.0,
        "tap_cycles": 0.02,
        "tap_latency_us": 0.1,
    },
    "conv2d.grouped": {
        **COMMON,
        "launch_us": 8.0,
        "input_passes": 5.0,
        "result_passes": 5.0,
        "rate": 0.1,
        "group_us": 2.0,
    },
    "conv2d.grouped.native": {
        **COMMON,
        "launch_us": 3.0,
        "input_passes": 1.0,
        "result_passes": 1.0,
        "rate": 0.1,
        "group_us": 0.01,
    },
    "conv2d.grouped.repacked": {
        **COMMON,
        "launch_us": 15.0,
        "input_passes": 18.0,
        "result_passes": 18.0,
        "rate": 0.3,
        "group_us": 0.5,
    },
    "collective": {
        "launch_us": 15.0,
        "ramp_us": 25.0,
        "ramp_bytes": 1e6,
        "link": 0.8,
    },
    # Whole blocks say little about the small kernels in them, so these stay near what the kernels
    # took under the profiler (kernels_ref/data/h200_launched.csv).
    "hot": {"launch_us": 1.3, "l2": 0.5, "hbm": 0.85, "kept": 0.5},
    "strided": {"launch_us": 2.1, "l2": 0.2, "hbm": 0.5, "kept": 0.5},
}
for name, start in block_starts().items():
    copies = {"copy_us": 2.0, "copy_hbm": 0.5} if name.startswith("conv2d") else {}
    STARTS[name] = start | copies
POWER = {
    "voltage_share": 0.7,
    "scalar_pj": 2.0,
    "l2_pj_per_byte": 4.0,
    "active_w": 80.0,
    "running_w": 20.0,
    "hbm_pj_per_byte": 50.0,
    "mac_pj_bf16": 0.5,
    "mac_pj_fp16": 0.5,
    "mac_pj_fp8": 0.3,
    "mac_pj_int8": 0.3,
    "mac_pj_fp32": 3.0,
}


def start_of(key: str) -> Constants:
    """The start of the longest prefix of the class."""
    prefixes = [name for name in STARTS if key.startswith(name)]
    return STARTS[max(prefixes, key=len)]
