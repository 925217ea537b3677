"""Convolution by Fourier transforms that are products with matrices."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _complex_right(re, im, m_re, m_im):
    """A complex matrix times a complex matrix, both in real and imaginary parts."""
    out_re = tl.dot(re, m_re) - tl.dot(im, m_im)
    return out_re, tl.dot(re, m_im) + tl.dot(im, m_re)


@triton.jit
def _turn(re, im, by_re, by_im):
    return re * by_re - im * by_im, re * by_im + im * by_re


@triton.jit
def _convolve(
    u_ptr, kernel_ptr, dft_ptr, twiddle_ptr, out_ptr, batch, heads, size: tl.constexpr
):  # fmt: skip
    """A signal as a square of ``size``: transform columns, turn, transform rows, and back."""
    head = tl.program_id(0).to(tl.int64)
    step = tl.arange(0, size)
    at = step[:, None] * size + step[None, :]
    whole: tl.constexpr = size * size
    f_re, f_im = tl.load(dft_ptr + at), tl.load(dft_ptr + whole + at)
    for item in range(tl.program_id(1), batch, tl.num_programs(1)):
        here = (head + item * heads) * whole + at
        u = tl.load(u_ptr + here)
        t_re, t_im = tl.load(twiddle_ptr + at), tl.load(twiddle_ptr + whole + at)
        re, im = _turn(tl.dot(f_re, u), tl.dot(f_im, u), t_re, t_im)
        re, im = _complex_right(re.to(u.dtype), im.to(u.dtype), f_re, f_im)
        k_at = kernel_ptr + head * 2 * whole + at
        re, im = _turn(re, im, tl.load(k_at), tl.load(k_at + whole))
        re, im = _complex_right(re.to(u.dtype), im.to(u.dtype), f_re, -f_im)
        re, im = _turn(re, im, t_re, -t_im)
        out = tl.dot(f_re, re.to(u.dtype)) + tl.dot(f_im, im.to(u.dtype))
        tl.store(out_ptr + here, out.to(out_ptr.dtype.element_ty))


#: Programs for each head's kernel, over which the batch is spread.
MOST_PER_HEAD = 8


def fft_convolution(
    u: torch.Tensor, kernel: torch.Tensor, dft: torch.Tensor, twiddle: torch.Tensor
) -> torch.Tensor:
    """Circular, ``u[B, H, N]`` with ``kernel[H, 2, n, n]`` transformed; N is ``n`` squared."""
    batch, heads, _ = u.shape
    size = dft.shape[1]
    out = torch.empty_like(u)
    _convolve[(heads, min(batch, MOST_PER_HEAD))](
        u, kernel, dft, twiddle, out, batch, heads, size=size,
        num_warps={32: 4, 64: 8}.get(size, 16), num_stages=1,
    )  # fmt: skip
    return out
