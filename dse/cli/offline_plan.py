"""``dse simulate --write-plan``: a ``.tflite`` file that says where its tensors lie."""

from __future__ import annotations

from pathlib import Path

from arch.errors import InputError, Problem
from arch.spec import Architecture
from dse.cli import inputs
from dse.cli.console import messages
from mapper.memory_plan.mcu import core_of, is_planned, plan_on
from mapper.memory_plan.overlay import offline_offsets
from mapper.workload.graph import Workload
from mapper.workload.tflite_import.embed import with_offline_plan

#: The planner whose places a file can have.
PLANNER = "tflm_offline"


def check(path: Path, spec: str, architecture: Architecture) -> None:
    """``InputError`` before anything is computed."""
    if Path(spec).suffix.lower() != ".tflite":
        message = f"needs a .tflite file as workload, got {spec}"
        raise InputError(Problem(message, where="--write-plan"))
    if not is_planned(architecture) or core_of(architecture).kernels.planner != PLANNER:
        message = f"needs a microcontroller and --planner {PLANNER}"
        raise InputError(Problem(message, where="--write-plan"))
    if path.suffix.lower() != ".tflite":
        message = f"{path} must end in .tflite"
        raise InputError(Problem(message, where="--write-plan"))
    if path.exists() and path.samefile(spec):
        raise InputError(Problem("would overwrite the workload itself", where="--write-plan"))
    inputs.output_file("--write-plan", path)


def write(path: Path, spec: str, network: Workload, architecture: Architecture) -> None:
    """The workload's file with the offsets; everything else in it stays as it is."""
    assert network.runtime is not None  # it is from a .tflite file
    plan = plan_on(network, architecture)
    offsets = offline_offsets(network.runtime.source, plan.placements)
    path.write_bytes(with_offline_plan(Path(spec).read_bytes(), offsets))
    messages().print(f"planned file: {path}, arena of {plan.pool_bytes:,} B")
