"""Sizes of one layer of language models, by name: all that a transformer block needs to know."""

from __future__ import annotations

from dataclasses import dataclass

from mapper.workload.models.config import Decoder
from mapper.workload.models.decoders import DECODERS


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerSizes:
    """``style`` is ``llama`` (RMS norm, rotary positions, gated feed-forward) or ``gpt`` (layer
    norm, biases, GELU)."""

    style: str
    hidden: int
    feed_forward: int
    heads: int
    kv_heads: int

    @property
    def head_depth(self) -> int:
        return self.hidden // self.heads


def _sizes(decoder: Decoder) -> LayerSizes:
    return LayerSizes(
        style="llama" if decoder.gated else "gpt",
        hidden=decoder.width,
        feed_forward=decoder.hidden,
        heads=decoder.heads,
        kv_heads=decoder.kv_heads,
    )


def _is_plain(decoder: Decoder) -> bool:
    """Has a layer nothing that the two styles do not have?"""
    extras = decoder.mixture or decoder.latent or decoder.head_norms or decoder.qkv_bias
    return not extras and decoder.width == decoder.heads * decoder.head


_PLAIN = {name: _sizes(decoder) for name, (decoder, _) in DECODERS.items() if _is_plain(decoder)}

#: Under names of models whose layers have the same sizes too: Llama 3 (arXiv:2407.21783, table 3)
#: and Mistral 7B (arXiv:2310.06825, table 1).
LAYERS = _PLAIN | {
    "llama3-8b": _PLAIN["llama3.1-8b"],
    "llama3-70b": _PLAIN["llama3.1-70b"],
    "mistral-7b": _PLAIN["llama3.1-8b"],
}
