"""Other names of networks: one table for all of them, wherever they are defined.

Capital letters and underscores for hyphens make no other name, so ``ViT_B`` is ``vit-b``; what is
here are names of which more is different.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

ALIASES: Mapping[str, str] = {
    **{f"resnet-{depth}": f"resnet{depth}" for depth in (18, 34, 50, 101, 152)},
    **{f"densenet-{depth}": f"densenet{depth}" for depth in (121, 169, 201)},
    "mobilenetv1": "mobilenet_v1",
    "mobilenetv2": "mobilenet_v2",
    "mobilenetv3_small": "mobilenet_v3_small",
    "mobilenetv3_large": "mobilenet_v3_large",
    "shufflenetv2": "shufflenet_v2",
    "vit_b_16": "vit-b",
    "vit_b_32": "vit-b32",
    "vit_l_16": "vit-l",
    "vit_h_14": "vit-h",
    "gpt2-small": "gpt2",
    "gpt3-small": "gpt3-125m",
    "gpt3-medium": "gpt3-350m",
    "gpt3-large": "gpt3-760m",
    "gpt3-xl": "gpt3-1.3b",
    "gpt3": "gpt3-175b",
    "llama3-8b": "llama3.1-8b",
    "llama3-70b": "llama3.1-70b",
    "llama3-405b": "llama3.1-405b",
    "mixtral": "mixtral-8x7b",
}


def by_spelling(names: Iterable[str]) -> dict[str, str]:
    """From each spelling (of names and of other names) to the name; ``ValueError`` if two share
    one, or another name stands for none."""
    known = tuple(names)
    found: dict[str, str] = {}
    for spelt, name in (*((name, name) for name in known), *ALIASES.items()):
        if name not in known:
            raise ValueError(f"{spelt} is another name of {name}, which there is none of")
        if found.setdefault(spelling(spelt), name) != name or (spelt != name and spelt in known):
            raise ValueError(f"two networks are named {spelt}")
    return found


def spelling(name: str) -> str:
    """What names have in common that are the same."""
    return name.lower().replace("_", "-")
