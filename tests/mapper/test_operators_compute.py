"""Do the named operators compute what their names say, as defined and as lowered programs?"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np
import pytest

from dse.cli.commands.map import only
from mapper.hierarchy import execution
from mapper.lower import lower_execution
from mapper.workload.graph import Workload
from mapper.workload.load import load_workload
from mapper.workload.writing.experts import skewed_loads
from tests.mapper import references
from tests.mapper.hardware import architectures, resized
from tests.mapper.program_interpreter import Array, define, execute
from tests.mapper.random_mappings import drawn_mapping
from tests.mapper.references import Reference

CASES: dict[str, Reference] = {
    "gemm:M=5,N=4,K=7": lambda v: v["input"] @ v["weight"],
    "gemv:M=5,K=7": lambda v: v["weight"] @ v["input"],
    "bmm:B=2,M=3,N=4,K=5": references.einsum("bmk,bkn->bmn"),
    "conv1d:C=4,L=9,K=6,R=3,stride=2,groups=2": references.convolution(
        1, stride=2, padding=1, groups=2
    ),
    "conv2d:C=3,H=5,W=4,K=2,R=3,S=2,dilation=2,pad=2": references.convolution(
        2, dilation=2, padding=2
    ),
    "conv2d:C=4,H=5,K=4,R=3,groups=4": references.convolution(2, padding=1, groups=4),
    "conv3d:C=2,D=3,H=4,K=2,T=2,pad=1": references.convolution(3, padding=1),
    "conv_transpose1d:C=2,K=3,L=5,R=4,stride=3,pad=1": references.transposed(
        1, stride=3, padding=1
    ),
    "conv_transpose2d:C=4,K=2,H=3,R=3,groups=2": references.transposed(2, stride=2, groups=2),
    "conv_transpose2d:C=2,K=3,H=4,R=3,stride=2,dilation=3": references.transposed(
        2, stride=2, dilation=3
    ),
    "conv_transpose3d:C=1,K=2,D=2,H=2,T=2,R=2,stride=2": references.transposed(3, stride=2),
    "einsum:expression=ikl*kj*lj->ij,i=4,k=3,l=5,j=2": references.einsum("ikl,kj,lj->ij"),
    "einsum:expression=ab*bc*cd*da->a,a=3,b=4,c=2,d=5": references.einsum("ab,bc,cd,da->a"),
    "einsum:expression=ab->ba,a=3,b=4": references.einsum("ab->ba"),
    "einsum:expression=abc->b,a=3,b=4,c=2": references.einsum("abc->b"),
    "mttkrp:I=4,J=2,K=3,L=5": references.einsum("ikl,kj,lj->ij"),
    "ttm:I=2,J=3,K=4,L=5": references.einsum("ijl,lk->ijk"),
    "softmax:rows=5,columns=7": references.softmax,
    "softmax:rows=5,columns=7,passes=two": references.softmax,
    "rms_norm:rows=5,columns=7": references.rms_norm,
    "rms_norm:rows=5,columns=7,passes=two": references.rms_norm,
    "layer_norm:rows=5,columns=7": references.layer_norm,
    "batch_norm:N=2,C=3,H=4": references.batch_norm,
    "group_norm:N=2,C=4,H=3,groups=2": references.group_norm(2),
    **{
        f"activation:elements=13,function={name}": references.function(name)
        for name in ("relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "softplus")
    },
    "activation:elements=13,function=exp": lambda v: np.exp(v["input"]),
    "activation:elements=13,function=gelu_tanh": references.function("gelu", approximate="tanh"),
    "elementwise:rows=3,columns=5": lambda v: v["left"] + v["right"],
    "elementwise:rows=3,columns=5,operation=mul,right=row": lambda v: v["left"] * v["right"],
    "elementwise:rows=3,columns=5,operation=max": lambda v: np.maximum(v["left"], v["right"]),
    "reduce:rows=4,columns=6": lambda v: v["input"].sum(1),
    "reduce:rows=4,columns=6,kind=mean,along=rows": lambda v: v["input"].mean(0),
    "reduce:rows=4,columns=6,kind=max": lambda v: v["input"].max(1),
    "pool2d:C=2,H=7,R=3,stride=2,pad=1": references.pool("max", 3, 2, 1),
    "pool2d:C=2,H=6,R=2,kind=mean": references.pool("mean", 2, 2, 0),
    "embedding:tokens=4,rows=6,columns=5": lambda v: v["table"][:4],
    "attention:batch=2,heads=4,kv_heads=2,head=3,seq=3,ctx=5": references.attention(2, 4, 2),
    "attention:batch=2,heads=4,kv_heads=1,head=3,seq=1,ctx=6,form=streaming": (
        references.attention(2, 4, 1)
    ),
    "attention:batch=2,heads=2,kv_heads=2,head=3,seq=4,ctx=5,form=streaming": (
        references.attention(2, 2, 2)
    ),
    "attention:batch=2,heads=2,head=3,seq=4,ctx=6,window=3": references.attention(2, 2, 2, 3),
    "attention:batch=2,heads=2,head=3,seq=4,ctx=4,window=3,form=streaming": (
        references.attention(2, 2, 2, 3)
    ),
    "attention:batch=2,heads=2,head=3,seq=5,ctx=7,causal_chunks=2,form=streaming": (
        references.attention(2, 2, 2, causal=True)
    ),
    "mla:batch=2,heads=3,latent=4,rope=2,seq=2,ctx=5": references.latent_attention(2, 3, 4, True),
    "mla:batch=2,heads=3,latent=4,rope=2,seq=2,ctx=5,form=streaming": (
        references.latent_attention(2, 3, 4, True)
    ),
    "mla:batch=2,heads=2,head=4,rope=2,seq=3,ctx=3,keys=expanded": (
        references.latent_attention(2, 2, 4, False)
    ),
    "mla:batch=2,heads=2,head=4,rope=2,seq=3,ctx=3,keys=expanded,form=streaming": (
        references.latent_attention(2, 2, 4, False)
    ),
    "block_sparse_attention:heads=2,head=3,seq=12,block=3,window=2,fixed=1": (
        references.block_sparse(3, 2, 1)
    ),
    "simplicial_attention:heads=2,head=3,seq=6,window1=4,window2=2": references.simplicial(4, 2),
    "moe:tokens=5,experts=4,chosen=2,width=3,hidden=4,skew=1": references.experts(2),
    "gated_linear_attention:heads=2,seq=6,chunk=3,key=2,value=3": (
        references.gated_linear_attention
    ),
    "ssm:heads=4,groups=2,seq=6,chunk=3,key=2,value=3": references.state_space(2),
}


def random_values(workload: Workload, rng: np.random.Generator) -> dict[str, Array]:
    """Normal numbers; decays below one, and masks that hide what the operator's rule hides."""
    values = {
        t.name: rng.normal(size=t.shape) for t in workload.tensors if t.kind in ("input", "weight")
    }
    if "gate" in values:
        values["gate"] = rng.uniform(0.5, 1.0, values["gate"].shape)
        values["scan.mask"] = np.tril(np.ones(values["scan.mask"].shape))
    if "decay" in values:
        values["decay"] = -rng.uniform(0.1, 1.0, values["decay"].shape)
    if "mask" in values:
        values["mask"] = mask(workload, values["mask"].shape)
    if "moe.gate.weight" in values:
        loads = skewed_loads(5, 4, 2, 1.0)
        values["experts of rows"] = np.repeat(np.arange(4), loads).astype(np.float64)
    return values


def mask(workload: Workload, shape: tuple[int, ...]) -> Array:
    """Ones where the slot is a position that exists and, for blocks, is seen once."""
    if workload.name.startswith("block"):
        blocks, block, slots = shape
        row = np.arange(blocks)[:, None, None] * block + np.arange(block)[:, None]
        slot = np.arange(slots)
        near = slot < slots - block
        position = np.where(near, (row // block - 1) * block + slot, slot - (slots - block))
        seen = (position >= 0) & (position <= row)
        return np.where(near, seen, seen & (position < (row // block - 1) * block)).astype(float)
    if workload.name.startswith("simplicial"):
        seq, narrow, wide = shape
        now = np.arange(seq)[:, None, None]
        first = now + np.arange(wide) - (wide - 1)
        second = now + np.arange(narrow)[:, None] - (narrow - 1)
        return ((first >= 0) & (second >= 0)).astype(float)
    queries, window = shape
    keys = workload.tensor("cache").shape[1]
    position = keys - queries - window + 1 + np.arange(queries)[:, None] + np.arange(window)
    return (position >= 0).astype(float)


def devices() -> list[str]:
    return list(architectures())


@pytest.mark.parametrize("spec", CASES)
def test_operators_compute_what_they_say(spec: str) -> None:
    """Random mappings on random devices, then the whole against a reference."""
    workload = load_workload(spec)
    rng = np.random.default_rng(zlib.crc32(spec.encode()))
    values = random_values(workload, rng)
    outputs = run_lowered(workload, values, rng)
    expected = CASES[spec](values)
    if spec.startswith("mla"):  # streaming contexts are padded to the size of keys
        outputs = outputs.reshape(*expected.shape[:-1], -1)[..., : expected.shape[-1]]
    np.testing.assert_allclose(outputs.reshape(expected.shape), expected, rtol=1e-9, atol=1e-9)


def run_lowered(workload: Workload, given: Mapping[str, Array], rng: np.random.Generator) -> Array:
    """Runs every operator as programs; returns what the last one writes."""
    values = dict(given)
    for tensor in workload.tensors:
        values.setdefault(tensor.name, np.full(tensor.shape, np.nan))
    for operator in workload.operators:
        alone = only(workload, operator.name)
        for name in rng.choice(devices(), 2 if len(workload.operators) == 1 else 1, replace=False):
            sizes = {m.name: 4000 for m in architectures()[name].memories[1:]}
            device = resized(architectures()[name], sizes)
            run = execution(alone, operator, device)
            defined = values[operator.output.tensor].copy()
            define(operator, run, values, defined)
            program = lower_execution(run, drawn_mapping(alone, device, rng))
            computed = execute(alone, run, program, values)
            written = ~np.isnan(computed)
            assert written.sum() == run.counts.operands[run.output].elements
            np.testing.assert_allclose(computed[written], defined[written], rtol=1e-9, atol=1e-9)
        values[operator.output.tensor] = defined
    return values[workload.operators[-1].output.tensor]
