"""scikit-optimize: ParEGO, one surrogate of a randomly weighted sum of log objectives at a time.

scikit-optimize knows one objective and no constraints. Each suggestion draws its own weights,
so that a batch spreads along the front, and a broken limit adds its violation to the value of
the point's own (analytic) objectives.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dse.samplers.base import Observation, Suggestion
from dse.samplers.modelled import ModelledOptions, ModelledSampler
from dse.samplers.threads import one_thread
from dse.space import Parameter, Point

#: Weight of the plain sum beside the worst weighted objective: the value of Knowles, ParEGO,
#: IEEE Transactions on Evolutionary Computation 10(1), 2006.
SUM_WEIGHT = 0.05


class SkoptOptions(ModelledOptions):
    """``model``: a Gaussian process (GP), extra trees (ET) or a random forest (RF)."""

    model: Literal["GP", "ET", "RF"] = "GP"
    acquisition: Literal["EI", "LCB", "PI"] = "EI"


class SkoptSampler(ModelledSampler[SkoptOptions]):
    def _ask(self, count: int, history: Sequence[Observation], seed: int) -> list[Suggestion]:
        generator = np.random.default_rng(seed)
        points = [list(o.point) for o in history]
        suggestions = []
        with one_thread(), warnings.catch_warnings():
            # It warns of a repeated suggestion; repetitions are replaced by our own rule.
            warnings.filterwarnings("ignore", "The objective has been evaluated at", UserWarning)
            for _ in range(count):
                weights = generator.dirichlet(np.ones(self._objectives))
                state = int(generator.integers(2**31))
                suggestions.append(self._asked(points, scalarise(history, weights), state))
        return suggestions

    def _asked(
        self, points: list[list[int]], values: NDArray[np.float64], state: int
    ) -> Suggestion:
        from skopt import Optimizer

        optimizer = Optimizer(
            [_dimension(p) for p in self._space.parameters],
            base_estimator=self._options.model,
            acq_func=self._options.acquisition,
            n_initial_points=0,
            random_state=state,
        )
        optimizer.tell(points, values.tolist())
        point: Point = tuple(int(index) for index in optimizer.ask())
        return Suggestion(point=point)


def _dimension(parameter: Parameter) -> Any:
    from skopt.space import Categorical, Integer

    if parameter.ordered and len(parameter.values) > 1:
        return Integer(0, len(parameter.values) - 1)
    return Categorical(range(len(parameter.values)))


def scalarise(history: Sequence[Observation], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """One value per observation: augmented Chebyshev of the objectives scaled to 0..1, plus
    the summed violations of limits."""
    logs = np.array([o.objectives for o in history])
    low, high = logs.min(axis=0), logs.max(axis=0)
    scaled = (logs - low) / np.where(high > low, high - low, 1.0) * weights
    broken = np.array([sum(max(v, 0.0) for v in o.constraints.values()) for o in history])
    result: NDArray[np.float64] = scaled.max(axis=1) + SUM_WEIGHT * scaled.sum(axis=1) + broken
    return result
