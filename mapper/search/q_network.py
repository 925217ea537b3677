"""The Q-network: how much better a mapping can become if a move is made, as a logarithm.

Three hidden layers of 64, as in HASCO (ISCA 2021; pku-liang/HASCO, src/flextensor/model.py), but
one network for all moves. A target copy gives the value of what follows, and an experience is
learned from more than once.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

from mapper.search.q_features import FEATURES, Features

_HIDDEN = (64, 64, 64)
#: HASCO's: discount, batch and size of the memory.
_DISCOUNT, _BATCH, _REMEMBERED = 0.9, 32, 1000
_LEARNING_RATE = 1e-3
#: Lessons between two copies of the network to its target.
_COPY_AFTER = 50


@dataclass(frozen=True, slots=True)
class Experience:
    """A step's features, the reward, and the features of all steps that came next."""

    step: Features
    reward: float
    following: Features


class QNetwork:
    """Weights, their target copy, and what was experienced."""

    def __init__(self, weights: list[np.ndarray[Any, Any]]) -> None:
        import torch

        self._torch = torch
        self._weights = [torch.tensor(w, requires_grad=True) for w in weights]
        self._target = [w.detach().clone() for w in self._weights]
        self._optimizer = torch.optim.Adam(self._weights, lr=_LEARNING_RATE)
        self._memory: list[Experience] = []
        self._lessons = 0

    @classmethod
    def untrained(cls, rng: np.random.Generator) -> QNetwork:
        """Random weights (He et al., ICCV 2015)."""
        sizes = (FEATURES, *_HIDDEN, 1)
        weights = []
        for before, after in itertools.pairwise(sizes):
            spread = (2.0 / before) ** 0.5
            weights.append((rng.standard_normal((before, after)) * spread).astype(np.float32))
            weights.append(np.zeros(after, dtype=np.float32))
        return cls(weights)

    @classmethod
    def load(cls, path: Path) -> QNetwork:
        with np.load(path) as stored:
            return cls([stored[f"w{i}"] for i in range(len(stored.files))])

    @classmethod
    def trained(cls) -> QNetwork:
        """The weights that ship with the tool (made by ``benchmarks/train_q_network.py``)."""
        with as_file(files("mapper.search").joinpath("data", "q_network.npz")) as path:
            return cls.load(path)

    def arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """The weights by name, as ``load`` reads them."""
        return {f"w{i}": w.detach().numpy().copy() for i, w in enumerate(self._weights)}

    def values(self, rows: Features) -> Features:
        """What each step promises."""
        with self._torch.no_grad():
            found: Features = self._forward(self._torch.from_numpy(rows), self._weights).numpy()
        return found

    def _forward(self, rows: Any, weights: list[Any]) -> Any:
        layers = list(zip(weights[::2], weights[1::2], strict=True))
        for i, (matrix, offset) in enumerate(layers):
            rows = rows @ matrix + offset
            if i + 1 < len(layers):
                rows = rows.relu()
        return rows[..., 0]

    def remember(self, experience: Experience) -> None:
        self._memory.append(experience)
        if len(self._memory) > _REMEMBERED:
            self._memory.pop(0)

    def learn(self, rng: np.random.Generator) -> None:
        """One step of gradient descent on what is remembered."""
        if len(self._memory) < _BATCH:
            return
        torch = self._torch
        some = [self._memory[int(i)] for i in rng.integers(len(self._memory), size=_BATCH)]
        rewards = torch.tensor([each.reward for each in some], dtype=torch.float32)
        with torch.no_grad():
            lengths = [len(each.following) for each in some]
            together = torch.from_numpy(np.concatenate([each.following for each in some]))
            parts = self._forward(together, self._target).split(lengths)
            best = torch.stack([part.max() for part in parts])
        steps = torch.from_numpy(np.stack([each.step for each in some]))
        error = self._forward(steps, self._weights) - (rewards + _DISCOUNT * best)
        self._optimizer.zero_grad()
        error.square().mean().backward()
        self._optimizer.step()
        self._lessons += 1
        if self._lessons % _COPY_AFTER == 0:
            self._target = [w.detach().clone() for w in self._weights]
