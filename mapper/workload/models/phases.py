"""How a language model is run: which of its tokens are new, and which were computed earlier."""

from __future__ import annotations

from collections.abc import Mapping

from mapper.workload.parameters import Parameter, Value
from mapper.workload.single.entry import require

#: What language models are listed under.
LANGUAGE = "language models"

DECODE = "decode"

PHASE = Parameter(
    name="phase",
    help="prefill: a prompt, or a chunk of it; decode: the next token, or several to be verified",
    default="prefill",
    choices=("prefill", DECODE),
)
LOGITS = Parameter(
    name="logits",
    help="at the last position of each sequence, or at all new ones",
    default_text="last; in decode all",
    choices=("last", "all"),
)
#: New tokens of each sequence, and positions in the caches, unless given.
NEW = {"prefill": 512, DECODE: 1}
DECODE_CTX = 2048


def seq(high: int) -> Parameter:
    return Parameter(
        name="seq",
        help="new tokens of each sequence",
        default_text=f"{NEW['prefill']}; in decode {NEW[DECODE]}",
        high=high,
    )


def ctx(high: int) -> Parameter:
    return Parameter(
        name="ctx",
        help="positions that the new tokens see: those cached earlier and their own",
        default_text=f"seq; in decode {min(DECODE_CTX, high)}",
        high=high,
    )


def with_positions(name: str, positions: int, values: Mapping[str, Value]) -> dict[str, Value]:
    """The values with ``seq``, ``ctx`` and ``logits`` as the phase has them unless given."""
    decoding = values["phase"] == DECODE
    new = int(values.get("seq", NEW[str(values["phase"])]))
    seen = int(values.get("ctx", min(DECODE_CTX, positions) if decoding else new))
    require(
        name,
        (seen >= new, f"ctx = {seen} must include the {new} new tokens (seq)"),
        (
            seen != new or not decoding,
            f"with ctx = {seen} nothing is cached before the {new} new tokens (seq); allowed a "
            "larger ctx, or phase=prefill",
        ),
    )
    return with_logits({**values, "seq": new, "ctx": seen})


def with_logits(values: Mapping[str, Value]) -> dict[str, Value]:
    """Tokens to be verified need all logits, a prompt those that choose the next token."""
    return {"logits": "all" if values["phase"] == DECODE else "last", **values}
