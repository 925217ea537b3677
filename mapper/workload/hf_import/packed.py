"""Images as patches in one matrix, with a table of how many rows belong to each.

What such a model computes from the table depends on its numbers, so that it cannot be traced.
``transformers`` has functions of its own that compute it beforehand and attend image by image.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from mapper.workload.torch_import.export import quiet

#: Inputs whose numbers say where images end.
_TABLES = ("grid_thw", "image_grid_thw", "video_grid_thw", "spatial_shapes", "target_sizes")


def is_packed(call: Mapping[str, Any]) -> bool:
    return any(name in call for name in _TABLES)


def with_places(network: Any, call: Mapping[str, Any]) -> dict[str, Any]:
    """The call with everything that the network would compute from the tables."""
    if not is_packed(call):
        return dict(call)
    try:
        from transformers.exporters.utils import precompute_export_inputs
    except ImportError:
        # This version of the library has no such functions: tracing will say what it misses.
        return dict(call)
    complete = dict(call)
    with torch.device("cpu"), torch.no_grad(), quiet():
        precompute_export_inputs(network, complete)
    return {name: _without_values(value) for name, value in complete.items()}


@contextlib.contextmanager
def tracing(call: Mapping[str, Any]) -> Iterator[None]:
    """Attention image by image as one product each, as long as this lasts."""
    with contextlib.ExitStack() as stack:
        if is_packed(call):
            with contextlib.suppress(ImportError):
                from transformers.exporters import exporter_dynamo
                from transformers.exporters.utils import apply_patches

                assert exporter_dynamo  # it registers what is applied
                stack.enter_context(apply_patches("dynamo"))
        yield


def _without_values(value: Any) -> Any:
    return value.to("meta") if isinstance(value, torch.Tensor) else value
