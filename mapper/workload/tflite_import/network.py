"""The workload of a ``.tflite`` file."""

from __future__ import annotations

from dataclasses import replace

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.tflite_import import operators as operators  # fills the table of handlers
from mapper.workload.tflite_import.file import TfliteFile
from mapper.workload.tflite_import.importing import MISFIT, draft_of
from mapper.workload.tflite_import.lifetimes import runtime_graph


def tflite_workload(found: TfliteFile) -> Workload:
    """What the file's network computes, and how TensorFlow Lite Micro runs it."""
    try:
        return _workload(found)
    except InputError as error:
        raise InputError([_in_file(p, found) for p in error.problems]) from error
    except MISFIT as error:
        message = "its tensors and operators do not fit together"
        raise InputError(Problem(message, file=found.file)) from error


def _workload(found: TfliteFile) -> Workload:
    into, covered = draft_of(found.model.graphs[0])
    emitted = len(into.draft.operators)
    workload = into.workload(found.file.name)
    last = len(found.model.graphs[0].operators) - 1
    results = tuple(o.name for o in into.draft.operators[emitted:])
    covered = {**covered, last: (*covered[last], *results)}
    return replace(workload, runtime=runtime_graph(found.model, covered))


def _in_file(problem: Problem, found: TfliteFile) -> Problem:
    return replace(problem, file=problem.file or found.file)
