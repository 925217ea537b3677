"""Schedules of whole networks, fused and unfused, with proofs of how far they are from the best.

    python benchmarks/fusion.py [--arch edge_npu ws16] [--objective edp]

Each row is one network on one architecture: what the plain plan costs (every operator at its
optimal mapping, every tensor through the outermost memory), what the schedule costs, bytes that
do not reach the outermost memory, the gap to a bound that no schedule beats, and seconds. For
each, the event simulation of the fused plan is beside its analytical latency.

Stream 2.1.1 (layer-fused, multi-core) gives latency only. Its published ResNet-18 example on its
own 4-core description takes 7,739,942 cycles in 14 fused groups and 31.4 CPU seconds; the hardware
is another one, so that row stands for the search time, not for the latency.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from arch.load import load_architecture
from arch.spec import Architecture
from dse.scheduling import schedule
from mapper.fusion import FusedMapping
from mapper.search.network import map_workload
from mapper.search.schedule import Schedule
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.plan import evaluate_plan
from sim.prices import price

#: name -> workload, and the prefix of the operators that are looked at
NETWORKS = {
    "ResNet-18": ("resnet18", ""),
    "MobileNetV2": ("mobilenet_v2", ""),
    "GPT-2 block, 256 tokens": ("gpt2:seq=256,dtype=int8", "layers.0."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    network: str
    architecture: Architecture
    found: Schedule
    event_ps: int
    plain_s: float
    seconds: float


def part(workload: Workload, prefix: str) -> Workload:
    """The operators whose names begin so; what others give them comes from outside, what others
    take goes there."""
    operators = tuple(o for o in workload.operators if o.name.startswith(prefix))
    written = {o.output.tensor for o in operators}
    outside = [o for o in workload.operators if o not in operators]
    taken = {a.tensor for o in outside for a in o.inputs}
    touched = {a.tensor for o in operators for a in o.accesses}
    kinds = {
        t.name: t.kind
        if t.kind == "weight"
        else "input"
        if t.name not in written
        else "output"
        if t.name in taken or t.kind == "output"
        else "activation"
        for t in workload.tensors
    }
    return Workload(
        name=f"{workload.name} {prefix}*",
        tensors=tuple(
            replace(t, kind=kinds[t.name]) for t in workload.tensors if t.name in touched
        ),
        operators=operators,
    )


def rows(names: list[str], objective: str) -> Iterator[Row]:
    for name in names:
        architecture = load_architecture(name)
        for network, (spec, prefix) in NETWORKS.items():
            workload = part(load_workload(spec), prefix)
            map_workload(part(workload, workload.operators[-1].name), architecture, price)
            started = time.process_time()
            map_workload(workload, architecture, price, objective)
            plain_s = time.process_time() - started
            started = time.process_time()
            found = schedule(workload, architecture, objective)
            seconds = time.process_time() - started
            event = evaluate_plan("event", workload, architecture, found.plan)
            yield Row(
                network=network,
                architecture=architecture,
                found=found,
                event_ps=event.latency_ps,
                plain_s=plain_s,
                seconds=seconds,
            )


HEADING = (
    "network",
    "on",
    "unfused ms",
    "ours ms",
    "event ms",
    "unfused mJ",
    "ours mJ",
    "EDP, times less",
    "saved MB",
    "groups",
    "gap %",
    "CPU s (unfused)",
)


def cells(row: Row) -> tuple[str, ...]:
    before, after = row.found.unfused, row.found.cost
    groups = sum(isinstance(unit, FusedMapping) for unit in row.found.plan.units)
    return (
        row.network,
        row.architecture.name,
        f"{before.latency_ps / 1e9:.3f}",
        f"{after.latency_ps / 1e9:.3f}",
        f"{row.event_ps / 1e9:.3f}",
        f"{before.energy_pj / 1e9:.4f}",
        f"{after.energy_pj / 1e9:.4f}",
        f"{before.value('edp') / after.value('edp'):.2f}",
        f"{row.found.bytes_saved / 1e6:.2f}",
        str(groups),
        f"{100 * row.found.gap:.1f}",
        f"{row.seconds:.0f} ({row.plain_s:.0f})",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--arch", nargs="+", default=["edge_npu", "ws16"])
    parser.add_argument("--objective", default="edp", choices=("latency", "energy", "edp"))
    asked = parser.parse_args()
    print("| " + " | ".join(HEADING) + " |")
    print("|" + "---|" * len(HEADING))
    for row in rows(asked.arch, asked.objective):
        print("| " + " | ".join(cells(row)) + " |", flush=True)


if __name__ == "__main__":
    main()
