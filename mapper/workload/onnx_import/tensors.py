"""ONNX's data types and weights in torch's and numpy's terms."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from arch.errors import InputError, Problem
from mapper.workload.onnx_import.values import Known

#: TensorProto.DataType -> torch's type of the same format.
_DTYPES = {
    "FLOAT": torch.float32,
    "FLOAT16": torch.float16,
    "BFLOAT16": torch.bfloat16,
    "DOUBLE": torch.float64,
    "FLOAT8E4M3FN": torch.float8_e4m3fn,
    "FLOAT8E5M2": torch.float8_e5m2,
    "INT8": torch.int8,
    "UINT8": torch.uint8,
    "INT16": torch.int16,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "BOOL": torch.bool,
}

#: Longest lists that may be something else than a weight: scales and limits, shapes and indices.
_SHORT_FRACTIONS = 16
_SHORT_INTEGERS = 4096


def torch_dtype(number: int, where: str) -> torch.dtype:
    """torch's type for a number of ``TensorProto.DataType``."""
    import onnx

    name = onnx.TensorProto.DataType.Name(number)
    if name not in _DTYPES:
        message = f"tensors of type {name} cannot be imported; allowed {', '.join(_DTYPES)}"
        raise InputError(Problem(message, where=where))
    return _DTYPES[name]


def weight(proto: Any) -> tuple[torch.nn.Parameter, Known | None]:
    """An initializer as a parameter without memory, and its numbers if they may be needed."""
    import onnx

    dtype = torch_dtype(proto.data_type, f"weight {proto.name}")
    empty = torch.empty(tuple(proto.dims), dtype=dtype, device="meta")
    elements = int(np.prod(proto.dims, dtype=np.int64))
    outside = proto.data_location == onnx.TensorProto.EXTERNAL
    longest = _SHORT_FRACTIONS if dtype.is_floating_point else _SHORT_INTEGERS
    numbers = None if outside or elements > longest else onnx.numpy_helper.to_array(proto)
    return torch.nn.Parameter(empty, requires_grad=False), numbers
