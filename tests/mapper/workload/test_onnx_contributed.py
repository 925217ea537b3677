"""Operators of onnxruntime's own domain: what they compute, what they are counted as."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mapper.workload.graph import Workload
from mapper.workload.load import load_workload

onnx = pytest.importorskip("onnx")
network = pytest.importorskip("mapper.workload.onnx_import.network")

Array = NDArray[np.float64]
DOMAIN = "com.microsoft"
RNG = np.random.default_rng(1)


def ran(operator: str, inputs: Sequence[Array | None], **attributes: Any) -> list[Array]:
    """What the function registered for an operator computes on real numbers."""
    call = network.NodeCall(
        name="node",
        operator=operator,
        attributes=attributes,
        inputs=tuple(None if x is None else torch.tensor(x) for x in inputs),
        outputs=3,
        opset=21,
    )
    result = network.HANDLERS[DOMAIN, operator](call)
    return [np.asarray(each) for each in (result if isinstance(result, tuple) else (result,))]


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def attended(query: Array, key: Array, value: Array, past: int, causal: bool = True) -> Array:
    """Head by head, position by position; ``[batch, head, position, element]``."""
    result = np.zeros_like(query)
    share = query.shape[1] // key.shape[1]
    for b, h, at in np.ndindex(*query.shape[:3]):
        seen = past + at + 1 if causal else key.shape[2]
        keys, values = key[b, h // share, :seen], value[b, h // share, :seen]
        scores = keys @ query[b, h, at] / np.sqrt(query.shape[3])
        result[b, h, at] = softmax(scores) @ values
    return result


def in_heads(rows: Array, heads: int) -> Array:
    return rows.reshape(*rows.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def in_rows(heads: Array) -> Array:
    return heads.transpose(0, 2, 1, 3).reshape(heads.shape[0], heads.shape[2], -1)


def turned(data: Array, cosines: Array, sines: Array, first: int) -> Array:
    """Element ``i`` and element ``i + half`` as a complex number, turned."""
    half = data.shape[-1] // 2
    number = data[..., :half] + 1j * data[..., half:]
    angles = cosines + 1j * sines
    number = number * angles[first : first + data.shape[2]]
    return np.concatenate([number.real, number.imag], axis=-1)


@pytest.mark.parametrize(("past", "new"), [(0, 4), (5, 1)])
def test_grouped_attention(past: int, new: int) -> None:
    heads, kv_heads, size = 4, 2, 6
    packed = RNG.normal(size=(2, new, (heads + 2 * kv_heads) * size))
    caches = [RNG.normal(size=(2, kv_heads, past, size)) for _ in range(2)]
    angle = RNG.normal(size=(12, size // 2))
    cosines, sines = np.cos(angle), np.sin(angle)
    inputs = [packed, None, None, *(caches if past else (None, None)), None, None, cosines, sines]
    found, keys, values = ran(
        "GroupQueryAttention", inputs, num_heads=heads, kv_num_heads=kv_heads, do_rotary=1
    )
    split = in_heads(packed, heads + 2 * kv_heads)
    query, key, value = np.split(split, [heads, heads + kv_heads], axis=1)
    query, key = (turned(each, cosines, sines, past) for each in (query, key))
    key, value = (np.concatenate(pair, axis=2) for pair in zip(caches, (key, value), strict=True))
    np.testing.assert_allclose(found, in_rows(attended(query, key, value, past)), atol=1e-9)
    np.testing.assert_allclose(keys, key, atol=1e-9)
    np.testing.assert_allclose(values, value, atol=1e-9)


def test_many_headed_attention_packed_and_apart() -> None:
    query, key, value = (RNG.normal(size=(2, 3, 8)) for _ in range(3))
    bias = RNG.normal(size=24)
    apart, *_ = ran("MultiHeadAttention", [query, key, value, bias], num_heads=2)
    given = [
        in_heads(each + part, 2)
        for each, part in zip((query, key, value), np.split(bias, 3), strict=True)
    ]
    expected = in_rows(attended(given[0], given[1], given[2], 0, causal=False))
    np.testing.assert_allclose(apart, expected, atol=1e-9)
    packed = np.stack([each.transpose(0, 2, 1, 3) for each in given], axis=3)
    together, *_ = ran("MultiHeadAttention", [packed], num_heads=2)
    np.testing.assert_allclose(together, expected, atol=1e-9)


def test_attention_with_its_projection() -> None:
    rows, weight, bias = RNG.normal(size=(2, 3, 5)), RNG.normal(size=(5, 24)), RNG.normal(size=24)
    found, both = ran("Attention", [rows, weight, bias], num_heads=2, unidirectional=1)
    query, key, value = (in_heads(p, 2) for p in np.split(rows @ weight + bias, 3, axis=-1))
    np.testing.assert_allclose(found, in_rows(attended(query, key, value, 0)), atol=1e-9)
    np.testing.assert_allclose(both, np.stack([key, value]), atol=1e-9)


def test_rotary_positions() -> None:
    data, angle = RNG.normal(size=(2, 3, 4, 6)), RNG.normal(size=(9, 3))
    places = np.broadcast_to(np.arange(4), (2, 4)).astype(np.int64)
    (found,) = ran("RotaryEmbedding", [data, places, np.cos(angle), np.sin(angle)])
    np.testing.assert_allclose(found, turned(data, np.cos(angle), np.sin(angle), 0), atol=1e-9)


def value(name: str, shape: Sequence[int | str] | None, kind: str = "FLOAT") -> Any:
    return onnx.helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), shape)


def imported(
    file: Path, nodes: Sequence[Any], inputs: Sequence[Any], known: Mapping[str, Any], sizes: str
) -> Workload:
    graph = onnx.helper.make_graph(
        list(nodes),
        "net",
        list(inputs),
        [value(nodes[-1].output[0], None)],
        [onnx.numpy_helper.from_array(array, name) for name, array in known.items()],
    )
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid(DOMAIN, 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), file)
    return load_workload(f"{file}:{sizes}" if sizes else str(file))


def node(operator: str, inputs: Sequence[str], **attributes: Any) -> Any:
    return onnx.helper.make_node(operator, inputs, ["z"], domain=DOMAIN, **attributes)


@pytest.mark.parametrize(("bits", "block"), [(4, 16), (8, 32)])
def test_packed_weights_are_read_in_their_few_bits(tmp_path: Path, bits: int, block: int) -> None:
    n, k = 24, 64
    known = {
        "w": np.zeros((n, k // block, block * bits // 8), np.uint8),
        "s": np.zeros(n * k // block, np.float16),
        "p": np.zeros(n * k // block // 2, np.uint8),
    }
    made = node("MatMulNBits", ["x", "w", "s", "p"], K=k, N=n, bits=bits, block_size=block)
    workload = imported(tmp_path / "n.onnx", [made], [value("x", ["m", k])], known, "m=3")
    (weight,) = [t for t in workload.tensors if t.kind == "weight"]
    assert (weight.shape, workload.macs) == ((n, k), 3 * n * k)
    assert weight.bits == bits + Fraction(16, block)
    assert "w: read as" in workload.folded[-1]
    assert "s, p" in workload.folded[-1]


def test_rows_of_packed_tables(tmp_path: Path) -> None:
    known = {"w": np.zeros((50, 16), np.uint8), "s": np.zeros((50, 2), np.float32)}
    made = node("GatherBlockQuantized", ["w", "i", "s"], bits=4, block_size=16)
    inputs = [value("i", [1, "t"], "INT64")]
    (lookup,) = imported(tmp_path / "n.onnx", [made], inputs, known, "t=7").operators
    assert lookup.points == 7 * 32


@pytest.mark.parametrize(("batch", "new", "past"), [(1, 1, 31), (2, 8, 0), (3, 4, 5)])
def test_sizes_that_a_file_leaves_open(tmp_path: Path, batch: int, new: int, past: int) -> None:
    """Scores and contexts of every new token with all positions, its own included."""
    heads, kv_heads, size = 4, 2, 8
    cache = ["batch", kv_heads, "past", size]
    inputs = [
        value("x", ["batch", "new", (heads + 2 * kv_heads) * size]),
        value("keys", cache),
        value("values", cache),
    ]
    made = node(
        "GroupQueryAttention",
        ["x", "", "", "keys", "values"],
        num_heads=heads,
        kv_num_heads=kv_heads,
    )
    sizes = f"batch={batch},new={new},past={past}"
    workload = imported(tmp_path / "n.onnx", [made], inputs, {}, sizes)
    assert workload.macs == 2 * batch * heads * new * (past + new) * size


def test_a_window_limits_what_one_token_reads(tmp_path: Path) -> None:
    heads, size, past, window = 2, 8, 31, 10
    inputs = [
        value("x", [1, 1, 3 * heads * size]),
        value("keys", [1, heads, past, size]),
        value("values", [1, heads, past, size]),
    ]
    given = ["x", "", "", "keys", "values"]
    made = node(
        "GroupQueryAttention", given, num_heads=heads, kv_num_heads=heads, local_window_size=window
    )
    workload = imported(tmp_path / "n.onnx", [made], inputs, {}, "")
    assert workload.macs == 2 * heads * window * size


def test_quantized_sums_stay_bytes(tmp_path: Path) -> None:
    scale, zero = {"s": np.float32(0.1).reshape(()), "p": np.uint8(0).reshape(())}.values()
    made = node("QLinearAdd", ["a", "s", "p", "b", "s", "p", "s", "p"])
    inputs = [value("a", [2, 3], "UINT8"), value("b", [2, 3], "UINT8")]
    workload = imported(tmp_path / "n.onnx", [made], inputs, {"s": scale, "p": zero}, "")
    assert {t.dtype for t in workload.tensors if t.kind != "weight"} == {"int8"}
