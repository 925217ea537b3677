"""Recurrences over a sequence, and long convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from kernels_ref.fused.record import Counts, Fused, Sizes, direct, normal, ours

if TYPE_CHECKING:
    import torch

#: Tokens between two states that are kept, and the size of the delta rule's triangles.
CHUNK = 64


def _gated_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    """Gates are sigmoids to the power 1/16, as in the publication."""
    import torch

    shape = (p["B"], p["H"], p["N"])
    q, k = (normal((*shape, p["Dk"]), generator, p["Dk"] ** -0.5) for _ in range(2))
    v = normal((*shape, p["Dv"]), generator)
    gate = torch.nn.functional.logsigmoid(normal((*shape, p["Dk"]), generator).float()) / 16
    return q, k, v, gate


def _gated_reference(q: Any, k: Any, v: Any, gate: Any) -> torch.Tensor:
    """Token by token: the state decays, gains ``k v``, and is read by ``q``."""
    import torch

    q, k, v, decay = q.double(), k.double(), v.double(), gate.double().exp()
    state = torch.zeros((*q.shape[:2], q.shape[3], v.shape[3]), dtype=q.dtype, device=q.device)
    out = torch.zeros_like(v)
    for token in range(q.shape[2]):
        gained = k[:, :, token, :, None] * v[:, :, token, None, :]
        state = state * decay[:, :, token, :, None] + gained
        out[:, :, token] = torch.einsum("bhk,bhkv->bhv", q[:, :, token], state)
    return out


def _gated_chunks(q: Any, k: Any, v: Any, gate: Any) -> torch.Tensor:
    """The same by chunks in torch's own calls, in fp32."""
    import torch

    shape = (*q.shape[:2], -1, CHUNK)
    q, k, v, gate = (x.float().view(*shape, x.shape[-1]) for x in (q, k, v, gate))
    decay = gate.cumsum(dim=3)
    mask = torch.ones((CHUNK, CHUNK), device=q.device).tril()
    query = q * decay.exp()
    inside = ((query @ (k * (-decay).exp()).transpose(3, 4)) * mask) @ v
    gains = (k * (decay[..., -1:, :] - decay).exp()).transpose(3, 4) @ v
    whole = decay[..., -1, :].exp()
    state, before = torch.zeros_like(gains[:, :, 0]), []
    for chunk in range(gains.shape[2]):
        before.append(state)
        state = state * whole[:, :, chunk, :, None] + gains[:, :, chunk]
    out = torch.add(inside, query @ torch.stack(before, dim=2))
    return out.flatten(2, 3).half()


def _gated_counts(p: Sizes) -> Counts:
    """The state is read and written once a token; within a chunk pairs of tokens meet."""
    tokens, dk, dv = p["B"] * p["H"] * p["N"], p["Dk"], p["Dv"]
    flops = tokens * (4 * dk * dv + CHUNK * (dk + dv))
    moved = tokens * (2 * (2 * dk + 2 * dv) + 4 * dk)
    return Counts(flops=flops, special=3 * tokens * dk, bytes=moved)


def _triangle_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    """The strict lower triangle of ``beta K K^T`` with keys of norm one."""
    import torch

    k = normal((p["B"], CHUNK, p["D"]), generator).float()
    k = k / k.norm(dim=2, keepdim=True)
    beta = torch.rand((p["B"], CHUNK, 1), generator=generator, device=generator.device)
    return (((beta * k) @ k.transpose(1, 2)).tril(-1).contiguous(),)


def _solve(a: torch.Tensor) -> torch.Tensor:
    import torch

    eye = torch.eye(a.shape[1], dtype=a.dtype, device=a.device).expand_as(a)
    solved: torch.Tensor = torch.linalg.solve_triangular(
        a + eye, eye, upper=False, unitriangular=True
    )
    return solved


def _triangle_reference(a: Any) -> torch.Tensor:
    return _solve(a.double())


def _triangle_counts(p: Sizes) -> Counts:
    """Forward substitution needs a third of the cube in FLOPs; here blocks need more."""
    flops = p["B"] * (CHUNK**3 - CHUNK) // 3
    return Counts(flops=flops, special=0, bytes=2 * 4 * p["B"] * CHUNK**2)


def transform(size: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The unitary Fourier matrix of ``size``, and the turns between the two transforms."""
    import torch

    step = torch.arange(size, dtype=torch.float64, device=device)
    angle = -2 * math.pi / size * step[:, None] * step[None, :]
    dft = torch.stack((angle.cos(), angle.sin())) * size**-0.5
    turn = angle / size
    return dft.to(torch.float16), torch.stack((turn.cos(), turn.sin())).float()


def _convolution_inputs(p: Sizes, generator: torch.Generator) -> tuple[Any, ...]:
    """Signals, and kernels that are transformed and laid out as squares beforehand."""
    import torch

    size = p["side"]
    n = size * size
    u = normal((p["B"], p["H"], n), generator)
    kernel = torch.fft.fft(normal((p["H"], n), generator, n**-0.5).float())
    # Frequency k1 + size * k2 is row k1, column k2.
    square = kernel.view(p["H"], size, size).transpose(1, 2)
    parts = torch.stack((square.real, square.imag), dim=1).contiguous()
    return (u, parts, *transform(size, generator.device))


def _spectrum(parts: Any) -> torch.Tensor:
    import torch

    return torch.complex(parts[:, 0], parts[:, 1]).transpose(1, 2).flatten(1)


def _convolution_reference(u: Any, parts: Any, dft: Any, turn: Any) -> torch.Tensor:
    import torch

    spectrum = torch.mul(torch.fft.fft(u.double()), _spectrum(parts.double()))
    return torch.real(torch.fft.ifft(spectrum))


def _convolve(u: Any, half: Any) -> torch.Tensor:
    import torch

    out: torch.Tensor = torch.fft.irfft(torch.fft.rfft(u.float()) * half, n=u.shape[2])
    return out.half()


def _convolution_baseline(u: Any, parts: Any, dft: Any, turn: Any) -> Callable[[], Any]:
    half = _spectrum(parts)[:, : u.shape[2] // 2 + 1].contiguous()
    return partial(_convolve, u, half)


def _convolution_counts(p: Sizes) -> Counts:
    """Twelve real products of squares and three complex products of elements."""
    side, signals = p["side"], p["B"] * p["H"]
    flops = signals * (24 * side**3 + 18 * side**2)
    tables = 2 * side**2 * (2 + 4)
    moved = 2 * 2 * signals * side**2 + 8 * p["H"] * side**2 + tables
    return Counts(flops=flops, special=0, bytes=moved)


SEQUENCE = (
    Fused(
        name="gated_linear_attention",
        what="S = diag(exp g) S + k^T v, o = q S, by chunks of 64 and parts of 16",
        source="Gated linear attention, arXiv:2312.06635",
        inputs=_gated_inputs,
        reference=_gated_reference,
        triton=ours("recurrent", "gated_linear_attention"),
        counts=_gated_counts,
        # Keys with their decay are rounded to fp16, states are multiplied in TF32 (both 2**-11).
        tolerance=2.0**-9,
        baseline=direct(_gated_chunks),
        baseline_name="the same chunks in torch calls, fp32",
        own=False,
    ),
    Fused(
        name="triangular_inverse",
        what="(I + A)^-1, A strictly lower triangular 64 x 64 in fp32, of the delta rule",
        source="DeltaNet, arXiv:2406.06484; Neumann series of 16 x 16 blocks",
        inputs=_triangle_inputs,
        reference=_triangle_reference,
        triton=ours("recurrent", "triangular_inverse"),
        counts=_triangle_counts,
        tolerance=2.0**-18,
        baseline=direct(_solve),
        baseline_name="torch.linalg.solve_triangular",
    ),
    Fused(
        name="fft_convolution",
        what="circular convolution; a transform of n^2 is two products with n x n matrices",
        source="FlashFFTConv, arXiv:2311.05908",
        inputs=_convolution_inputs,
        reference=_convolution_reference,
        triton=ours("convolution", "fft_convolution"),
        counts=_convolution_counts,
        # Rounded to fp16 before each of four products, tables too.
        tolerance=2.0**-9,
        baseline=_convolution_baseline,
        baseline_name="torch.fft.rfft, product, irfft in fp32",
    ),
)
