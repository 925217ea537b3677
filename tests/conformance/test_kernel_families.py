"""GPUs and microcontrollers keep the promises of families that run kernels of a library."""

from __future__ import annotations

from arch import catalog
from arch.load import load_architecture
from arch.registry import family_named
from sim.kernel_models import runs_kernels
from tests.conformance.kernel_suite import KernelConformance


def test_families_say_whether_they_bring_kernels() -> None:
    architectures = [load_architecture(name) for name in catalog.names("arch")]
    for architecture in architectures:
        said = family_named(architecture.family).brings_kernels
        assert said == runs_kernels(architecture), architecture.name


def of_family(family: str) -> tuple[str, ...]:
    names = catalog.names("arch")
    return tuple(name for name in names if load_architecture(name).family == family)


class TestGpus(KernelConformance):
    architectures = of_family("gpu")
    workloads = (
        "gemm:M=1000,N=512,K=700,dtype=bf16",
        "gemm:M=1,N=4096,K=4096,dtype=fp16",
        "gemm:M=512,N=512,K=512,dtype=fp32",
        "gemm:M=512,N=512,K=512,dtype=fp8",
        "gemm:M=64,N=4096,K=4096,dtype=bf16,weights=int4_g128",
        "bmm:B=8,M=100,N=64,K=80,dtype=bf16",
        "conv2d:C=64,H=28,K=64,R=3,pad=1,dtype=fp32",
        "attention:heads=8,head=64,seq=1024,dtype=fp32",
        "attention:heads=8,kv_heads=2,head=64,seq=4096,dtype=fp32,causal=1",
        "attention:heads=8,head=128,seq=512,ctx=2048,dtype=bf16,causal=1",
        "attention:heads=32,kv_heads=8,seq=1,ctx=4096,dtype=bf16,cache=fp8",
        "mla:seq=1,ctx=1024,dtype=bf16",
        "softmax:rows=100,columns=1000,dtype=bf16",
        "gpt2-medium:layers=1,seq=64,dtype=bf16,training=adam",
        "deepseek-v2:layers=1,phase=decode,dtype=bf16",
        "mixtral-8x7b:layers=1,seq=16,dtype=bf16",
    )


class TestMicrocontrollers(KernelConformance):
    architectures = of_family("mcu")
    workloads = (
        "conv2d:C=8,H=16,K=8,R=3,pad=1",
        "conv2d:C=8,H=16,K=8,R=3,groups=8",
        "gemm:M=1,N=64,K=64",
        "pool2d:C=8,H=8,R=2",
        "softmax:rows=1,columns=10",
        "elementwise:columns=64",
        "attention:heads=2,head=16,seq=8",
    )
