"""Recurrences over a sequence."""

from __future__ import annotations

from collections.abc import Mapping

from mapper.workload.parameters import Parameter, dtype_parameter
from mapper.workload.single.entry import SingleOperator, require
from mapper.workload.writing.builder import Builder
from mapper.workload.writing.scan import Scan, gated_linear_attention, state_space

Numbers = Mapping[str, int]
Texts = Mapping[str, str]


def _scan(name: str, v: Numbers, groups: int) -> Scan:
    chunk = min(v["chunk"], v["seq"])
    require(
        name,
        (v["seq"] % chunk == 0, f"seq = {v['seq']} is not a multiple of chunk = {chunk}"),
        (v["heads"] % groups == 0, f"{v['heads']} heads cannot share {groups} groups"),
    )
    return Scan(
        groups=v["batch"] * groups,
        per_group=v["heads"] // groups,
        tokens=v["seq"],
        chunk=chunk,
        key=v["key"],
        value=v["value"],
    )


def _linear_attention(builder: Builder, v: Numbers, _: Texts) -> list[str]:
    scan = _scan("gated_linear_attention", v, groups=v["heads"])
    keyed, valued = (scan.heads, v["seq"], v["key"]), (scan.heads, v["seq"], v["value"])
    for name, shape in (("query", keyed), ("key", keyed), ("value", valued), ("gate", keyed)):
        builder.input(name, shape)
    state = builder.input("state", (scan.heads, v["key"], v["value"]))
    inputs = ("query", "key", "value", "gate")
    return list(gated_linear_attention(builder, "scan", scan, inputs, state))


def _ssm(builder: Builder, v: Numbers, _: Texts) -> list[str]:
    scan = _scan("ssm", v, v["groups"])
    shared = (scan.groups, v["seq"], v["key"])
    builder.input("C", shared)
    builder.input("B", shared)
    builder.input("x", (scan.heads, v["seq"], v["value"]))
    builder.input("decay", (scan.heads, v["seq"]))
    state = builder.input("state", (scan.heads, v["key"], v["value"]))
    return list(state_space(builder, "scan", scan, ("C", "B", "x", "decay"), state))


_COMMON = (
    Parameter(name="batch", help="sequences", default=1),
    Parameter(name="heads", help="heads"),
    Parameter(name="seq", help="tokens; 1 to decode"),
    Parameter(name="chunk", help="tokens of a chunk", default=64),
)
_DTYPE = dtype_parameter("int8", "format of all operands")

ENTRIES = (
    SingleOperator(
        name="gated_linear_attention",
        description="recurrence with a decay per key element, in chunks (GLA)",
        parameters=(
            *_COMMON,
            Parameter(name="key", help="elements of a key", default=128),
            Parameter(name="value", help="elements of a value", default=256),
            _DTYPE,
        ),
        build=_linear_attention,
    ),
    SingleOperator(
        name="ssm",
        description="state-space recurrence with a decay per head, in chunks (Mamba-2)",
        parameters=(
            *_COMMON,
            Parameter(name="groups", help="groups of heads that share B and C", default=1),
            Parameter(name="key", help="states (elements of B and C)", default=128),
            Parameter(name="value", help="elements of a head", default=64),
            _DTYPE,
        ),
        build=_ssm,
    ),
)
