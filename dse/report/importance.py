"""Which parameters decide each objective: permutation importance of a random forest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.space import Parameter
from dse.study import Study
from dse.trial import Trial

#: Below this many trials a forest learns nothing that deserves a plot.
FEWEST_TRIALS = 20

#: More trials than this are sampled: the ranking no longer changes, the time grows on.
MOST_TRIALS = 600

FOLDS = 5
TREES = 60
REPEATS = 8
SEED = 0

#: A forest that explains less than this of held-out trials ranks parameters by chance.
RELIABLE_R2 = 0.5

METHOD = (
    f"a random forest ({TREES} trees) learns the logarithm of each objective from the parameters; "
    f"the importance of a parameter is how much R² on held-out trials ({FOLDS}-fold "
    "cross-validation) drops when its column is shuffled. Trials are those that were simulated, "
    f"whether they met the limits or not (of more than {MOST_TRIALS} a random sample), so that "
    "the region that the search preferred counts more; where the held-out "
    f"R² is below {RELIABLE_R2} the ranking (pale) is not reliable"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterImportance:
    """``drop`` of R² when the parameter is shuffled, and its standard deviation over folds.

    ``direction`` is the rank correlation of an ordered parameter with the objective: +1 where
    more of it means more of the objective (``None`` for unordered ones).
    """

    path: str
    drop: float
    deviation: float
    direction: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Importance:
    """One objective: the forest's R² on held-out trials, parameters by falling importance."""

    key: str
    r2: float
    parameters: tuple[ParameterImportance, ...]


def importance(study: Study) -> tuple[Importance, ...]:
    """Per objective; empty where there are too few trials to learn from."""
    varying = [i for i, p in enumerate(study.space.parameters) if len(p.values) > 1]
    # What was not simulated has bounds for objectives.
    trials = [t for t in study.trials if t.metrics is not None]
    if len(trials) < FEWEST_TRIALS or not varying:
        return ()
    trials = _sampled(trials)
    parameters = [study.space.parameters[i] for i in varying]
    points = np.array([study.space.point(t.overrides) for t in trials], dtype=float)
    return tuple(
        _for_objective(key, trials, parameters, points[:, varying]) for key in study.objective_keys
    )


def _sampled(trials: Sequence[Trial]) -> list[Trial]:
    if len(trials) <= MOST_TRIALS:
        return list(trials)
    chosen = np.random.default_rng(SEED).choice(len(trials), MOST_TRIALS, replace=False)
    return [trials[i] for i in sorted(chosen)]


def _for_objective(
    key: str, trials: Sequence[Trial], parameters: Sequence[Parameter], points: NDArray[np.float64]
) -> Importance:
    targets = np.array([math.log(t.objectives[key]) for t in trials])
    drops, r2 = _held_out_drops(points, targets)
    found = [
        ParameterImportance(
            path=parameter.path,
            drop=max(float(drops[:, i].mean()), 0.0),
            deviation=float(drops[:, i].std()),
            direction=_direction(points[:, i], targets) if parameter.ordered else None,
        )
        for i, parameter in enumerate(parameters)
    ]
    return Importance(key=key, r2=r2, parameters=tuple(sorted(found, key=lambda p: -p.drop)))


def _held_out_drops(
    points: NDArray[np.float64], targets: NDArray[np.float64]
) -> tuple[NDArray[np.float64], float]:
    """Per fold and parameter the mean drop of R², and the R² over all held-out predictions."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.model_selection import KFold

    spread = float(((targets - targets.mean()) ** 2).mean())
    if spread == 0:
        return np.zeros((FOLDS, points.shape[1])), 0.0
    generator = np.random.default_rng(SEED)
    drops = []
    errors = np.empty_like(targets)
    for fit, held in KFold(FOLDS, shuffle=True, random_state=SEED).split(points):
        forest = RandomForestRegressor(TREES, min_samples_leaf=2, random_state=SEED, n_jobs=1)
        forest.fit(points[fit], targets[fit])
        shuffled = _shuffled(points[held], generator)
        predicted = forest.predict(shuffled.reshape(-1, points.shape[1]))
        squares = (predicted.reshape(shuffled.shape[:2]) - targets[held]) ** 2
        errors[held] = squares[-1]
        worse = squares[:-1].mean(axis=1) - squares[-1].mean()
        drops.append(worse.reshape(points.shape[1], REPEATS).mean(axis=1) / spread)
    return np.array(drops), 1 - float(errors.mean()) / spread


def _shuffled(rows: NDArray[np.float64], generator: np.random.Generator) -> NDArray[np.float64]:
    """Copies of the rows, ``REPEATS`` for each column with that column shuffled, then as is.

    Stacked, so that the forest predicts all of them in one call.
    """
    copies = np.repeat(rows[None], rows.shape[1] * REPEATS + 1, axis=0)
    for i in range(len(copies) - 1):
        column = i // REPEATS
        copies[i, :, column] = generator.permutation(rows[:, column])
    return copies


def _direction(column: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    from scipy.stats import spearmanr

    if np.ptp(column) == 0 or np.ptp(targets) == 0:
        return 0.0
    return float(spearmanr(column, targets).statistic)
