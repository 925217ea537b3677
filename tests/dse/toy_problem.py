"""A search over a closed-form design problem, for what does not need a real model.

Time falls with the array and with bandwidth, energy falls with the buffer and rises with the
array, area rises with both: every objective pulls another way.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from arch.load import load_architecture
from dse.config import Constraint, MappingSettings, SamplerSettings, SearchConfig, WeightedWorkload
from dse.evaluate import Outcome
from dse.limits import broken, violations
from dse.quantities import QUANTITIES
from dse.space import Parameter, Space
from dse.trial import TrialState

SPACE = Space(
    parameters=(
        Parameter(path="array.rows", values=tuple(range(4, 41, 4)), ordered=True),
        Parameter(path="array.cols", values=tuple(range(4, 41, 4)), ordered=True),
        Parameter(
            path="gbuf.size",
            values=tuple(f"{kib} KiB" for kib in (16, 32, 64, 128, 256, 512, 1024)),
            ordered=True,
        ),
        Parameter(
            path="array.dataflow",
            values=("weight_stationary", "output_stationary"),
            ordered=False,
        ),
    )
)

LIMITS = (Constraint(quantity=QUANTITIES["area"], limit=3.0, text="<= 3 mm2"),)


def config(sampler: str = "random", trials: int = 20, **changes: Any) -> SearchConfig:
    made = SearchConfig(
        name="toy",
        description="",
        workloads=(WeightedWorkload(spec="toy"),),
        arch="edge_npu",
        base=load_architecture("edge_npu").document,
        space=SPACE,
        mapping=MappingSettings(objective="edp", method="exact", budget=1),
        objectives=tuple(QUANTITIES[name] for name in ("latency", "energy", "area")),
        constraints=LIMITS,
        fidelity="analytical",
        sampler=SamplerSettings(name=sampler),
        trials=trials,
        batch=4,
        seed=1,
        text="name: toy\n",
    )
    return replace(made, **changes)


def totals(overrides: Mapping[str, Any]) -> dict[str, float]:
    """Closed-form costs of a design; the base design's own values where it says nothing."""
    rows, cols = overrides.get("array.rows", 16), overrides.get("array.cols", 16)
    kib = int(str(overrides.get("gbuf.size", "256 KiB")).split()[0])
    output = overrides.get("array.dataflow") == "output_stationary"
    latency = 1e9 * (1 + 400 / (rows * cols) + 16 / kib + 0.1 * output)
    energy = 1e8 * (1 + 30 / kib + rows / 64 + 0.2 * (not output))
    return {
        "latency_ps": latency,
        "energy_pj": energy,
        "area_mm2": rows * cols * 0.002 + kib * 0.004 + 0.3,
        "power_w": energy / latency,
        "edp_js": energy * latency * 1e-24,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """An evaluator of the toy problem.

    ``fuse`` is a file that makes its first reader die by SIGKILL; ``broken_rows`` fails on
    designs with that many rows; ``seconds`` is how long an evaluation takes.
    """

    seconds: float = 0.0
    fuse: Path | None = None
    broken_rows: int | None = None
    log: Path | None = None

    def __call__(self, overrides: Mapping[str, Any]) -> Outcome:
        self._burn()
        time.sleep(self.seconds)
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(f"{sorted(overrides.items())}\n")
        if overrides.get("array.rows") == self.broken_rows:
            raise ZeroDivisionError("a made-up bug")
        found = totals(overrides)
        reason = broken(LIMITS, found)
        return Outcome(
            state=TrialState.INFEASIBLE if reason else TrialState.COMPLETE,
            reason=reason,
            objectives=found,
            constraints=violations(LIMITS, found),
            metrics=None,
            cost_model_calls=1,
        )

    def _burn(self) -> None:
        if self.fuse is not None and self.fuse.exists():
            self.fuse.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
