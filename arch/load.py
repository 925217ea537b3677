"""Architectures from YAML files, and back to YAML."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from arch import catalog
from arch.errors import InputError, Problem, unknown
from arch.registry import family_named, family_names
from arch.spec import Architecture
from arch.strict_yaml import Document, parse_value, read

_NONE: Mapping[str, Any] = MappingProxyType({})


def load_architecture(
    name_or_path: str | Path, overrides: Mapping[str, Any] = _NONE
) -> Architecture:
    """The architecture of a shipped name or a file, with ``{"gbuf.size": "1 MiB"}`` applied.

    ``InputError`` has every problem of the file or, if that is sound, of the overrides.
    """
    document = read(catalog.find("arch", name_or_path))
    family = family_named(_family(document))
    misnamed = _misnamed(document)
    try:
        architecture: Architecture = family.load(document)
    except InputError as error:
        raise InputError([*misnamed, *error.problems]) from error
    if misnamed:
        raise InputError(misnamed)
    return architecture.with_overrides(overrides) if overrides else architecture


def _family(document: Document) -> str:
    data = document.data
    if not isinstance(data, Mapping):
        raise InputError(document.problem((), "expected a mapping of keys to values"))
    names = family_names()
    if "family" not in data:
        message = f"this required key is missing; allowed {', '.join(names)}"
        raise InputError(document.problem(("family",), message))
    if data["family"] not in names:
        message = unknown("family", str(data["family"]), names)
        raise InputError(document.problem(("family",), message))
    return str(data["family"])


def _misnamed(document: Document) -> list[Problem]:
    """Reports name designs by ``name``: a copied file must not pass as its original."""
    name = document.data.get("name")
    if document.file is None or not isinstance(name, str) or name == document.file.stem:
        return []
    message = f"'{name}' is not the name of the file, '{document.file.stem}'"
    return [document.problem(("name",), message)]


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Quoted where a plain scalar would not be read back as the same text."""
    style = None if parse_value(text) == text else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def dump_architecture(architecture: Architecture, name: str | None = None) -> str:
    """YAML that loads to the same architecture, under another name if one is given."""
    data = dict(architecture.document)
    if name is not None:
        data["name"] = name
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
