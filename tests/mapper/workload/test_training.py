"""Is a step of training the forward pass, its gradients and the update, and nothing else?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arch.errors import InputError
from mapper.hierarchy import execution
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.operators import Operator
from mapper.workload.training.backward import Backward
from sim.memory import peak_live_bytes
from tests.mapper.hardware import architectures
from tests.mapper.program_interpreter import Array, define
from tests.mapper.test_operators_compute import run_lowered

#: Operators that are linear in the named operand, and the smallest shapes that tell mistakes.
LINEAR = {
    "gemm:M=3,N=4,K=5": ("input", "weight"),
    "bmm:B=2,M=3,N=2,K=4": ("operand0", "operand1"),
    "einsum:expression=ikl*kj*lj->ij,i=3,k=2,l=4,j=2": ("operand0", "operand1", "operand2"),
    "conv1d:C=2,L=7,K=3,R=3,dilation=2": ("input", "weight"),
    "conv1d:C=4,L=8,K=4,R=3,stride=2,groups=2": ("input", "weight"),
    "conv1d:C=2,L=8,K=2,R=2,stride=3,pad=1": ("input", "weight"),
    "conv1d:C=2,L=7,K=2,R=1,stride=2": ("input", "weight"),
    "conv2d:C=3,H=5,W=6,K=3,R=3,stride=2,groups=3": ("input", "weight"),
    "conv2d:C=2,H=4,K=2,R=3,S=2,pad=0": ("input", "weight"),
    "conv_transpose1d:C=2,K=3,L=4,R=3": ("weight",),
    "pool2d:C=2,H=6,R=3,stride=2,pad=1,kind=mean": ("input",),
    "reduce:rows=3,columns=4": ("input",),
    "elementwise:rows=3,columns=4,right=row": ("left", "right"),
    "elementwise:rows=3,columns=4,operation=mul,right=row": ("left", "right"),
    "embedding:tokens=3,rows=5,columns=2": ("table",),
    "embedding:tokens=7,rows=3,columns=2": (),
}

#: Not linear: compared with differences.
SMOOTH = {
    "softmax:rows=2,columns=5": ("input",),
    "attention:heads=4,kv_heads=2,head=3,seq=3": ("query", "cache"),
    "activation:elements=6,function=silu": ("input",),
}


def trainable(spec: str) -> Workload:
    """All floating-point inputs are parameters, so that all of them have gradients."""
    workload = load_workload(spec)
    return replace(
        workload,
        tensors=tuple(
            replace(t, kind="weight") if t.kind == "input" and t.dtype == "int8" else t
            for t in workload.tensors
        ),
    )


def run(operators: list[Operator], tensors: Workload, values: dict[str, Array]) -> None:
    """Definitions, one after the other."""
    device = architectures()["free"]
    for operator in operators:
        values.setdefault(
            operator.output.tensor, np.zeros(tensors.tensor(operator.output.tensor).shape)
        )
        output = values[operator.output.tensor]
        define(operator, execution(tensors, operator, device), values, output)


def forward(workload: Workload, values: dict[str, Array]) -> Array:
    found = dict(values)
    run(list(workload.operators), workload, found)
    return found[workload.operators[-1].output.tensor]


def gradients(workload: Workload, values: dict[str, Array], seed: Array) -> dict[str, Array]:
    backward = Backward(workload)
    everything = Workload(
        name="both",
        tensors=(*workload.tensors, *backward.tensors.values()),
        operators=(*workload.operators, *backward.operators),
    )
    found = dict(values)
    found[f"loss.{workload.operators[-1].output.tensor}.grad"] = seed
    run(list(everything.operators), everything, found)
    names = [t.name for t in workload.tensors if t.kind == "weight"]
    return {name: found[g] for name in names if (g := backward.gradient(name)) is not None}


def random_values(workload: Workload, rng: np.random.Generator) -> dict[str, Array]:
    kinds = ("input", "weight")
    return {t.name: rng.normal(size=t.shape) for t in workload.tensors if t.kind in kinds}


@pytest.mark.parametrize("spec", LINEAR)
def test_gradients_of_linear_operators_are_adjoint(spec: str) -> None:
    """``<seed, f(change)> = <gradient, change>`` for every operand that f is linear in."""
    workload = trainable(spec)
    rng = np.random.default_rng(len(spec))
    values = random_values(workload, rng)
    seed = rng.normal(size=forward(workload, values).shape)
    found = gradients(workload, values, seed)
    base = {"add": 1.0}.get(spec.partition(":")[0], 0.0)
    for operand in LINEAR[spec]:
        change = rng.normal(size=values[operand].shape)
        moved = forward(workload, values | {operand: values[operand] + change})
        moved = moved - forward(workload, values) * (1.0 - base)
        # A mean's gradient is scaled on the way out, as a constant.
        scale = 1 / 9 if "kind=mean" in spec else 1.0
        slope = scale * np.sum(found[operand] * change)
        assert np.sum(seed * moved) == pytest.approx(slope, rel=1e-9)


@pytest.mark.parametrize("spec", SMOOTH)
def test_gradients_of_smooth_operators_are_slopes(spec: str) -> None:
    workload = trainable(spec)
    rng = np.random.default_rng(7)
    values = random_values(workload, rng)
    seed = rng.normal(size=forward(workload, values).shape)
    found = gradients(workload, values, seed)
    step = 1e-6
    for operand in SMOOTH[spec]:
        change = step * rng.normal(size=values[operand].shape)
        ahead = forward(workload, values | {operand: values[operand] + change})
        behind = forward(workload, values | {operand: values[operand] - change})
        slope = np.sum(seed * (ahead - behind)) / 2
        assert slope == pytest.approx(np.sum(found[operand] * change), rel=1e-6)


@pytest.mark.parametrize(
    "spec", ["gemm:M=3,N=4,K=5,training=sgd", "conv1d:C=2,L=7,K=2,R=3,stride=2,training=momentum"]
)
def test_programs_of_backward_operators_compute_their_definitions(spec: str) -> None:
    workload = load_workload(spec)
    rng = np.random.default_rng(3)
    run_lowered(workload, random_values(workload, rng), rng)


#: Networks of products, and the product that has no gradient with respect to its input: the
#: first one of images; tokens are looked up, and the table has a gradient.
THREEFOLD = {
    "llama3.1-8b:layers=3,seq=64": None,
    "llama3.1-8b:layers=3,seq=64,logits=all": None,
    "bert-base": None,
    "vit-b": "patches",
    "mixtral-8x7b:layers=2,seq=32,skew=1": None,
    "deepseek-v3:layers=4,seq=32": None,
    "dit-s": None,
}


@pytest.mark.parametrize("spec", THREEFOLD)
def test_training_takes_three_times_the_products(spec: str) -> None:
    """One for the result, one for each operand's gradient, unless it needs none."""
    inference = load_workload(spec)
    trained = load_workload(f"{spec}{',' if ':' in spec else ':'}training=adam")
    inputs = {t.name for t in inference.tensors if t.kind == "input"}
    spared = [o for o in inference.operators for a in o.inputs if o.macs and a.tensor in inputs]
    if THREEFOLD[spec]:
        assert [o.name for o in spared] == [THREEFOLD[spec]]
    assert trained.macs == 3 * inference.macs - sum(o.macs for o in spared)
    assert trained.parameters == inference.parameters


def test_streaming_attention_computes_scores_again() -> None:
    """Seven products going back (three for queries, four for keys and values) after two."""
    seq, width, layers = 64, 4096, 2
    plain = load_workload(f"llama3.1-8b:layers={layers},seq={seq},training=adam")
    streaming = load_workload(f"llama3.1-8b:layers={layers},seq={seq},training=adam,form=streaming")
    product = layers * seq * seq * width
    assert streaming.macs - plain.macs == (7 - 4) * product


def test_recomputing_layers_keeps_what_enters_them() -> None:
    spec = "llama3.1-8b:layers=4,batch=64,seq=2048,training=adam"
    kept, again = load_workload(spec), load_workload(f"{spec},recompute=layers")
    repeated = [o for o in again.operators if o.name.endswith(".again")]
    originals = {o.name: o for o in kept.operators}
    for operator in repeated:
        assert operator.extents == originals[operator.name.removesuffix(".again")].extents
    assert again.macs - kept.macs == sum(o.macs for o in repeated)
    # All of a layer but its last product and sum, whose results the next layer has.
    forward = load_workload("llama3.1-8b:layers=4,batch=64,seq=2048")
    down = forward.operator("layers.0.feed_forward.down").macs
    head = forward.operator("head").macs
    assert again.macs - kept.macs == forward.macs - head - 4 * down
    assert peak_live_bytes(again) < peak_live_bytes(kept)


def test_offloading_moves_what_is_kept_once_each_way() -> None:
    spec = "llama3.1-8b:layers=2,batch=64,seq=2048,training=adam"
    kept, moved = load_workload(spec), load_workload(f"{spec},offload=activations")
    host = [t for t in moved.tensors if t.kind == "host"]
    copies = [o for o in moved.operators if o.kind == "copy" and o.name.endswith(".copy")]
    assert len(copies) == 2 * len(host) > 40
    assert sum(o.points for o in copies) == 2 * sum(t.elements for t in host)
    assert moved.macs == kept.macs
    assert peak_live_bytes(moved) < peak_live_bytes(kept)


@pytest.mark.parametrize(("optimizer", "numbers"), [("sgd", 1), ("momentum", 2), ("adam", 3)])
def test_the_optimizer_reads_and_writes_its_states_once(optimizer: str, numbers: int) -> None:
    workload = load_workload(f"gemm:M=3,N=4,K=5,training={optimizer}")
    update = workload.operator("weight.update")
    assert update.points == numbers * 20
    assert update.output == update.inputs[0]
    assert workload.tensor("weight.states").shape == (5, 4, numbers)
    assert workload.tensor("weight.states").dtype == "fp32"
    assert workload.operator("weight.round").output.tensor == "weight"


def test_states_are_held_once_and_parameters_too() -> None:
    parameters = 3 * 16 * 20
    trained = load_workload("gemm:M=1,N=48,K=20,training=adam,states=int32")
    assert peak_live_bytes(trained) == parameters * (1 + 3 * 4 + 1) + 20 + 2 * 48


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            "llama3.1-8b:layers=1,phase=decode,training=adam",
            "sees all its tokens at once; train on",
        ),
        ("gemm:M=1,N=1,K=1,training=adm", "did you mean 'adam'?"),
        ("gemm:M=1,N=1,K=1,training=sgd,states=fp3", "unknown data type 'fp3'"),
        ("conv1d:C=1,L=9,K=1,R=3,stride=2,dilation=2,training=sgd", None),
    ],
)
def test_what_cannot_be_trained(spec: str, message: str | None) -> None:
    if message is None:  # the input of a single operator needs no gradient
        load_workload(spec)
        with pytest.raises(InputError, match="stride and dilation"):
            Backward(trainable(spec.removesuffix(",training=sgd")))
        return
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        load_workload(spec)
