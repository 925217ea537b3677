"""The Q-network and what it sees."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from mapper.moves import Moves, Resize
from mapper.search.candidates import BudgetSpent, Candidates
from mapper.search.q_features import FEATURES, Encoder
from mapper.search.q_learning import Learner
from mapper.search.q_network import Experience, QNetwork
from mapper.search.starts import Starts
from tests.mapper import operators
from tests.mapper.hardware import architectures
from tests.mapper.test_search_methods import space


def encoded(given: Candidates) -> tuple[Encoder, np.ndarray]:
    encoder = Encoder(given, Moves(given.orders, given.fits))
    return encoder, encoder.rows(Starts(given, np.random.default_rng(0)).first()[0])


@pytest.mark.parametrize("arch", architectures())
@pytest.mark.parametrize(
    "workload",
    [
        operators.product(12, 10, 9),
        operators.convolved(4, 6, (9,), operators.window(3, stride=2, padding=1)),
        operators.added(9, 7),
    ],
)
def test_every_step_has_finite_features(arch: str, workload: object) -> None:
    """One shape for all operators and all hardware, so that one network serves them."""
    given = space(workload, arch)  # type: ignore[arg-type]
    encoder, rows = encoded(given)
    assert rows.shape == (len(encoder.moves.steps), FEATURES)
    assert np.isfinite(rows).all()
    assert (np.abs(rows) < 20).all()


def test_opposite_steps_differ_in_their_sign_alone() -> None:
    """Definition: growing and shrinking the same tile."""
    encoder, rows = encoded(space(operators.product(12, 10, 9)))
    steps = encoder.moves.steps
    for i, step in enumerate(steps):
        if isinstance(step, Resize) and step.sign > 0:
            other = steps.index(Resize(step.dim, step.stage, -1))
            assert (rows[i] != rows[other]).sum() == 1


def test_shares_add_up_to_what_was_priced() -> None:
    """Conservation: energy of the memories is part of the whole; nothing takes longer."""
    given = space(operators.product(12, 10, 9))
    for candidate in Starts(given, np.random.default_rng(0)).first():
        shares = given.shares(candidate)
        full, energy, busy = shares.memories.T
        assert (full <= 1.0).all()
        assert 0.0 < energy.sum() < 1.0
        assert (busy <= 1.0 + 1e-12).all()
        assert 0.0 < shares.steps <= 1.0


def test_the_network_learns_which_steps_pay() -> None:
    """Two kinds of steps, one rewarded and one punished; afterwards it tells them apart."""
    rng = np.random.default_rng(0)
    network = QNetwork.untrained(rng)
    good, bad, nothing = (np.zeros((1, FEATURES), dtype=np.float32) for _ in range(3))
    good[0, 3], bad[0, 4] = 1.0, 1.0
    for _ in range(40):
        network.remember(Experience(good[0], 0.5, nothing))
        network.remember(Experience(bad[0], -0.5, nothing))
    for _ in range(300):
        network.learn(rng)
    assert network.values(good)[0] > network.values(bad)[0] + 0.5


def test_weights_survive_a_file(tmp_path: Path) -> None:
    """Round trip, to the bit."""
    rng = np.random.default_rng(0)
    network = QNetwork.untrained(rng)
    path = tmp_path / "weights.npz"
    np.savez_compressed(path, **network.arrays())  # type: ignore[arg-type]
    rows = rng.standard_normal((5, FEATURES)).astype(np.float32)
    np.testing.assert_array_equal(QNetwork.load(path).values(rows), network.values(rows))


def test_shipped_weights_fit_the_features() -> None:
    """A change of the features needs new weights."""
    shapes = [weights.shape for weights in QNetwork.trained().arrays().values()]
    assert shapes[0] == (FEATURES, 64)
    assert shapes[-1] == (1,)


def test_a_search_teaches_its_network() -> None:
    """Weights change while it searches, and only those of its own network."""
    given = space(operators.product(24, 30, 18), budget=90)
    network, untouched = (QNetwork.untrained(np.random.default_rng(3)) for _ in range(2))
    before = untouched.arrays()
    with contextlib.suppress(BudgetSpent):
        Learner(given, network, np.random.default_rng(0)).run()
    assert any((network.arrays()[name] != weights).any() for name, weights in before.items())
    assert all((untouched.arrays()[name] == weights).all() for name, weights in before.items())
