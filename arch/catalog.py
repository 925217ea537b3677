"""Shipped configurations by name, from any directory; anything else is a path."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from arch.errors import InputError, Problem, suggest

KINDS = ("arch", "workload", "search")


def _folder(kind: str) -> Path:
    if kind not in KINDS:
        raise ValueError(f"no kind of configuration '{kind}'")
    return Path(str(files("configs"))) / kind


def names(kind: str) -> tuple[str, ...]:
    """Names of the shipped configurations of a kind (``arch``, ``workload``, ``search``)."""
    return tuple(sorted(path.stem for path in _folder(kind).glob("*.yaml")))


def find(kind: str, name_or_path: str | Path) -> Path:
    """The file of a shipped name, or the path that was given."""
    text = str(name_or_path)
    if text in names(kind):
        return _folder(kind) / f"{text}.yaml"
    path = Path(text)
    looks_like_path = path.suffix in (".yaml", ".yml") or len(path.parts) > 1
    if path.is_file() or (looks_like_path and path.exists()):
        return path
    if looks_like_path:
        raise InputError(Problem("no such file", file=path))
    message = f"no {kind} configuration '{text}'; shipped: {', '.join(names(kind)) or 'none'}"
    hint = suggest(text, names(kind))
    raise InputError(
        Problem(f"{message}, or a path to a YAML file" + (f"; {hint}" if hint else ""))
    )
