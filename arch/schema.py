"""Strict models: unknown keys, wrong types, ranges and cross-checks, all found at once.

A configuration is a tree of ``StrictModel`` classes. What pydantic finds wrong is turned into
one sentence per problem, with the allowed keys or values and a suggestion.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from arch.errors import suggest, suggestion, unknown
from arch.quantity import Quantity

KeyPath = tuple[str | int, ...]

MISSING = "this required key is missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a key path of the data."""

    path: KeyPath
    message: str


class StrictModel(BaseModel):
    """Base of every configuration model: no unknown keys, no coercion, frozen.

    A string below a field is its description in the published schema.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True
    )

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


_Model = TypeVar("_Model", bound=StrictModel)


def findings(data: Any, model: type[_Model]) -> tuple[_Model | None, list[Finding]]:
    """The validated model, or everything that is wrong with the data."""
    if not isinstance(data, Mapping):
        return None, [Finding((), f"expected a mapping of keys to values, got {_shown(data)}")]
    found = list(model.structure(data))
    try:
        return model.model_validate(data, context=model.context(data)), found
    except ValidationError as error:
        for entry in error.errors(include_url=False):
            found.append(_translate(entry, data, model))
        return None, [f for f in found if not _is_misspelt(f, found)]


def _is_misspelt(finding: Finding, found: list[Finding]) -> bool:
    """A missing key that an unknown one beside it stands for: one mistake, one message."""
    if finding.message != MISSING:
        return False
    *parent, name = finding.path
    return any(
        f.path[:-1] == tuple(parent) and f.message.endswith(suggestion(str(name))) for f in found
    )


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


@dataclass(frozen=True, slots=True)
class _Entry:
    """One of pydantic's errors, with what its sentence needs."""

    kind: str
    value: Any
    context: Mapping[str, Any]
    text: str
    location: KeyPath
    model: Any


def _message(error: Any, location: KeyPath, model: type[Any]) -> str:
    entry = _Entry(
        kind=error["type"],
        value=error["input"],
        context=error.get("ctx", {}),
        text=error["msg"],
        location=location,
        model=model,
    )
    return _SENTENCES.get(entry.kind, _other)(entry)


def _missing(entry: _Entry) -> str:
    return MISSING


def _unknown_key(entry: _Entry) -> str:
    return unknown("key", str(entry.location[-1]), allowed_keys(entry.model, entry.location[:-1]))


def _not_one_of(entry: _Entry) -> str:
    choices = allowed_values(entry.context["expected"])
    parts = [f"{_shown(entry.value)} is not allowed", "allowed " + ", ".join(choices)]
    hint = suggest(entry.value, choices) if isinstance(entry.value, str) else ""
    return "; ".join([*parts, hint] if hint else parts)


def _no_tag(entry: _Entry) -> str:
    return f"the required key {entry.context['discriminator']} is missing"


def _unknown_tag(entry: _Entry) -> str:
    key = str(entry.context["discriminator"]).strip("'")
    choices = allowed_values(entry.context["expected_tags"])
    return unknown(key, str(entry.context["tag"]), choices)


def _own(entry: _Entry) -> str:
    return str(entry.context["error"])


def _too_small(entry: _Entry) -> str:
    return f"{_shown(entry.value)} is out of range; allowed at least {entry.context['ge']}"


def _too_large(entry: _Entry) -> str:
    return f"{_shown(entry.value)} is out of range; allowed at most {entry.context['le']}"


def _empty(entry: _Entry) -> str:
    return "must not be empty"


def _more(entry: _Entry) -> str:
    return f"{_shown(entry.value)} is out of range; allowed more than {entry.context['gt']}"


def _less(entry: _Entry) -> str:
    return f"{_shown(entry.value)} is out of range; allowed less than {entry.context['lt']}"


def _too_long(entry: _Entry) -> str:
    return f"{_shown(entry.value)} is too long; allowed at most {entry.context['max_length']}"


def _no_name(entry: _Entry) -> str:
    """The patterns of fields are all of names."""
    return f"{_shown(entry.value)} is not a name: letters, digits, '_', '-' and '.', no blanks"


def _other(entry: _Entry) -> str:
    message = entry.text.replace("Input should be", "expected").partition(", unable to parse")[0]
    for formal, plain in _PLAIN_WORDS.items():
        message = message.replace(formal, plain)
    return f"{message}, got {_shown(entry.value)}"


_PLAIN_WORDS = {
    "a valid integer": "a whole number",
    "a valid string": "text",
    "a valid list": "a list",
    "a valid boolean": "true or false",
    "a valid number": "a number",
    "a valid dictionary or object to extract fields from": "a mapping of keys to values",
    "a valid dictionary": "a mapping of keys to values",
}
_SENTENCES: Mapping[str, Callable[[_Entry], str]] = {
    "missing": _missing,
    "extra_forbidden": _unknown_key,
    "literal_error": _not_one_of,
    "union_tag_not_found": _no_tag,
    "union_tag_invalid": _unknown_tag,
    "value_error": _own,
    "string_too_short": _empty,
    "too_short": _empty,
    "string_too_long": _too_long,
    "string_pattern_mismatch": _no_name,
    "greater_than": _more,
    "less_than": _less,
    "greater_than_equal": _too_small,
    "less_than_equal": _too_large,
}


def allowed_values(text: str) -> tuple[str, ...]:
    """The choices in pydantic's ``'a', 'b' or 'c'``."""
    return tuple(part.strip().strip("'") for part in text.replace(" or ", ", ").split(", "))


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


@cache
def allowed_keys(model: Any, location: KeyPath) -> tuple[str, ...]:
    """The keys that the model at a pydantic location takes."""
    for part in location:
        model = _inner(model, part)
    model = _bare(model)
    return tuple(model.model_fields) if _is_model(model) else ()


def default_of(model: Any, location: KeyPath) -> Any:
    """What the field at a pydantic location is when it is left out, as it would be written."""
    *parents, name = location
    for part in parents:
        model = _inner(model, part)
    info = _bare(model).model_fields[name]
    value = info.get_default(call_default_factory=True)
    quantity = next((mark for mark in info.metadata if isinstance(mark, Quantity)), None)
    return (
        value if quantity is None or isinstance(value, str) or not value else quantity.show(value)
    )


def _inner(annotation: Any, part: str | int) -> Any:
    """The type one step further along a location."""
    annotation = _bare(annotation)
    if _is_model(annotation) and part in annotation.model_fields:
        return annotation.model_fields[part].annotation
    if _is_model(annotation):  # a union of one: its tag leads nowhere else
        return annotation
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
