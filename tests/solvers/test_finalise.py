"""The end of a run leaves a point that a model can store, with a gap that holds for it."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from maxmargin import SVR, dual
from maxmargin._compiled.limits import Stopped
from maxmargin.dual import feasible
from maxmargin.gram import Gram
from maxmargin.solvers import Status, Stop
from maxmargin.solvers.finalise import finalised
from maxmargin.solvers.precision import Precision
from maxmargin.solvers.state import State


@pytest.mark.parametrize("seed", range(12))
def test_the_gap_of_svr_is_that_of_the_stored_sums_of_multipliers(seed):
    rng = np.random.default_rng(seed)
    x = np.round(370_000.0 + rng.normal(size=150), 6)
    y = np.round(np.sin(x) + rng.normal(size=150), 6)
    C = 256.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVR(kernel="linear", C=C, epsilon=0.0, tol=1e-8).fit(x[:, None], y)
    # Kernel values are 1e11 and differences of 1e-8 matter: everything in fractions.
    coef = np.zeros(len(x), object) + Fraction(0)
    coef[model.support_] = [Fraction(float(c)) for c in model.dual_coef_[0]]
    rows = np.array([Fraction(float(v)) for v in x], dtype=object)
    target = np.array([Fraction(float(v)) for v in y], dtype=object)
    w = rows @ coef
    rest = target - w * rows
    loss = min(sum(abs(r - b) for r in rest) for b in sorted(rest)[70:80])  # the median is best
    gap = w * w / 2 + Fraction(C) * loss - (target @ coef - w * w / 2)
    # A sum that is not 0 to the last digit moves the dual value by as much as the bias has of it.
    allowed = abs(coef.sum()) * max(abs(r) for r in rest)
    assert float(gap - allowed) <= model.dual_gap_ * (1 + 1e-9)


def test_the_net_change_of_a_pair_is_that_of_its_sum():
    problem = dual.epsilon_svr(np.array([1.0, 2.0]), 0.1, 100.0)
    old, new = np.array([50.1, 3.0, -20.3, 0.0]), np.array([29.8, 0.0, 0.0, 0.0])
    change = problem.net_change(old, new)
    exact = Fraction(29.8) - Fraction(50.1) + Fraction(20.3)
    assert (float(exact), -3.0, 0.0, 0.0) == tuple(change)


def test_the_net_changes_of_many_pairs_are_rounded_once():
    rng = np.random.default_rng(0)
    n = 400
    problem = dual.epsilon_svr(np.zeros(n), 0.1, 1e6)
    old, new = (
        np.concatenate([a, -b]) * (rng.random(2 * n) < 0.7)
        for a, b in 10.0 ** rng.uniform(-6, 6, size=(2, 2, n))
    )
    new[: n // 4] = old[: n // 4]
    change = problem.net_change(old, new)
    for i in range(n):
        exact = Fraction(new[i] + new[n + i]) - Fraction(old[i]) - Fraction(old[n + i])
        moved = old[i] != new[i] or old[n + i] != new[n + i] or new[i] * new[n + i] != 0
        assert change[i] == (float(exact) if moved else 0.0)
    assert not change[n:].any()


def test_no_pair_is_looked_at_alone_where_sums_are_exact(monkeypatch):
    problem = dual.epsilon_svr(np.zeros(50), 0.1, 1e6)
    monkeypatch.setattr(feasible, "fsum", lambda *_: pytest.fail("one by one"))
    old = np.concatenate([np.random.default_rng(0).random(50), np.zeros(50)])
    np.testing.assert_array_equal(problem.net_change(old, np.zeros(100))[:50], -old[:50])


def test_a_run_without_time_to_move_onto_bounds_keeps_its_point(monkeypatch):
    rng = np.random.default_rng(0)
    problem = dual.c_svc(np.where(rng.random(60) < 0.5, 1.0, -1.0), 1.0)
    gram = Gram(rng.normal(size=(60, 3)), "rbf", gamma=1.0)
    u = problem.repair(np.where(problem.hi > 0, 1.0 - 1e-14, -1.0 + 1e-14))
    state = State(problem, gram, u, problem.gradient(u, gram), Stop())
    before = state.u.copy()

    def no_time(*_, **__):
        raise Stopped

    assert not np.array_equal(problem.snap(u), u)
    monkeypatch.setattr(type(problem), "update", no_time)
    assert finalised(state, Status.MAX_TIME, Precision(state)) is Status.MAX_TIME
    np.testing.assert_array_equal(state.u, before)
