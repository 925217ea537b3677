"""Strict models: unknown keys, wrong types, ranges and cross-checks, all found at once.

A configuration is a tree of ``StrictModel`` classes. What pydantic finds wrong is turned into
one sentence per problem, with the allowed keys or values and a suggestion.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from arch.errors import suggest, unknown

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a key path of the data."""

    path: KeyPath
    message: str


class StrictModel(BaseModel):
    """Base of every configuration model: no unknown keys, no coercion, frozen."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @classmethod
    def context(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """What single fields need to know of the whole (a clock, for bytes per cycle)."""
        return {}

    @classmethod
    def structure(cls, data: Mapping[str, Any]) -> Iterator[Finding]:
        """Rules between parts, checked on the raw data so that they are found together with
        the problems of single fields. Must tolerate malformed parts: those are found anyway.
        """
        yield from ()


def findings(data: Any, model: type[Any]) -> tuple[Any, list[Finding]]:
    """The validated model, or everything that is wrong with the data."""
    if not isinstance(data, Mapping):
        return None, [Finding((), f"expected a mapping of keys to values, got {_shown(data)}")]
    found = list(model.structure(data))
    try:
        return model.model_validate(data, context=model.context(data)), found
    except ValidationError as error:
        for entry in error.errors(include_url=False):
            found.append(_translate(entry, data, model))
        return None, found


def _translate(entry: Any, data: Any, model: type[Any]) -> Finding:
    location: KeyPath = tuple(entry["loc"])
    path = data_path(location, data, keep_last=entry["type"] in ("missing", "extra_forbidden"))
    return Finding(path, _message(entry, location, model))


def data_path(location: KeyPath, data: Any, *, keep_last: bool) -> KeyPath:
    """The key path in the data: pydantic's location without the tags of unions."""
    path: list[str | int] = []
    for position, part in enumerate(location):
        last = position == len(location) - 1
        if _has(data, part):
            path.append(part)
            data = data[part]
        elif last and keep_last:
            path.append(part)
    return tuple(path)


def _has(data: Any, part: str | int) -> bool:
    if isinstance(data, Mapping):
        return part in data
    return isinstance(data, list) and isinstance(part, int) and part < len(data)


def _message(entry: Any, location: KeyPath, model: type[Any]) -> str:
    kind, value, context = entry["type"], entry["input"], entry.get("ctx", {})
    if kind in _MESSAGES:
        return _MESSAGES[kind]
    if kind == "extra_forbidden":
        return _unknown_key(str(location[-1]), allowed_keys(model, location[:-1]))
    if kind == "literal_error":
        return _not_one_of(value, allowed_values(context["expected"]))
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _tag(kind, context)
    if kind == "value_error":
        return str(context["error"])
    return f"{_sentence(entry['msg'])}, got {_shown(value)}"


_MESSAGES = {"missing": "this required key is missing"}


def _unknown_key(key: str, keys: tuple[str, ...]) -> str:
    return unknown("key", key, keys)


def _not_one_of(value: Any, choices: tuple[str, ...]) -> str:
    parts = [f"{_shown(value)} is not allowed", "allowed " + ", ".join(choices)]
    hint = suggest(value, choices) if isinstance(value, str) else ""
    return "; ".join([*parts, hint] if hint else parts)


def _tag(kind: str, context: Mapping[str, Any]) -> str:
    key = str(context["discriminator"]).strip("'")
    if kind == "union_tag_not_found":
        return f"the required key '{key}' is missing"
    return unknown(key, str(context["tag"]), allowed_values(context["expected_tags"]))


def allowed_values(text: str) -> tuple[str, ...]:
    """The choices in pydantic's ``'a', 'b' or 'c'``."""
    return tuple(part.strip().strip("'") for part in text.replace(" or ", ", ").split(", "))


def _sentence(message: str) -> str:
    message = message.replace("Input should be", "expected").replace(
        "valid integer", "whole number"
    )
    return message.replace("a valid string", "text").replace("a valid list", "a list")


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def allowed_keys(model: Any, location: KeyPath) -> tuple[str, ...]:
    """The keys that the model at a pydantic location takes."""
    for part in location:
        model = _inner(model, part)
    model = _bare(model)
    return tuple(model.model_fields) if _is_model(model) else ()


def _inner(annotation: Any, part: str | int) -> Any:
    """The type one step further along a location."""
    annotation = _bare(annotation)
    if _is_model(annotation):
        return annotation.model_fields[part].annotation
    if get_origin(annotation) in (Union, types.UnionType):
        return next((m for m in get_args(annotation) if part in member_tags(m)), None)
    arguments = get_args(annotation)
    return arguments[-1] if arguments else None


def _bare(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def member_tags(member: Any) -> tuple[str, ...]:
    """The values of a union member's ``Literal`` fields that can discriminate it."""
    if not _is_model(member):
        return ()
    return tuple(
        value
        for info in member.model_fields.values()
        if get_origin(info.annotation) is Literal
        for value in get_args(info.annotation)
    )
