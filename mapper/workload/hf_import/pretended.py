"""Networks whose tensors take no memory but claim to lie on the CPU.

Some models make tensors on the CPU, whatever device torch uses; on the meta device these do not
go together with the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def on_cpu(module: nn.Module, call: Mapping[str, Any]) -> dict[str, Any]:
    """Exchange all tensors of the module; the call with tensors of the same kind."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    with FakeTensorMode(allow_non_fake_inputs=True, shape_env=ShapeEnv()), torch.device("cpu"):
        for part in module.modules():
            for name, parameter in part._parameters.items():
                if parameter is not None:
                    part._parameters[name] = nn.Parameter(_like(parameter), requires_grad=False)
            for name, buffer in part._buffers.items():
                if buffer is not None:
                    part._buffers[name] = _like(buffer)
        return {
            name: _like(value) if isinstance(value, Tensor) else value
            for name, value in call.items()
        }


def _like(tensor: Tensor) -> Tensor:
    return torch.empty_strided(tensor.size(), tensor.stride(), dtype=tensor.dtype, device="cpu")
