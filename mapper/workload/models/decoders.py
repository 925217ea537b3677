"""Language models that look backwards, by name. Sizes are those of the published configurations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from mapper.workload.models.config import Decoder, Latent, Mixture, Run
from mapper.workload.models.decoder import build_decoder
from mapper.workload.models.phases import DECODE, LANGUAGE, LOGITS, PHASE, ctx, seq, with_positions
from mapper.workload.parameters import Parameter, format_parameters, layers_parameter
from mapper.workload.single.attention import CACHE, FORM
from mapper.workload.single.entry import Build, SingleOperator
from mapper.workload.single.experts import LOADS, SKEW, TRACE, loads_of
from mapper.workload.writing.builder import Builder

Numbers = Mapping[str, int]
Texts = Mapping[str, str]


def _llama(
    layers: int, width: int, heads: int, hidden: int, kv_heads: int | None = None
) -> Decoder:
    """Llama 2: heads of 128; ``kv_heads`` as many as ``heads`` unless given."""
    return Decoder(
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=kv_heads or heads,
        head=128,
        hidden=hidden,
        vocabulary=32000,
        positions=4096,
    )


def _llama3(layers: int, width: int, heads: int, hidden: int) -> Decoder:
    model = _llama(layers, width, heads, hidden, kv_heads=8)
    return replace(model, vocabulary=128256, positions=131072)


def _gpt(layers: int, width: int, heads: int, positions: int) -> Decoder:
    """Vocabulary and blocks of GPT-2; GPT-3 has twice the positions."""
    return Decoder(
        layers=layers,
        width=width,
        heads=heads,
        kv_heads=heads,
        head=width // heads,
        hidden=4 * width,
        vocabulary=50257,
        positions=positions,
        norm="layer_norm",
        gated=False,
        rotary=False,
        bias=True,
        joint=True,
        tied=True,
    )


def _gpt2(layers: int, width: int, heads: int) -> Decoder:
    return _gpt(layers, width, heads, 1024)


def _gpt3(layers: int, width: int, heads: int) -> Decoder:
    return _gpt(layers, width, heads, 2048)


def _deepseek(layers: int, width: int, hidden: int, positions: int, mixture: Mixture) -> Decoder:
    return Decoder(
        layers=layers,
        width=width,
        heads=128,
        kv_heads=128,
        head=128,
        hidden=hidden,
        vocabulary=102400 if layers == 60 else 129280,
        positions=positions,
        mixture=mixture,
        latent=Latent(query_rank=1536, key_rank=512, rope=64),
    )


#: From the configuration files that the models were published with, except GPT-3: table 2.1 of
#: Brown et al., 2020 (its 13B has width 5140 there, a multiple of the 40 heads of 128 is 5120;
#: sparse attention of every other layer is not modelled).
DECODERS = {
    "gpt2": (_gpt2(12, 768, 12), "GPT-2, 124 M parameters"),
    "gpt2-medium": (_gpt2(24, 1024, 16), "GPT-2, 355 M parameters"),
    "gpt2-large": (_gpt2(36, 1280, 20), "GPT-2, 774 M parameters"),
    "gpt2-xl": (_gpt2(48, 1600, 25), "GPT-2, 1.56 B parameters"),
    "gpt3-125m": (_gpt3(12, 768, 12), "GPT-3 Small"),
    "gpt3-350m": (_gpt3(24, 1024, 16), "GPT-3 Medium"),
    "gpt3-760m": (_gpt3(24, 1536, 16), "GPT-3 Large"),
    "gpt3-1.3b": (_gpt3(24, 2048, 16), "GPT-3 XL (16 heads of 128; the paper prints 24)"),
    "gpt3-2.7b": (_gpt3(32, 2560, 32), "GPT-3, 2.7 B parameters"),
    "gpt3-6.7b": (_gpt3(32, 4096, 32), "GPT-3, 6.7 B parameters"),
    "gpt3-13b": (_gpt3(40, 5120, 40), "GPT-3, 13 B parameters"),
    "gpt3-175b": (_gpt3(96, 12288, 96), "GPT-3, 175 B parameters"),
    "llama2-7b": (_llama(32, 4096, 32, 11008), "Llama 2, 6.7 B parameters"),
    "llama2-13b": (_llama(40, 5120, 40, 13824), "Llama 2, 13.0 B parameters"),
    "llama2-70b": (_llama(80, 8192, 64, 28672, kv_heads=8), "Llama 2, 69 B parameters"),
    "llama3.1-8b": (_llama3(32, 4096, 32, 14336), "Llama 3.1, 8.0 B parameters"),
    "llama3.1-70b": (_llama3(80, 8192, 64, 28672), "Llama 3.1, 70.6 B parameters"),
    "llama3.1-405b": (_llama3(126, 16384, 128, 53248), "Llama 3.1, 406 B parameters"),
    "qwen2.5-7b": (
        Decoder(
            layers=28,
            width=3584,
            heads=28,
            kv_heads=4,
            head=128,
            hidden=18944,
            vocabulary=152064,
            positions=131072,
            qkv_bias=True,
        ),
        "Qwen 2.5, 7.6 B parameters",
    ),
    "qwen3-8b": (
        Decoder(
            layers=36,
            width=4096,
            heads=32,
            kv_heads=8,
            head=128,
            hidden=12288,
            vocabulary=151936,
            positions=40960,
            head_norms=True,
        ),
        "Qwen 3, 8.2 B parameters",
    ),
    "qwen3-30b-a3b": (
        Decoder(
            layers=48,
            width=2048,
            heads=32,
            kv_heads=4,
            head=128,
            hidden=6144,
            vocabulary=151936,
            positions=40960,
            head_norms=True,
            mixture=Mixture(experts=128, chosen=8, hidden=768),
        ),
        "Qwen 3, 30.5 B parameters in 128 experts a layer, 8 chosen",
    ),
    "mixtral-8x7b": (
        Decoder(
            layers=32,
            width=4096,
            heads=32,
            kv_heads=8,
            head=128,
            hidden=14336,
            vocabulary=32000,
            positions=32768,
            mixture=Mixture(experts=8, chosen=2, hidden=14336),
        ),
        "Mixtral, 46.7 B parameters in 8 experts a layer, 2 chosen",
    ),
    "deepseek-v2": (
        _deepseek(
            60,
            5120,
            12288,
            163840,
            Mixture(experts=160, chosen=6, hidden=1536, shared=2, dense_layers=1),
        ),
        "DeepSeek-V2, 236 B parameters, latent attention, 160 experts, 6 chosen",
    ),
    "deepseek-v3": (
        _deepseek(
            61,
            7168,
            18432,
            163840,
            Mixture(
                experts=256,
                chosen=8,
                hidden=2048,
                shared=1,
                dense_layers=3,
                score="sigmoid",
                score_bias=True,
            ),
        ),
        "DeepSeek-V3 without its extra prediction layer, 671 B parameters, 256 experts, 8 chosen",
    ),
}


def _build(model: Decoder) -> Build:
    def build(builder: Builder, v: Numbers, texts: Texts) -> list[str]:
        chosen = {}
        if model.mixture is not None:
            chosen = {"experts": model.mixture.experts, "chosen": model.mixture.chosen}
        run = Run(
            batch=v["batch"],
            new=v["seq"],
            context=v["ctx"],
            form=texts["form"],
            all_logits=texts["logits"] == "all",
            absorbed=texts["phase"] == DECODE,
            loads=loads_of(chosen, texts, v["batch"] * v["seq"]) if chosen else (),
        )
        layers = v.get("layers", model.layers)
        return build_decoder(builder, replace(model, layers=layers), run)

    return build


def _parameters(model: Decoder) -> tuple[Parameter, ...]:
    return (
        PHASE,
        Parameter(name="batch", help="sequences", default=1, high=65536),
        seq(model.positions),
        ctx(model.positions),
        layers_parameter(model.layers),
        FORM,
        LOGITS,
        *((SKEW, TRACE) if model.mixture is not None else ()),
        *format_parameters("int8"),
        CACHE,
    )


ENTRIES = tuple(
    SingleOperator(
        name=name,
        description=description,
        parameters=_parameters(model),
        build=_build(model),
        group=LANGUAGE,
        exclusive=LOADS,
        settle=partial(with_positions, name, model.positions),
    )
    for name, (model, description) in DECODERS.items()
)
