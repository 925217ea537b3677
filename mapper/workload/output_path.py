"""Notes of importers about work on an operator's output path: what has become part of another
operator, so that its results are changed as they leave (a bias, a scale and shift, a clamp).

The notes are for people (``Workload.folded``); cost models of libraries without such output paths
read them back, which is why their form is written and read here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from mapper.workload.graph import Workload

BIAS_ADDED = "bias added"
SCALE_AND_SHIFT = "scale and shift merged"

_PLACE = " on the output path of "
_NOTE = re.compile(rf"(?P<what>.+): (?P<why>.+){_PLACE}(?P<operator>\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class OnOutputPath:
    """``what`` (a name in the network) is done by ``operator``, and ``why`` that is all of it."""

    what: str
    why: str
    operator: str


def output_path_note(done: str, operator: str) -> str:
    """``done`` is ``what: why``, or what alone if it has no name in the network."""
    return f"{done}{_PLACE}{operator}"


def on_output_paths(workload: Workload) -> Iterator[OnOutputPath]:
    """Of the notes of a workload those about something that has a name, in order."""
    for note in workload.folded:
        if (match := _NOTE.fullmatch(note)) is not None:
            yield OnOutputPath(**match.groupdict())


def without_place(note: str) -> str:
    """The note without the operator that does it."""
    return note.partition(_PLACE)[0]
