"""The end of a run leaves a point that a model can store, with a gap that holds for it."""

import warnings
from fractions import Fraction

import numpy as np
import pytest

from maxmargin import SVR, dual


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
