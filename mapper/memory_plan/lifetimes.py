"""From when to when each activation is needed, in the order of the layers."""

from __future__ import annotations

from collections.abc import Sequence

from mapper.memory_plan.layers import FeatureMap, Layer
from mapper.memory_plan.plan import Buffer


def maps_of(layers: Sequence[Layer]) -> dict[str, FeatureMap]:
    """Every activation by name, in the order of first appearance."""
    found: dict[str, FeatureMap] = {}
    for layer in layers:
        for feature_map in (*layer.inputs, layer.output):
            found.setdefault(feature_map.name, feature_map)
    return found


def lifetimes(layers: Sequence[Layer]) -> dict[str, Buffer]:
    """Inputs of the network are there from step 0, results that nobody reads stay to the end."""
    produced = {layer.output.name: step for step, layer in reversed(list(enumerate(layers)))}
    used: dict[str, int] = {}
    for step, layer in enumerate(layers):
        for feature_map in layer.inputs:
            used[feature_map.name] = step
    return {
        name: Buffer(
            name=name,
            size_bytes=feature_map.size_bytes,
            first=produced.get(name, 0),
            last=used.get(name, len(layers) - 1),
        )
        for name, feature_map in maps_of(layers).items()
    }
