"""Exit codes, as CONTRIBUTING and README document them."""

from __future__ import annotations

BUG = 1
BAD_INPUT = 2
INFEASIBLE = 3
INTERRUPTED = 130
