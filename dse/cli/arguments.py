"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mapper.memory_plan import PLANNER_NAMES
from mapper.search.method import BUDGET, METHODS, PRESET_NAMES

Arch = Annotated[
    str,
    typer.Option(
        "--arch",
        "-a",
        metavar="A",
        help="Shipped architecture (see: dse list archs) or path to a YAML file.",
    ),
]
Workload = Annotated[
    str,
    typer.Option(
        "--workload",
        "-w",
        metavar="W",
        help="Network (resnet18, gpt2:batch=4,seq=512), single operator "
        "(gemm:M=512,N=512,K=512,dtype=int8), module.py:function, or path to a YAML file. "
        "See: dse list workloads.",
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Override a parameter, as in --set 'gbuf.size=128 KiB'. May be repeated.",
    ),
]
Objective = Annotated[
    str,
    typer.Option(metavar="latency|energy|edp", help="What each operator's mapping minimises."),
]
Engine = Annotated[
    str | None,
    typer.Option(
        metavar="replay|simpy",
        help="What runs event simulations: compiled code (the default), or SimPy. They agree to "
        "the picosecond.",
    ),
]
Fuse = Annotated[
    bool,
    typer.Option(
        "--fuse",
        help="Search the whole schedule: operators fused over tiles, tensors kept on the chip.",
    ),
]
Fidelity = Annotated[
    str, typer.Option(metavar="roofline|analytical|event", help="How closely to look.")
]
Search = Annotated[str, typer.Option(metavar="METHOD", help=f"{', '.join(METHODS)}.")]
Budget = Annotated[
    int | None,
    typer.Option(metavar="N", help=f"Mappings priced per operator ({BUDGET}); not for exact."),
]
Seed = Annotated[
    int | None, typer.Option(metavar="S", help="Of random numbers (1); not for exact.")
]
Mapping = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|PRESET",
        help=f"Not searched, but given: {', '.join(PRESET_NAMES)} or YAML, which may also just "
        "say what mappings must be like.",
    ),
]
Unroll = Annotated[
    list[str] | None,
    typer.Option(
        "--unroll",
        metavar="AXIS=LOOPS",
        help="With --op: unroll only these loops over an axis of the array, as in rows=C+R "
        "(see: dse match --arch). May be repeated; axes that are left out unroll nothing.",
    ),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document, and nothing else, on standard output."),
]

Planner = Annotated[
    str | None,
    typer.Option(
        metavar="|".join(PLANNER_NAMES), help="Who places activations in a microcontroller's SRAM."
    ),
]
RamLimit = Annotated[
    str | None,
    typer.Option(metavar="SIZE", help="With --planner optimal: the fastest plan within it."),
]
LatencyLimit = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="With --planner optimal: the smallest plan within it."),
]
Tradeoffs = Annotated[
    bool,
    typer.Option("--tradeoffs", help="Memory and latency of all plans that no other beats."),
]
MemoryMap = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Picture of the SRAM over time (PNG, SVG).")
]
WritePlan = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="With --planner tflm_offline: the .tflite file with the plan's offsets in it.",
    ),
]
Trace = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a trace for ui.perfetto.dev.")
]
TraceWindow = Annotated[
    str | None,
    typer.Option(
        metavar="START:END",
        help="Trace only this part of the run, every tile of it, as in 10us:20us.",
    ),
]
Timeline = Annotated[
    Path | None,
    typer.Option(metavar="FILE.png|svg", help="Draw how busy every port is over the run."),
]
