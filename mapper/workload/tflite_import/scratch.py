"""Buffers that TensorFlow Lite Micro's reference kernels ask for while they are prepared.

As in the kernels of tensorflow/tflite-micro (commit 90b983c); on a 64-bit host pointers have 8
bytes. What is not listed asks for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mapper.workload.tflite_import.model import TYPES, FileOperator, FileTensor

_INT = 4
_POINTER = 8

#: Operands of an operator (``None`` where one is left out): inputs and outputs.
Operands = Sequence[FileTensor | None]


def scratch_bytes(operator: FileOperator, tensors: Sequence[FileTensor]) -> tuple[int, ...]:
    """Sizes in the order in which the kernel asks."""
    rule = _RULES.get(operator.kind)
    if rule is None:
        return ()
    inputs = [None if i < 0 else tensors[i] for i in operator.inputs]
    return tuple(rule(operator, inputs, [tensors[i] for i in operator.outputs]))


Rule = Callable[[FileOperator, Operands, Sequence[FileTensor]], list[int]]


def _narrow_weights(operator: FileOperator, inputs: Operands, outputs: object) -> list[int]:
    """int4 weights are unpacked to a byte each."""
    weights = inputs[1]
    return [weights.elements] if weights is not None and weights.type == "INT4" else []


def _reduction(operator: FileOperator, inputs: Operands, outputs: object) -> list[int]:
    data, axes = inputs[0], inputs[1]
    assert data is not None
    assert axes is not None
    return [_INT * len(data.shape), _INT * axes.elements]


def _sum(operator: FileOperator, inputs: Operands, outputs: Sequence[FileTensor]) -> list[int]:
    data = inputs[0]
    wide = data is not None and data.type in ("INT8", "INT16")
    accumulators = [_INT * outputs[0].elements] if wide else []
    return [*accumulators, *_reduction(operator, inputs, outputs)]


def _svdf(operator: FileOperator, inputs: Operands, outputs: Sequence[FileTensor]) -> list[int]:
    data, features = inputs[0], inputs[1]
    assert data is not None
    assert features is not None
    filters = data.shape[0] * features.shape[0] * _INT
    return [filters] if data.type == "FLOAT32" else [filters, outputs[0].elements * _INT]


def _transposed(
    operator: FileOperator, inputs: Operands, outputs: Sequence[FileTensor]
) -> list[int]:
    data = inputs[2]
    assert data is not None
    bias = inputs[3] if len(inputs) > 3 else None
    if data.type == "INT16":
        converted = [8 * bias.elements] if bias is not None and bias.type == "INT16" else []
        return [*converted, 8 * outputs[0].elements]
    return [_INT * outputs[0].elements] if data.type == "INT8" else []


#: Positions of an LSTM's hidden and cell states among its inputs.
HIDDEN_STATE, CELL_STATE = 18, 19


def _lstm(operator: FileOperator, inputs: Operands, outputs: object) -> list[int]:
    """One gate each, as wide as the cell's state."""
    state = inputs[CELL_STATE]
    assert state is not None
    return [state.size_bytes] * 4


def _add_n(operator: FileOperator, inputs: Operands, outputs: object) -> list[int]:
    return [_POINTER * len(inputs)]


def _mirror_pad(operator: FileOperator, inputs: Operands, outputs: object) -> list[int]:
    data = inputs[0]
    assert data is not None
    return [_INT * len(data.shape)] * 2


def _fft(operator: FileOperator, inputs: Operands, outputs: object) -> list[int]:
    data = inputs[0]
    assert data is not None
    return [operator.options["fft_length"] * TYPES[data.type][1]]


_RULES: dict[str, Rule] = {
    "CONV_2D": _narrow_weights,
    "DEPTHWISE_CONV_2D": _narrow_weights,
    "FULLY_CONNECTED": _narrow_weights,
    "MEAN": _sum,
    "SUM": _sum,
    "REDUCE_MAX": _reduction,
    "REDUCE_MIN": _reduction,
    "REDUCE_ALL": _reduction,
    "SVDF": _svdf,
    "TRANSPOSE_CONV": _transposed,
    "UNIDIRECTIONAL_SEQUENCE_LSTM": _lstm,
    "ADD_N": _add_n,
    "MIRROR_PAD": _mirror_pad,
    "SignalRfft": _fft,
}
