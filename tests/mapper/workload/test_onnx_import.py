"""Does an ONNX file give the operators of the network it was exported from, or of its definition?

Small graphs are run by ONNX's reference implementation and by the definition of our operators; a
network that torch exports must have the operators of the same network imported from torch.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from arch.errors import InputError
from mapper.workload import zoo
from mapper.workload.graph import Workload
from mapper.workload.load import check_workload, load_workload
from mapper.workload.operators import Operator
from mapper.workload.parameters import parse_parameters
from tests.mapper.workload.interpreter import run

onnx = pytest.importorskip("onnx")

Array = NDArray[np.float32]
node = onnx.helper.make_node
info = onnx.helper.make_tensor_value_info
FLOAT = onnx.TensorProto.FLOAT


def random(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def model(
    nodes: Sequence[Any],
    inputs: dict[str, list[int | str]],
    weights: dict[str, NDArray[Any]],
    domain: str = "",
) -> Any:
    """Its output is the last node's first result."""
    graph = onnx.helper.make_graph(
        nodes,
        "test",
        [info(n, FLOAT, shape) for n, shape in inputs.items()],
        [info(nodes[-1].output[0], FLOAT, None)],
        [onnx.numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    imports = [onnx.helper.make_opsetid("", 18)]
    if domain:
        imports.append(onnx.helper.make_opsetid(domain, 1))
    return onnx.helper.make_model(graph, opset_imports=imports)


def saved(tmp_path: Path, built: Any) -> Path:
    file = tmp_path / "net.onnx"
    onnx.save(built, str(file))
    return file


def ints(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


Case = tuple[list[Any], list[int | str], dict[str, NDArray[Any]]]

CASES: dict[str, Callable[[], Case]] = {
    "convolution padded on one side": lambda: (
        [node("Conv", ["x", "w"], ["y"], pads=[0, 1, 1, 0], strides=[2, 1])],
        [1, 2, 6, 5],
        {"w": random(3, 2, 3, 2)},
    ),
    "convolution of the same size": lambda: (
        [node("Conv", ["x", "w"], ["y"], auto_pad="SAME_UPPER", strides=[2, 2])],
        [1, 2, 6, 5],
        {"w": random(3, 2, 3, 3)},
    ),
    "grouped and dilated convolution": lambda: (
        [node("Conv", ["x", "w"], ["y"], group=2, dilations=[1, 2], pads=[1, 1, 1, 1])],
        [2, 4, 5, 6],
        {"w": random(6, 2, 3, 2)},
    ),
    "product of transposed matrices": lambda: (
        [node("Gemm", ["x", "w"], ["y"], transA=1, transB=1)],
        [4, 3],
        {"w": random(5, 4)},
    ),
    "batched product": lambda: (
        [node("Transpose", ["x"], ["t"], perm=[0, 2, 1]), node("MatMul", ["x", "t"], ["y"])],
        [2, 3, 4],
        {},
    ),
    "pools": lambda: (
        [
            node("MaxPool", ["x"], ["p"], kernel_shape=[3, 3], strides=[2, 2], pads=[0, 0, 1, 1]),
            node("AveragePool", ["p"], ["q"], kernel_shape=[2, 2]),
            node("GlobalAveragePool", ["q"], ["y"]),
        ],
        [1, 2, 8, 8],
        {},
    ),
    "split, slice and concatenation": lambda: (
        [
            node("Split", ["x", "sizes"], ["a", "b"], axis=1),
            node("Slice", ["b", "start", "end", "axes", "steps"], ["c"]),
            node("Concat", ["c", "a"], ["y"], axis=1),
        ],
        [2, 7, 4],
        {
            "sizes": ints(3, 4),
            "start": ints(0),
            "end": ints(10),
            "axes": ints(1),
            "steps": ints(2),
        },
    ),
    "shape computed from the input": lambda: (
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "first"], ["rows"], axis=0),
            node("Concat", ["rows", "rest"], ["wanted"], axis=0),
            node("Reshape", ["x", "wanted"], ["flat"]),
            node("MatMul", ["flat", "w"], ["y"]),
        ],
        [2, 3, 4],
        {"first": ints(0), "rest": ints(-1), "w": random(12, 5)},
    ),
    "padding and repetition": lambda: (
        [node("Pad", ["x", "pads"], ["p"]), node("Tile", ["p", "times"], ["y"])],
        [2, 3],
        {"pads": ints(0, 1, 0, 2), "times": ints(2, 1)},
    ),
    "upsampling": lambda: (
        [
            node(
                "Resize",
                ["x", "", "scales"],
                ["y"],
                mode="nearest",
                nearest_mode="floor",
                coordinate_transformation_mode="asymmetric",
            )
        ],
        [1, 2, 3, 4],
        {"scales": np.array([1, 1, 2, 3], dtype=np.float32)},
    ),
    "sums, maxima and reductions": lambda: (
        [
            node("Mul", ["x", "x"], ["m"]),
            node("Max", ["x", "m"], ["n"]),
            node("ReduceSum", ["n", "axes"], ["y"], keepdims=0),
        ],
        [3, 4, 5],
        {"axes": ints(0, 2)},
    ),
    "space to depth": lambda: (
        [
            node("SpaceToDepth", ["x"], ["s"], blocksize=2),
            node("DepthToSpace", ["s"], ["t"], blocksize=2),
            node("Add", ["t", "x"], ["y"]),
        ],
        [1, 3, 4, 6],
        {},
    ),
    "softmax": lambda: ([node("Softmax", ["x"], ["y"], axis=-1)], [2, 3, 4], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_a_graph_computes_what_the_reference_does(name: str, tmp_path: Path) -> None:
    check_against_reference(CASES[name](), tmp_path)


def check_against_reference(case: Case, tmp_path: Path) -> None:
    """Differential: random inputs through the file and through the imported operators."""
    import onnx.reference

    nodes, shape, weights = case
    built = model(nodes, {"x": shape}, weights)
    x = random(*(size for size in shape if isinstance(size, int)))
    (expected,) = onnx.reference.ReferenceEvaluator(built).run(None, {"x": x})
    workload = load_workload(str(saved(tmp_path, built)))
    values = {"x": x.astype(np.float64)} | {n: w.astype(np.float64) for n, w in weights.items()}
    known = {tensor.name for tensor in workload.tensors}
    result = run(workload, {n: v for n, v in values.items() if n in known})
    (output,) = [t.name for t in workload.tensors if t.kind == "output"]
    np.testing.assert_allclose(
        result[output].reshape(expected.shape), expected, rtol=1e-4, atol=1e-5
    )


def work(workload: Workload) -> Counter[Hashable]:
    """Every operator without its name: what it does and which bytes it touches."""

    def described(operator: Operator) -> Hashable:
        tensors = [workload.tensor(access.tensor) for access in operator.accesses]
        return (
            operator.kind,
            tuple(sorted(operator.extents.items())),
            tuple(sorted((tensor.elements, tensor.dtype) for tensor in tensors)),
            operator.ops_per_point,
        )

    return Counter(map(described, workload.operators))


def exported(name: str, file: Path, **chosen: str) -> str:
    """The network of the zoo, with weights, written by torch; the spec of the same from torch."""
    entry = zoo.describe(name)
    module, inputs = entry.builder(parse_parameters(name, entry.parameters, chosen))()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), inputs, str(file), dynamo=False)
    return f"{name}:dtype=fp32," + ",".join(f"{key}={value}" for key, value in chosen.items())


@pytest.mark.parametrize(
    ("name", "chosen"), [("resnet18", {"image": "32"}), ("mobilenet_v3_small", {"image": "32"})]
)
def test_an_exported_network_has_the_operators_of_the_torch_import(
    name: str, chosen: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "net.onnx"
    from_torch = load_workload(exported(name, file, **chosen))
    from_file = load_workload(str(file))
    assert work(from_file) == work(from_torch)
    assert from_file.macs == from_torch.macs


def test_names_are_those_of_the_file(tmp_path: Path) -> None:
    built = model(
        [node("Conv", ["x", "stem.weight"], ["y"], name="/stem/Conv")],
        {"x": [1, 2, 4, 4]},
        {"stem.weight": random(3, 2, 1, 1)},
    )
    workload = load_workload(str(saved(tmp_path, built)))
    assert [o.name for o in workload.operators] == ["stem/Conv"]
    assert [t.name for t in workload.tensors if t.kind == "weight"] == ["stem.weight"]


def test_a_bias_after_a_product_is_folded_into_it(tmp_path: Path) -> None:
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["y"], name="bias")]
    built = model(nodes, {"x": [2, 3, 4]}, {"w": random(4, 5), "b": random(5)})
    workload = load_workload(str(saved(tmp_path, built)))
    assert [o.kind for o in workload.operators] == ["gemm"]
    assert any("add per channel" in note for note in workload.folded)


def test_what_is_known_beforehand_is_computed_and_listed(tmp_path: Path) -> None:
    nodes, shape, weights = CASES["shape computed from the input"]()
    workload = load_workload(str(saved(tmp_path, model(nodes, {"x": shape}, weights))))
    assert [o.kind for o in workload.operators] == ["gemm"]
    assert sum("computed beforehand" in note for note in workload.folded) == 2


def test_open_sizes_are_parameters(tmp_path: Path) -> None:
    built = model([node("MatMul", ["x", "w"], ["y"])], {"x": ["batch", 4]}, {"w": random(4, 5)})
    file = saved(tmp_path, built)
    assert load_workload(f"{file}:batch=7").macs == 7 * 4 * 5
    for spec, message in (
        (str(file), "batch: must be given (axis 0 of input x)"),
        (f"{file}:bach=7", "did you mean 'batch'?"),
        (f"{file}:batch=0", "0 is not allowed"),
    ):
        with pytest.raises(InputError) as caught:
            check_workload(spec)
        assert message in str(caught.value)


def test_the_type_can_be_replaced(tmp_path: Path) -> None:
    built = model([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 4]}, {"w": random(4, 5)})
    workload = load_workload(f"{saved(tmp_path, built)}:dtype=int8")
    assert {t.dtype for t in workload.tensors} == {"int8"}


def test_a_quantized_network_has_narrow_operands(tmp_path: Path) -> None:
    """Quantize and dequantize operators around two products: nothing wider than a byte is kept."""
    scale, zero = np.array(0.1, dtype=np.float32), np.array(0, dtype=np.int8)
    weights = {f"w{n}": np.ones((64, 64), dtype=np.int8) for n in range(2)}
    nodes = [node("QuantizeLinear", ["x", "s", "z"], ["q0"])]
    for n in range(2):
        nodes += [
            node("DequantizeLinear", [f"q{n}", "s", "z"], [f"d{n}"]),
            node("DequantizeLinear", [f"w{n}", "s", "z"], [f"v{n}"]),
            node("MatMul", [f"d{n}", f"v{n}"], [f"p{n}"]),
            node("Relu", [f"p{n}"], [f"r{n}"]),
            node("QuantizeLinear", [f"r{n}", "s", "z"], [f"q{n + 1}"]),
        ]
    built = model(nodes, {"x": [4, 64]}, weights | {"s": scale, "z": zero})
    workload = load_workload(str(saved(tmp_path, built)))
    assert [o.kind for o in workload.operators] == ["gemm", "gemm"]
    kept = {t.name: t.dtype for t in workload.tensors if t.kind not in ("input", "weight")}
    assert set(kept.values()) == {"int8"}
    assert {workload.tensor(f"w{n}").dtype for n in range(2)} == {"int8"}
    assert {o.accumulator_dtype for o in workload.operators} == {"int32"}


def test_weights_in_a_file_of_their_own_are_not_needed(tmp_path: Path) -> None:
    built = model([node("MatMul", ["x", "w"], ["y"])], {"x": [2, 64]}, {"w": random(64, 64)})
    file = tmp_path / "net.onnx"
    onnx.save_model(
        built, str(file), save_as_external_data=True, location="net.data", size_threshold=0
    )
    (tmp_path / "net.data").unlink()
    assert load_workload(str(file)).parameters == 64 * 64


def test_unknown_operators_are_all_named_with_their_domain(tmp_path: Path) -> None:
    nodes = [
        node("Sparkle", ["x"], ["a"], name="first", domain="com.acme"),
        node("Sparkle", ["a"], ["b"], name="second", domain="com.acme"),
        node("Det", ["b"], ["y"], name="third"),
    ]
    built = model(nodes, {"x": [3, 3]}, {}, domain="com.acme")
    with pytest.raises(InputError) as caught:
        load_workload(str(saved(tmp_path, built)))
    message = str(caught.value)
    assert "ONNX operator Sparkle of domain com.acme (node first and 1 more)" in message
    assert '@onnx_operator("Sparkle", domain="com.acme")' in message
    assert "ONNX operator Det (node third)" in message


def test_a_graph_that_does_not_fit_together_names_the_node(tmp_path: Path) -> None:
    built = model(
        [node("MatMul", ["x", "w"], ["y"], name="product")], {"x": [2, 3]}, {"w": random(4, 5)}
    )
    with pytest.raises(InputError, match=r"node product: MatMul: cannot be run on inputs \[2, 3\]"):
        load_workload(str(saved(tmp_path, built)))


def test_a_shape_that_depends_on_data_is_refused(tmp_path: Path) -> None:
    nodes = [
        node("Cast", ["x"], ["shape"], to=onnx.TensorProto.INT64),
        node("Reshape", ["w", "shape"], ["y"], name="reshape"),
    ]
    built = model(nodes, {"x": [2]}, {"w": random(4, 5)})
    with pytest.raises(InputError, match="node reshape: Reshape: input 1 must be known beforehand"):
        load_workload(str(saved(tmp_path, built)))


def test_files_that_are_not_onnx(tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    with pytest.raises(InputError, match="cannot be read: No such file"):
        load_workload(str(file))
    file.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        load_workload(str(file))
    file.write_text("not a graph")
    with pytest.raises(InputError, match="is not an ONNX file"):
        load_workload(str(file))
