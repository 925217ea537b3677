"""Calls of other graphs: initializations happen once, branches and loops depend on values."""

from __future__ import annotations

from collections.abc import Sequence

from mapper.workload.tflite_import.importing import Call, imports
from mapper.workload.torch_import.storage import View


@imports("CALL_ONCE")
def call_once(call: Call) -> Sequence[View]:
    call.note("runs once, before the first input")
    return []


@imports("IF", "WHILE")
def depends_on_values(call: Call) -> Sequence[View]:
    raise call.error("what it runs depends on values; a workload has one sequence of operators")
