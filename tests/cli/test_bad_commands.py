"""Does every command line that makes no sense end in one precise message and no result?"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.running import Dse

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True, slots=True)
class BadCommand:
    """A command line (``{tmp}`` is an empty folder) and what the message must say."""

    line: str
    says: tuple[str, ...]


def bad(line: str, *says: str) -> BadCommand:
    return BadCommand(line, says)


GEMM = "--workload gemm:M=8,N=8,K=8"
SIMULATE = f"simulate --arch edge_npu {GEMM}"

USAGE = (
    bad("serch resnet18_edge", "No such command 'serch'", "Did you mean 'search'?"),
    bad("simulate --arhc edge_npu", "No such option: --arhc", "--arch"),
    bad("simulate --workload resnet18", "Missing option '--arch'"),
    bad("simulate --arch", "--arch"),
    bad(f"{SIMULATE} surplus", "surplus"),
    bad("list arch", "unknown value 'arch'", "archs, workloads, searches", "'archs'?"),
    bad("list workloads resnet81", "NAME: unknown workload", "did you mean 'resnet18'?"),
    bad("list archs edge_npu", "only workloads have parameters", "dse show edge_npu"),
    bad("show edge_npv", "unknown configuration or workload", "did you mean 'edge_npu'?"),
    bad("schema archs", "allowed arch, workload, search", "did you mean 'arch'?"),
    bad(f"{SIMULATE} --fidelity evnt", "--fidelity", "roofline, analytical, event", "'event'?"),
    bad(f"{SIMULATE} --search rand", "--search", "did you mean 'random'?"),
    bad(f"{SIMULATE} --seed 3", "--seed", "the exact search takes none"),
    bad(f"{SIMULATE} --search random --budget 0", "--budget", "allowed 1 or more"),
    bad(f"{SIMULATE} --search random --fuse", "--search", "--fuse chooses"),
    bad(f"{SIMULATE} --search random --mapping weight_stationary", "nothing is searched"),
    bad("simulate -a h200 -w gemm:M=8,N=8,K=8,dtype=bf16 --search random", "library chooses"),
    bad(
        "simulate -a ddr4_2400_1rank -w stream:bytes=64KiB,pattern=random --search random",
        "--search",
        "has no operators",
    ),
    bad(f"{SIMULATE} --objective power", "--objective", "latency, energy, edp"),
    bad(f"{SIMULATE} --trace {{tmp}}/no/such/trace.json", "--trace", "there is no directory"),
    bad(f"{SIMULATE} --trace {{tmp}}", "--trace", "it is a directory"),
    bad(f"{SIMULATE} --trace {{tmp}}/a.png --timeline {{tmp}}/a.png", "is the file of --trace"),
    bad(f"{SIMULATE} --trace {{tmp}}/a --trace-window -1us:2us", "begins before the run"),
    bad(f"{SIMULATE} --set dram.timing=hbm9 --set dram.bandwidth=auto", "dram.timing: no arch"),
    bad("map --arch edge_npu --workload stream:bytes=3", "'stream': ", "only dse simulate"),
    bad("match --intrinsic gemm --workload stream:bytes=3", "'stream': ", "only dse simulate"),
    bad("overlap --workload stream:bytes=3", "'stream': ", "only dse simulate"),
    bad("recompute --workload stream:bytes=3", "'stream': ", "only dse simulate"),
    bad("show stream", "'stream': ", "only dse simulate"),
    bad("validate h200 --plot {tmp}/a.foo", "--plot", "must end in .png or .svg"),
    bad("simulate --arch hbm2_8ch --workload streem:bytes=3", "did you mean 'stream'?"),
    bad(f"{SIMULATE} --timeline /proc/x.png", "--timeline: cannot write '/proc/x.png'", "/proc"),
    bad("search quick --out /proc/x", "--out: cannot write '/proc/x'", "takes no files"),
    bad("map --arch edge_npu --workload resnet18 --op conv11", "--op", "did you mean 'conv1'?"),
    bad("check {tmp}/nothing.yaml", "{tmp}/nothing.yaml: no such file"),
    bad("check {tmp}", "folder"),
    bad("report {tmp}/nothing", "{tmp}/nothing"),
    bad("report {tmp}", "{tmp}", "holds no study"),
    bad("export-optuna {tmp}", "{tmp}", "holds no study"),
)

ARCHITECTURES = (
    bad(f"simulate --arch edge_npi {GEMM}", "edge_npi", "did you mean 'edge_npu'?"),
    bad(f"simulate --arch {{tmp}}/none.yaml {GEMM}", "{tmp}/none.yaml: no such file"),
    bad(f"{SIMULATE} --set gbuf.siez=1MiB", "gbuf.siez", "gbuf.size", "did you mean 'gbuf.size'?"),
    bad(f"{SIMULATE} --set gbuff.size=1MiB", "gbuff.size", "did you mean 'gbuf.size'?"),
    bad(f"{SIMULATE} --set gbuf.size", "'gbuf.size' is not an assignment", "PATH=VALUE"),
    bad(f"{SIMULATE} --set gbuf.size=", "is not an assignment"),
    bad(f"{SIMULATE} --set gbuf.size=1MiB --set gbuf.size=2MiB", "'gbuf.size' is set twice"),
    bad(f"{SIMULATE} --set gbuf.size=-1KiB", "gbuf.size", "allowed"),
    bad(f"{SIMULATE} --set gbuf.size=0", "gbuf.size", "allowed"),
    bad(f"{SIMULATE} --set gbuf.size=262144", "gbuf.size", "unit"),
    bad(f"{SIMULATE} --set dram.energy=8J/bit", "dram.energy", "allowed"),
    bad(f"{SIMULATE} --set array.dataflow=rs", "array.dataflow", "weight_stationary"),
    bad(f"{SIMULATE} --set array.rows=two", "array.rows", "two"),
    bad(f"{SIMULATE} --set array.depth=2", "array.depth", "array.rows"),
    bad(f"{SIMULATE} --set dram.queue=0", "queue: 0 is out of range; allowed 1 to 4096 or 'unl"),
    bad(f"{SIMULATE} --set dram.queue=x", "queue: 'x' is not allowed; allowed 1 to 4096 or 'unl"),
    bad(f"{SIMULATE} --set clock=0", "clock", "allowed"),
)

ON_NPU = "simulate --arch edge_npu --workload"

WORKLOADS = (
    bad(f"{ON_NPU} resnt18", "unknown workload 'resnt18'", "did you mean 'resnet18'?"),
    bad(f"{ON_NPU} resnet18:batch=0", "batch", "0 is not allowed", "allowed an integer 1"),
    bad(f"{ON_NPU} resnet18:bacth=2", "unknown parameter 'bacth'", "did you mean 'batch'?"),
    bad(f"{ON_NPU} resnet18:batch", "is not key=value"),
    bad(f"{ON_NPU} gemm:M=-512,N=512,K=512", "M", "-512 is not allowed"),
    bad(f"{ON_NPU} gemm:M=0,N=512,K=512", "M", "0 is not allowed"),
    bad(f"{ON_NPU} gemm:M=512,N=512", "K", "must be given"),
    bad(f"{ON_NPU} gemm:M=5.5,N=512,K=512", "'5.5' is not an integer"),
    bad(f"{ON_NPU} gemm:M=8,M=9,N=8,K=8", "M is given twice"),
    bad(f"{ON_NPU} gemm:M=8,N=8,K=8,dtype=itn8", "unknown data type 'itn8'", "'int8'?"),
    bad(f"{ON_NPU} conv2d:C=6,H=8,K=8,R=3,groups=4", "not a multiple of groups = 4"),
    bad(f"{ON_NPU} conv2d:C=1,H=2,K=1,R=5,pad=0", "larger than the padded input"),
    bad(f"{ON_NPU} {{tmp}}/none.py:make", "{tmp}/none.py", "No such file"),
    bad(f"{ON_NPU} {{tmp}}/none.yaml", "{tmp}/none.yaml", "no such file"),
)


@pytest.mark.parametrize("case", USAGE + ARCHITECTURES + WORKLOADS, ids=lambda case: case.line)
def test_message_and_silence(dse: Dse, tmp_path: Path, case: BadCommand) -> None:
    outcome = dse(*case.line.format(tmp=tmp_path).split())
    assert outcome.code == 2, outcome.err
    assert outcome.out == ""
    assert "Traceback" not in outcome.err
    for text in case.says:
        assert text.format(tmp=tmp_path) in outcome.err
    if "queue" in case.line:
        assert outcome.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", [USAGE[0], ARCHITECTURES[2], WORKLOADS[0]], ids=lambda c: c.line)
def test_the_same_from_a_shell(tmp_path: Path, case: BadCommand) -> None:
    script = "import sys; from dse.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", script, *case.line.split()],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    for text in case.says:
        assert text in done.stderr
