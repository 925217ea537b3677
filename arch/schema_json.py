"""JSON Schema of architecture files, for editors, from the models that check them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic.json_schema import models_json_schema

from arch.registry import family_named, family_names


def json_schema() -> dict[str, Any]:
    """One schema for all families: a document must match that of its ``family``."""
    mode: Literal["validation"] = "validation"
    models = [(family_named(name).schema, mode) for name in family_names()]
    references, definitions = models_json_schema(models)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tilewright architecture",
        "anyOf": list(references.values()),
        **definitions,
    }
