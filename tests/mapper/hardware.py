"""Small architectures that differ in everything the mapper must get right.

Odd array sizes leave ragged tiles, buffers of some tens of bytes bind, memories are single or
double buffered, replicated over rows, columns or elements, shared by all operands or bypassed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from arch.registry import family_named
from arch.spec import Architecture, Memory

ALL = ["input", "weight", "output"]
DRAM = {"kind": "dram", "size": "2 MiB", "bandwidth": "3 B/cycle", "energy": "7 pJ/bit"}
ARRAY = {
    "kind": "pe_array",
    "rows": 3,
    "cols": 2,
    "dataflow": "output_stationary",
    "interconnect": "systolic",
    "mac_pipeline": 1,
    "dtypes": ["int8"],
    "mac_energy": "0.3 pJ",
}
VECTOR = {
    "kind": "vector_unit",
    "lanes": 3,
    "pipeline": 1,
    "operations": ["add", "mul", "max", "mean", "copy", "activation", "softmax", "norm"],
    "dtypes": ["int8", "int32", "fp32"],
    "op_energy": "0.1 pJ",
}


def sram(size: int, keeps: list[str], **more: Any) -> dict[str, Any]:
    ports = {"read_bandwidth": "7 B/cycle", "write_bandwidth": "5 B/cycle"}
    energies = {"read_energy": "0.3 pJ/B", "write_energy": "0.4 pJ/B", "latency": "3 ns"}
    return {"kind": "sram", "size": f"{size} B", "keeps": keeps, **ports, **energies, **more}


def registers(size: int, keeps: list[str], per: str, **more: Any) -> dict[str, Any]:
    energies = {"read_energy": "0.02 pJ/B", "write_energy": "0.03 pJ/B"}
    return {
        "kind": "registers",
        "size": f"{size} B",
        "keeps": keeps,
        "per": per,
        **energies,
        **more,
    }


def architecture(
    name: str, memories: Mapping[str, Any], streamed: tuple[str, ...] = (), **array: Any
) -> Architecture:
    data = {
        "name": name,
        "family": "spatial",
        "description": "for tests",
        "clock": "700 MHz",
        "technology": "22 nm",
        "streamed": list(streamed),
        "components": {
            "dram": {**DRAM, "latency": "11 ns"},
            **memories,
            "array": {**ARRAY, **array},
            "vector": VECTOR,
        },
    }
    built: Architecture = family_named("spatial").build(data)
    return built


def architectures() -> dict[str, Architecture]:
    """By name."""
    built = (
        architecture(
            "output_stationary",
            {"buffer": sram(40, ALL), "acc": registers(8, ["output"], "pe")},
        ),
        architecture(
            "weight_stationary",
            {
                "buffer": sram(64, ALL, double_buffered=False),
                "acc": registers(12, ["output"], "column", read_bandwidth="3 B/cycle"),
                "wreg": registers(2, ["weight"], "pe", write_bandwidth="1 B/cycle"),
            },
            dataflow="weight_stationary",
        ),
        architecture(
            "row_stationary",
            {
                "buffer": sram(48, ["input", "output"], shared_port=True),
                "ifmap": registers(3, ["input"], "pe", double_buffered=False),
                "filter": registers(2, ["weight"], "pe", double_buffered=False),
                "psum": registers(8, ["output"], "pe", double_buffered=False),
            },
            dataflow="row_stationary",
            cols=4,
        ),
        architecture(
            "weights_bypass",
            {"buffer": sram(32, ["input", "output"])},
            streamed=("weight",),
            dataflow="input_stationary",
        ),
        architecture(
            "free",
            {
                "buffer": sram(40, ALL, double_buffered=False),
                "acc": registers(16, ["output"], "chip"),
            },
            dataflow="free",
            cols=3,
        ),
        architecture(
            "nested_registers",
            {
                "buffer": sram(28, ["input", "output"]),
                "acc": registers(12, ["output"], "column"),
                "wrow": registers(8, ["weight"], "row", double_buffered=False),
                "wreg": registers(2, ["weight"], "pe"),
            },
            dataflow="weight_stationary",
        ),
        architecture(
            "two_levels",
            {"weights": sram(24, ["weight"]), "buffer": sram(36, ["weight", "input", "output"])},
            dataflow="input_stationary",
        ),
        architecture(
            "bypassing",
            {
                "buffer": sram(36, ALL, final_outputs="wide", may_bypass=["weight"]),
                "acc": registers(8, ["output"], "column", may_bypass=["output"]),
            },
            dataflow="weight_stationary",
            latches=["weight"],
        ),
        architecture(
            "latched",
            {"buffer": sram(36, ALL), "acc": registers(8, ["output"], "column")},
            dataflow="weight_stationary",
            latches=["input", "weight", "output"],
        ),
    )
    return {one.name: one for one in built}


def resized(architecture: Architecture, sizes: Mapping[str, int]) -> Architecture:
    """With memories of other sizes in bytes, however small."""
    components = tuple(
        replace(c, size_bytes=sizes[c.name]) if isinstance(c, Memory) and c.name in sizes else c
        for c in architecture.components
    )
    return replace(architecture, components=components)
