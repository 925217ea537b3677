"""The record of one evaluated hardware point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class TrialState(StrEnum):
    """``INFEASIBLE``: the hardware breaks a limit (``reason`` says which); ``FAILED``: a bug."""

    COMPLETE = "COMPLETE"
    INFEASIBLE = "INFEASIBLE"
    FAILED = "FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One hardware point and what came of it. Trials are equal when their results are.

    ``overrides`` are plain YAML values by parameter path, ties included, ready for
    ``Architecture.with_overrides``. ``objectives`` are keyed with their unit (``latency_ps``,
    ``energy_pj``, ``area_mm2``, ``power_w``, ``edp_js``), all minimised; an infeasible trial
    that could not be simulated has analytic (roofline) ones, never sentinels. ``constraints``
    are relative violations, met when <= 0 (``limit`` broken by 20 %: 0.2). ``metrics`` is, for
    each workload specification, the same plain-JSON document that ``dse simulate --json``
    prints, its operators extended by ``mapping`` (calls, optimal, lower_bound, gap and what
    ``mapping_of`` reads); ``None``
    when nothing was simulated. ``sampler_state`` belongs to the sampler that suggested it.
    """

    number: int
    overrides: Mapping[str, Any]
    state: TrialState
    reason: str
    objectives: Mapping[str, float]
    constraints: Mapping[str, float]
    metrics: Mapping[str, Any] | None = field(repr=False)
    fidelity: str
    seed: int
    cost_model_calls: int
    seconds: float = field(compare=False)
    config_hash: str
    version: str
    sampler_state: Mapping[str, Any] = field(repr=False)

    @property
    def feasible(self) -> bool:
        return self.state is TrialState.COMPLETE
