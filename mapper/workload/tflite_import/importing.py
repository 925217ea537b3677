"""From the records of a file to a workload: operator by operator, as a draft.

Tensors of four axes are stored channels-second, as everywhere here, and seen channels-last, as
the file's operators see them. A reshape or a padding is not done where it stands but where its
result is read: a dense layer reads any shape, and a convolution reads zeros beyond the edge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from arch.errors import InputError, Problem
from mapper.workload.graph import Workload
from mapper.workload.nests import Nest, at
from mapper.workload.operators import AffineIndex
from mapper.workload.tflite_import.model import FileGraph, FileOperator, FileTensor
from mapper.workload.torch_import.draft import Draft, Kernel, point_dims, pointwise
from mapper.workload.torch_import.storage import Storage, View, broadcast, fresh, permute

#: From channels-last to channels-second, and back.
CHANNELS_SECOND, CHANNELS_LAST = (0, 3, 1, 2), (0, 2, 3, 1)


def as_stored(view: View) -> View:
    """A view with channels second, if it has four axes."""
    return permute(view, CHANNELS_SECOND) if len(view.axes) == 4 else view


def as_seen(view: View) -> View:
    """The inverse of ``as_stored``."""
    return permute(view, CHANNELS_LAST) if len(view.axes) == 4 else view


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshaped:
    """The elements of ``source`` under another shape."""

    name: str
    source: View
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Padded:
    """``source`` with zeros around it: ``before`` each axis, and its size with them."""

    name: str
    source: View
    before: tuple[int, ...]
    shape: tuple[int, ...]


@dataclass(slots=True)
class Importing:
    """A draft that grows; ``values`` are the tensors of the file by number."""

    graph: FileGraph
    draft: Draft = field(default_factory=Draft)
    values: dict[int, View | Reshaped | Padded] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)

    def view(self, number: int) -> View:
        """The tensor as the file sees it; a reshape or a padding is done now."""
        value = self.values.get(number)
        if value is None:
            value = self._outside(number)
        if isinstance(value, Reshaped):
            value = self._reshaped(value)
        elif isinstance(value, Padded):
            self.made.add(value.name)
            value = self.padded(value)
        self.values[number] = value
        return value

    def store(self, name: str, shape: Sequence[int], dtype: str, kind: str) -> View:
        """A new tensor as the file sees it."""
        seen = tuple(shape)
        stored = tuple(seen[axis] for axis in CHANNELS_SECOND) if len(seen) == 4 else seen
        return as_seen(fresh(self.draft.store(name, stored, dtype, kind)))

    def copy(self, name: str, view: View) -> View:
        """A tensor of its own with the same values."""
        kernel = pointwise("copy", "copy", as_stored(view).shape, 1)
        target = self.store(f"{name}.out", view.shape, view.storage.dtype, "activation")
        self.draft.emit_into(self.draft.unique(name), kernel, [as_stored(view)], as_stored(target))
        return target

    def _outside(self, number: int) -> View:
        """A constant, a variable, or an input of the network."""
        tensor = self.graph.tensors[number]
        kind = "weight" if tensor.constant else "input"
        name = tensor.name or f"tensor_{number}"
        return self.store(name, tensor.shape, tensor.dtype, kind)

    def _reshaped(self, value: Reshaped) -> View:
        source = value.source
        if not only_splits(source.shape, value.shape):
            # Joined axes would change how whoever wrote them is stored; runtimes copy as well.
            source = self.copy(value.name, source)
            self.made.add(value.name)
        return self.draft.reshape(source, value.shape)

    def padded(self, value: Padded) -> View:
        """A copy that reads beyond the edge."""
        target = self.store(
            f"{value.name}.out", value.shape, value.source.storage.dtype, "activation"
        )
        order = CHANNELS_SECOND if len(value.shape) == 4 else range(len(value.shape))
        stored = as_stored(target).shape
        dims = point_dims(len(stored))
        reading = tuple(
            AffineIndex(((dim, 1),), -value.before[axis])
            for dim, axis in zip(dims, order, strict=True)
        )
        nest = Nest(
            extents=dict(zip(dims, stored, strict=True)), inputs=(reading,), output=at(*dims)
        )
        kernel = Kernel(kind="pad", operation="copy", nest=nest)
        name = self.draft.unique(value.name)
        self.draft.emit_into(name, kernel, [as_stored(value.source)], as_stored(target))
        return target

    def workload(self, name: str) -> Workload:
        """What was drafted, with its results marked."""
        for number in self.graph.outputs:
            result = self.view(number)
            whole = result.storage.kind == "activation" and _covers(result)
            if not whole:
                result = self.copy(f"{result.storage.name.removesuffix('.out')}.result", result)
            result.storage.kind = "output"
        for value in self.values.values():
            if isinstance(value, Padded) and value.name not in self.made:
                note = f"{value.name}: zeros read beyond the edge by what follows"
                self.draft.folded.append(note)
            elif isinstance(value, Reshaped) and value.name not in self.made:
                self.draft.folded.append(f"{value.name}: read in place under another shape")
        return self.draft.finish(name)


def _covers(view: View) -> bool:
    sizes = [axis.size for axis in view.storage.axes]
    total = 1
    for size in sizes:
        total *= size
    seen = 1
    for size in view.shape:
        seen *= size
    return total == seen


def only_splits(old: Sequence[int], new: Sequence[int]) -> bool:
    """Whether every border between old axes is one between new axes: none need to be joined."""
    return set(_borders(old)) <= set(_borders(new))


def _borders(shape: Sequence[int]) -> list[int]:
    inner, found = 1, []
    for size in reversed(shape):
        inner *= size
        found.append(inner)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One operator of the file, and the draft that it is added to."""

    operator: FileOperator
    name: str
    into: Importing

    @property
    def draft(self) -> Draft:
        return self.into.draft

    def tensor(self, position: int) -> FileTensor:
        """An input as the file describes it."""
        return self.into.graph.tensors[self.operator.inputs[position]]

    def target(self, position: int = 0) -> FileTensor:
        """A result as the file describes it."""
        return self.into.graph.tensors[self.operator.outputs[position]]

    def has(self, position: int) -> bool:
        inputs = self.operator.inputs
        return position < len(inputs) and inputs[position] >= 0

    def view(self, position: int) -> View:
        return self.into.view(self.operator.inputs[position])

    def value(self, position: int) -> View | Reshaped | Padded:
        """An input before a reshape or a padding is done."""
        number = self.operator.inputs[position]
        found = self.into.values.get(number)
        return found if found is not None else self.into.view(number)

    def constants(self, position: int) -> tuple[int, ...]:
        """Values of a short integer input; ``InputError`` if they are not in the file."""
        tensor = self.tensor(position)
        if not tensor.constant or len(tensor.values) != tensor.elements:
            what = tensor.name or f"input {position}"
            message = f"{self.name}: {what} must be a constant of the file to be imported"
            raise InputError(Problem(message, where="workload"))
        return tensor.values

    def option(self, name: str) -> int:
        """An option as the schema names it; 0, the schema's default, where the file has none."""
        return self.operator.options.get(name, 0)

    def emit(self, kernel: Kernel, inputs: Sequence[View], shape: Sequence[int]) -> View:
        """An operator whose result has ``shape`` as it is stored."""
        return self.draft.emit(self.name, kernel, inputs, shape, self.target().dtype)

    def pointwise(
        self, kind: str, operation: str, ops: int, *inputs: View, output: int = 0
    ) -> View:
        """Element by element; inputs are broadcast to the result."""
        target = self.target(output)
        spread = [as_stored(broadcast(view, target.shape)) for view in inputs]
        result = self.into.store(f"{self.name}.out", target.shape, target.dtype, "activation")
        stored = as_stored(result)
        kernel = pointwise(kind, operation, stored.shape, ops, len(spread))
        self.draft.emit_into(self.draft.unique(self.name), kernel, spread, stored)
        return result

    def copy_into(self, part: str, view: View, place: View) -> None:
        """A copy to where ``place`` lies."""
        stored = as_stored(view)
        kernel = pointwise("copy", "copy", stored.shape, 1)
        name = self.draft.unique(f"{self.name}.{part}")
        self.draft.emit_into(name, kernel, [stored], as_stored(place))

    def storage(self, name: str, shape: Sequence[int], dtype: str, kind: str) -> Storage:
        return self.draft.store(name, shape, dtype, kind)

    def note(self, text: str) -> None:
        self.draft.folded.append(f"{self.name}: {text}")

    def error(self, message: str) -> InputError:
        return InputError(Problem(f"{self.name}: {message}", where="workload"))


#: Adds an operator to the draft; its results in the file's order.
Handler = Callable[[Call], Sequence[View | Reshaped | Padded]]

HANDLERS: dict[str, Handler] = {}


def imports(*kinds: str) -> Callable[[Handler], Handler]:
    """Register a handler for operators of the file, by the schema's or their own names."""

    def register(handler: Handler) -> Handler:
        for kind in kinds:
            if kind in HANDLERS:
                raise ValueError(f"{kind} has two handlers")
            HANDLERS[kind] = handler
        return handler

    return register


def draft_of(graph: FileGraph) -> tuple[Importing, Mapping[int, tuple[str, ...]]]:
    """Everything of the graph, and which operators of the draft each of the file's became."""
    unknown = sorted({o.kind for o in graph.operators} - set(HANDLERS))
    if unknown:
        message = (
            f"operators {', '.join(unknown)} cannot be imported; add a function marked "
            "@imports(NAME) to mapper/workload/tflite_import/operators (docs/microcontrollers.md)"
        )
        raise InputError(Problem(message, where="workload"))
    into = Importing(graph)
    covered: dict[int, tuple[str, ...]] = {}
    for tensor in graph.inputs:
        into.view(tensor)
    for number, operator in enumerate(graph.operators):
        before = len(into.draft.operators)
        call = Call(operator=operator, name=graph.call_name(number), into=into)
        results = _handled(call)
        into.values.update(zip(operator.outputs, results, strict=False))
        covered[number] = tuple(o.name for o in into.draft.operators[before:])
    return into, covered


#: What goes wrong where an operator's tensors are not of the shapes that it takes.
MISFIT = (
    LookupError,
    ValueError,
    TypeError,
    ArithmeticError,
    AssertionError,
    StopIteration,
    RecursionError,
)


def _handled(call: Call) -> Sequence[View | Reshaped | Padded]:
    try:
        return HANDLERS[call.operator.kind](call)
    except InputError:
        raise
    except MISFIT as error:
        shapes = ", ".join(
            "x".join(map(str, call.into.graph.tensors[i].shape)) or "one number"
            for i in (*call.operator.inputs, *call.operator.outputs)
            if i >= 0
        )
        raise call.error(f"its tensors do not fit together: {shapes}") from error
