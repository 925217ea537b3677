"""``hf:llama:hidden_size=4096,seq=512`` or ``hf:path/config.json:seq=512``, before it is built.

Neither torch nor transformers is needed here; which fields a configuration has is checked when it
is built.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arch.datatypes import BITS
from arch.errors import InputError, Problem
from mapper.workload.parameters import Parameter, Value, only_one_of, parse_parameters, split_pairs
from mapper.workload.single.experts import LOADS, SKEW, TRACE

PREFIX = "hf:"

#: How a model is run; every other ``key=value`` is a field of its configuration.
PARAMETERS = (
    Parameter(
        name="phase",
        help="prefill: seq new tokens; decode: one token against ctx cached positions",
        default="prefill",
        choices=("prefill", "decode"),
    ),
    Parameter(name="batch", help="inputs processed together", default=1, high=65536),
    Parameter(name="seq", help="tokens of each input", default=512, high=2**24),
    Parameter(
        name="ctx",
        help="positions in the caches while decoding, the new token's included",
        default=2048,
        low=2,
        high=2**24,
    ),
    Parameter(
        name="image",
        help="height and width of the image",
        default_text="as in the configuration, else 224",
        high=8192,
    ),
    Parameter(name="seconds", help="of sound, where a model takes any", default=10, high=86400),
    Parameter(
        name="logits",
        help="language models: scores of the last token only, as serving systems do, or of all",
        default="last",
        choices=("last", "all"),
    ),
    Parameter(
        name="dtype",
        help="format of activations and weights",
        default_text="as in the configuration",
        choices=tuple(BITS),
    ),
    SKEW,
    TRACE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HfModel:
    """A model that is named but not built: its type, its configuration's fields, how it is run."""

    title: str
    model_type: str
    fields: Mapping[str, Any]
    chosen: Mapping[str, Value]
    file: Path | None = None

    @property
    def dtype(self) -> str | None:
        dtype = self.chosen.get("dtype")
        return None if dtype is None else str(dtype)


def find_hf(spec: str) -> HfModel | None:
    """The model that ``spec`` names, if it begins with ``hf:``."""
    if not spec.startswith(PREFIX):
        return None
    source, _, text = spec.removeprefix(PREFIX).partition(":")
    given = split_pairs(spec, text)
    names = {parameter.name for parameter in PARAMETERS}
    chosen = parse_parameters(
        source, PARAMETERS, {key: value for key, value in given.items() if key in names}
    )
    only_one_of(spec, given, LOADS)
    _check_phase(spec, given, str(chosen["phase"]))
    own = {key: _literal(value) for key, value in given.items() if key not in names}
    _check_counts(spec, own)
    if not source.endswith(".json"):
        return HfModel(title=spec, model_type=source.strip(), fields=own, chosen=chosen)
    file = Path(source)
    fields = _read(file)
    if not isinstance(fields.get("model_type"), str):
        message = "has no model_type, so it is not a configuration of transformers"
        raise InputError(Problem(message, file=file))
    model_type = str(fields.pop("model_type"))
    merged = fields | own
    return HfModel(title=spec, model_type=model_type, fields=merged, chosen=chosen, file=file)


#: What the other phase alone makes use of.
_UNUSED = {"prefill": "ctx", "decode": "seq"}


def _check_phase(spec: str, given: Mapping[str, str], phase: str) -> None:
    unused = _UNUSED[phase]
    if unused in given:
        message = f"phase={phase} makes no use of {unused}; leave it out"
        raise InputError(Problem(message, where=spec))


def _check_counts(spec: str, own: Mapping[str, Any]) -> None:
    """Counts and sizes must be at least one; transformers builds a network without layers else."""
    for key, value in own.items():
        counts = key.startswith("num_") or key.endswith(("_size", "_layers", "_heads"))
        if counts and isinstance(value, int) and value < 1:
            raise InputError(Problem(f"{key} is {value}; allowed at least 1", where=spec))


def _read(file: Path) -> dict[str, Any]:
    try:
        data = json.loads(file.read_bytes())
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise InputError(Problem(message, file=file)) from error
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise InputError(Problem(f"is not JSON: {error}", file=file, line=line)) from error
    if not isinstance(data, dict):
        raise InputError(Problem("is not a JSON object", file=file))
    return data


def _literal(text: str) -> Any:
    """Numbers, true, false and null as JSON has them; anything else is a text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
