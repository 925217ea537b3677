"""A layer of a mixture of experts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from arch.errors import InputError, Problem
from mapper.workload.parameters import Parameter, format_parameters
from mapper.workload.single.entry import SingleOperator, require
from mapper.workload.writing.builder import Builder
from mapper.workload.writing.experts import Experts, emit_experts, skewed_loads, traced_loads

Numbers = Mapping[str, int]
Texts = Mapping[str, str]


def skew_of(text: str) -> float:
    """A number from 0 to 4; ``InputError`` otherwise."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 4:
        raise InputError(Problem(f"{text!r} is no skew; allowed a number 0 to 4"))
    return value


def trace_file(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        raise InputError(Problem(f"there is no file {text!r}"))
    return path


SKEW = Parameter(
    name="skew",
    help="load of an expert falls with its rank to this power (Zipf); 0 is even",
    default="0",
    check=skew_of,
    texts="a number 0 to 4",
)
TRACE = Parameter(
    name="trace",
    help="file with a line per token, the experts it chose, instead of skew",
    default_text="none",
    check=trace_file,
    texts="an existing file",
)
#: Both say how many tokens each expert gets.
LOADS = (SKEW.name, TRACE.name)


def loads_of(v: Numbers, texts: Texts, tokens: int) -> tuple[int, ...]:
    """Tokens per expert, from the trace or the skew."""
    if "trace" in texts:
        path = trace_file(texts["trace"])
        return traced_loads(path, tokens, v["experts"], v["chosen"])
    return skewed_loads(tokens, v["experts"], v["chosen"], skew_of(texts["skew"]))


def _experts(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
    require(
        "moe",
        (v["chosen"] <= v["experts"], f"{v['chosen']} of {v['experts']} experts cannot be chosen"),
    )
    layer = Experts(
        tokens=v["tokens"],
        chosen=v["chosen"],
        width=v["width"],
        hidden=v["hidden"],
        loads=loads_of(v, texts, v["tokens"]),
    )
    data = builder.input("input", (v["tokens"], v["width"]))
    return [emit_experts(builder, "moe", data, layer)]


ENTRIES = (
    SingleOperator(
        name="moe",
        description="mixture of experts: router, top-k, gated feed-forwards, weighted sum",
        parameters=(
            Parameter(name="tokens", help="tokens"),
            Parameter(name="experts", help="experts"),
            Parameter(name="chosen", help="experts per token", default=2),
            Parameter(name="width", help="elements of a token"),
            Parameter(name="hidden", help="elements inside an expert"),
            SKEW,
            TRACE,
            *format_parameters("int8"),
        ),
        build=_experts,
        exclusive=LOADS,
    ),
)
