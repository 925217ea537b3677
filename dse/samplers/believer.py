"""A plain regression that stands in for evaluations not yet made."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dse.samplers.base import Observation
from dse.space import Point, Space

if TYPE_CHECKING:
    from sklearn.gaussian_process import GaussianProcessRegressor


class Believer:
    """Predicts objectives and constraints of a point by one Gaussian process for each."""

    def __init__(self, space: Space, history: Sequence[Observation]) -> None:
        self._space = space
        self._constraints = tuple(history[0].constraints)
        self._objectives = len(history[0].objectives)
        rows = np.array([features(space, o.point) for o in history])
        targets = np.array(
            [[*o.objectives, *(o.constraints[c] for c in self._constraints)] for o in history]
        )
        self._models = [_fit(rows, column) for column in targets.T]

    def observation(self, point: Point) -> Observation:
        """What the point is believed to be."""
        row = np.array([features(self._space, point)])
        values = [float(model.predict(row)[0]) for model in self._models]
        return Observation(
            point=point,
            objectives=tuple(values[: self._objectives]),
            constraints=dict(zip(self._constraints, values[self._objectives :], strict=True)),
            sampler_state={},
        )


def features(space: Space, point: Point) -> tuple[float, ...]:
    """Ordered parameters as their place from 0 to 1, labels as one indicator each."""
    found: list[float] = []
    for parameter, index in zip(space.parameters, point, strict=True):
        places = len(parameter.values)
        if parameter.ordered:
            found.append(index / max(places - 1, 1))
        else:
            found.extend(float(index == place) for place in range(places))
    return tuple(found)


def _fit(rows: NDArray[np.float64], column: NDArray[np.float64]) -> GaussianProcessRegressor:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    kernel = ConstantKernel(1.0) * Matern(np.ones(rows.shape[1]), nu=2.5)
    model = GaussianProcessRegressor(kernel, normalize_y=True, alpha=1e-6)
    with warnings.catch_warnings():
        # A length scale at its bound says that a parameter does not matter: no news.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(rows, column)
