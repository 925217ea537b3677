"""Are the networks' parameters and multiply-accumulates those of the published models?"""

from __future__ import annotations

from pathlib import Path

import pytest

from arch.errors import InputError
from mapper.workload.load import load_workload
from mapper.workload.same_work import same_work

#: As printed by the models' authors or in the files of their releases: parameters in all.
#: GPT-2: sizes of the released checkpoints (the paper rounds them); Llama 2 and 3.1, Qwen,
#: Mixtral: model.safetensors.index.json divided by two bytes; DeepSeek-V3: 671.0 B without the
#: extra prediction layer; ViT: torchvision's table of weights; BERT: with pooler, no head.
PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
    "llama3.1-405b": 405_853_388_800,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-8b": 8_190_735_360,
    "qwen3-30b-a3b": 30_532_122_624,
    "mixtral-8x7b": 46_702_792_704,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_419_200,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "vit-ti": 5_717_416,
    "vit-s": 22_050_664,
    "vit-b": 86_567_656,
    "vit-b32": 88_224_232,
    "vit-l": 304_326_632,
    "vit-h": 632_045_800,
}

#: Printed rounded: the papers' tables.
ROUNDED = {
    "gpt3-125m": 125e6,
    "gpt3-350m": 356e6,
    "gpt3-760m": 760e6,
    "gpt3-1.3b": 1.3e9,
    "gpt3-2.7b": 2.65e9,
    "gpt3-6.7b": 6.7e9,
    "gpt3-13b": 13e9,
    "gpt3-175b": 175e9,
    "mamba2-130m": 129e6,
    "mamba2-370m": 368e6,
    "mamba2-780m": 780e6,
    "mamba2-1.3b": 1.34e9,
    "mamba2-2.7b": 2.70e9,
    "dit-s": 33e6,
    "dit-b": 130e6,
    "dit-l": 458e6,
    "dit-xl": 675e6,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_the_released_model(name: str) -> None:
    assert load_workload(name).parameters == PUBLISHED[name]


#: torch's FlopCounterMode on the implementations of torchvision (B and L) and timm (Ti and S).
PUBLISHED_MACS = {
    "vit-ti": 1_253_683_200,
    "vit-s": 4_598_882_304,
    "vit-b": 17_563_828_224,
    "vit-b32": 4_409_186_304,
    "vit-l": 61_554_712_576,
}


@pytest.mark.parametrize("name", PUBLISHED_MACS)
def test_macs_are_those_of_the_standard_implementation(name: str) -> None:
    for form in ("parts", "streaming"):
        assert load_workload(f"{name}:form={form}").macs == PUBLISHED_MACS[name]


@pytest.mark.parametrize("name", ROUNDED)
def test_parameters_are_those_of_the_paper(name: str) -> None:
    assert load_workload(name).parameters == pytest.approx(ROUNDED[name], rel=0.02)


def test_prefill_counts_by_the_closed_form() -> None:
    """Matrices once per token, attention twice per pair of positions and head element."""
    seq, layers, width, hidden = 96, 80, 8192, 28672
    matrices = layers * (width * width * 2 + 2 * width * 1024 + 3 * width * hidden)
    attention = layers * 2 * seq * seq * width
    head = width * 128256
    for form in ("parts", "streaming"):
        workload = load_workload(f"llama3.1-70b:seq={seq},form={form}")
        assert workload.macs == seq * matrices + attention + head


@pytest.mark.parametrize("form", ["parts", "streaming"])
def test_decoding_reads_every_weight_and_the_cache_once(form: str) -> None:
    batch, ctx = 4, 512
    workload = load_workload(f"llama3.1-70b:phase=decode,batch={batch},ctx={ctx},form={form}")
    embedding = 128256 * 8192
    norms = (2 * 80 + 1) * 8192
    matrices = workload.parameters - embedding - norms
    attention = 80 * 2 * ctx * 8192
    assert workload.macs == batch * (matrices + attention)
    caches = [t for t in workload.tensors if t.name.endswith("kv_cache")]
    assert sum(t.elements for t in caches) == 2 * 80 * batch * ctx * 1024


@pytest.mark.parametrize("form", ["parts", "streaming"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_new_tokens_see_all_positions_and_are_cached(phase: str, form: str) -> None:
    """Matrices once per new token, attention per pair of a new token and a position."""
    batch, new, ctx, layers, width, hidden = 3, 8, 200, 2, 4096, 14336
    spec = f"phase={phase},batch={batch},seq={new},ctx={ctx},layers={layers},form={form}"
    workload = load_workload(f"llama3.1-8b:{spec},logits=last")
    matrices = layers * (width * width * 2 + 2 * width * 1024 + 3 * width * hidden)
    attention = layers * 2 * new * ctx * width
    assert workload.macs == batch * (new * matrices + attention + width * 128256)
    updates = [o for o in workload.operators if o.kind == "cache_update"]
    assert sum(o.points for o in updates) == layers * 2 * batch * new * 1024


def test_latents_of_earlier_tokens_are_expanded_in_prefill() -> None:
    """Keys and values of every position; queries, matrices and scores of the new ones."""
    new, ctx, heads, rank, rope, head = 16, 256, 128, 512, 64, 128
    workload = load_workload(f"deepseek-v3:seq={new},ctx={ctx},layers=1")
    core = [o.macs for o in workload.operators if o.kind.startswith("attention")]
    assert sum(core) == heads * new * ctx * (2 * head + rope)
    expanding = [workload.operator(f"layers.0.attention.{n}").macs for n in ("k_b", "v_b")]
    assert expanding == [ctx * heads * head * rank] * 2
    (cache,) = (t for t in workload.tensors if t.name.endswith("kv_cache"))
    assert cache.elements == ctx * (rank + rope)


def test_a_prompt_in_chunks_is_the_prompt() -> None:
    """Conservation: matrices compute the same, scores of earlier chunks with later ones are not."""
    whole = load_workload("llama3.1-8b:layers=1,seq=256")
    chunks = [
        load_workload(f"llama3.1-8b:layers=1,seq=64,ctx={ctx}") for ctx in (64, 128, 192, 256)
    ]
    skipped = sum(64 * (256 - ctx) for ctx in (64, 128, 192, 256)) * 2 * 4096
    heads = 3 * 4096 * 128256
    assert sum(chunk.macs for chunk in chunks) == whole.macs - skipped + heads


@pytest.mark.parametrize("name", ["gpt2-medium", "llama3.1-8b", "deepseek-v3", "mamba2-130m"])
@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_no_parameter_of_a_phase_is_ignored(name: str, phase: str) -> None:
    """Another value of a size is another count."""
    spec = f"{name}:layers=1,phase={phase}"
    sizes = {"batch": 2, "seq": 2, "ctx": 768, "layers": 2}
    if name.startswith("mamba"):
        del sizes["ctx"]
    plain = load_workload(spec)
    for key, value in sizes.items():
        base = spec.replace("layers=1,", "") if key == "layers" else spec
        assert load_workload(f"{base},{key}={value}").macs != plain.macs, key
    if phase == "prefill":
        assert load_workload(f"{spec},logits=all").macs > plain.macs
    else:
        last, every = (
            load_workload(f"{spec},seq=4,logits={which}").macs for which in ("last", "all")
        )
        assert last < every == load_workload(f"{spec},seq=4").macs


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("llama3.1-8b:seq=64,ctx=63", "ctx = 63 must include the 64 new tokens"),
        ("llama3.1-8b:phase=decode,seq=4096", "ctx = 2048 must include the 4096 new tokens"),
        ("llama3.1-8b:phase=decode,ctx=1", "nothing is cached before the 1 new tokens"),
        ("gpt2-medium:ctx=1025", "allowed an integer 1 to 1024"),
        ("mamba2-130m:phase=decode,ctx=64", "unknown parameter 'ctx'"),
        ("mamba2-130m:phase=decode,chunk=64", "seq = 1 is not a multiple of chunk = 64"),
    ],
)
def test_tokens_that_cannot_be(spec: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        load_workload(spec)
    assert message in str(caught.value)


def test_experts_compute_for_the_chosen_tokens_only() -> None:
    tokens = 64
    workload = load_workload(f"mixtral-8x7b:seq={tokens}")
    experts = [o for o in workload.operators if o.kind == "expert"]
    assert sum(o.macs for o in experts) == 32 * tokens * 2 * 3 * 4096 * 14336
    for skew in ("0.7", "2"):
        skewed = load_workload(f"mixtral-8x7b:seq={tokens},skew={skew}")
        assert skewed.macs == workload.macs
        assert skewed.parameters == workload.parameters


def test_latent_attention_absorbs_when_there_is_a_cache() -> None:
    """Per layer, token and head: scores of rank + rope, contexts of rank, over ctx positions."""
    ctx, heads, rank, rope, head = 256, 128, 512, 64, 128
    workload = load_workload(f"deepseek-v3:phase=decode,ctx={ctx},layers=1")
    core = [o.macs for o in workload.operators if o.kind.startswith("attention")]
    assert sum(core) == heads * ctx * (2 * rank + rope)
    expanding = [workload.operator(f"layers.0.attention.{n}").macs for n in ("q_latent", "v_b")]
    assert expanding == [heads * head * rank] * 2


@pytest.mark.parametrize(
    "spec", ["llama3.1-405b:seq=2048", "deepseek-v3:phase=decode,batch=64,ctx=4096", "gpt3-175b"]
)
def test_equal_layers_are_recognized(spec: str) -> None:
    """As many distinct operators as the layers have, however many layers there are."""
    workload = load_workload(spec)
    few = load_workload(f"{spec}{',' if ':' in spec else ':'}layers=5")
    distinct = {same_work(workload, operator) for operator in workload.operators}
    assert distinct == {same_work(few, operator) for operator in few.operators}
    assert len(distinct) < 60 < len(workload.operators)


def test_formats_of_weights_caches_and_activations() -> None:
    spec = "llama3.1-8b:phase=decode,layers=1,dtype=bf16,weights=int4_g128,cache=fp8,sparsity=2:4"
    workload = load_workload(spec)
    assert workload.tensor("layers.0.attention.q.weight").dtype == "int4_g128"
    assert workload.tensor("layers.0.attention.q.weight").sparsity is not None
    assert workload.tensor("layers.0.attention.kv_cache").dtype == "fp8"
    for name in ("head.weight", "embed.weight", "layers.0.attention_norm.weight"):
        assert workload.tensor(name).dtype == "bf16"
        assert workload.tensor(name).sparsity is None
    q = workload.operator("layers.0.attention.q")
    assert q.accumulator_dtype == "fp32"


def test_keys_and_values_of_a_joint_matrix_are_copied_only_into_another_format() -> None:
    """A new cache in the activations' format is the matrix's result; another one is written."""
    plain, narrow = (
        load_workload(f"gpt2:layers=2,seq=16,dtype=bf16,cache={cache}") for cache in ("bf16", "fp8")
    )
    copies = [o for o in narrow.operators if o.kind == "cache_update"]
    assert len(narrow.operators) == len(plain.operators) + len(copies)
    assert sum(o.points for o in copies) == 2 * 2 * 16 * 768
    assert {narrow.tensor(o.output.tensor).dtype for o in copies} == {"fp8"}
    assert plain.macs == narrow.macs


def test_a_table_that_is_also_an_output_matrix_keeps_its_format() -> None:
    workload = load_workload("gpt2:layers=1,seq=8,dtype=bf16,weights=int4")
    narrow = {t.name for t in workload.tensors if t.dtype == "int4"}
    parts = ("attention.qkv", "attention.o", "feed_forward.fc1", "feed_forward.fc2")
    assert narrow == {f"layers.0.{part}.weight" for part in parts}
    assert load_workload("gpt2:layers=1,seq=8,dtype=bf16").macs == workload.macs


@pytest.mark.parametrize(
    "name", ["llama3.1-8b", "gpt2", "gpt2-xl", "mamba2-130m", "bert-base", "vit-b", "dit-s"]
)
def test_layers_are_the_first_ones(name: str) -> None:
    """Each further layer adds the same; more than there are is refused."""
    counts = [load_workload(f"{name}:layers={layers}").macs for layers in (1, 2, 3)]
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0
    with pytest.raises(InputError, match="layers: 999 is not allowed; allowed an integer 1 to"):
        load_workload(f"{name}:layers=999")


@pytest.mark.parametrize(
    "spec",
    [
        "mixtral-8x7b:layers=1,seq=8",
        "qwen3-30b-a3b:layers=1,seq=8",
        "deepseek-v2:layers=2,seq=8",
        "moe:tokens=8,experts=4,width=2,hidden=2",
        "hf:mixtral:seq=8",
    ],
)
def test_loads_of_experts_are_said_once(spec: str, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("0,1\n" * 8)
    with pytest.raises(InputError, match="skew and trace exclude each other"):
        load_workload(f"{spec},skew=0,trace={trace}")
