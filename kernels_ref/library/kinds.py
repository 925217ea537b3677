"""What one library call of each kind is: its tensors, and how torch is called on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

#: Sizes by name; a block also has the name of its model.
Params = Mapping[str, Any]

TORCH_NAMES = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "fp8": "float8_e4m3fn",
    "int8": "int8",
    "int32": "int32",
}
ELEMENT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1, "int8": 1, "int32": 4}
FLOATS = ("bf16", "fp16", "fp32")

#: Tensors start at multiples of this, as those of torch's allocator do at the least.
ALIGNMENT_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """A tensor of a call: its shape in memory order, and whether it is drawn small.

    Weights of a deep product are scaled down, so that a block's activations stay finite.
    """

    shape: tuple[int, ...]
    dtype: str
    scale: float = 1.0

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def padded_elements(self) -> int:
        unit = ALIGNMENT_BYTES // ELEMENT_BYTES[self.dtype]
        return -(-self.elements // unit) * unit

    @property
    def size_bytes(self) -> int:
        return self.elements * ELEMENT_BYTES[self.dtype]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """``call(params, *tensors)`` runs it and returns the result; ``inputs`` says which tensors."""

    params: tuple[str, ...]
    dtypes: tuple[str, ...]
    inputs: Callable[[Params, str], tuple[Spec, ...]]
    output: Callable[[Params, str], Spec]
    call: Callable[..., torch.Tensor]

    def size_bytes(self, params: Params, dtype: str) -> int:
        """Bytes that one call reads and writes at least once."""
        tensors = (*self.inputs(params, dtype), self.output(params, dtype))
        return sum(spec.size_bytes for spec in tensors)


def draw(spec: Spec, sets: int, generator: torch.Generator | None, device: str) -> Any:
    """Random tensors of one operand, one per set, as views of one allocation."""
    import torch

    total = sets * spec.padded_elements
    kind: torch.dtype = getattr(torch, TORCH_NAMES[spec.dtype])
    options: Any = {"device": device, "generator": generator}
    if spec.dtype == "int8":
        pool = torch.randint(-127, 128, (total,), dtype=kind, **options)
    elif spec.dtype == "fp8":
        pool = torch.randn(total, dtype=torch.bfloat16, **options).to(kind)
    else:
        pool = torch.randn(total, dtype=kind, **options).mul_(spec.scale)
    step = spec.padded_elements
    return [pool[i * step : i * step + spec.elements].view(spec.shape) for i in range(sets)]


def _gemm_inputs(params: Params, dtype: str) -> tuple[Spec, ...]:
    m, n, k = params["M"], params["N"], params["K"]
    operands = (Spec(shape=(m, k), dtype=dtype), Spec(shape=(n, k), dtype=dtype))
    scale = Spec(shape=(1,), dtype="fp32")
    return (*operands, scale, scale) if dtype == "fp8" else operands


_PRODUCT = {"fp8": "bf16", "int8": "int32"}


def _gemm_output(params: Params, dtype: str) -> Spec:
    return Spec(shape=(params["M"], params["N"]), dtype=_PRODUCT.get(dtype, dtype))


def _gemm(params: Params, a: torch.Tensor, b: torch.Tensor, *scales: torch.Tensor) -> torch.Tensor:
    """Row-major ``a``, column-major ``b``: a linear layer as torch keeps it."""
    import torch

    if scales:
        return torch._scaled_mm(
            a, b.t(), scale_a=scales[0], scale_b=scales[1], out_dtype=torch.bfloat16
        )
    if a.dtype == torch.int8:
        return torch._int_mm(a, b.t())
    return torch.matmul(a, b.t())


def _bmm_inputs(params: Params, dtype: str) -> tuple[Spec, ...]:
    b, m, n, k = params["B"], params["M"], params["N"], params["K"]
    return Spec(shape=(b, m, k), dtype=dtype), Spec(shape=(b, k, n), dtype=dtype)


def _bmm(params: Params, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    import torch

    return torch.bmm(a, b)


def _sdpa_inputs(params: Params, dtype: str) -> tuple[Spec, ...]:
    batch, depth = params["B"], params["D"]
    query = Spec(shape=(batch, params["H"], params["Sq"], depth), dtype=dtype)
    key = Spec(shape=(batch, params["Hkv"], params["Skv"], depth), dtype=dtype)
    return query, key, key


def _sdpa(params: Params, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.scaled_dot_product_attention(
        q, k, v, is_causal=bool(params["causal"]), enable_gqa=params["H"] != params["Hkv"]
    )


def _conv_inputs(params: Params, dtype: str) -> tuple[Spec, ...]:
    """Channels last: the channels are innermost in memory."""
    c, h, r = params["C"], params["H"], params["R"]
    return (
        Spec(shape=(params["N"], h, h, c), dtype=dtype),
        Spec(shape=(params["K"], r, r, c // params["groups"]), dtype=dtype),
    )


def conv_output_side(params: Params) -> int:
    """Rows (and columns) of a convolution's result, with a padding of half the kernel."""
    r: int = params["R"]
    side: int = (params["H"] + 2 * (r // 2) - r) // params["stride"] + 1
    return side


def _conv_output(params: Params, dtype: str) -> Spec:
    side = conv_output_side(params)
    return Spec(shape=(params["N"], side, side, params["K"]), dtype=dtype)


def _conv(params: Params, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.conv2d(
        x.permute(0, 3, 1, 2),
        w.permute(0, 3, 1, 2),
        stride=params["stride"],
        padding=params["R"] // 2,
        groups=params["groups"],
    )


def _flat(params: Params, dtype: str) -> Spec:
    return Spec(shape=(params["n"],), dtype=dtype)


def _rows(params: Params, dtype: str) -> Spec:
    return Spec(shape=(params["R"], params["C"]), dtype=dtype)


def _add(params: Params, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def _gelu(params: Params, x: torch.Tensor) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.gelu(x)


def _scale(params: Params, x: torch.Tensor) -> torch.Tensor:
    return x * 1.5


def _softmax(params: Params, x: torch.Tensor) -> torch.Tensor:
    return x.softmax(dim=-1)


def _layernorm(
    params: Params, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    import torch.nn.functional as nn

    return nn.layer_norm(x, (params["C"],), weight, bias)


def _layernorm_inputs(params: Params, dtype: str) -> tuple[Spec, ...]:
    vector = Spec(shape=(params["C"],), dtype=dtype)
    return _rows(params, dtype), vector, vector


def _sum(params: Params, x: torch.Tensor) -> torch.Tensor:
    return x.sum(dim=-1)


def _elementwise(call: Callable[..., torch.Tensor], operands: int = 1) -> Kind:
    return Kind(
        params=("n",),
        dtypes=FLOATS,
        inputs=lambda params, dtype: (_flat(params, dtype),) * operands,
        output=_flat,
        call=call,
    )


KINDS: dict[str, Kind] = {
    "gemm": Kind(
        params=("M", "N", "K"),
        dtypes=(*FLOATS, "fp8", "int8"),
        inputs=_gemm_inputs,
        output=_gemm_output,
        call=_gemm,
    ),
    "bmm": Kind(
        params=("B", "M", "N", "K"),
        dtypes=FLOATS,
        inputs=_bmm_inputs,
        output=lambda p, dtype: Spec(shape=(p["B"], p["M"], p["N"]), dtype=dtype),
        call=_bmm,
    ),
    "sdpa": Kind(
        params=("B", "H", "Hkv", "Sq", "Skv", "D", "causal"),
        dtypes=FLOATS,
        inputs=_sdpa_inputs,
        output=lambda params, dtype: _sdpa_inputs(params, dtype)[0],
        call=_sdpa,
    ),
    "conv2d": Kind(
        params=("N", "C", "H", "K", "R", "stride", "groups"),
        dtypes=FLOATS,
        inputs=_conv_inputs,
        output=_conv_output,
        call=_conv,
    ),
    "ew_add": _elementwise(_add, operands=2),
    "ew_gelu": _elementwise(_gelu),
    "ew_scale": _elementwise(_scale),
    "row_softmax": Kind(
        params=("R", "C"),
        dtypes=FLOATS,
        inputs=lambda params, dtype: (_rows(params, dtype),),
        output=_rows,
        call=_softmax,
    ),
    "row_layernorm": Kind(
        params=("R", "C"), dtypes=FLOATS, inputs=_layernorm_inputs, output=_rows, call=_layernorm
    ),
    "row_sum": Kind(
        params=("R", "C"),
        dtypes=FLOATS,
        inputs=lambda params, dtype: (_rows(params, dtype),),
        output=lambda params, dtype: Spec(shape=(params["R"],), dtype=dtype),
        call=_sum,
    ),
}
