"""Does everything that has a name run on a GPU, or say why it cannot?"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from arch.errors import InputError
from arch.load import load_architecture
from mapper.cost import InfeasibleError
from mapper.workload import zoo
from mapper.workload.load import load_workload
from mapper.workload.models import MODELS
from mapper.workload.parameters import Parameter
from mapper.workload.single import SINGLE_OPERATORS
from sim.gpu.workload import AT_PEAK
from sim.kernel_models import evaluate
from sim.models import FIDELITIES

H200 = load_architecture("h200")

#: Sizes that keep a run short, where a workload has them.
SMALL: dict[str, int | str] = {"layers": 1, "seq": 512, "image": 64, "dtype": "bf16"}
#: Of what must be given, where 8 is no good.
REQUIRED = {"expression": "ik*kj->ij,i=8,j=8,k=8", "ctx": 512}
#: By name what does not work with these.
OWN = {"vit-h": {"image": 112}, "dlrm": {"rows": 1000}}

#: One of every kind of decoder and encoder.
DECODERS = ("gpt2-medium", "llama3.1-8b", "qwen3-8b", "mixtral-8x7b", "deepseek-v3")
NETWORKS = (*DECODERS, "bert-base", "vit-h", "dit-s", "mamba2-130m", "dlrm")


def spec(name: str, parameters: Iterable[Parameter], **more: str) -> str:
    values: dict[str, int | str] = dict(OWN.get(name, {}))
    for p in parameters:
        if p.name in SMALL:
            values.setdefault(p.name, SMALL[p.name])
        elif p.required:
            values.setdefault(p.name, REQUIRED.get(p.name, p.choices[0] if p.choices else 8))
    return f"{name}:" + ",".join(f"{key}={value}" for key, value in {**values, **more}.items())


def runs(text: str) -> bool:
    """Whether it runs, all promises kept; nothing but a refusal with a reason is let through."""
    workload = load_workload(text)
    try:
        found = [evaluate(workload, H200, {}, fidelity) for fidelity in FIDELITIES]
    except (InfeasibleError, InputError):
        return False
    assert [m.latency_ps for m in found] == sorted(m.latency_ps for m in found), text
    assert not any(AT_PEAK in note for m in found for note in m.notes), text
    assert all(sum(o.macs for o in m.operators) == workload.macs for m in found), text
    assert all(o.latency_ps > 0 for o in found[-1].operators), text
    return True


@pytest.mark.parametrize("name", sorted(SINGLE_OPERATORS))
def test_every_operator_runs_in_every_form(name: str) -> None:
    parameters = SINGLE_OPERATORS[name].parameters
    for p in parameters:
        for choice in p.choices or ("",):
            more = {p.name: choice} if choice else {}
            assert runs(spec(name, parameters, **more)), more


@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_network_runs_in_every_phase_form_and_format(name: str) -> None:
    parameters = MODELS[name].parameters
    names = {p.name: p.choices for p in parameters}
    for form in names.get("form", ("",)):
        for phase in names.get("phase", ("",)):
            more = {key: v for key, v in (("form", form), ("phase", phase)) if v}
            assert runs(spec(name, parameters, **more)), more
    for dtype in ("int8", "fp16", "fp32"):
        assert runs(spec(name, parameters, dtype=dtype)), dtype


@pytest.mark.parametrize("form", ["parts", "streaming"])
@pytest.mark.parametrize("name", NETWORKS)
def test_every_kind_of_network_is_trained(name: str, form: str) -> None:
    parameters = MODELS[name].parameters
    more = {"form": form} if any(p.name == "form" for p in parameters) else {}
    assert runs(spec(name, parameters, training="adam", **more))


@pytest.mark.parametrize("name", DECODERS)
def test_new_tokens_after_cached_ones(name: str) -> None:
    parameters = [p for p in MODELS[name].parameters if p.name != "seq"]
    assert runs(spec(name, parameters, phase="prefill", seq="128", ctx="512"))


def test_a_format_without_kernels_is_refused_and_no_bug() -> None:
    assert not runs("bert-base:layers=1,seq=64,dtype=int4")
    assert not runs("bert-base:layers=1,seq=64,dtype=mxfp8")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*MODELS} - {*NETWORKS}))
def test_every_network_that_is_written_out_runs(name: str) -> None:
    assert runs(spec(name, MODELS[name].parameters))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(zoo.names()))
def test_every_imported_network_runs(name: str) -> None:
    assert runs(spec(name, zoo.describe(name).parameters))
