"""Turning command line texts into checked values."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from arch.errors import InputError, Problem, unknown
from arch.strict_yaml import parse_value

#: Forms that plots are written in.
PICTURES = (".png", ".svg")


def choice(option: str, value: str, allowed: Sequence[str]) -> str:
    """``value`` if it is one of ``allowed``."""
    if value not in allowed:
        raise InputError(Problem(unknown("value", value, allowed), where=option))
    return value


def overrides(assignments: Sequence[str]) -> dict[str, Any]:
    """``["gbuf.size=256 KiB"]`` as a mapping, all malformed ones reported at once."""
    chosen: dict[str, Any] = {}
    problems: list[Problem] = []
    for text in assignments:
        path, _, value = (part.strip() for part in text.partition("="))
        if not (path and value):
            message = f"'{text}' is not an assignment; allowed PATH=VALUE, as in gbuf.size=256KiB"
            problems.append(Problem(message, where="--set"))
        elif path in chosen:
            problems.append(Problem(f"'{path}' is set twice", where="--set"))
        else:
            chosen[path] = parse_value(value)
    if problems:
        raise InputError(problems)
    return chosen


def output_file(option: str, path: Path) -> Path:
    """A file that can be written: checked before any work is done for it, without creating it."""
    parent = path.resolve().parent
    reasons = {
        "it is a directory": path.is_dir(),
        "it is no regular file": path.exists() and not (path.is_file() or path.is_dir()),
        f"there is no directory '{parent}'": not parent.is_dir(),
        "permission denied": not os.access(path if path.exists() else parent, os.W_OK),
    }
    for reason, applies in reasons.items():
        if applies:
            raise InputError(Problem(f"cannot write '{path}': {reason}", where=option))
    if not path.exists():
        _try(option, path, parent)
    return path


def picture_file(option: str, path: Path) -> Path:
    """As ``output_file``, of a form that pictures have."""
    if path.suffix not in PICTURES:
        raise InputError(Problem(f"'{path}' must end in {' or '.join(PICTURES)}", where=option))
    return output_file(option, path)


def output_folder(option: str, path: Path) -> Path:
    """A folder that exists or can be made: checked before any work is done for it."""
    existing = next(p for p in (path.resolve(), *path.resolve().parents) if p.exists())
    if not existing.is_dir():
        raise InputError(Problem(f"cannot write '{path}': '{existing}' is a file", where=option))
    if not os.access(existing, os.W_OK):
        raise InputError(Problem(f"cannot write '{path}': permission denied", where=option))
    _try(option, path, existing)
    return path


def _try(option: str, path: Path, folder: Path) -> None:
    """Some folders take no files whatever their permissions say (``/proc``, a full disk)."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        message = f"cannot write '{path}': '{folder}' takes no files ({error.strerror})"
        raise InputError(Problem(message, where=option)) from error


def positive(option: str, number: int) -> int:
    """A count of at least one."""
    if number < 1:
        raise InputError(Problem(f"{number} is out of range; allowed 1 or more", where=option))
    return number
