"""The buffers of TensorFlow Lite Micro's arena, in the order in which it lists them."""

from __future__ import annotations

from collections.abc import Sequence

from mapper.memory_plan.layers import Layer
from mapper.memory_plan.lifetimes import lifetimes
from mapper.memory_plan.overlay import Task, file_distances, layer_distances
from mapper.memory_plan.plan import Buffer
from mapper.workload.graph import Workload
from mapper.workload.runtime import RuntimeGraph
from mapper.workload.tflite_import.model import FileModel


def tflm_buffers(workload: Workload, layers: Sequence[Layer]) -> list[Buffer]:
    """Those of the file, scratch of kernels included; without a file one per activation."""
    if workload.runtime is None:
        lives = lifetimes(layers)
        return [lives[t.name] for t in workload.tensors if t.name in lives]
    return _buffers(workload.runtime)


def overlay_task(workload: Workload, layers: Sequence[Layer]) -> Task:
    """Tensors of the file's first graph may have places in the file, nothing else."""
    buffers = tflm_buffers(workload, layers)
    if workload.runtime is None:
        return Task(
            tensors=tuple(buffers),
            online=(),
            apart=layer_distances(layers, buffers),
            alignment=_widest(layers),
        )
    return file_task(workload.runtime)


def file_task(runtime: RuntimeGraph) -> Task:
    buffers = _buffers(runtime)
    fixed = {b.name for b in runtime.buffers if b.fixed}
    return Task(
        tensors=tuple(b for b in buffers if b.name in fixed),
        online=tuple(b for b in buffers if b.name not in fixed),
        apart=file_distances(runtime.source, buffers),
        alignment=_widest_of_file(runtime.source),
    )


def _buffers(runtime: RuntimeGraph) -> list[Buffer]:
    return [
        Buffer(name=b.name, size_bytes=b.size_bytes, first=b.first, last=b.last)
        for b in runtime.buffers
    ]


def _widest(layers: Sequence[Layer]) -> int:
    return max(m.bytes_per_value for layer in layers for m in (*layer.inputs, layer.output))


def _widest_of_file(model: FileModel) -> int:
    tensors = (t for graph in model.graphs for t in graph.tensors if not t.constant)
    return max(t.size_bytes // t.elements for t in tensors if t.elements)
