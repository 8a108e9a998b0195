"""Quantiles: the optimum of the pinball loss, several quantiles without crossing, scores, searches, data."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, mean_pinball_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVR, QuantileSVR, dual
from maxmargin.gram.gram import Gram
from maxmargin.model_selection import SVMSearchCV
from maxmargin.solvers import Batch
from qp import rbf, reference


def friedman(n=150, seed=0):
    X, y = make_friedman1(n, n_features=6, noise=1.0, random_state=seed)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def full_coef(model, n, row=0):
    coef = np.zeros(n)
    coef[model.support_] = model.get_model().coef[row]
    return coef


def primal(model, X, y, q, weight=1.0):
    """½‖w‖² + C Σ pinball loss, from predictions and coefficients."""
    coef, f = full_coef(model, len(y)), model.predict(X)
    r = y - f
    return 0.5 * coef @ (f - model.intercept_[0]) + (model.C * weight * np.maximum(q * r, (q - 1) * r)).sum()


# -- the optimum -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_qp_solver_finds_the_same_machine(seed):
    rng = np.random.default_rng(seed)
    n = 30
    X = rng.normal(size=(n, 2))
    X[::5] = X[1::5]  # equal points, other targets
    y = rng.normal(size=n) * 10 ** rng.uniform(-1, 1)
    w, C, q = rng.uniform(0.1, 3.0, n), 10 ** rng.uniform(-1, 1.5), rng.uniform(0.05, 0.95)
    model = QuantileSVR(quantile=q, C=C, gamma=0.5, tol=1e-10).fit(X, y, w)
    K = rbf(X)
    u, best = reference(dual.quantile_svr(y, q, C * w), K)
    scale = max(1.0, abs(best))
    assert model.status_ == "solved" and model.dual_gap_ <= 1e-6 * scale
    np.testing.assert_allclose(K @ full_coef(model, n), K @ (u[:n] + u[n:]), atol=1e-6 * scale)
    coef = full_coef(model, n)
    assert (coef <= C * w * q * (1 + 1e-12)).all() and (coef >= -C * w * (1 - q) * (1 + 1e-12)).all()
    # Strong duality: the primal value, with the intercept of the model, is the dual one.
    assert primal(model, X, y, q, w) == pytest.approx(-best, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.85])
def test_a_linear_kernel_with_huge_C_is_scikit_learns_quantile_regression(quantile):
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:, :4], (y - y.mean()) / y.std()
    theirs = QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, y)
    ours = QuantileSVR(quantile=quantile, kernel="linear", C=1e4, tol=1e-6).fit(X, y)
    assert ours.status_ == "solved"
    np.testing.assert_allclose(ours.coef_[0], theirs.coef_, atol=1e-3)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=2e-3)


def test_a_constant_feature_gives_the_empirical_quantile_of_weighted_targets():
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=101), rng.integers(1, 4, size=101).astype(float)
    for q in (0.13, 0.5, 0.91):
        model = QuantileSVR(quantile=q, tol=1e-9).fit(np.ones((101, 1)), y, w)
        expected = np.quantile(np.repeat(y, w.astype(int)), q, method="inverted_cdf")
        np.testing.assert_allclose(model.predict([[1.0]]), expected, atol=1e-6)


@pytest.mark.parametrize("quantile", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_at_most_the_share_q_is_below_and_1_minus_q_above(quantile, C):
    X, y = friedman(200)
    model = QuantileSVR(quantile=quantile, C=C, gamma=0.3, tol=1e-8).fit(X, y)
    residual = y - model.predict(X)
    assert model.status_ == "solved"
    assert (residual < -1e-6).mean() <= quantile and (residual > 1e-6).mean() <= 1 - quantile


def test_the_median_is_an_svr_with_half_of_C_and_no_tube():
    X, y = friedman()
    ours = QuantileSVR(C=4.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        ours.predict(X), SVR(C=2.0, epsilon=0.0, tol=1e-9).fit(X, y).predict(X), atol=1e-6
    )


def test_the_gap_bounds_the_distance_to_the_optimum():
    X, y = friedman()
    best = primal(QuantileSVR(quantile=0.8, C=5.0, tol=1e-10).fit(X, y), X, y, 0.8)
    rough = QuantileSVR(quantile=0.8, C=5.0, tol=0.3).fit(X, y)
    value = -rough.trace_[0][-1].objective
    assert best - value <= rough.dual_gap_ + 1e-9 and rough.dual_gap_ > 0


@pytest.mark.parametrize("n", [3, 4, 12])
def test_targets_with_ties_and_sentinels_are_solved(n):
    rng = np.random.default_rng(n)
    X = np.repeat(rng.normal(size=(n, 2)), 4, axis=0)
    y = rng.integers(0, 3, size=4 * n).astype(float)
    y[0] = 1e8
    model = QuantileSVR(quantile=0.3, C=10.0, gamma=5.0, tol=1e-6).fit(X, y)
    assert model.status_ == "solved" and np.isfinite(model.predict(X)).all()
    _, best = reference(dual.quantile_svr(y[1:], 0.3, 10.0), rbf(X[1:], 5.0))
    exact = QuantileSVR(quantile=0.3, C=10.0, gamma=5.0, tol=1e-10).fit(X[1:], y[1:])
    assert primal(exact, X[1:], y[1:], 0.3) == pytest.approx(-best, rel=1e-6)


def test_without_regularisation_it_is_the_linear_program():
    """min Σ q a + (1 - q) b with y = Xw + c + a - b, by scipy."""
    rng = np.random.default_rng(1)
    X, q = rng.normal(size=(60, 2)), 0.7
    y = X @ [1.0, -2.0] + rng.normal(size=60)
    A = np.hstack([X, np.ones((60, 1)), np.eye(60), -np.eye(60)])
    cost = np.concatenate([np.zeros(3), np.full(60, q), np.full(60, 1 - q)])
    bounds = [(None, None)] * 3 + [(0, None)] * 120
    found = linprog(cost, A_eq=A, b_eq=y, bounds=bounds)
    model = QuantileSVR(quantile=q, kernel="linear", C=1e5, tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], found.x[:2], atol=1e-4)
    assert 60 * mean_pinball_loss(y, model.predict(X), alpha=q) == pytest.approx(found.fun, rel=1e-4)


@pytest.mark.parametrize("solver", ["smo", "smo-first-order", "simple", "rosen"])
def test_other_solvers_find_the_same_machine(solver):
    X, y = friedman(80)
    expected = QuantileSVR(quantile=0.8, C=3.0, tol=1e-9).fit(X, y).predict(X)
    model = QuantileSVR(quantile=0.8, C=3.0, tol=1e-7, solver=solver).fit(X, y)
    assert model.status_ == "solved"
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)
    with pytest.raises(ValueError, match="cannot train QuantileSVR: use one of"):
        QuantileSVR(solver="mdm").fit(X, y)


# -- several quantiles -----------------------------------------------------------------------------


LEVELS = [0.05, 0.25, 0.5, 0.75, 0.95]


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_columns_are_the_quantiles_one_by_one_but_sorted(kernel):
    X, y = friedman(100)
    kind = {"C": 50.0, "kernel": kernel, "gamma": 1.0, "tol": 1e-9}
    together = QuantileSVR(quantiles=LEVELS, **kind).fit(X, y)
    apart = np.column_stack([QuantileSVR(quantile=q, **kind).fit(X, y).predict(X) for q in LEVELS])
    values = together.predict(X)
    np.testing.assert_allclose(values, np.sort(apart, axis=1), atol=1e-4)
    assert (np.diff(values, axis=1) >= 0).all()
    np.testing.assert_array_equal(together.quantiles_, LEVELS)
    assert together.dual_coef_.shape == (5, len(together.support_)) and together.dual_gap_.shape == (5,)


def test_functions_that_cross_are_sorted_at_no_cost_of_pinball_loss():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(60, 1))
    y = np.sin(X[:, 0]) + rng.normal(size=60) * 0.5
    model = QuantileSVR(quantiles=[0.4, 0.45, 0.5, 0.55, 0.6], C=100.0, gamma=5.0).fit(X, y)
    new = rng.uniform(-3, 3, size=(500, 1))
    target = np.sin(new[:, 0]) + rng.normal(size=500) * 0.5
    raw, values = model._target_values(new), model.predict(new)
    assert (np.diff(raw, axis=1) < -1e-3).any() and (np.diff(values, axis=1) >= 0).all()
    loss = [
        sum(mean_pinball_loss(target, f, alpha=q) for q, f in zip(model.quantiles_, part.T, strict=True))
        for part in (raw, values)
    ]
    assert loss[1] < loss[0]


def test_one_quantile_in_a_list_is_a_column():
    X, y = friedman(60)
    model = QuantileSVR(quantiles=[0.8]).fit(X, y)
    assert model.predict(X).shape == (60, 1)
    alone = QuantileSVR(quantile=0.8).fit(X, y)
    np.testing.assert_array_equal(model.predict(X)[:, 0], alone.predict(X))
    assert model.score(X, y) == alone.score(X, y)


def test_kernel_values_are_computed_once_for_all_quantiles():
    X, y = friedman(400)
    assert QuantileSVR(quantiles=LEVELS).fit(X, y).n_kernel_evals_ <= 1.1 * 400**2


@pytest.mark.parametrize(
    ("quantiles", "message"),
    [
        ([0.5, 0.1], "ascend"),
        ([0.5, 0.5], "ascend"),
        ([0.0, 0.5], r"\(0, 1\)"),
        ([0.5, 1.0], r"\(0, 1\)"),
        ([np.nan], r"\(0, 1\)"),
        ([], r"\(0, 1\)"),
        ([[0.5]], r"\(0, 1\)"),
        (["a"], r"\(0, 1\)"),
        (0.5, "array-like"),
    ],
)
def test_quantiles_that_are_none_are_refused(quantiles, message):
    X, y = friedman(20)
    with pytest.raises(ValueError, match=message):
        QuantileSVR(quantiles=quantiles).fit(X, y)


@pytest.mark.parametrize("options", [{"quantile": 0.0}, {"quantile": 1.0}, {"C": np.inf}, {"C": 0.0}])
def test_parameters_outside_of_their_range_are_refused(options):
    X, y = friedman(20)
    with pytest.raises(ValueError, match=next(iter(options))):
        QuantileSVR(**options).fit(X, y)


def test_several_quantiles_of_several_targets_are_refused_and_one_is_not():
    X, y = friedman(40)
    Y = np.column_stack([y, -y])
    with pytest.raises(ValueError, match="2 columns, and several quantiles are estimated of one target only"):
        QuantileSVR(quantiles=[0.1, 0.9]).fit(X, Y)
    model = QuantileSVR(quantile=0.8, tol=1e-8).fit(X, Y)
    mirrored = QuantileSVR(quantile=0.2, tol=1e-8).fit(X, y)
    assert model.predict(X).shape == (40, 2)
    np.testing.assert_allclose(-model.predict(X)[:, 1], mirrored.predict(X), atol=1e-5)
    assert model.score(X, Y) == pytest.approx(d2_pinball_score(Y, model.predict(X), alpha=0.8))


# -- scores, searches, warm starts -----------------------------------------------------------------


def test_the_score_is_the_mean_d2_of_the_quantiles():
    X, y = friedman()
    w = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = QuantileSVR(quantiles=[0.1, 0.6]).fit(X, y)
    predicted = model.predict(X).T
    for given in (None, w):
        each = [
            d2_pinball_score(y, f, alpha=q, sample_weight=given)
            for q, f in zip((0.1, 0.6), predicted, strict=True)
        ]
        assert model.score(X, y, given) == pytest.approx(np.mean(each))


@pytest.mark.parametrize("options", [{"quantile": 0.9}, {"quantiles": [0.1, 0.5, 0.9]}])
def test_a_search_finds_what_scikit_learns_finds(options):
    X, y = friedman(120)
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.05, 0.5]}
    model = QuantileSVR(tol=1e-6, **options)
    ours = SVMSearchCV(model, grid, cv=3, progress=False).fit(X, y)
    theirs = GridSearchCV(model, grid, cv=3).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-4
    )
    assert ours.best_params_ == theirs.best_params_


def test_a_search_over_quantiles_starts_from_neighbours():
    X, y = friedman(120)
    grid = {"quantile": [0.2, 0.5, 0.8]}
    ours = SVMSearchCV(QuantileSVR(tol=1e-6), grid, cv=3, scoring="neg_mean_absolute_error", progress=False)
    theirs = GridSearchCV(QuantileSVR(tol=1e-6), grid, cv=3, scoring="neg_mean_absolute_error")
    np.testing.assert_allclose(
        ours.fit(X, y).cv_results_["mean_test_score"],
        theirs.fit(X, y).cv_results_["mean_test_score"],
        atol=1e-4,
    )


def test_a_warm_start_begins_at_the_solution_of_each_quantile():
    X, y = friedman(300)
    kind = {"C": 10.0, "tol": 1e-6}
    warm = QuantileSVR(quantiles=[0.1, 0.5], warm_start=True, **kind).fit(X, y)
    cold = warm.n_iter_.sum()
    assert warm.fit(X, y).n_iter_.sum() < 0.2 * cold
    warm.set_params(quantiles=[0.1, 0.3, 0.5]).fit(X, y)  # two of three are known
    expected = QuantileSVR(quantiles=[0.1, 0.3, 0.5], **kind).fit(X, y)
    np.testing.assert_allclose(warm.predict(X), expected.predict(X), atol=1e-4)
    assert warm.n_iter_[0] < 0.2 * expected.n_iter_[0]


# -- forms of data ---------------------------------------------------------------------------------


def test_sparse_rows_data_frames_and_float32_are_the_same_machine():
    X, y = friedman()
    X[X < 0] = 0.0
    expected = QuantileSVR(quantiles=[0.2, 0.8], gamma=0.3, tol=1e-7).fit(X, y).predict(X)
    model = QuantileSVR(quantiles=[0.2, 0.8], gamma=0.3, tol=1e-7)
    np.testing.assert_allclose(
        clone(model).fit(sp.csr_array(X), y).predict(sp.csr_array(X)), expected, atol=1e-5
    )
    frame = pd.DataFrame(X, columns=list("abcdef"))
    np.testing.assert_allclose(clone(model).fit(frame, pd.Series(y)).predict(frame), expected, atol=1e-12)
    low = clone(model).set_params(tol=1e-3).fit(X.astype(np.float32), y.astype(np.float32))
    np.testing.assert_allclose(low.predict(X.astype(np.float32)), expected, atol=2e-2)


def test_a_weight_of_two_is_a_row_twice_and_zero_a_row_removed():
    X, y = friedman(80)
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    again = np.repeat(np.arange(len(y)), w.astype(int))
    kind = {"quantile": 0.7, "gamma": 0.2, "tol": 1e-10}
    np.testing.assert_allclose(
        QuantileSVR(**kind).fit(X, y, w).predict(X),
        QuantileSVR(**kind).fit(X[again], y[again]).predict(X),
        atol=1e-6,
    )


def test_pickles_pipelines_and_subclasses_predict_the_same():
    class Mine(QuantileSVR):
        pass

    X, y = friedman(60)
    model = make_pipeline(StandardScaler(), Mine(quantiles=(0.1, 0.9)))
    clone(model).fit(X, y)
    model = QuantileSVR(quantiles=np.array([0.1, 0.9])).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert clone(model).quantiles is not model.quantiles


def test_limits_end_the_fit_with_a_warning_that_counts_quantiles():
    X, y = friedman(300)
    with pytest.warns(ConvergenceWarning, match="3 of 3 problems ended with status 'max_iter'"):
        model = QuantileSVR(quantiles=[0.2, 0.5, 0.8], C=100.0, max_iter=3).fit(X, y)
    assert (model.relative_gap_ > 0.1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        late = QuantileSVR(quantiles=[0.2, 0.5], max_time=0.0).fit(X, y)
    assert late.status_ == "max_time" and late.predict(X).shape == (300, 2)


def test_a_large_problem_takes_the_loop_and_is_certified():
    X, y = friedman(3000)
    problem = dual.quantile_svr(y, 0.9, 5.0)
    solution = Batch().solve(problem, Gram(X, gamma=0.2))
    assert solution.status == "solved" and solution.violation <= 1e-3
    model = QuantileSVR(quantile=0.9, C=5.0, gamma=0.2).fit(X, y)
    assert model.relative_gap_ < 1e-2
    assert abs((y <= model.predict(X)).mean() - 0.9) < 0.05
