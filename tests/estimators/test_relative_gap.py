"""The gap as a fraction of the optimal value, of every estimator that has one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.dual import relative_to_value

IRIS, DIABETES = load_iris(return_X_y=True), load_diabetes(return_X_y=True)
MAKE = {
    "hinge": lambda **k: SVC(**k),
    "squared hinge": lambda **k: SVC(loss="squared_hinge", **k),
    "hulls": lambda **k: SVC(loss="squared_hinge", solver="mdm", **k),
    "penalised bias": lambda **k: SVC(bias="penalised", **k),
    "one hull": lambda **k: SVC(loss="squared_hinge", bias="penalised", solver="mdm", **k),
    "smo": lambda **k: SVC(solver="smo", **k),
    "large C": lambda **k: SVC(C=1e4, **k),
    "nu": lambda **k: NuSVC(nu=0.1, **k),
    "all distances": lambda **k: AllDistancesSVC(**k),
    "squared all distances": lambda **k: AllDistancesSVC(loss="squared_hinge", **k),
    "crammer-singer": lambda **k: CrammerSingerSVC(**k),
    "one-class": lambda **k: OneClassSVM(nu=0.3, **k),
    "l2 one-class": lambda **k: L2OneClassSVM(**k),
    "svr": lambda **k: SVR(**k),
    "svr, smo": lambda **k: SVR(solver="smo", C=10.0, **k),
    "squared svr": lambda **k: SVR(loss="squared_epsilon_insensitive", **k),
    "nu svr": lambda **k: NuSVR(**k),
    "quantile svr": lambda **k: QuantileSVR(quantile=0.8, **k),
    "quantiles svr": lambda **k: QuantileSVR(quantiles=[0.2, 0.7], C=10.0, **k),
}


def fitted(name, **options):
    data = DIABETES if "svr" in name else IRIS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return MAKE[name](**options).fit(*data)


def objectives(model):
    return np.array([trace[-1].objective for trace in model.trace_])


@pytest.mark.parametrize("options", [{"tol": 1e-1}, {"tol": 1e-3}, {"max_iter": 10}], ids=str)
@pytest.mark.parametrize("name", MAKE)
def test_the_objective_is_within_the_relative_gap_of_the_optimal_value(name, options):
    model, best = fitted(name, **options), fitted(name, tol=1e-9)
    relative = np.ravel(model.relative_gap_)
    assert np.shape(model.relative_gap_) == np.shape(model.dual_gap_)
    assert isinstance(model.relative_gap_, float | np.ndarray)
    value, optimum = objectives(model), objectives(best)
    assert (relative >= 0).all() and (np.ravel(best.relative_gap_) < 1e-6).all()
    assert (value - optimum <= (relative + 1e-9) * np.maximum(np.abs(value), np.abs(optimum))).all()


@pytest.mark.parametrize("name", ["hinge", "squared hinge", "nu svr", "svr", "crammer-singer"])
def test_it_is_the_gap_over_the_larger_of_the_primal_and_the_dual_value(name):
    model = fitted(name, tol=1e-2)
    dual = -objectives(model)
    primal = dual + model.dual_gap_
    expected = model.dual_gap_ / np.maximum(np.abs(primal), np.abs(dual))
    np.testing.assert_allclose(np.ravel(model.relative_gap_), np.ravel(expected), rtol=1e-9)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_it_does_not_depend_on_the_unit_of_the_target(factor):
    X, y = (part[:200] for part in DIABETES)  # so few that rows are float64, whatever the tolerance
    plain = SVR(C=10.0, epsilon=1.0, tol=1e-2).fit(X, y)
    other = SVR(C=10.0 * factor, epsilon=factor, tol=1e-2 * factor).fit(X, y * factor)
    assert other.dual_gap_ == pytest.approx(plain.dual_gap_ * factor**2, rel=1e-6)
    assert other.relative_gap_ == pytest.approx(plain.relative_gap_, rel=1e-6)


def test_a_gap_that_is_small_but_not_beside_the_value_is_not_small():
    assert relative_to_value(1e-3, -1e-9) == pytest.approx(1.0, rel=1e-5)
    assert relative_to_value(1e-3, 1e-9) == pytest.approx(1.0, rel=1e-5)
    assert relative_to_value(1e-12, -1e-9) == pytest.approx(1e-3, rel=1e-2)
    assert relative_to_value(0.0, 0.0) == 0.0
    assert relative_to_value(np.inf, -1.0) == np.inf


def test_targets_inside_the_tube_are_solved_exactly():
    X, y = DIABETES
    assert SVR(epsilon=1e4).fit(X, y).relative_gap_ == 0.0


def test_a_fit_that_ended_early_is_far_from_the_optimum_and_says_so():
    assert (fitted("hinge", max_iter=3).relative_gap_ > 0.1).all()
    assert fitted("svr", max_iter=3).relative_gap_ > 0.1


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_there_is_no_bound_where_the_classes_cannot_be_separated():
    X, y = IRIS
    model = SVC(C=np.inf, kernel="linear").fit(X[50:], y[50:])
    assert model.status_ == "infeasible" and np.isinf(model.relative_gap_).all()
