"""``dse map``: the best mapping of each operator, and how good it is known to be."""

from __future__ import annotations
