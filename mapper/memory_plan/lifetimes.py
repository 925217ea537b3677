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


def results_of(layers: Sequence[Layer]) -> tuple[FeatureMap, ...]:
    """What is there at the end: results of the network, and what nobody reads."""
    read = {source.name for layer in layers for source in layer.inputs}
    made = {layer.output.name: layer.output for layer in layers}
    return tuple(m for name, m in made.items() if m.is_result or name not in read)


def lifetimes(layers: Sequence[Layer]) -> dict[str, Buffer]:
    """Inputs of the network are there from step 0, its results stay to the end."""
    produced = {layer.output.name: step for step, layer in reversed(list(enumerate(layers)))}
    used: dict[str, int] = {}
    for step, layer in enumerate(layers):
        for feature_map in layer.inputs:
            used[feature_map.name] = step
    end = len(layers) - 1
    return {
        name: Buffer(
            name=name,
            size_bytes=feature_map.size_bytes,
            first=produced.get(name, 0),
            last=end if feature_map.is_result else used.get(name, end),
        )
        for name, feature_map in maps_of(layers).items()
    }
