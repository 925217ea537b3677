"""Prints a table: mappings of this tool, of zigzag-dse and of accelforge for seven layers.

    python -m benchmarks.mapper_peers --zigzag-python PYTHON --accelforge-python PYTHON

Each tool maps each layer to the architecture ``ws16`` (weight registers of 1 KiB and of 128 B),
which all are given with the same sizes, bandwidths and energies. PYTHON is the interpreter of an
environment with ``zigzag-dse==3.9.1 six`` (Python 3.11) or with ``accelforge==1.0.467`` (Python
3.12, and Graphviz's ``dot`` on the path). Without one of them its answers are those that
``benchmarks/peers/answers.json`` keeps (``--record`` renews them).

The two charge differently, so every comparison is made under the convention of the peer:

- zigzag-dse charges no access to an operand that stays the same from step to step:
  ``array.latches=[input, weight, output]``. It also charges 64 bit for each access of the buffer
  that is narrower (the least width of its port): *words* adds that here, to its mappings and
  to ours.
- accelforge charges one per multiply-accumulate and keeps final outputs in the buffer as wide as
  partial sums: ``gb.final_outputs=wide``.

``as ours``: the peer's mapping, evaluated by the analytical model under that convention; the
difference to what the peer itself says follows. ``EDP/ours``: of the peer's mapping by our model,
relative to our optimum. CPU seconds are of the search alone, without imports; this tool's come
after its compiler's cache is filled.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from arch.load import load_architecture
from arch.spec import Architecture
from benchmarks.peers.translate import from_accelforge, from_zigzag, with_latches
from mapper.cost import Metrics
from mapper.hierarchy import execution
from mapper.mapping import Mapping as OperatorMapping
from mapper.search.exact import SearchResult, map_operator
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.models import cost_model
from sim.prices import price

PEERS = Path(__file__).resolve().parent / "peers"

LAYERS = {
    "gemm512": "gemm:M=512,N=512,K=512",
    "gemm_ffn": "gemm:M=128,N=3072,K=768",
    "conv1_7x7s2": "conv2d:C=3,H=224,K=64,R=7,stride=2",
    "conv3x3_56": "conv2d:C=64,H=56,K=64,R=3",
    "conv1x1_s2": "conv2d:C=256,H=56,K=512,R=1,stride=2",
    "conv3x3_7": "conv2d:C=512,H=7,K=512,R=3",
    "dw3x3_96": "conv2d:C=96,H=112,K=96,R=3,stride=2,groups=96",
}

#: What the tools answered when they were last run, with their mappings.
ANSWERS = PEERS / "answers.json"

#: The least that an access of the buffer is charged for, by zigzag-dse, and energy per bit read.
WORD_BITS, READ_PJ_PER_BIT = 64, 1.48225 / 8


@dataclass(frozen=True, kw_only=True)
class Case:
    """One layer on one variant of the architecture."""

    layer: str
    register_bytes: int = 1024
    dataflow: str = "weight_stationary"

    @property
    def overrides(self) -> dict[str, Any]:
        return {"rf_w.size": f"{self.register_bytes} B", "array.dataflow": self.dataflow}

    @property
    def is_free(self) -> bool:
        return self.dataflow == "free"

    @property
    def name(self) -> str:
        return f"{self.layer} {self.register_bytes} {'free' if self.is_free else 'fixed'}"


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Another tool: how to run it, and how it charges."""

    name: str
    python: str | None
    convention: Mapping[str, Any]
    words: bool
    arguments: Callable[[Case], list[str]]
    translate: Callable[..., Any]

    def found(self, case: Case) -> dict[str, Any]:
        """Its answer; ``note`` says why there is none."""
        answer = self._kept(case) if self.python is None else self._run(self.python, case)
        if "error" in answer:
            answer["note"] = f"no mapping ({answer['error']})"
        return answer

    def _run(self, python: str, case: Case) -> dict[str, Any]:
        command = [python, *self.arguments(case)]
        with tempfile.TemporaryDirectory() as folder:  # accelforge draws into the current one
            done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            return {"note": f"failed: {done.stderr.strip().splitlines()[-1:]}"}
        answer: dict[str, Any] = json.loads(lines[-1])
        return answer

    def _kept(self, case: Case) -> dict[str, Any]:
        kept: dict[str, Any] = json.loads(ANSWERS.read_text(encoding="utf-8"))[self.name]
        answer: dict[str, Any] = kept.get(case.name, {"note": "not run"})
        return answer


def zigzag(python: str | None) -> Peer:
    folder = PEERS / "zigzag"

    def arguments(case: Case) -> list[str]:
        hardware = "hw_ws16.yaml" if case.register_bytes == 1024 else "hw_ws16_rf128.yaml"
        mapping = "map_auto.yaml" if case.is_free else "map_fixed.yaml"
        script = str(PEERS / "zigzag_layer.py")
        files = [folder / f"w_{case.layer}.yaml", folder / hardware, folder / mapping]
        return [script, *map(str, files)]

    return Peer(
        name="zigzag-dse",
        python=python,
        convention={"array.latches": ["input", "weight", "output"]},
        words=True,
        arguments=arguments,
        translate=from_zigzag,
    )


def accelforge(python: str | None) -> Peer:
    folder = PEERS / "accelforge"

    def arguments(case: Case) -> list[str]:
        hardware = "arch_ws16_free.yaml" if case.is_free else "arch_ws16.yaml"
        script = str(PEERS / "accelforge_layer.py")
        files = [folder / f"w_{case.layer}.yaml", folder / hardware]
        return [script, *map(str, files), str(case.register_bytes)]

    return Peer(
        name="accelforge",
        python=python,
        convention={"gb.final_outputs": "wide"},
        words=False,
        arguments=arguments,
        translate=from_accelforge,
    )


@dataclass
class Totals:
    """CPU seconds of a peer and of this tool on the layers that both mapped with the given
    unrolling."""

    peer_s: float = 0.0
    ours_s: float = 0.0
    shipped_s: float = 0.0
    lowest: int = 0
    compared: int = 0
    largest_difference: float = 0.0
    answers: dict[str, Any] = field(default_factory=dict)


def ours(workload: Workload, architecture: Architecture) -> tuple[SearchResult, Metrics, float]:
    operator = workload.operators[0]
    started = time.process_time()
    result = map_operator(workload, operator, architecture, price, "edp")
    seconds = time.process_time() - started
    return result, evaluated(workload, architecture, result.mapping), seconds


def evaluated(workload: Workload, architecture: Architecture, mapping: Any) -> Metrics:
    operator = workload.operators[0]
    run = execution(workload, operator, architecture)
    named = replace(mapping, compute=run.compute.name, intrinsic=run.intrinsic.name)
    return cost_model("analytical").evaluate(workload, architecture, {operator.name: named})


def edp(cycles: float, energy_pj: float) -> float:
    return cycles * energy_pj


def narrow_pj(workload: Workload, mapping: OperatorMapping, metrics: Metrics) -> float:
    """What whole words cost more, where a step reads fewer bits of the input from the buffer."""
    dims = workload.operators[0].inputs[0].dims
    factors = {s.dim: s.factor for s in mapping.spatial}
    width = 8 * math.prod(factor for dim, factor in factors.items() if dim in dims)
    copies = math.prod(factor for dim, factor in factors.items() if dim not in dims)
    bits = 8 * metrics.components["latch_input"].write_bytes / copies
    return bits * max(WORD_BITS / width - 1, 0) * READ_PJ_PER_BIT


def compare(peer: Peer, case: Case, totals: Totals) -> Iterator[str]:
    """The rows of one layer under one peer's convention."""
    workload = load_workload(LAYERS[case.layer])
    operator = workload.operators[0]
    architecture = load_architecture("ws16", {**case.overrides, **peer.convention})
    result, metrics, seconds = ours(workload, architecture)
    words = narrow_pj(workload, result.mapping, metrics) if peer.words else 0.0
    best = edp(metrics.latency_ps / 1000, metrics.energy_pj + words)
    yield row(case, "tilewright", metrics.latency_ps / 1000, metrics.energy_pj, seconds)
    found = peer.found(case)
    totals.answers[case.name] = found
    if "cycles" not in found:
        yield f"{label(case)} {peer.name:<11} {found['note']}"
        return
    if not case.is_free:
        totals.peer_s += found["cpu_s"]
        totals.ours_s += seconds
        totals.shipped_s += ours(workload, load_architecture("ws16", case.overrides))[2]
    mapping = peer.translate(found, operator.name, operator.extents)
    if peer.words:
        mapping = with_latches(mapping, [access.dims for access in operator.accesses])
    again = evaluated(workload, architecture, mapping)
    words = narrow_pj(workload, mapping, again) if peer.words else 0.0
    energy_off = (again.energy_pj + words) / found["energy_pj"] - 1
    cycles_off = again.latency_ps / 1000 / found["cycles"] - 1
    ratio = edp(again.latency_ps / 1000, again.energy_pj + words) / best
    totals.compared += 1
    totals.lowest += ratio >= 1 - 1e-9
    totals.largest_difference = max(totals.largest_difference, abs(energy_off))
    yield row(case, peer.name, found["cycles"], found["energy_pj"], found["cpu_s"]) + (
        f" | as ours: {again.latency_ps / 1000:,.0f} cycles ({cycles_off:+.1%}), "
        f"{again.energy_pj / 1e6:.2f} + {words / 1e6:.2f} uJ ({energy_off:+.2%}), "
        f"EDP/ours {ratio:.3f}"
    )


def label(case: Case) -> str:
    return f"{case.layer:<12} {case.register_bytes:>5} B {'free' if case.is_free else 'fixed':<5}"


def row(case: Case, tool: str, cycles: float, energy_pj: float, seconds: float) -> str:
    return (
        f"{label(case)} {tool:<11} {cycles:>12,.0f} cycles {energy_pj / 1e6:>8.2f} uJ "
        f"EDP {edp(cycles, energy_pj):.4g} {seconds:>7.2f} CPU s"
    )


def cases() -> Iterator[Case]:
    for register_bytes in (1024, 128):
        for layer in LAYERS:
            yield Case(layer=layer, register_bytes=register_bytes)
    for layer in ("gemm512", "conv1_7x7s2", "dw3x3_96"):
        yield Case(layer=layer, dataflow="free")


def record(peer: Peer, totals: Totals) -> None:
    kept = json.loads(ANSWERS.read_text(encoding="utf-8"))
    kept[peer.name] = {**kept.get(peer.name, {}), **totals.answers}
    lines = [
        f"{json.dumps(tool)}: {{\n"
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(one)}" for name, one in sorted(of.items()))
        + "\n}"
        for tool, of in kept.items()
    ]
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def warm_up() -> None:
    """So that nothing is compiled, loaded or imported while the clock runs."""
    for layer in ("gemm512", "conv3x3_56", "dw3x3_96"):
        ours(load_workload(LAYERS[layer]), load_architecture("ws16"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--zigzag-python", help="interpreter of the environment of zigzag-dse")
    parser.add_argument("--accelforge-python", help="interpreter of accelforge's environment")
    parser.add_argument("--only", help="one layer", choices=tuple(LAYERS))
    parser.add_argument("--peer", help="one tool", choices=("zigzag-dse", "accelforge"))
    parser.add_argument(
        "--large-registers", action="store_true", help="without the variant of 128 B"
    )
    parser.add_argument("--record", action="store_true", help="keep the answers of peers run")
    options = parser.parse_args()
    warm_up()
    peers = [zigzag(options.zigzag_python), accelforge(options.accelforge_python)]
    for peer in (peer for peer in peers if options.peer in (None, peer.name)):
        changes = ", ".join(f"{key}={value}" for key, value in peer.convention.items())
        print(f"\nunder the convention of {peer.name} (ws16 with {changes})")
        totals = Totals()
        for case in cases():
            skipped = options.large_registers and case.register_bytes < 1024
            if options.only in (None, case.layer) and not skipped:
                for line in compare(peer, case, totals):
                    print(line, flush=True)
        if options.record and peer.python is not None:
            record(peer, totals)
        if totals.ours_s:
            ratios = (totals.peer_s / seconds for seconds in (totals.ours_s, totals.shipped_s))
            print(
                f"{peer.name}, unrolling fixed: {totals.peer_s:.1f} CPU s; this tool "
                f"{totals.ours_s:.2f} under that convention, {totals.shipped_s:.2f} on ws16 as "
                f"shipped ({' and '.join(f'{ratio:.0f}' for ratio in ratios)} times less). Lowest "
                f"EDP in {totals.lowest} of {totals.compared}; energies of the same mapping differ "
                f"by at most {totals.largest_difference:.2%}."
            )


if __name__ == "__main__":
    main()
