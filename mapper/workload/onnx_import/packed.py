"""Weights of few bits: which initializers they are, their true shape and their format.

Several elements share a byte in the file, and each group of them has a scale (and a zero point) in
another initializer. Here they are one tensor whose format includes the scales; zero points are
not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Operators with packed weights: where these stand, and which inputs belong to them.
_PACKED = {"MatMulNBits": (1, (2, 3, 4)), "GatherBlockQuantized": (0, (2, 3))}

_FOUR_BITS = ("INT4", "UINT4")

#: ``bits`` and ``block_size`` where a node does not say.
_BITS, _BLOCK = 4, 128


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedWeight:
    """Elements as they are multiplied, and our name of their format."""

    shape: tuple[int, ...]
    dtype: str
    companions: tuple[str, ...] = ()
    """Initializers that the format includes."""


def packed_weights(graph: Any) -> Mapping[str, PackedWeight]:
    """By the initializer's name."""
    protos = {proto.name: proto for proto in graph.initializer}
    found = {name: _plain(proto) for name, proto in protos.items() if _has_four_bits(proto)}
    for node in graph.node:
        if node.op_type in _PACKED:
            at, beside = _PACKED[node.op_type]
            proto = protos.get(node.input[at])
            if proto is not None:
                names = [node.input[b] for b in beside if b < len(node.input)]
                found[proto.name] = _grouped(node, proto, tuple(n for n in names if n in protos))
        elif node.op_type == "DequantizeLinear" and node.input[0] in found:
            block = _attributes(node).get("block_size", 0)
            plain = found[node.input[0]]
            if block:
                found[node.input[0]] = PackedWeight(
                    shape=plain.shape, dtype=f"{plain.dtype}_g{block}"
                )
    return found


def _grouped(node: Any, proto: Any, companions: tuple[str, ...]) -> PackedWeight:
    given = _attributes(node)
    bits, block = given.get("bits", _BITS), given.get("block_size", _BLOCK)
    if "N" in given:
        shape = (given["N"], given["K"])
    else:
        dims = tuple(proto.dims)
        shape = dims if _has_four_bits(proto) else (*dims[:-1], dims[-1] * 8 // bits)
    return PackedWeight(shape=shape, dtype=f"int{bits}_g{block}", companions=companions)


def _plain(proto: Any) -> PackedWeight:
    return PackedWeight(shape=tuple(proto.dims), dtype=_type_name(proto).lower())


def _has_four_bits(proto: Any) -> bool:
    return _type_name(proto) in _FOUR_BITS


def _type_name(proto: Any) -> str:
    import onnx

    return str(onnx.TensorProto.DataType.Name(proto.data_type))


def _attributes(node: Any) -> dict[str, Any]:
    import onnx

    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
