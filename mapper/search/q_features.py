"""What the Q-network sees: a mapping, the moves that lead away from it, the hardware.

Everything is a ratio or a flag, so that one network serves all layers and all hardware: tiles as
logarithms of shares of the extent, memories by how full they are and by their share of time and
energy at the last call of the cost function.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arch.spec import DIM_CLASSES
from mapper.moves import Moves, Resize, Step
from mapper.search.candidates import Candidate, Candidates
from mapper.search.pricing import FloatArray, IntArray
from mapper.search.shares import Shares
from mapper.search.space import StageOrder

Features = NDArray[np.float32]

#: Levels of memory that are told apart, counted from the outermost; deeper ones count as the last.
_LEVELS = 4
#: Operands that are told apart: two inputs and the output.
_OPERANDS = 3
#: Axes that are told apart.
_AXES = 2
#: Features of the mapping as a whole: room, energy and time by level, steps, axes, footprints.
_WHOLE = 3 * _LEVELS + 1 + _AXES + _OPERANDS
#: Of a dimension: extent, class, whether it shares an axis, which operands it indexes.
_DIM = 1 + len(DIM_CLASSES) + 1 + _OPERANDS
#: Of a step: sign, kind, reuse, operand, level, axis; state of its memory and of the memory's
#: parent; loops around; spatial factors.
_MOVE = 3 + _OPERANDS + _LEVELS + _AXES + 6 + 3 + _AXES
FEATURES = _WHOLE + _DIM + _MOVE


class Encoder:
    """Turns candidates of one mapspace into features, one row per step of ``moves``."""

    def __init__(self, space: Candidates, moves: Moves) -> None:
        self.space = space
        self.moves = moves
        self.extents = np.array(list(space.run.operator.extents.values()))
        self._dim_of = np.array([step.dim for step in moves.steps])
        self._dims = np.array([self._dim(dim) for dim in range(len(self.extents))])
        self._fixed: dict[int, _Fixed] = {}

    def rows(self, candidate: Candidate) -> Features:
        """``[step, feature]`` of every step from a candidate that was priced."""
        found = self.space.shares(candidate)
        shares = found.memories
        fixed = self._fixed_of(candidate.order)
        count = len(self.moves.steps)
        parts = [
            np.broadcast_to(self._whole(found), (count, _WHOLE)),
            self._dims[self._dim_of],
            fixed.flags,
            shares[fixed.memory] * fixed.is_resize[:, None],
            shares[fixed.parent] * fixed.is_resize[:, None],
            self._tiles(candidate, fixed),
            self._factors(candidate)[self._dim_of],
        ]
        return np.concatenate(parts, axis=1).astype(np.float32)

    def _whole(self, shares: Shares) -> FloatArray:
        run = self.space.run
        levels = np.zeros((_LEVELS, 3))
        for m in range(len(run.memories)):
            levels[min(m, _LEVELS - 1)] = shares.memories[m]
        sizes = [np.log2(axis.size) / 8 for axis in run.intrinsic.axes][:_AXES]
        largest = max(memory.size_bytes * memory.count for memory in run.memories[1:])
        held = [
            np.log2(operand.elements * float(bits) / 8 / largest) / 8
            for operand, bits in zip(run.counts.operands, run.bits, strict=True)
        ]
        return np.concatenate(
            [
                levels.ravel(),
                [shares.steps],
                _padded(sizes, _AXES),
                _padded(held, _OPERANDS),
            ]
        )

    def _dim(self, dim: int) -> FloatArray:
        run = self.space.run
        name = self.moves.dims[dim]
        classes = [float(run.operator.dim_class(name) == each) for each in DIM_CLASSES]
        operands = [float(name in operand.dims) for operand in run.counts.operands]
        coupled = any(name in axis.dims for o in run.counts.operands for axis in o.coupled)
        return np.array(
            [
                np.log2(self.extents[dim]) / 8,
                *classes,
                float(coupled),
                *_padded(operands, _OPERANDS),
            ]
        )

    def _fixed_of(self, number: int) -> _Fixed:
        if number not in self._fixed:
            order, memories = self.space.orders[number], self.space.run.memories
            stages = [
                step.stage if isinstance(step, Resize) and step.stage < len(order.stages) else -1
                for step in self.moves.steps
            ]
            self._fixed[number] = _Fixed(
                flags=np.array(
                    [
                        self._flags(order, step, stage)
                        for step, stage in zip(self.moves.steps, stages, strict=True)
                    ]
                ),
                stage=np.array(stages),
                memory=np.array([memories.index(order.stages[s][1]) for s in stages]),
                parent=np.array(
                    [memories.index(order.parent(s % len(order.stages))) for s in stages]
                ),
                is_resize=np.array([float(s >= 0) for s in stages]),
            )
        return self._fixed[number]

    def _flags(self, order: StageOrder, step: Step, stage: int) -> FloatArray:
        """Sign, kind, operand, reuse, level and axis."""
        operand, level, axis = np.zeros(_OPERANDS), np.zeros(_LEVELS), np.zeros(_AXES)
        reused = 0.0
        if stage >= 0:
            number, memory = order.stages[stage]
            operand[min(number, _OPERANDS - 1)] = 1.0
            level[min(self.space.run.memories.index(memory), _LEVELS - 1)] = 1.0
            name = self.moves.dims[step.dim]
            reused = float(name not in self.space.run.counts.operands[number].dims)
        if not isinstance(step, Resize):
            axis[min(step.axis, _AXES - 1)] = 1.0
        kind = float(isinstance(step, Resize))
        return np.array([float(step.sign), kind, reused, *operand, *level, *axis])

    def _tiles(self, candidate: Candidate, fixed: _Fixed) -> FloatArray:
        """Logarithms of the loops outside of, right above and right below the step's stage."""
        order = self.space.orders[candidate.order]
        chain = np.log2(
            np.array(
                [
                    [extent, *order.tilings(dim).levels[row]]
                    for dim, extent, row in zip(
                        self.moves.dims, self.extents, candidate.rows, strict=True
                    )
                ]
            )
        )
        dim, stage = self._dim_of, fixed.stage
        above, here, below = (
            chain[dim, stage],
            chain[dim, stage + 1],
            chain[dim, stage + 2 * (stage >= 0)],
        )
        found = np.stack([chain[dim, 0] - here, above - here, here - below], axis=1) / 8
        return found * fixed.is_resize[:, None]

    def _factors(self, candidate: Candidate) -> FloatArray:
        """Logarithms of each dimension's spatial factors."""
        order = self.space.orders[candidate.order]
        factors = [
            order.tilings(dim).spatial[row][:_AXES]
            for dim, row in zip(self.moves.dims, candidate.rows, strict=True)
        ]
        found = np.zeros((len(factors), _AXES))
        found[:, : len(factors[0])] = np.log2(factors) / 8
        return found


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fixed:
    """What is the same for all candidates of one order, per step (stage -1: none)."""

    flags: FloatArray
    stage: IntArray
    memory: IntArray
    parent: IntArray
    is_resize: FloatArray


def _padded(values: list[float], length: int) -> FloatArray:
    padded = np.zeros(length)
    padded[: len(values[:length])] = values[:length]
    return padded
