"""Whole networks as torch runs them, to be measured: one CUDA graph of all kernels of a step.

Networks are those of the zoo (``resnet50``, ...), ViT and GPT-2 (with all logits) as modules of
torch's own, and BERT as transformers has it, in bf16, images channels last. ``eager`` is the module
as it is: batch normalization, activation and sum are kernels of their own. ``fused`` has batch
normalization in the weights, and bias, clamp and residual sum in the epilogue of cuDNN's
convolutions, as compilers for inference arrange it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from mapper.workload import zoo
from mapper.workload.parameters import parse_parameters

if TYPE_CHECKING:
    import torch

EAGER, FUSED = "eager", "fused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A network with its parameters, as ``dse simulate --workload`` takes them, and how it runs."""

    name: str
    parameters: tuple[tuple[str, int], ...]
    epilogues: str = EAGER

    @property
    def workload(self) -> str:
        chosen = [f"{key}={value}" for key, value in self.parameters]
        return f"{self.name}:{','.join([*chosen, *ALWAYS.get(self.name, ())])},dtype=bf16"


#: How networks are run unless the workload says otherwise.
ALWAYS = {"gpt2": ("logits=all",)}


def _sizes(
    name: str, batches: tuple[int, ...], epilogues: str = EAGER, **fixed: int
) -> tuple[Case, ...]:
    return tuple(
        Case(name=name, parameters=(("batch", batch), *fixed.items()), epilogues=epilogues)
        for batch in batches
    )


CASES = (
    *_sizes("resnet50", (1, 8, 32, 256)),
    *_sizes("resnet50", (1, 8, 32, 256), FUSED),
    *_sizes("mobilenet_v2", (1, 32, 256)),
    *_sizes("vit-b", (1, 32, 256)),
    *_sizes("gpt2", (1, 16), seq=512),
    *_sizes("resnet18", (1, 64)),
    *_sizes("resnet18", (1, 64), FUSED),
    *_sizes("efficientnet_b0", (1, 64)),
    *_sizes("densenet121", (1, 64)),
    *_sizes("mobilenet_v3_large", (1, 128)),
    *_sizes("vit-s", (64,)),
)

#: Networks and sizes that only judge: what is known of the model's structure came from ``CASES``.
UNSEEN = (
    *_sizes("resnet101", (2, 48)),
    *_sizes("resnet34", (4, 128), FUSED),
    *_sizes("resnet152", (16,), FUSED),
    *_sizes("mobilenet_v1", (1, 64)),
    *_sizes("efficientnet_b2", (2, 48), image=260),
    *_sizes("densenet169", (1, 32)),
    *_sizes("vovnet39", (1, 64)),
    *_sizes("hardnet68", (8,)),
    *_sizes("mobilenet_v3_small", (2, 256)),
    *_sizes("vit-l", (1, 24)),
    *_sizes("vit-ti", (16, 256)),
    *_sizes("gpt2", (4,), seq=256),
    *_sizes("bert-base", (2, 48), seq=256),
    *_sizes("bert-base", (1, 32, 256), seq=128),
    *_sizes("bert-base", (8,), seq=512),
)

#: Of networks whose input is text, how many different tokens there are.
VOCABULARY = {"bert-base": 30522, "gpt2": 50257}

Built = tuple["torch.nn.Module", tuple["torch.Tensor", ...]]


def build(case: Case, device: str) -> Built:
    """The module in bf16 with random weights, and random inputs."""
    import torch

    torch.manual_seed(0)
    with torch.device(device):
        module, inputs = _SOURCES.get(case.name, _from_zoo)(case)
    module = module.eval().to(torch.bfloat16)
    for layer in module.modules():
        _randomized(layer)
    if case.epilogues == FUSED:
        module = _fused(module)
    if case.name in VOCABULARY:
        tokens = torch.randint(VOCABULARY[case.name], inputs[0].shape, device=device)
        return module, (tokens.to(torch.int32),)
    images = torch.randn(inputs[0].shape, device=device).to(torch.bfloat16)
    last = torch.channels_last
    return module.to(memory_format=last), (images.to(memory_format=last),)  # type: ignore[call-overload]


def _randomized(layer: Any) -> None:
    """Weights that keep activations of one size through all layers, and statistics of a batch."""
    import torch

    if isinstance(layer, torch.nn.Conv2d):
        torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
    if isinstance(layer, torch.nn.BatchNorm2d) and layer.running_var is not None:
        layer.running_var.uniform_(0.8, 1.25)
        layer.running_mean.normal_(0, 0.1)  # type: ignore[union-attr]


def _from_zoo(case: Case) -> Built:
    entry = zoo.describe(case.name)
    given = {key: str(value) for key, value in case.parameters}
    return entry.builder(parse_parameters(case.name, entry.parameters, given))()


def _bert(case: Case) -> Built:
    import torch
    from transformers import BertConfig, BertModel

    given = dict(case.parameters)
    config = BertConfig()
    config._attn_implementation = "sdpa"
    model = BertModel(config)
    return _LastState(model), (torch.zeros(given["batch"], given["seq"], dtype=torch.int32),)


def _vit(case: Case) -> Built:
    # By name, since the module needs torch.
    family = importlib.import_module("kernels_ref.library.eager_vit")
    return cast(Built, family.vit(case.name.removeprefix("vit-"), **dict(case.parameters)))


def _gpt2(case: Case) -> Built:
    family = importlib.import_module("kernels_ref.library.eager_gpt2")
    return cast(Built, family.gpt2(**dict(case.parameters)))


_SOURCES: dict[str, Callable[[Case], Built]] = {
    "bert-base": _bert,
    "gpt2": _gpt2,
    **dict.fromkeys(("vit-ti", "vit-s", "vit-b", "vit-l"), _vit),
}


def _LastState(model: Any) -> Any:  # noqa: N802 - makes an instance of a class torch is needed for
    """Takes tokens and returns what the pooler makes of them."""
    import torch

    class LastState(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            # Without the model's own mask, which it makes only while a graph is captured.
            x = self.model.embeddings(input_ids=tokens)
            pooled: torch.Tensor = self.model.pooler(self.model.encoder(x).last_hidden_state)
            return pooled

    return LastState()


def _fused(module: torch.nn.Module) -> torch.nn.Module:
    """A residual network with all that can be in the epilogues of its convolutions."""
    import torch

    if type(module).__name__ != "ResNet":
        raise TypeError("only residual networks are fused here")
    whole: Any = module

    class Fused(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = _folded(whole.conv1, whole.bn1)
            self.maxpool, self.avgpool, self.fc = whole.maxpool, whole.avgpool, whole.fc
            stages = [whole.get_submodule(f"layer{number}") for number in (1, 2, 3, 4)]
            blocks = [block for stage in stages for block in stage.children()]
            self.blocks = torch.nn.ModuleList(Block(block) for block in blocks)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.maxpool(clamped(self.stem, x))
            for block in self.blocks:
                x = block(x)
            scores: torch.Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
            return scores

    class Block(torch.nn.Module):
        def __init__(self, block: Any) -> None:
            super().__init__()
            depth = 3 if hasattr(block, "conv3") else 2
            self.layers = torch.nn.ModuleList(
                _folded(getattr(block, f"conv{n}"), getattr(block, f"bn{n}"))
                for n in range(1, depth + 1)
            )
            self.shortcut: Any = None
            if not isinstance(block.downsample, torch.nn.Identity):
                self.shortcut = _folded(*block.downsample)
                # Its bias is added with that of the layer whose result it is added to.
                self.layers[-1].bias.data += self.shortcut.bias.data
                self.shortcut.bias = None

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            other = x if self.shortcut is None else self.shortcut(x)
            for layer in self.layers[:-1]:
                x = clamped(layer, x)
            return clamped(self.layers[-1], x, other)

    return Fused()


def _folded(convolution: Any, norm: Any) -> Any:
    from torch.nn.utils.fusion import fuse_conv_bn_eval

    return fuse_conv_bn_eval(convolution, norm)


def clamped(layer: Any, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
    """``relu(convolution + bias + other)``, on a GPU one kernel."""
    import torch

    sizes = layer.stride, layer.padding, layer.dilation, layer.groups
    result: torch.Tensor
    if not x.is_cuda:
        result = torch.relu(layer(x) if other is None else layer(x) + other)
    elif other is None:
        result = torch.cudnn_convolution_relu(x, layer.weight, layer.bias, *sizes)
    else:
        result = torch.cudnn_convolution_add_relu(x, layer.weight, other, 1.0, layer.bias, *sizes)
    return result
