"""Must the HBM hold all that is alive, and no more, and is too much refused with its amounts?"""

from __future__ import annotations

import pytest

from arch.load import load_architecture
from mapper.cost import InfeasibleError
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from sim.gpu.launches import kernel_groups, never_written
from sim.kernel_models import evaluate
from sim.memory import peak_live_bytes, size_bytes


def peak(network: Workload) -> int:
    return evaluate(network, load_architecture("h200"), {}, "roofline").memory["hbm"]


def test_attention_holds_queries_caches_and_results_at_once_but_no_scores() -> None:
    elements = 8 * 1024 * 64
    for form in ("parts", "streaming"):
        network = load_workload(f"attention:heads=8,head=64,seq=1024,dtype=bf16,form={form}")
        assert peak(network) == 2 * 4 * elements


def test_scores_of_heads_too_wide_for_a_fused_kernel_are_held() -> None:
    network = load_workload("attention:heads=8,head=512,seq=1024,dtype=bf16")
    assert not never_written(kernel_groups(network))
    assert peak(network) == peak_live_bytes(network)


def test_what_is_kept_for_the_backward_pass_counts() -> None:
    """A layer more needs its weights, gradients and states, and what it keeps of its tokens."""
    peaks, held = {}, {}
    for layers in (1, 2):
        spec = f"gpt2-medium:layers={layers},seq=256,batch=8,dtype=bf16"
        for training in ("", ",training=adam"):
            network = load_workload(spec + training)
            peaks[layers, training] = peak(network)
            held[layers] = sum(size_bytes(t) for t in network.tensors if t.kind == "weight")
    weights = held[2] - held[1]
    more = {
        training: peaks[2, training] - peaks[1, training] for training in ("", ",training=adam")
    }
    tokens, width = 8 * 256, 1024
    assert more[""] == weights
    # At least the inputs of the products: twice the width into q, k, v and out, 1 and 4 into the
    # feed-forward.
    assert more[",training=adam"] > 3 * weights + 2 * tokens * width * (2 + 1 + 4)


def test_a_training_step_that_cannot_fit_is_refused_with_amounts() -> None:
    network = load_workload("gpt2-xl:layers=12,batch=256,seq=1024,dtype=bf16,training=adam")
    says = r"weights take 860.1 MiB, what is alive besides at the worst moment .* GiB"
    with pytest.raises(InfeasibleError, match=says) as error:
        evaluate(network, load_architecture("h200"), {}, "roofline")
    assert error.value.needed > error.value.allowed == 143771 << 20
