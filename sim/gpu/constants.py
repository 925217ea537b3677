"""The fitted constants of the kernel model, as ``benchmarks/calibrate_gpu.py`` wrote them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

from sim.gpu.between import between_constants
from sim.gpu.chip import Chip
from sim.gpu.correction import fitted_corrections
from sim.gpu.demand import Constants
from sim.gpu.predict import GpuModel


@cache
def fitted_constants() -> dict[str, Constants]:
    """Per class of kernels, and of the power: those of an H200."""
    text = (files("sim") / "gpu" / "data" / "h200.json").read_text()
    constants: dict[str, Constants] = json.loads(text)
    return constants | between_constants()


#: The GPU whose library calls the corrections were fitted to.
MEASURED = "h200"


def gpu_model(chip: Chip) -> GpuModel:
    """Other GPUs have the constants, but not the corrections, which are of one library's choices
    on one GPU."""
    corrections = fitted_corrections() if chip.name == MEASURED else {}
    return GpuModel(chip=chip, constants=fitted_constants(), corrections=corrections)
