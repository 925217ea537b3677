"""Do the imported networks have exactly the MACs and parameters of the torch modules?

Three counts that share no code with the importer: hooks on torch's layers while the module runs
on meta tensors, torch's own flop counter, and numbers published for the architecture. Of each
family one network or two are imported here, the others by `make validate`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

from kernels_ref.library.eager_gpt2 import gpt2
from kernels_ref.library.eager_vit import vit
from mapper.workload import zoo
from mapper.workload.load import load_workload
from mapper.workload.parameters import parse_parameters, split_spec
from mapper.workload.torch_import.importing import import_built
from tests.mapper.workload import counted_image_classifiers as vision

SPECS, PUBLISHED = vision.SPECS, vision.PUBLISHED
OTHERS = tuple(sorted(set(PUBLISHED) - {split_spec(spec)[0] for spec in SPECS}))
PRODUCTS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)


@dataclass
class MacCount(TorchFunctionMode):
    """Counts a module's products while it runs: layers by hooks, attention by its function."""

    macs: int = 0
    handles: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def watch(self, module: nn.Module) -> None:
        for layer in module.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                self.handles.append(layer.register_forward_hook(self._layer))

    def _layer(self, layer: nn.Module, inputs: Any, output: torch.Tensor) -> None:
        # Every output element is a sum over one filter (one row of the matrix).
        self.macs += output.numel() * (layer.weight.numel() // layer.weight.shape[0])

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if func is torch.nn.functional.scaled_dot_product_attention:
            query, key, value = args[:3]
            *batch, rows, size = query.shape
            scores = rows * key.shape[-2] * torch.Size(batch).numel()
            self.macs += scores * size + scores * value.shape[-1]
        result = func(*args, **(kwargs or {}))
        if func in PRODUCTS:
            self.macs += result.numel() * args[0].shape[-1]
        return result


#: Transformers that are written out, and the same ones as modules of torch: their measured form.
MODULES: dict[str, Callable[..., tuple[nn.Module, tuple[Any, ...]]]] = {
    "vit-ti:batch=3,image=96": partial(vit, "ti", batch=3, image=96),
    "vit-s": partial(vit, "s", batch=1),
    "vit-b32": partial(vit, "b", batch=1, patch=32),
    "gpt2:batch=4,seq=64,logits=all": partial(gpt2, batch=4, seq=64),
}


def build(spec: str) -> tuple[nn.Module, tuple[Any, ...]]:
    name, given = split_spec(spec)
    with torch.device("meta"):
        if spec in MODULES:
            module, inputs = MODULES[spec]()
        else:
            entry = zoo.describe(name)
            module, inputs = entry.builder(parse_parameters(name, entry.parameters, given))()
    return module.eval(), inputs


def counted(spec: str) -> tuple[int, int]:
    """Parameters and MACs of the torch module itself."""
    module, inputs = build(spec)
    count = MacCount()
    count.watch(module)
    with torch.no_grad(), torch.device("meta"), count:
        module(*inputs)
    return sum(p.numel() for p in module.parameters()), count.macs


@pytest.mark.parametrize("spec", [*SPECS, *MODULES])
def test_counts_equal_those_of_the_module(spec: str) -> None:
    workload = load_workload(spec)
    assert (workload.parameters, workload.macs) == counted(spec)


@pytest.mark.slow
@pytest.mark.parametrize("spec", OTHERS)
def test_counts_of_the_others_equal_those_of_the_module(spec: str) -> None:
    workload = load_workload(spec)
    assert (workload.parameters, workload.macs) == counted(spec)


@pytest.mark.parametrize("spec", [*SPECS, *MODULES])
def test_macs_equal_torchs_flop_counter(spec: str) -> None:
    module, inputs = build(spec)
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), torch.device("meta"), counter:
        module(*inputs)
    assert 2 * load_workload(spec).macs == counter.get_total_flops()


@pytest.mark.parametrize("name", vision.PUBLISHED_WIDTHS)
def test_widths_have_the_published_counts(name: str) -> None:
    assert counted(name) == vision.PUBLISHED_WIDTHS[name]


@pytest.mark.parametrize("name", PUBLISHED)
def test_modules_have_the_published_counts(name: str) -> None:
    parameters, macs = PUBLISHED[name]
    found_parameters, found_macs = counted(name)
    assert found_parameters == parameters
    assert macs is None or found_macs == macs


def test_every_network_is_counted_here() -> None:
    assert set(zoo.names()) == set(PUBLISHED)


def test_batch_multiplies_macs_and_leaves_parameters() -> None:
    one, four = (load_workload(f"resnet18:batch={batch}") for batch in (1, 4))
    assert four.macs == 4 * one.macs
    assert four.parameters == one.parameters


@pytest.mark.parametrize("spec", MODULES)
def test_products_are_those_of_the_module(spec: str) -> None:
    """Differential: the importer and the writer find the same products in the same loops."""
    module, inputs = build(spec)
    with torch.device("meta"):
        imported = import_built(lambda: (module, inputs), name=spec, dtype="int8")
    found, expected = (
        Counter(
            tuple(sorted((dim, extent) for dim, extent in o.extents.items() if extent > 1))
            for o in workload.operators
            if o.operation == "mac" and "P" not in o.extents
        )
        for workload in (load_workload(spec), imported)
    )
    assert found == expected


def test_tied_matrices_are_one_tensor() -> None:
    readers = {
        operator.name
        for operator in load_workload("gpt2").operators
        if any(access.tensor == "embed.weight" for access in operator.inputs)
    }
    assert readers == {"embed", "head"}
