"""Metrics as the plain JSON document that commands print and studies keep."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from mapper.cost import Metrics, OperatorMetrics


def metrics_document(metrics: Metrics) -> dict[str, Any]:
    """Totals, then per memory (peak bytes), component and operator; names carry units."""
    return {
        "latency_ps": metrics.latency_ps,
        "energy_pj": metrics.energy_pj,
        "dynamic_energy_pj": metrics.dynamic_energy_pj,
        "area_mm2": metrics.area_mm2,
        "area_without": list(metrics.area_without),
        "power_w": metrics.power_w,
        "macs": metrics.macs,
        "fidelity": metrics.fidelity,
        "engine": metrics.engine,
        "gap": metrics.gap,
        "notes": list(metrics.notes),
        "memory": dict(metrics.memory),
        "components": {name: asdict(c) for name, c in metrics.components.items()},
        "operators": [_operator(o) for o in metrics.operators],
    }


def _operator(operator: OperatorMetrics) -> dict[str, Any]:
    return {
        "name": operator.name,
        "latency_ps": operator.latency_ps,
        "energy_pj": operator.energy_pj,
        "bound_by": operator.bound_by,
        "macs": operator.macs,
        "gap": dict(operator.gap),
        "components": {name: asdict(c) for name, c in operator.components.items()},
    }
