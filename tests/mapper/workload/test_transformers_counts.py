"""Do the models count what Hugging Face's implementations of them have and do?

Their modules are made from configuration objects on the meta device: no weights, no network.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from mapper.workload.load import load_workload

transformers = pytest.importorskip("transformers")

SEQ = 64


def made(config: Any, kind: str = "AutoModelForCausalLM") -> Any:
    with torch.device("meta"):
        return getattr(transformers, kind).from_config(config)


def llama(layers: int, width: int, heads: int, kv_heads: int, hidden: int, vocabulary: int) -> Any:
    return transformers.LlamaConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        intermediate_size=hidden,
        vocab_size=vocabulary,
        max_position_embeddings=131072,
    )


def gpt2(layers: int, width: int, heads: int, positions: int = 1024) -> Any:
    return transformers.GPT2Config(
        n_layer=layers, n_embd=width, n_head=heads, n_positions=positions
    )


def qwen2() -> Any:
    return transformers.Qwen2Config(
        num_hidden_layers=28,
        hidden_size=3584,
        num_attention_heads=28,
        num_key_value_heads=4,
        intermediate_size=18944,
        vocab_size=152064,
    )


def qwen3(**more: int) -> dict[str, int]:
    return {
        "hidden_size": 4096,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "intermediate_size": 12288,
        "vocab_size": 151936,
    } | more


def qwen3_moe() -> Any:
    sizes = qwen3(hidden_size=2048, num_hidden_layers=48, num_key_value_heads=4)
    experts = {"num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768}
    return transformers.Qwen3MoeConfig(**sizes, **experts)


def deepseek_v3() -> Any:
    """The defaults of the class are the sizes of the released model."""
    return transformers.DeepseekV3Config()


def mamba2(layers: int, width: int) -> Any:
    return transformers.Mamba2Config(
        num_hidden_layers=layers,
        hidden_size=width,
        num_heads=2 * width // 64,
        head_dim=64,
        n_groups=1,
        vocab_size=50288,
        tie_word_embeddings=True,
    )


#: Decoders whose every token takes the same way, so that their products can be counted.
DENSE: dict[str, Callable[[], Any]] = {
    "gpt2-medium": lambda: gpt2(24, 1024, 16),
    "gpt2-xl": lambda: gpt2(48, 1600, 25),
    "gpt3-6.7b": lambda: gpt2(32, 4096, 32, 2048),
    "llama2-7b": lambda: llama(32, 4096, 32, 32, 11008, 32000),
    "llama2-70b": lambda: llama(80, 8192, 64, 8, 28672, 32000),
    "llama3.1-8b": lambda: llama(32, 4096, 32, 8, 14336, 128256),
    "llama3.1-70b": lambda: llama(80, 8192, 64, 8, 28672, 128256),
    "llama3.1-405b": lambda: llama(126, 16384, 128, 8, 53248, 128256),
    "qwen2.5-7b": qwen2,
    "qwen3-8b": lambda: transformers.Qwen3Config(**qwen3()),
}

#: Models whose products depend on the data, or are no products: parameters only.
OTHERS: dict[str, Callable[[], Any]] = {
    "mixtral-8x7b": lambda: transformers.MixtralConfig(),
    "qwen3-30b-a3b": qwen3_moe,
    "mamba2-370m": lambda: mamba2(48, 1024),
    "mamba2-2.7b": lambda: mamba2(64, 2560),
}


def some(models: Mapping[str, object], *quick: str) -> list[Any]:
    """All of them, those that are not quick marked as slow."""
    return [pytest.param(name, marks=() if name in quick else pytest.mark.slow) for name in models]


def parameters(module: Any) -> int:
    """Tied matrices once."""
    return sum(p.numel() for p in module.parameters())


def macs(module: Any, *inputs: torch.Tensor) -> int:
    """Half the floating-point operations of all products that torch dispatches."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(*inputs)
    operations = counter.get_total_flops()
    assert operations % 2 == 0
    return operations // 2


@pytest.mark.parametrize("name", some(DENSE, "gpt2-medium", "llama3.1-8b", "qwen3-8b"))
def test_dense_decoders(name: str) -> None:
    """All logits, every query against every key: as the eager implementation computes."""
    config = DENSE[name]()
    config._attn_implementation = "eager"
    module = made(config)
    workload = load_workload(f"{name}:seq={SEQ},logits=all")
    assert workload.parameters == parameters(module)
    tokens = torch.zeros(1, SEQ, dtype=torch.int64, device="meta")
    mask = torch.zeros(1, 1, SEQ, SEQ, device="meta")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(tokens, attention_mask=mask, use_cache=False)
    assert counter.get_total_flops() == 2 * workload.macs


def caches(module: Any) -> str:
    """What a model of this version of the library calls them."""
    known = inspect.signature(module.forward).parameters
    return "cache" if "cache" in known else "past_key_values"


@pytest.mark.parametrize("name", some(DENSE, "gpt2-xl", "llama3.1-8b"))
@pytest.mark.parametrize("phase", ["prefill", "decode"])
@pytest.mark.parametrize(("batch", "new", "cached"), [(1, 16, 48), (2, 3, 13)])
def test_new_tokens_after_cached_ones(
    name: str, phase: str, batch: int, new: int, cached: int
) -> None:
    """A chunk of a prompt, or tokens to be verified, on caches that the library is given."""
    config = DENSE[name]()
    config._attn_implementation = "eager"
    config.num_hidden_layers = 2
    module = made(config)
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    head = config.hidden_size // config.num_attention_heads
    cache = transformers.DynamicCache()
    for layer in range(2):
        earlier = torch.zeros(batch, heads, cached, head, device="meta")
        cache.update(earlier, earlier, layer)
    tokens = torch.zeros(batch, new, dtype=torch.int64, device="meta")
    mask = torch.zeros(batch, 1, new, cached + new, device="meta")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(tokens, attention_mask=mask, use_cache=True, **{caches(module): cache})
    spec = f"phase={phase},batch={batch},seq={new},ctx={cached + new},logits=all"
    workload = load_workload(f"{name}:{spec},layers=2")
    assert counter.get_total_flops() == 2 * workload.macs


@pytest.mark.parametrize("name", some(OTHERS, "mixtral-8x7b", "mamba2-370m"))
def test_parameters(name: str) -> None:
    assert load_workload(f"{name}:seq=8").parameters == parameters(made(OTHERS[name]()))


@pytest.mark.slow
def test_deepseek_v3() -> None:
    """Their class keeps the bias that steers the choice of experts as a buffer."""
    module = made(deepseek_v3())
    buffers = [b.numel() for name, b in module.named_buffers() if "e_score_correction" in name]
    assert len(buffers) == 58
    workload = load_workload("deepseek-v3:seq=8")
    assert workload.parameters == parameters(module) + sum(buffers)


@pytest.mark.parametrize(
    ("name", "layers"),
    [("bert-base", 12), pytest.param("bert-large", 24, marks=pytest.mark.slow)],
)
def test_bert(name: str, layers: int) -> None:
    width = {12: 768, 24: 1024}[layers]
    config = transformers.BertConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    module = made(config, "AutoModel")
    workload = load_workload(f"{name}:seq={SEQ}")
    assert workload.parameters == parameters(module)
    tokens = torch.zeros(1, SEQ, dtype=torch.int64, device="meta")
    assert macs(module, tokens) == workload.macs


@pytest.mark.parametrize(
    ("name", "layers", "width", "heads", "patch"),
    [("vit-b", 12, 768, 12, 16), pytest.param("vit-h", 32, 1280, 16, 14, marks=pytest.mark.slow)],
)
def test_vit(name: str, layers: int, width: int, heads: int, patch: int) -> None:
    config = transformers.ViTConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        patch_size=patch,
        num_labels=1000,
    )
    module = made(config, "AutoModelForImageClassification")
    workload = load_workload(name)
    assert workload.parameters == parameters(module)
    assert macs(module, torch.zeros(1, 3, 224, 224, device="meta")) == workload.macs
