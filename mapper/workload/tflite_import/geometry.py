"""Where windows lie, as TensorFlow Lite computes it."""

from __future__ import annotations

from mapper.workload.nests import Window
from mapper.workload.tflite_import.model import FileGraph, FileOperator

#: The schema's number of padding that keeps the size.
SAME = 0


def window_of(graph: FileGraph, operator: FileOperator, kernel: tuple[int, ...]) -> Window:
    """The window of a convolution or a pool over its first input; an odd zero comes last."""
    options = operator.options
    stride = (options.get("StrideH") or 1, options.get("StrideW") or 1)
    dilation = (options.get("DilationHFactor") or 1, options.get("DilationWFactor") or 1)
    sizes = graph.tensors[operator.inputs[0]].shape[1:3]
    outputs = graph.tensors[operator.outputs[0]].shape[1:3]
    same = options.get("Padding", SAME) == SAME
    padding = tuple(
        max(0, (out - 1) * step + (k - 1) * wide + 1 - size) // 2 if same else 0
        for out, step, k, wide, size in zip(outputs, stride, kernel, dilation, sizes, strict=True)
    )
    return Window(kernel=kernel, stride=stride, padding=padding, dilation=dilation)
