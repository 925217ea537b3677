"""Strict YAML: plain data only, and the line of every key.

Scalars follow YAML 1.2 (``on`` is text, ``010`` is ten, ``1e9`` is a number). Duplicate keys,
tags, anchors and keys that are not text are errors: a file means what it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml

from arch.errors import InputError, Problem
from arch.schema import Finding, KeyPath, StrictModel, findings

_Model = TypeVar("_Model", bound=StrictModel)

MAX_FILE_BYTES = 1 << 20
MAX_DEPTH = 32

_PLAIN = "tag:yaml.org,2002:"
_DEFAULT_TAGS = {_PLAIN + name for name in ("str", "map", "seq")}
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Resolves nothing by itself: scalars are read by ``_scalar``."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own class attribute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """Data as read, with the line of each key path (none for data that has no file)."""

    data: Any
    file: Path | None = None
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """The line of the path or, for what is missing, of the nearest parent."""
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None

    def problem(self, path: KeyPath, message: str) -> Problem:
        where = ".".join(str(part) for part in path)
        return Problem(message, where=where, file=self.file, line=self.line(path))


def read(path: Path) -> Document:
    """The data of a YAML file; ``InputError`` with every problem of its form."""
    text = _text(path)
    root = _compose(path, text)
    if root is None:
        raise InputError(Problem("the file is empty", file=path, line=1))
    reader = _Reader(file=path)
    data = reader.value(root, ())
    if reader.problems:
        raise InputError(reader.problems)
    return Document(data=data, file=path, lines=reader.lines)


def parse_value(text: str) -> Any:
    """A value as it would read in a file: ``32``, ``true``, ``256 KiB``, ``[int8, int16]``."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError:
        return text
    reader = _Reader(file=None)
    value = None if root is None else reader.value(root, ())
    return text if reader.problems else value


def validate(document: Document, model: type[_Model]) -> _Model:
    """The checked model of a document; ``InputError`` with all of its problems."""
    checked, found = findings(document.data, model)
    if checked is None or found:
        raise InputError(_in_file_order(document, found))
    return checked


def _in_file_order(document: Document, found: list[Finding]) -> list[Problem]:
    unique = dict.fromkeys(document.problem(f.path, f.message) for f in found)
    return sorted(unique, key=lambda problem: problem.line or 0)


def _text(path: Path) -> str:
    if path.is_dir():
        raise InputError(Problem("is a folder, not a YAML file", file=path))
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=path)) from error
    if len(raw) > MAX_FILE_BYTES:
        message = f"has {len(raw)} bytes; a configuration has at most {MAX_FILE_BYTES}"
        raise InputError(Problem(message, file=path))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(Problem("is not UTF-8 text", file=path, line=line)) from error


def _compose(path: Path, text: str) -> yaml.Node | None:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = None if mark is None else mark.line + 1
        raise InputError(Problem(_syntax(error, text, line), file=path, line=line)) from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        message = f"contains the control character {error.character!r}"
        raise InputError(Problem(message, file=path, line=line)) from error


def _syntax(error: yaml.MarkedYAMLError, text: str, line: int | None) -> str:
    lines = text.splitlines()
    if line is not None and line <= len(lines) and lines[line - 1].lstrip(" ").startswith("\t"):
        return "is indented with a tab; YAML allows only spaces"
    parts = [part for part in (error.context, error.problem) if part]
    return "is not valid YAML: " + ", ".join(parts)


class _Reader:
    """Turns composed nodes into plain data, noting lines and problems."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.lines: dict[KeyPath, int] = {}
        self.problems: list[Problem] = []
        self._seen: set[int] = set()

    def value(self, node: yaml.Node, path: KeyPath) -> Any:
        self.lines.setdefault(path, node.start_mark.line + 1)
        if id(node) in self._seen:
            self._report(path, "anchors and aliases are not supported; write the value out")
            return None
        self._seen.add(id(node))
        if len(path) > MAX_DEPTH:
            self._report(path[:3], f"is nested more than {MAX_DEPTH} deep")
            return None
        if node.tag not in _DEFAULT_TAGS:
            self._report(path, f"tags such as '{node.tag}' are not supported")
        match node:
            case yaml.MappingNode():
                return self._mapping(node, path)
            case yaml.SequenceNode():
                return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
            case yaml.ScalarNode():
                return _scalar(node)
        raise TypeError(f"unexpected node {node!r}")

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = _scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                self._report(path, f"{_shown(key_node)} cannot be a key; keys are names", line)
                continue
            inner = (*path, key)
            if key in result:
                self._report(inner, f"is a duplicate key; first on line {self.lines[inner]}", line)
                continue
            self.lines[inner] = line
            result[key] = self.value(value_node, inner)
        return result

    def _report(self, path: KeyPath, message: str, line: int | None = None) -> None:
        where = ".".join(str(part) for part in path)
        line = self.lines[path] if line is None else line
        self.problems.append(Problem(message, where=where, file=self.file, line=line))


def _shown(key: yaml.Node) -> str:
    return repr(key.value) if isinstance(key, yaml.ScalarNode) else "a list or mapping"


def _scalar(node: yaml.ScalarNode) -> Any:
    """A scalar by the YAML 1.2 core schema; quoted ones are text."""
    text: str = node.value
    if node.style:  # None or "" is plain
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) < 100 else text
    if _FLOAT.fullmatch(text) or _NOT_FINITE.fullmatch(text):
        return float(
            text.replace(".i", "i").replace(".I", "I").replace(".n", "n").replace(".N", "N")
        )
    return text


__all__ = ["Document", "KeyPath", "parse_value", "read", "validate"]
