"""Recurrent layers, step by step: the products with the inputs of all steps are one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from mapper.workload.onnx_import.values import NodeCall, onnx_operator

Tensor = torch.Tensor


@dataclass(frozen=True, slots=True)
class _Direction:
    """Weights of one direction: of the inputs, of the state, and a bias for each."""

    inputs: Tensor
    state: Tensor
    input_bias: Tensor | None
    state_bias: Tensor | None


#: Projected input of a step, the state before it -> the state after it (its first part is given).
Step = Callable[[Tensor, _Direction, tuple[Tensor, ...]], tuple[Tensor, ...]]

_DEFAULTS = {
    "LSTM": ["sigmoid", "tanh", "tanh"],
    "GRU": ["sigmoid", "tanh"],
    "RNN": ["tanh"],
}
#: Inputs with the first state; a peephole would follow those of an LSTM.
_STATES = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


@onnx_operator("LSTM", "GRU", "RNN")
def run_recurrent(call: NodeCall) -> tuple[Tensor, ...]:
    """Results of all steps, and the last state; ``[step, direction, batch, element]``."""
    _check(call)
    data = call.tensor(0)
    by_batch = call.attribute("layout", 0) == 1
    data = data.transpose(0, 1) if by_batch else data
    direction = _text(call.attribute("direction", "forward"))
    runs = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}[direction]
    found = [_run(call, number, backwards, data) for number, backwards in enumerate(runs)]
    results = torch.stack([steps for steps, _ in found], dim=1)
    last = [torch.stack(parts) for parts in zip(*(state for _, state in found), strict=True)]
    if by_batch:
        return results.permute(2, 0, 1, 3), *(part.transpose(0, 1) for part in last)
    return results, *last


def _check(call: NodeCall) -> None:
    """Only what is computed as counted here."""
    kind = call.operator
    wanted = _DEFAULTS[kind] * (call.tensor(1).shape[0])
    given = [_text(name).lower() for name in call.attribute("activations", wanted)]
    if given != wanted and not (kind == "RNN" and set(given) <= {"tanh", "relu"}):
        raise call.error(f"activations {given} cannot be imported; allowed {wanted}")
    for name in ("clip", "input_forget"):
        if call.attribute(name, 0):
            raise call.error(f"{name} cannot be imported")
    if kind == "LSTM" and call.has(7):
        raise call.error("peepholes (input P) cannot be imported")


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _run(
    call: NodeCall, number: int, backwards: bool, data: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Results of all steps and the last state, of one direction."""
    weights = _weights(call, number)
    steps, batch, _ = data.shape
    size = weights.state.shape[1]
    state = tuple(
        call.tensor(at)[number] if call.has(at) else torch.zeros(batch, size, dtype=data.dtype)
        for at in _STATES[call.operator]
    )
    projected = functional.linear(data, weights.inputs, weights.input_bias)
    step = _step_of(call)
    results = []
    for at in reversed(range(steps)) if backwards else range(steps):
        state = step(projected[at], weights, state)
        results.append(state[0])
    return torch.stack(results[::-1] if backwards else results), state


def _weights(call: NodeCall, number: int) -> _Direction:
    inputs, state = call.tensor(1)[number], call.tensor(2)[number]
    bias = call.optional(3)
    rows = state.shape[0]
    halves = (None, None) if bias is None else (bias[number][:rows], bias[number][rows:])
    return _Direction(inputs, state, *halves)


def _step_of(call: NodeCall) -> Step:
    if call.operator == "LSTM":
        return _lstm
    if call.operator == "GRU":
        return _gru_reset_after if call.attribute("linear_before_reset", 0) else _gru
    names = [_text(name).lower() for name in call.attribute("activations", ["tanh"])]
    return _rnn_relu if names[0] == "relu" else _rnn_tanh


def _lstm(given: Tensor, weights: _Direction, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gates in the order of ONNX: input, output, forget, cell."""
    hidden, cell = state
    gates = given + functional.linear(hidden, weights.state, weights.state_bias)
    taken, out, kept, new = gates.chunk(_GATES["LSTM"], dim=-1)
    cell = torch.sigmoid(kept) * cell + torch.sigmoid(taken) * torch.tanh(new)
    return torch.sigmoid(out) * torch.tanh(cell), cell


def _gru(given: Tensor, weights: _Direction, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Gates in the order of ONNX: update, reset, hidden; the reset before the product."""
    (hidden,) = state
    size = hidden.shape[-1]
    bias = weights.state_bias
    first = functional.linear(
        hidden, weights.state[: 2 * size], None if bias is None else bias[: 2 * size]
    )
    update, reset = torch.sigmoid(given[..., : 2 * size] + first).chunk(2, dim=-1)
    last = None if bias is None else bias[2 * size :]
    new = given[..., 2 * size :] + functional.linear(
        reset * hidden, weights.state[2 * size :], last
    )
    return (_mixed(update, torch.tanh(new), hidden),)


def _gru_reset_after(
    given: Tensor, weights: _Direction, state: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """As torch has it: the reset after the product."""
    (hidden,) = state
    size = hidden.shape[-1]
    product = functional.linear(hidden, weights.state, weights.state_bias)
    gates = torch.sigmoid(given[..., : 2 * size] + product[..., : 2 * size])
    update, reset = gates.chunk(2, dim=-1)
    new = torch.tanh(given[..., 2 * size :] + reset * product[..., 2 * size :])
    return (_mixed(update, new, hidden),)


def _mixed(update: Tensor, new: Tensor, hidden: Tensor) -> Tensor:
    return new + update * (hidden - new)


def _rnn_tanh(given: Tensor, weights: _Direction, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (torch.tanh(given + functional.linear(state[0], weights.state, weights.state_bias)),)


def _rnn_relu(given: Tensor, weights: _Direction, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (torch.relu(given + functional.linear(state[0], weights.state, weights.state_bias)),)
