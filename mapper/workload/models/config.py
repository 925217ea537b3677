"""Sizes of decoders (language models that look backwards), and what a run of one is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixture:
    """Experts in place of feed-forwards, except in the first ``dense_layers`` layers.

    ``shared`` experts see every token. ``score_bias``: a parameter per expert that only steers
    the choice (DeepSeek-V3).
    """

    experts: int
    chosen: int
    hidden: int
    shared: int = 0
    dense_layers: int = 0
    score: str = "softmax"
    score_bias: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Multi-head latent attention (DeepSeek-V2, 2024): ranks and parts of a head."""

    query_rank: int
    key_rank: int
    rope: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """A decoder. ``head`` is the size of an attention head (with MLA, without its rotary part).

    ``joint``: one matrix makes queries, keys and values.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    head: int
    hidden: int
    vocabulary: int
    positions: int
    norm: str = "rms_norm"
    gated: bool = True
    rotary: bool = True
    bias: bool = False
    qkv_bias: bool = False
    head_norms: bool = False
    joint: bool = False
    tied: bool = False
    mixture: Mixture | None = None
    latent: Latent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """``new`` tokens of each of ``batch`` sequences, on top of what makes ``context`` positions.

    ``all_logits``: at every new position, not at the last alone. ``loads`` are tokens per expert.
    ``absorbed``: latent attention works on latents, not on keys and values expanded from them.
    """

    batch: int
    new: int
    context: int
    form: str
    all_logits: bool
    absorbed: bool = False
    loads: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        return self.batch * self.new

    @property
    def cached(self) -> bool:
        return self.context > self.new
