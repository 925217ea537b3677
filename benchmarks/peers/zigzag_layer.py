"""Runs in the environment of zigzag-dse: maps one layer and prints what was found as JSON.

usage: zigzag_layer.py WORKLOAD.yaml HARDWARE.yaml MAPPING.yaml
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from typing import Any

from zigzag import api


def main(workload: str, hardware: str, mapping: str) -> None:
    logging.disable(logging.WARNING)
    started = time.process_time()
    try:
        with tempfile.TemporaryDirectory() as folder:
            energy, cycles, found = api.get_hardware_performance_zigzag(
                workload=workload,
                accelerator=hardware,
                mapping=mapping,
                opt="EDP",
                lpf_limit=6,
                dump_folder=folder,
                loma_show_progress_bar=False,
            )
    except Exception as error:  # the peer's own way to say that it found nothing
        result = {"error": type(error).__name__, "cpu_s": time.process_time() - started}
        print(json.dumps(result))
        return
    seconds = time.process_time() - started
    best = found[0][1][0][0]
    answer = {"energy_pj": energy, "cycles": cycles, "cpu_s": seconds, **loops(best)}
    print(json.dumps(answer))


def loops(best: Any) -> dict[str, Any]:
    """Temporal loops per operand and memory, innermost first, and what is unrolled."""
    temporal = {
        str(operand): [[[str(dim), int(size)] for dim, size in level] for level in levels]
        for operand, levels in best.temporal_mapping.mapping_dic_stationary.items()
    }
    spatial = {
        str(axis): {str(dim): int(size) for dim, size in unrolled.items()}
        for axis, unrolled in best.layer.spatial_mapping.items()
    }
    return {"temporal": temporal, "spatial": spatial}


if __name__ == "__main__":
    main(*sys.argv[1:])
