"""Are models built by transformers imported with all their work, and mistakes explained?

Counts are compared with torch's flop counter on the library's own model, and with our zoo's
definition of the same network.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from arch.errors import InputError
from mapper.workload.hf_import.model import import_model
from mapper.workload.hf_import.spec import find_hf
from mapper.workload.load import check_workload, load_workload

transformers = pytest.importorskip("transformers")

LLAMA = {
    "hidden_size": 256,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 512,
    "vocab_size": 1000,
}
LLAMA_TEXT = ",".join(f"{key}={value}" for key, value in LLAMA.items())
LLAMA_8B = (
    "hidden_size=4096,num_hidden_layers=32,num_attention_heads=32,num_key_value_heads=8,"
    "intermediate_size=14336,vocab_size=128256,dtype=int8"
)


def flops(model_type: str, fields: dict[str, int], batch: int, seq: int) -> tuple[int, int]:
    """Parameters and MACs of the library's own model, scores of all tokens."""
    config = transformers.CONFIG_MAPPING[model_type](**fields)
    with torch.device("meta"), torch.no_grad():
        network = transformers.AutoModelForCausalLM.from_config(config).eval()
        # A mask of four axes is taken as it is; the library would look at values otherwise.
        mask = torch.zeros(batch, 1, seq, seq)
        with FlopCounterMode(display=False) as counter:
            network(torch.zeros(batch, seq, dtype=torch.int64), attention_mask=mask)
    return sum(p.numel() for p in network.parameters()), counter.get_total_flops() // 2


@pytest.mark.parametrize(
    ("model_type", "fields"),
    [("llama", LLAMA), ("gpt2", {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 300})],
)
def test_counts_equal_those_of_the_library(model_type: str, fields: dict[str, int]) -> None:
    text = ",".join(f"{key}={value}" for key, value in fields.items())
    workload = load_workload(f"hf:{model_type}:{text},batch=2,seq=24,logits=all")
    assert (workload.parameters, workload.macs) == flops(model_type, fields, 2, 24)


@pytest.mark.parametrize("phase", ["phase=prefill,seq=64", "phase=decode,ctx=64,batch=2"])
def test_llama_3_is_that_of_the_zoo(phase: str) -> None:
    """Two definitions, one of them in the library: same parameters, products, norms and caches."""
    ours = load_workload(f"llama3.1-8b:{phase}")
    theirs = load_workload(f"hf:llama:{LLAMA_8B},{phase}")
    assert (theirs.parameters, theirs.macs) == (ours.parameters, ours.macs)
    kinds = ("rms_norm", "attention_scores", "softmax", "cache_update", "silu")
    for kind in (("gemm", "matmul"), *((kind,) for kind in kinds)):
        found, expected = (
            [o.points for o in workload.operators if o.kind in kind] for workload in (theirs, ours)
        )
        assert found or kind == ("cache_update",)
        # The library also normalizes the tokens whose scores nobody asked for.
        assert found[: 2 * 32] == expected[: 2 * 32]


def test_a_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"model_type": "llama", "architectures": ["x"], **LLAMA}))
    workload = load_workload(f"hf:{file}:seq=16")
    assert workload.parameters == load_workload(f"hf:llama:{LLAMA_TEXT},seq=16").parameters
    assert load_workload(f"hf:{file}:seq=16,num_hidden_layers=1").macs < workload.macs


def test_a_405_billion_decoder_is_traced_by_few_layers() -> None:
    workload = load_workload(
        "hf:llama:hidden_size=16384,num_hidden_layers=126,num_attention_heads=128,"
        "num_key_value_heads=8,intermediate_size=53248,vocab_size=128256,seq=128,dtype=int8"
    )
    assert workload.parameters == 405_853_388_800  # Llama 3.1 405B, as released
    layers = {o.name.split(".")[2] for o in workload.operators if o.name.startswith("model.layers")}
    assert len(layers) == 126
    assert any("model.layers.2 to model.layers.125" in note for note in workload.folded)


def test_images_take_the_configurations_size() -> None:
    workload = load_workload("hf:vit:hidden_size=64,num_hidden_layers=2,num_attention_heads=4")
    assert workload.tensor("pixel_values").shape == (1, 3, 224, 224)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hf:llam", "did you mean 'llama'?"),
        ("hf:llama:hiden_size=3", "did you mean 'hidden_size'?"),
        ("hf:llama:hidden_size=7", "the configuration is not valid"),
        ("hf:vit:phase=decode,num_hidden_layers=1", "only language models with a key-value"),
        ("hf:llama:seq=16,ctx=64", "phase=prefill makes no use of ctx"),
        ("hf:llama:phase=decode,seq=4", "phase=decode makes no use of seq"),
        ("hf:clip", "cannot be traced with these inputs alone"),
    ],
)
def test_models_that_cannot_be_built(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_workload(spec)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("{", "is not JSON"),
        ("[1]", "is not a JSON object"),
        ("{}", "has no model_type"),
    ],
)
def test_files_that_are_no_configurations(text: str | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError) as caught:
        check_workload(f"hf:{file}")
    assert message in str(caught.value)


def test_how_a_model_is_run_is_checked_without_building_it() -> None:
    with pytest.raises(InputError, match="batch: 0 is not allowed"):
        check_workload("hf:llama:batch=0")


MIXTURE = (
    "hf:mixtral:hidden_size=64,intermediate_size=96,num_hidden_layers=2,num_attention_heads=4,"
    "num_key_value_heads=2,vocab_size=100,num_local_experts=4,num_experts_per_tok=2"
)


def expert_products(spec: str) -> list[tuple[int, int]]:
    """Rows (of all experts together) and MACs of each product of the first layer's experts."""
    network = load_workload(spec)
    products = [
        o for o in network.operators if "layers.0.mlp.experts" in o.name and o.operation == "mac"
    ]
    return [(o.macs // 64 // 96, o.macs) for o in products]


@pytest.mark.parametrize("skew", ["0", "1.5"])
def test_experts_run_each_token_as_often_as_it_chose(skew: str) -> None:
    """Closed form: 2 experts per token; gate and up are one product of twice the width."""
    rows = [rows for rows, _ in expert_products(f"{MIXTURE},seq=24,skew={skew}")]
    assert sum(rows) == 3 * 24 * 2


def test_experts_that_nobody_chose_are_not_read(tmp_path: Path) -> None:
    """A trace: expert 3 has no token, the others 1, 2 and 1."""
    trace = tmp_path / "chosen.csv"
    trace.write_text("0,1\n1,2\n")
    network = load_workload(f"{MIXTURE},seq=2,trace={trace}")
    products = [
        o for o in network.operators if "layers.0.mlp.experts" in o.name and o.operation == "mac"
    ]
    # One product for the expert with two rows, one for the two with a row each; up and down.
    assert sorted(o.macs for o in products) == [2 * 64 * 96, 2 * 64 * 96] + [4 * 64 * 96] * 2


@pytest.mark.parametrize(
    ("spec", "macs_per_token"),
    [
        ("hf:deepseek_v3:hidden_size=64,num_hidden_layers=1,first_k_dense_replace=0,"
         "moe_intermediate_size=32,n_routed_experts=8,num_experts_per_tok=2,n_group=4,topk_group=2",
         64 * 8 + 3 * 64 * 32 * 3),
        ("hf:qwen3_moe:hidden_size=64,num_hidden_layers=1,moe_intermediate_size=32,num_experts=8,"
         "num_experts_per_tok=2", 64 * 8 + 2 * 64 * 32 * 3),
    ],
)  # fmt: skip
def test_mixtures_of_other_models(spec: str, macs_per_token: int) -> None:
    """Closed form of router, chosen and shared experts; a large vocabulary does not matter."""
    network = load_workload(f"{spec},seq=16")
    found = sum(o.macs for o in network.operators if ".mlp" in o.name)
    assert found == 16 * macs_per_token
    assert any(o.kind == "top_k" for o in network.operators)


def test_models_without_keys_and_values_cannot_decode() -> None:
    with pytest.raises(InputError, match="with a key-value cache can decode"):
        load_workload("hf:mamba:num_hidden_layers=1,hidden_size=32,phase=decode")


def test_a_selective_scan_is_written_out_as_steps() -> None:
    """Closed form: the state of each step is read out by one product of its channels and states."""
    spec = "hf:mamba:num_hidden_layers=1,hidden_size=16,state_size=4,expand=2,vocab_size=50,seq={}"
    short, longer = (load_workload(spec.format(seq)) for seq in (3, 5))
    assert len(longer.operators) > len(short.operators)
    per_token = (longer.macs - short.macs) // 2
    # In, convolution, scan parameters, step sizes, read-out, out; one token's scores in all.
    assert per_token == 16 * 64 + 32 * 4 + 32 * (1 + 8) + 32 + 32 * 4 + 32 * 16


def test_latent_attention_decodes_against_its_latents() -> None:
    """The cache of DeepSeek-V3: the latent and the rotated keys of each position, for all heads."""
    spec = (
        "hf:deepseek_v3:hidden_size=64,num_hidden_layers=1,first_k_dense_replace=1,"
        "kv_lora_rank=16,qk_rope_head_dim=8,phase=decode,ctx=32"
    )
    network = load_workload(spec)
    caches = [t for t in network.tensors if t.name.startswith("caches")]
    assert sorted(t.shape[-1] for t in caches) == [8, 16]


def test_more_experts_per_token_than_there_are_is_one_clear_mistake() -> None:
    spec = MIXTURE.replace("num_experts_per_tok=2", "num_experts_per_tok=9")
    assert spec != MIXTURE
    with pytest.raises(InputError, match="num_experts_per_tok is 9; allowed at most 4") as found:
        load_workload(f"{spec},seq=8")
    assert "RuntimeError" not in str(found.value)


def test_loads_of_experts_need_experts(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("0,1\n" * 8)
    dense = f"hf:llama:{LLAMA_TEXT},seq=8"
    assert load_workload(f"{dense},skew=0").macs == load_workload(dense).macs
    for given in ("skew=1", f"trace={trace}"):
        with pytest.raises(InputError, match="is given, but the model has no experts"):
            load_workload(f"{dense},{given}")


def test_skew_and_trace_exclude_each_other(tmp_path: Path) -> None:
    trace = tmp_path / "t.csv"
    trace.write_text("0,1\n" * 8)
    with pytest.raises(InputError, match="skew and trace exclude each other"):
        load_workload(f"{MIXTURE},seq=8,skew=1,trace={trace}")


SEQ2SEQ = {
    "bart": "d_model=32,encoder_ffn_dim=48,decoder_ffn_dim=48,encoder_attention_heads=2,"
    "decoder_attention_heads=2,vocab_size=50",
    "whisper": "d_model=32,encoder_ffn_dim=48,decoder_ffn_dim=48,encoder_attention_heads=2,"
    "decoder_attention_heads=2,vocab_size=50,max_source_positions=20,pad_token_id=0,"
    "bos_token_id=0,eos_token_id=0,decoder_start_token_id=0",
}


@pytest.mark.parametrize("name", SEQ2SEQ)
def test_encoders_of_encoder_decoders_are_not_left_out(name: str) -> None:
    """Each further encoder layer adds the same products, and so does each decoder layer."""
    spec = f"hf:{name}:{SEQ2SEQ[name]},seq=8"
    layers = [(1, 1), (2, 1), (1, 2), (2, 2)]
    workloads = [load_workload(f"{spec},encoder_layers={e},decoder_layers={d}") for e, d in layers]
    one, encoder, decoder, both = (workload.macs for workload in workloads)
    assert encoder > one
    assert decoder > one
    assert both - one == (encoder - one) + (decoder - one)
    assert "ForConditionalGeneration" in workloads[0].folded[0]


def test_a_model_with_attention_of_its_own_is_built_with_it() -> None:
    """Falcon looks its attention up among the library's; it has the library's products."""
    spec = "hf:falcon:hidden_size=64,num_attention_heads=4,num_hidden_layers=1,vocab_size=50,seq=8"
    workload = load_workload(f"{spec},logits=all")
    query_key_value, out = 64 * (64 + 2 * 16), 64 * 64
    feed_forward, head = 2 * 64 * 256, 64 * 50
    scores_and_context = 2 * 8 * 64
    assert workload.macs == 8 * (query_key_value + out + feed_forward + head + scores_and_context)


def test_texts_and_images_are_both_embedded() -> None:
    """CLIP: as many image embeddings as texts, and their products."""
    workload = load_workload("hf:clip:seq=8,batch=2")
    kinds = {operator.kind for operator in workload.operators}
    assert "conv2d" in kinds
    assert "lookup" in kinds
    assert {t.name for t in workload.tensors if t.kind == "input"} >= {"input_ids", "pixel_values"}


def test_sound_is_as_long_as_asked() -> None:
    """wav2vec2: every second more adds fifty positions, hence the same products linear in them."""
    spec = (
        "hf:wav2vec2:num_hidden_layers=1,hidden_size=32,num_attention_heads=2,"
        "intermediate_size=48,seconds="
    )
    one, two, three = (load_workload(f"{spec}{seconds}").macs for seconds in (1, 2, 3))
    scores_and_context = 2 * 32 * 50**2
    assert abs((three - two) - (two - one) - 2 * scores_and_context) < 0.01 * one


def test_what_a_model_is_called_with_is_said() -> None:
    """LLaVA takes images beside its text; its table of pictures replaces rows of the text."""
    fields = {"num_hidden_layers": 1, "hidden_size": 64, "intermediate_size": 64}
    heads = {"num_attention_heads": 2}
    model = find_hf("hf:llava:seq=8")
    assert model is not None
    parts = {
        "text_config": {"model_type": "llama", "vocab_size": 50, **fields, **heads},
        "vision_config": {
            "model_type": "clip_vision_model",
            "image_size": 28,
            "patch_size": 14,
            **fields,
            **heads,
            "num_hidden_layers": 2,
        },
    }
    workload = import_model(replace(model, fields=parts))
    assert "called with input_ids 1x8, pixel_values 1x3x28x28" in workload.folded[0]
    kinds = [operator.kind for operator in workload.operators]
    assert kinds.count("masked_scatter") == 1
    assert "conv2d" in kinds


def test_images_in_one_matrix_are_attended_one_by_one() -> None:
    """Qwen3-VL's vision part: patches of two images, scores only within each."""
    spec = "hf:qwen3_vl_vision:depth=1,hidden_size=32,num_heads=2,intermediate_size=48,image=64"
    one, two = (load_workload(f"{spec},batch={batch}") for batch in (1, 2))
    assert two.macs == 2 * one.macs
    assert "hidden_states 32x1536" in two.folded[0]


def test_a_model_that_makes_tensors_on_the_cpu() -> None:
    """ImageGPT does; its products are torch's own count of the same network on the CPU."""
    spec = "hf:imagegpt:n_layer=1,n_embd=32,n_head=2,vocab_size=50,seq=8"
    config = transformers.ImageGPTConfig(n_layer=1, n_embd=32, n_head=2, vocab_size=50)
    config._attn_implementation = "eager"
    model = transformers.ImageGPTModel(config).eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(input_ids=torch.zeros(1, 8, dtype=torch.int64), use_cache=False)
    assert 2 * load_workload(spec).macs == counter.get_total_flops()


def test_a_model_of_several_texts_is_no_bug() -> None:
    """MusicGen has two text configurations; this version of the library cannot build it."""
    with pytest.raises(InputError, match="hf:musicgen:phase=decode: "):
        load_workload("hf:musicgen:phase=decode")
