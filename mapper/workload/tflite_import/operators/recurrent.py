"""Layers with a state: single-value decomposition filters and LSTMs."""

from __future__ import annotations

from collections.abc import Sequence

from mapper.workload.nests import Nest, at
from mapper.workload.operators import AffineIndex
from mapper.workload.tflite_import.importing import Call, imports
from mapper.workload.tflite_import.operators.contraction import note_bias
from mapper.workload.tflite_import.scratch import HIDDEN_STATE
from mapper.workload.torch_import.draft import Kernel, pointwise
from mapper.workload.torch_import.storage import View, fresh, narrow, reshape

#: Gates of an LSTM.
GATES = 4
#: Scalar operations of an LSTM's cell for each state: four gate functions (three sigmoids of
#: 4, one tanh), the cell's update (two products, a sum), its tanh and the output's product.
CELL_OPS = 3 * 4 + 1 + 3 + 1 + 1


@imports("SVDF")
def svdf(call: Call) -> Sequence[View]:
    """Features enter a state of the last steps; a second filter runs along time, by rank."""
    features, times = call.view(1), call.view(2)
    filters, steps = times.shape
    data = call.view(0)
    name = f"{call.name}.features"
    nest = Nest(
        extents={"M": data.shape[0], "N": filters, "K": data.shape[1]},
        inputs=(at("M", "K"), at("N", "K")),
        output=at("M", "N"),
    )
    kernel = Kernel(kind="gemm", operation="mac", nest=nest)
    dtype = call.tensor(4).dtype
    made = call.draft.emit(name, kernel, [data, features], (data.shape[0], filters), dtype)
    state = fresh(
        call.storage(f"{call.name}.state", (data.shape[0], filters, steps), dtype, "input")
    )
    place = narrow(state, 2, steps - 1, 1)
    entering = reshape(made, (data.shape[0], filters, 1))
    assert entering is not None
    call.copy_into("entering", entering, place)
    call.note("older steps of its state move by one, which its copy stands for")
    return [_along_time(call, state, times)]


def _along_time(call: Call, state: View, times: View) -> View:
    batch, units = call.target().shape
    filters, steps = times.shape
    rank = filters // units
    by_rank = reshape(state, (batch, units, rank, steps))
    weights = reshape(times, (units, rank, steps))
    assert by_rank is not None
    assert weights is not None
    note_bias(call, 3)
    nest = Nest(
        extents={"M": batch, "N": units, "R": rank, "T": steps},
        inputs=(at("M", "N", "R", "T"), at("N", "R", "T")),
        output=at("M", "N"),
    )
    kernel = Kernel(kind="svdf", operation="mac", nest=nest)
    return call.emit(kernel, [by_rank, weights], (batch, units))


@imports("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(call: Call) -> Sequence[View]:
    """Per gate a product with the input and one with the state, then the cell, for all steps."""
    data = call.view(0)
    steps, size = data.shape[0] * data.shape[1], data.shape[2]
    rows = call.draft.reshape(data, (steps, size))
    state = call.tensor(HIDDEN_STATE)
    hidden = fresh(call.storage(f"{call.name}.state", (state.elements,), state.dtype, "input"))
    weights = [i for i in range(1, 9) if call.has(i)]
    parts = []
    for position in weights:
        from_input = position <= GATES
        read = rows if from_input else hidden
        parts.append(_gate(call, position, read, steps))
    cells = call.tensor(weights[0]).shape[0]
    shape = (1, steps, cells)
    kernel = pointwise("lstm_cell", "activation", shape, CELL_OPS, len(parts))
    made = call.emit(kernel, parts, shape)
    note_bias(call, 12)
    call.note("its state between steps is written in place")
    return [call.draft.reshape(made, call.target().shape)]


def _gate(call: Call, position: int, read: View, steps: int) -> View:
    weight = call.view(position)
    cells, length = weight.shape
    recurrent = len(read.axes) == 1
    nest = Nest(
        extents={"M": steps, "N": cells, "K": length},
        inputs=(at("K") if recurrent else at("M", "K"), at("N", "K")),
        output=(AffineIndex(()), *at("M", "N")),
    )
    kernel = Kernel(kind="gemm", operation="mac", nest=nest)
    name = f"{call.name}.{'recurrent' if recurrent else 'input'}{(position - 1) % GATES}"
    return call.draft.emit(name, kernel, [read, weight], (1, steps, cells), call.target().dtype)


@imports("VAR_HANDLE")
def variable(call: Call) -> Sequence[View]:
    """A name for what is read and assigned elsewhere."""
    return [fresh(call.storage(f"{call.name}.out", (1,), "int32", "input"))]


@imports("READ_VARIABLE")
def read_variable(call: Call) -> Sequence[View]:
    """The state from before this run."""
    target = call.target()
    state = call.into.store(f"{call.name}.state", target.shape, target.dtype, "input")
    return [call.into.copy(call.name, state)]


@imports("ASSIGN_VARIABLE")
def assign_variable(call: Call) -> Sequence[View]:
    """The state for the next run."""
    view = call.view(1)
    kept = call.into.store(f"{call.name}.state", view.shape, view.storage.dtype, "output")
    call.copy_into("state", view, kept)
    return []
