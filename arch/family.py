"""What a hardware family provides: a schema, and how its checked document becomes components."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from arch.errors import InputError, Problem, suggest
from arch.schema import StrictModel, allowed_keys, default_of
from arch.spec import Architecture
from arch.strict_yaml import Document, parse_value, validate

#: Keys of a document that say what it is, not what the hardware can do.
_IDENTITY = ("name", "family", "description", "sources", "components")


class Family(ABC):
    """A kind of hardware. Its documents have components, each with a ``kind`` and a name."""

    schema: ClassVar[type[StrictModel]]
    #: Whether programs are kernels of a library, so that nothing is mapped.
    brings_kernels: ClassVar[bool] = False

    @abstractmethod
    def construct(self, checked: Any, data: Mapping[str, Any]) -> Architecture:
        """The architecture of a checked document (an instance of ``schema``)."""

    def load(self, document: Document) -> Architecture:
        """The architecture of a document as read from a file."""
        return self.construct(validate(document, self.schema), document.data)

    def build(self, data: Mapping[str, Any]) -> Architecture:
        """The architecture of plain data that came from no file."""
        return self.load(Document(data=data))

    def paths(self, data: Mapping[str, Any]) -> tuple[str, ...]:
        """Every path that an override may set, such as ``clock`` and ``gbuf.size``."""
        top = [key for key in self.schema.model_fields if key not in _IDENTITY]
        for name, component in data["components"].items():
            keys = allowed_keys(self.schema, ("components", name, component["kind"]))
            top += [f"{name}.{key}" for key in keys if key != "kind"]
        return tuple(top)

    def value(self, data: Mapping[str, Any], path: str) -> Any:
        """What a checked document says at such a path, its default where it says nothing."""
        name, dot, key = path.partition(".")
        part = data["components"][name] if dot else data
        if (key or name) in part:
            return part[key or name]
        return default_of(self.schema, ("components", name, part["kind"], key) if dot else (name,))

    def rebuild(self, data: Mapping[str, Any], overrides: Mapping[str, Any]) -> Architecture:
        """The architecture with overrides applied to its document and checked as a whole."""
        allowed = self.paths(data)
        unknown = [_unknown_path(path, allowed) for path in overrides if path not in allowed]
        if unknown:
            raise InputError(unknown)
        changed = _applied(data, overrides)
        try:
            return self.build(changed)
        except InputError as error:
            raise InputError([_as_override(problem) for problem in error.problems]) from error


def _unknown_path(path: str, allowed: tuple[str, ...]) -> Problem:
    component = path.partition(".")[0]
    near = [a for a in allowed if a.startswith(f"{component}.")] or list(allowed)
    message = f"no such parameter; allowed {', '.join(near)}"
    hint = suggest(path, near)
    return Problem(f"{message}; {hint}" if hint else message, where=path)


def _applied(data: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """A document with values replaced; the given one stays as it is."""
    changed = dict(data)
    components = changed["components"] = dict(data["components"])
    for path, value in overrides.items():
        name, dot, key = path.partition(".")
        if dot:
            components[name] = {**components[name], key: _plain(value)}
        else:
            changed[name] = _plain(value)
    return changed


def _plain(value: Any) -> Any:
    """Text as it would read in a file; integers of array libraries as plain ones."""
    if isinstance(value, str):
        return parse_value(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return value
    return int(value)


def _as_override(problem: Problem) -> Problem:
    return Problem(problem.message, where=problem.where.removeprefix("components."))
