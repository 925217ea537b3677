"""What the importer merged, moved nothing for, or computed beforehand, in few words."""

from __future__ import annotations

import re
from collections import Counter

from mapper.workload.graph import Workload
from mapper.workload.output_path import without_place

_NUMBER = re.compile(r"\d+")
#: Of a name, not of a size.
_NUMBERED = re.compile(r"(?<=[A-Za-z])(?:_\d+)+\b")
#: What follows is the operator that does it.
_APPLIED = re.compile(r" applied by .*")


def folded_summary(workload: Workload) -> str:
    """``20 scale and shift merged, 17 clamped``: how often each reason applies."""
    reasons = Counter(_reason(note) for note in workload.folded)
    return ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())


def folded_lines(workload: Workload) -> list[str]:
    """Every note; those that differ only in numbers are one line, with ``#`` and their count."""
    alike: dict[str, list[str]] = {}
    for note in workload.folded:
        alike.setdefault(_NUMBER.sub("#", note), []).append(note)
    return [
        notes[0] if len(notes) == 1 else f"{shape} ({len(notes)} times)"
        for shape, notes in alike.items()
    ]


def _reason(note: str) -> str:
    """The note without the names of what it is about, and without numbers in names."""
    what = note.partition(": ")[2] or note
    return _NUMBERED.sub("", _APPLIED.sub("", without_place(what)).partition(", ")[0])
