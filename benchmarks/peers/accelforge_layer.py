"""Runs in the environment of accelforge: maps one layer and prints what was found as JSON.

usage: accelforge_layer.py WORKLOAD.yaml ARCHITECTURE.yaml RF_BYTES
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import accelforge


def main(workload: str, architecture: str, register_bytes: str) -> None:
    accelforge.set_n_parallel_jobs(1)
    started = time.process_time()
    spec = accelforge.Spec.from_yaml(
        architecture, workload, jinja_parse_data={"RF_BYTES": int(register_bytes), "BATCH_SIZE": 1}
    )
    spec.mapper.metrics = accelforge.Metrics.ENERGY_DELAY_PRODUCT
    found = spec.map_workload_to_arch(print_progress=False)
    answer = {
        "energy_pj": 1e12 * float(found.energy()),
        "cycles": round(1e9 * float(found.latency())),
        "cpu_s": time.process_time() - started,
        "nodes": nodes(found.data["Total<SEP>mapping"].iloc[0]().nodes),
    }
    print(json.dumps(answer))


def nodes(tree: Any) -> list[dict[str, Any]]:
    """From the outermost node inwards."""
    kinds = ("Storage", "Temporal", "Spatial")
    return [described(node) for node in tree if type(node).__name__ in kinds]


def described(node: Any) -> dict[str, Any]:
    if type(node).__name__ == "Storage":
        return {"memory": node.component, "tensors": [str(tensor) for tensor in node.tensors]}
    return {
        "loop": str(node.rank_variable),
        "tile": int(node.tile_shape),
        "axis": node.component if type(node).__name__ == "Spatial" else None,
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
