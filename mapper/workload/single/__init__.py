"""Workloads of one operator: ``gemm:M=512,N=512,K=512``, ``attention:heads=32,seq=2048``."""

from __future__ import annotations

from mapper.workload.single import (
    algebra,
    attention,
    convolution,
    experts,
    rows,
    scan,
    vector,
)
from mapper.workload.single.entry import SingleOperator as SingleOperator
from mapper.workload.single.entry import single_workload as single_workload

_MODULES = (convolution, algebra, attention, rows, vector, experts, scan)

SINGLE_OPERATORS = {entry.name: entry for module in _MODULES for entry in module.ENTRIES}
