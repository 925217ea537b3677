"""Convolution by Fourier transforms that are products with matrices."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _transform(re, im, f_re, f_im, back: tl.constexpr):
    """A complex matrix times the Fourier matrix, or its conjugate on the way back."""
    if back:
        out_re = tl.dot(im, f_im, tl.dot(re, f_re))
        return out_re, tl.dot(-re, f_im, tl.dot(im, f_re))
    out_re = tl.dot(-im, f_im, tl.dot(re, f_re))
    return out_re, tl.dot(re, f_im, tl.dot(im, f_re))


@triton.jit
def _turn(re, im, by_re, by_im):
    return re * by_re - im * by_im, re * by_im + im * by_re


@triton.jit
def _convolve(
    u_ptr, kernel_ptr, dft_ptr, twiddle_ptr, out_ptr, batch, heads, size: tl.constexpr,
    rows: tl.constexpr
):  # fmt: skip
    """A signal as a square of ``size``: transform columns, turn, transform rows, and back.

    Only the first and last transform join rows, so that ``rows`` of frequencies go all the way.
    """
    head = tl.program_id(0).to(tl.int64)
    step, row = tl.arange(0, size), tl.arange(0, rows)
    whole: tl.constexpr = size * size
    square = step[:, None] * size + step[None, :]
    f_re, f_im = tl.load(dft_ptr + square), tl.load(dft_ptr + whole + square)
    for item in range(tl.program_id(1), batch, tl.num_programs(1)):
        here = (head + item * heads) * whole + square
        u = tl.load(u_ptr + here)
        out = tl.zeros((size, size), tl.float32)
        for start in range(0, size, rows):
            at = (start + row)[:, None] * size + step[None, :]
            g_re, g_im = tl.load(dft_ptr + at), tl.load(dft_ptr + whole + at)
            t_re, t_im = tl.load(twiddle_ptr + at), tl.load(twiddle_ptr + whole + at)
            re, im = _turn(tl.dot(g_re, u), tl.dot(g_im, u), t_re, t_im)
            re, im = _transform(re.to(u.dtype), im.to(u.dtype), f_re, f_im, False)
            k_at = kernel_ptr + head * 2 * whole + at
            re, im = _turn(re, im, tl.load(k_at), tl.load(k_at + whole))
            re, im = _transform(re.to(u.dtype), im.to(u.dtype), f_re, f_im, True)
            re, im = _turn(re, im, t_re, -t_im)
            out = tl.dot(tl.trans(g_re), re.to(u.dtype), out)
            out = tl.dot(tl.trans(g_im), im.to(u.dtype), out)
        tl.store(out_ptr + here, out.to(out_ptr.dtype.element_ty))


#: Rows of frequencies and warps by size; the fastest tried on an H200 (2026-11-30,
#: ``kernels_ref.measure.tune fourier``).
ROWS_AND_WARPS = {32: (32, 1), 64: (64, 4), 128: (32, 8)}

#: Programs for each head's kernel, over which the batch is spread.
MOST_PER_HEAD = 8


def fft_convolution(
    u: torch.Tensor,
    kernel: torch.Tensor,
    dft: torch.Tensor,
    twiddle: torch.Tensor,
    tile: tuple[int, int] | None = None,
) -> torch.Tensor:
    """Circular, ``u[B, H, N]`` with ``kernel[H, 2, n, n]`` transformed.

    N is ``n`` squared, and ``n`` 16, 32, 64 or 128.
    """
    batch, heads, _ = u.shape
    size = dft.shape[1]
    rows, warps = tile or ROWS_AND_WARPS.get(size, (size, 4))
    out = torch.empty_like(u)
    _convolve[(heads, min(batch, MOST_PER_HEAD))](
        u, kernel, dft, twiddle, out, batch, heads, size=size, rows=rows, num_warps=warps,
        num_stages=1,
    )  # fmt: skip
    return out
