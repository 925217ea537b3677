"""Is attention priced as the kernel that a library would run: masked, grouped, wide, stored?"""

from __future__ import annotations

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from kernels_ref.library.eager_gpt2 import gpt2
from mapper.cost import Metrics
from mapper.workload.load import load_workload
from mapper.workload.torch_import.importing import import_built
from sim.devices.gpu import chip_of
from sim.gpu.constants import gpu_model
from sim.gpu.demand import Call
from sim.gpu.launch import Launch
from sim.gpu.launches import launches
from sim.gpu.predict import load_of
from sim.kernel_models import evaluate

LONG = "heads=32,kv_heads=8,head=128,dtype=bf16"


def attention_of(spec: str) -> Launch:
    (found,) = (launch for launch in launches(load_workload(spec)) if launch.call.kind == "sdpa")
    return found


def run(spec: str, fidelity: str = "analytical") -> Metrics:
    return evaluate(load_workload(spec), load_architecture("h200"), {}, fidelity)


@pytest.mark.parametrize("form", ["parts", "streaming"])
@pytest.mark.parametrize(
    "model", ["llama2-7b", "llama3.1-8b", "qwen3-8b", "mixtral-8x7b", "gpt3-125m", "deepseek-v2"]
)
def test_decoders_that_are_written_out_have_a_causal_mask(model: str, form: str) -> None:
    found = attention_of(f"{model}:layers=1,seq=64,dtype=bf16,form={form}")
    assert found.call.params["causal"] == 1
    assert found.useful_macs == pytest.approx(found.macs * 65 / 128)


@pytest.mark.parametrize("form", ["parts", "streaming"])
def test_encoders_and_single_tokens_have_none(form: str) -> None:
    for spec in ("bert-base:layers=1,seq=64", "llama3.1-8b:layers=1,phase=decode,ctx=64"):
        found = attention_of(f"{spec},dtype=bf16,form={form}")
        assert found.call.params["causal"] == 0
        assert found.useful_macs == found.macs


def test_an_imported_decoder_and_the_one_written_out_run_the_same_attention() -> None:
    written = attention_of("gpt2:layers=1,seq=256,dtype=bf16")
    network = import_built(lambda: gpt2(1, 256, layers=1), name="gpt2", dtype="bf16")
    (imported,) = (launch for launch in launches(network) if launch.call.kind == "sdpa")
    assert written.call == imported.call
    assert written.useful_macs == imported.useful_macs


@pytest.mark.parametrize("form", ["parts", "streaming"])
def test_a_window_is_attention_of_as_many_keys_and_says_so(form: str) -> None:
    found = attention_of(f"attention:heads=8,seq=2048,window=256,dtype=bf16,form={form}")
    assert (found.call.params["Sq"], found.call.params["Skv"]) == (2048, 256)
    assert "window of 256 keys" in found.note


def test_what_a_mask_hides_is_neither_computed_nor_useful() -> None:
    whole, masked = (run(f"attention:seq=16384,causal={causal},{LONG}") for causal in (0, 1))
    assert 0.5 < masked.latency_ps / whole.latency_ps < 0.6
    used, all_used = (m.components["tensor"].utilization for m in (masked, whole))
    assert used / all_used == pytest.approx(0.5 * whole.latency_ps / masked.latency_ps, rel=1e-3)


@pytest.mark.parametrize("chunks", [1, 16])
def test_chunks_of_a_causal_attention_are_one_kernel(chunks: int) -> None:
    spec = f"attention:seq=4096,{LONG},form=streaming"
    whole = attention_of(f"{spec},causal=1")
    cut = attention_of(f"{spec},causal_chunks={chunks}")
    assert cut.call == whole.call
    assert cut.useful_macs == pytest.approx(whole.useful_macs)


def test_new_tokens_after_cached_ones_see_these_and_their_own_triangle() -> None:
    """Chunked prefill: in all as many pairs as a prefill at once, in about the same time."""
    once = attention_of(f"attention:seq=8192,causal=1,{LONG}")
    chunks = [
        attention_of(f"attention:seq=2048,ctx={ctx},causal=1,{LONG}")
        for ctx in (2048, 4096, 6144, 8192)
    ]
    assert [c.call.params.get("past", 0) for c in chunks] == [0, 2048, 4096, 6144]
    assert sum(c.useful_macs for c in chunks) == pytest.approx(once.useful_macs)
    sizes = (2048, 4096, 6144, 8192)
    times = [run(f"attention:seq=2048,ctx={c},causal=1,{LONG}").latency_ps for c in sizes]
    unmasked = [run(f"attention:seq=2048,ctx={c},{LONG}").latency_ps for c in sizes]
    assert times == sorted(times)
    assert all(one < other for one, other in zip(times, unmasked, strict=True))
    assert 1 < sum(times) / run(f"attention:seq=8192,causal=1,{LONG}").latency_ps < 1.15


@pytest.mark.parametrize("form", ["parts", "streaming"])
@pytest.mark.parametrize(
    "spec",
    [
        "attention:heads=8,head=512,seq=1,ctx=512",
        "attention:heads=8,head=264,seq=64",
        "mla:seq=1,ctx=512",
        "deepseek-v3:layers=1,phase=decode,ctx=512",
    ],
)
def test_heads_wider_than_fused_kernels_run_as_products_and_a_softmax(spec: str, form: str) -> None:
    network = load_workload(f"{spec},dtype=bf16,form={form}")
    found = list(launches(network))
    noted = [launch for launch in found if "two products and a softmax" in launch.note]
    assert len(noted) == 1
    kinds = [launch.call.kind for launch in found]
    at = found.index(noted[0])
    assert kinds[at + 1] == "row_softmax"
    assert kinds[at] == kinds[at + 2]
    assert "sdpa" not in kinds
    assert sum(launch.macs for launch in found) == network.macs


def test_both_forms_of_wide_heads_run_the_same_kernels() -> None:
    parts, streaming = (
        [
            launch.call
            for launch in launches(load_workload(f"mla:seq=1,ctx=512,dtype=bf16,form={form}"))
        ]
        for form in ("parts", "streaming")
    )
    assert parts == streaming


def test_heads_end_at_256() -> None:
    kinds = [
        [x.call.kind for x in launches(load_workload(f"attention:heads=8,seq=64,head={head}"))]
        for head in (256, 257)
    ]
    assert kinds[0] == ["sdpa"]
    assert "sdpa" not in kinds[1]


def test_scores_that_the_backward_pass_reads_are_written() -> None:
    forward = [
        launch.call.kind for launch in launches(load_workload("gpt2-medium:layers=1,seq=64"))
    ]
    trained = list(launches(load_workload("gpt2-medium:layers=1,seq=64,training=sgd,dtype=bf16")))
    assert "sdpa" in forward
    assert "sdpa" not in [launch.call.kind for launch in trained]
    assert any("backward pass" in launch.note for launch in trained)


def test_the_backward_pass_of_a_streaming_attention_has_its_products() -> None:
    spec = "gpt2-medium:layers=1,seq=64,batch=8,training=sgd,dtype=bf16,form=streaming"
    found = [launch for launch in launches(load_workload(spec)) if launch.call.kind == "sdpa"]
    forward, *backward = found
    macs = [launch.macs / forward.macs for launch in backward]
    assert sorted(macs) == [1.5, 2.0]
    for launch, share in zip(backward, macs, strict=True):
        assert launch.call.params["B"] == pytest.approx(8 * 0.8 * share)
        assert launch.call.params["causal"] == 1


DECODE = "attention:batch=64,heads=32,kv_heads=8,seq=1,ctx=8192"


@pytest.mark.parametrize("form", ["parts", "streaming"])
@pytest.mark.parametrize(("cache", "width"), [("fp8", 8), ("int8", 8), ("int4", 4)])
def test_a_narrow_cache_moves_its_own_bytes(form: str, cache: str, width: int) -> None:
    plain, narrow = (run(f"{DECODE},dtype=bf16,form={form},cache={c}") for c in ("bf16", cache))
    elements = 64 * 8 * 8192 * 128 * 2
    spared = plain.components["hbm"].read_bytes - narrow.components["hbm"].read_bytes
    # Of all that is moved (the results' bytes too) as large a share.
    assert spared == pytest.approx(elements * (16 - width) / 8, rel=0.01)
    assert narrow.latency_ps < plain.latency_ps
    assert any(f"{cache} keys and values" in note for note in narrow.notes)


def test_a_model_with_a_narrow_cache_is_faster_than_without() -> None:
    spec = "llama3.1-8b:layers=1,phase=decode,batch=64,ctx=8192,dtype=bf16"
    assert run(f"{spec},cache=fp8").latency_ps < run(spec).latency_ps


@pytest.mark.parametrize(("dtype", "cache"), [("bf16", "fp16"), ("fp32", "int8"), ("bf16", "fp32")])
def test_a_cache_that_no_kernel_takes_is_refused(dtype: str, cache: str) -> None:
    with pytest.raises(InputError, match=f"{dtype} queries and {cache} keys"):
        run(f"attention:heads=8,seq=1,ctx=64,dtype={dtype},cache={cache}")


def test_fp32_attention_takes_longer_where_there_are_fewer_lanes_and_never_beats_the_peak() -> None:
    spec = "attention:heads=8,head=64,seq=4096,dtype=fp32"
    network = load_workload(spec)
    h200, a100 = (
        evaluate(network, load_architecture(n), {}, "event") for n in ("h200", "a100_80g")
    )
    lanes = (132 * 128 * 1980) / (108 * 64 * 1410)
    assert a100.latency_ps / h200.latency_ps == pytest.approx(lanes, rel=0.25)
    assert a100.components["tensor"].utilization <= 1


def test_a_call_without_a_past_is_what_torch_means_by_causal() -> None:
    """A library's mask without an offset: query ``i`` sees ``i`` keys, whatever lies behind."""
    model = gpu_model(chip_of(load_architecture("h200")))
    sizes = {"B": 1, "H": 32, "Hkv": 32, "Sq": 2048, "D": 128, "causal": 1}
    calls = [
        Call(kind="sdpa", params={**sizes, **more}, dtype="bf16")
        for more in ({"Skv": 2048}, {"Skv": 8192}, {"Skv": 8192, "past": 6144})
    ]
    square, torch, chunk = load_of(calls, model).demand.macs
    assert torch == square
    tiles, past = 16, 48
    assert chunk / square == pytest.approx((tiles * (tiles + 1) / 2 + tiles * past) / 136)
