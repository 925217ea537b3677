"""Print our systolic timing beside SCALE-Sim's.

    python benchmarks/scalesim.py [--peer PYTHON] [LAYER ...]

PYTHON is an interpreter with ``scalesim`` 3.0.0 and numpy < 2.4 installed (``python -m venv peer``,
``peer/bin/pip install scalesim==3.0.0 'numpy<2.4'``); without it, its cycles are those that such a
run gave before (``MEASURED``). It takes up to two minutes of CPU time and 3 GB per layer. The last
two columns are its CPU time over ours: of the event simulation alone, and with the search of the
mapping, which SCALE-Sim does not do.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

from arch.load import load_architecture
from mapper.search.network import map_workload
from mapper.workload.load import load_workload
from sim.models import cost_model
from sim.prices import price

#: layer -> M, N, K, how many such layers, cycles weight stationary and output stationary
MEASURED = {
    "gemm128": (128, 128, 128, 1, 11_135, 10_111),
    "gemm512": (512, 512, 512, 1, 571_391, 555_007),
    "gemm_ffn": (128, 3072, 768, 1, 1_603_583, 1_225_727),
    "conv3x3_56": (56 * 56, 64, 9 * 64, 1, 458_207, 475_103),
    "conv1x1_s2": (28 * 28, 512, 256, 1, 424_959, 448_447),
    "dw3x3_96": (56 * 56, 1, 9, 96, 305_376, 733_728),
    "conv1_7x7s2": (112 * 112, 64, 49 * 3, 1, 503_599, 555_071),
    "conv3x3_7": (7 * 7, 512, 9 * 512, 1, 875_519, 593_663),
}

ARCHITECTURES = {"ws": "scalesim_ws16", "os": "scalesim_os16"}
CONFIGURATION = """[general]
run_name = compared

[architecture_presets]
ArrayHeight: 16
ArrayWidth: 16
IfmapSramSzkB: 96
FilterSramSzkB: 96
OfmapSramSzkB: 64
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Bandwidth: 16
Dataflow: {dataflow}
MemoryBanks: 1
ReadRequestBuffer: 32
WriteRequestBuffer: 32

[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 16
IfmapSRAMBankNum: 1
IfmapSRAMBankPort: 2
FilterCustomLayout: False
FilterSRAMBankBandwidth: 16
FilterSRAMBankNum: 1
FilterSRAMBankPort: 2

[sparsity]
SparsitySupport: false
SparseRep: ellpack_block
OptimizedMapping: false
BlockSize: 8
RandomNumberGeneratorSeed: 40

[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""
LAYOUT = "Layer name," + ",".join("abcdefghijklmnopqrst") + ",\n"
LAYOUT += "layer,1,1,1,1,1,1,0,1,2,4,5,3,3,2,1,0,4,5,6,7,\n"
#: Runs in the peer's interpreter, in a folder with the three input files.
RUN_PEER = """
import contextlib, csv, glob, io, json, time
from scalesim.scale_sim import scalesim
started = time.process_time()
with contextlib.redirect_stdout(io.StringIO()):
    run = scalesim(save_disk_space=True, verbose=True, config="c.cfg", topology="t.csv",
                   layout="l.csv", input_type_gemm=True)
    run.run_scale(top_path=".")
seconds = time.process_time() - started
(report,) = glob.glob("**/COMPUTE_REPORT.csv", recursive=True)
rows = list(csv.reader(open(report)))[1:]
print(json.dumps([sum(float(row[2]) for row in rows), seconds]))
"""


def peer(python: str, dataflow: str, gemm: tuple[int, int, int]) -> tuple[int, float]:
    """Cycles and CPU seconds of one layer."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "c.cfg").write_text(CONFIGURATION.format(dataflow=dataflow))
        (place / "l.csv").write_text(LAYOUT)
        m, n, k = gemm
        (place / "t.csv").write_text(f"Layer Name, M, N, K,\nlayer,{m},{n},{k},\n")
        command = [python, "-c", RUN_PEER]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=True)
    cycles, seconds = json.loads(done.stdout)
    return int(cycles), seconds


def ours(arch: str, gemm: tuple[int, int, int]) -> tuple[int, float, float]:
    """Cycles of the event simulation, CPU seconds of mapping and of simulating."""
    m, n, k = gemm
    workload, architecture = load_workload(f"gemm:M={m},N={n},K={k}"), load_architecture(arch)
    started = time.process_time()
    found = map_workload(workload, architecture, price, "edp")
    mapped = time.process_time()
    mappings = {name: result.mapping for name, result in found.items()}
    metrics = cost_model("event").evaluate(workload, architecture, mappings)
    return metrics.latency_ps // 1000, mapped - started, time.process_time() - mapped


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--peer", metavar="PYTHON")
    arguments.add_argument("layers", nargs="*", metavar="LAYER")
    asked = arguments.parse_args()
    for arch in ARCHITECTURES.values():
        ours(arch, (32, 32, 32))  # compiled now, or read from the cache
    print(
        f"{'layer':<13}{'dataflow':<10}{'ours':>10}{'SCALE-Sim':>11}{'  equal':<8}"
        f"{'map, ms':>9}{'event, ms':>11}{'SCALE-Sim, s':>14}{'event':>10}{'with map':>10}"
    )
    for layer in asked.layers or MEASURED:
        for number, dataflow in enumerate(ARCHITECTURES):
            _row(layer, dataflow, MEASURED[layer][4 + number], asked.peer)


def _row(layer: str, dataflow: str, theirs: int, python: str | None) -> None:
    m, n, k, count, *_ = MEASURED[layer]
    cycles, mapping, simulating = ours(ARCHITECTURES[dataflow], (m, n, k))
    took, ratios = "-", ""
    if python is not None:
        one, seconds = peer(python, dataflow, (m, n, k))
        theirs, took = count * one, f"{count * seconds:.1f}"
        ratios = f"{seconds / simulating:>9,.0f}x{seconds / (mapping + simulating):>9,.0f}x"
    equal = "  yes" if count * cycles == theirs else "  NO"
    print(
        f"{layer:<13}{dataflow:<10}{count * cycles:>10,}{theirs:>11,}{equal:<8}"
        f"{1e3 * mapping:>9.1f}{1e3 * simulating:>11.2f}{took:>14}{ratios}",
        flush=True,
    )


if __name__ == "__main__":
    main()
