"""Claims of fitted models, checked in long double from their public attributes alone."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from long_double import LONG, long_kernel
from maxmargin import SVC, L2OneClassSVM, NuSVC


def true_gap(model, X, y, C, kernel, gamma, **more):
    """Primal less dual value with the best bias, and what the judge's own rounding may amount to."""
    full = np.zeros(len(X), LONG)
    full[model.support_] = model.dual_coef_[0]
    K = long_kernel(X, kernel, gamma, **more)
    score, size = K @ full, np.abs(K) @ np.abs(full)
    sign = np.where(y == model.classes_[1], 1, -1)
    hinge = min(np.maximum(0, 1 - sign * (score + b)).sum() for b in sign - score)
    square = full @ score
    gap = square + LONG(C) * hinge - np.abs(full).sum()
    return float(gap), float(1e-18 * (np.abs(full) @ size + C * size.sum()) + 1e-15 * abs(gap))


def fitted(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SVC(**parameters).fit(X, y)


def labelled(n, seed, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] + 0.7 * rng.normal(size=n) > 0, 1, -1), rng


@pytest.mark.parametrize("size", [1e5, 1e7, 1.7e9])
@pytest.mark.parametrize("seed", range(5))
def test_a_linear_kernel_with_columns_of_zeros_and_huge_values_makes_no_false_claim(size, seed):
    X, y, rng = labelled(120, seed)
    X[:, 1] = np.where(rng.random(len(X)) < 0.5, 0.0, size * (1 + 1e-3 * rng.random(len(X))))
    model = fitted(X, y, kernel="linear", C=1.0, max_time=10)
    gap, allowance = true_gap(model, X, y, 1.0, "linear", 1.0)
    assert gap <= model.dual_gap_[0] * (1 + 1e-9) + allowance


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("value", [1e5, 1e8, 1e150])
@pytest.mark.parametrize("n", [80, 700])  # float64 rows and float32 rows
def test_a_distant_row_leaves_kernel_values_of_the_others_accurate(kernel, value, n):
    X, y, _ = labelled(n, 0)
    X[7] = value
    model = fitted(X, y, kernel=kernel, gamma=0.5, C=10.0)
    gap, allowance = true_gap(model, X, y, 10.0, kernel, 0.5)
    assert model.status_ == "solved"
    assert gap <= model.dual_gap_[0] * (1 + 1e-9) + allowance
    assert model.dual_gap_[0] <= 1e-3 * np.abs(model.dual_coef_).sum()  # what tol asks for


def test_distant_rows_next_to_each_other_are_told_apart():
    X, y, _ = labelled(60, 1)
    X[:6] = 1e8 + np.arange(6)[:, None]
    y[:6] = [1, -1, 1, -1, 1, -1]
    model = fitted(X, y, gamma=1.0, C=1e3)
    assert model.status_ == "solved"
    assert (model.predict(X[:6]) == y[:6]).all()


@pytest.mark.parametrize("offset", [1e4, 1e6])
@pytest.mark.parametrize("solver", ["auto", "smo", "rosen-conjugate"])
def test_a_poly_kernel_of_data_with_an_offset_makes_no_false_claim(offset, solver):
    X, y, _ = labelled(60, 2)
    X = X + offset
    model = fitted(X, y, kernel="poly", gamma=0.1, C=1.0, solver=solver, max_time=3)
    gap, allowance = true_gap(model, X, y, 1.0, "poly", 0.1)
    assert gap <= model.dual_gap_[0] * (1 + 1e-9) + allowance


@pytest.mark.parametrize("seed", range(6))
def test_a_given_matrix_with_large_values_makes_no_false_claim(seed):
    X, y, _ = labelled(80, seed)
    X = 10.0 ** (1 + seed) * (X + 30.0)
    K = X @ X.T
    K = 0.5 * (K + K.T)
    model = fitted(K, y, kernel="precomputed", C=1.0, max_time=5)
    full = np.zeros(len(K), LONG)
    full[model.support_] = model.dual_coef_[0]
    score = K.astype(LONG) @ full
    hinge = min(np.maximum(0, 1 - y * (score + b)).sum() for b in y - score)
    gap = float(full @ score + hinge - np.abs(full).sum())
    allowance = float(1e-18 * (np.abs(K) @ np.abs(full)).sum() * (1 + np.abs(full).sum()))
    assert gap <= model.dual_gap_[0] * (1 + 1e-9) + allowance


@pytest.mark.parametrize("max_iter", [1, 10, 100])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_run_that_ends_early_states_its_whole_gap(max_iter, kernel):
    X, y, _ = labelled(300, 3)
    model = fitted(X, y, kernel=kernel, gamma=0.3, C=100.0, max_iter=max_iter)
    gap, allowance = true_gap(model, X, y, 100.0, kernel, 0.3)
    assert gap <= model.dual_gap_[0] * (1 + 1e-9) + allowance
    assert model.dual_gap_[0] <= gap * 1.01 + allowance


# -- one answer where the bias is not unique -----------------------------------------------------


@pytest.mark.parametrize("n", [150, 900, 5000])  # one compiled call, with float32 rows, the ordinary way
def test_row_order_and_warm_start_do_not_move_a_bias_that_has_an_interval(n):
    X, y = make_classification(n, 6, weights=[0.8], random_state=n)
    parameters = {"C": 1e-4, "class_weight": "balanced", "gamma": 0.1}
    first = SVC(**parameters).fit(X, y)
    order = np.random.default_rng(0).permutation(n)
    second = SVC(**parameters).fit(X[order], y[order])
    third = SVC(warm_start=True, **{**parameters, "C": 1e-3}).fit(X, y).set_params(C=1e-4).fit(X, y)
    by_smo = SVC(solver="smo", **parameters).fit(X, y)
    assert np.unique(np.abs(first.dual_coef_)).size <= 4  # all at their bounds, up to rounding
    for other in (second, third, by_smo):
        assert other.intercept_[0] == pytest.approx(first.intercept_[0], abs=1e-9)


def test_a_multiplier_an_ulp_from_its_bound_does_not_decide_about_the_offset():
    from maxmargin import dual

    problem = dual.c_svc([1, 1, -1, -1], C=1.0)
    g = np.array([-3.0, -1.0, 1.0, 2.0])  # all at their bounds: b may be anywhere in [-1, 1]
    exact = np.array([1.0, 1.0, -1.0, -1.0])
    assert problem.offset(exact, g)[0] == 0.0
    nearly = exact * np.array([1.0, 1.0 - 1e-15, 1.0, 1.0])
    assert problem.offset(nearly, g)[0] != 0.0
    assert problem.offset(problem.snap(nearly), g)[0] == 0.0


def test_snapping_keeps_the_sum_where_a_variable_has_room():
    from maxmargin import dual

    problem = dual.c_svc([1, 1, -1, -1], C=1.0)
    u = np.array([1.0 - 3e-14, 0.5, -0.5 + 3e-14, -1.0])
    snapped = problem.snap(u)
    assert snapped[0] == 1.0
    assert abs(snapped.sum()) <= 1e-16
    assert problem.feasible(snapped)


def test_hulls_that_intersect_are_reported():
    from maxmargin import NuSVC

    X = np.array([[0.0], [1.0], [0.0], [1.0]])
    with pytest.warns(ConvergenceWarning, match="intersect to working precision"):
        NuSVC(nu=1.0, kernel="linear").fit(X, [0, 0, 1, 1])


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("solver", ["rosen", "smo", "batch"])
def test_a_multiplier_that_is_snapped_takes_its_part_of_the_gradient_with_it(solver, seed):
    # Beside a sentinel the multipliers are so small that they are put on their bound: u = 0 at the end.
    X = np.random.default_rng(seed).normal(size=(12, 2)) * [1.0, 1e3]
    X[:2] *= 100
    X[4] = 1e8
    X = X.astype(np.float32).astype(np.float64)
    y = np.where(np.arange(12) < 5, -1, 1)
    model = fitted(X, y, kernel="poly", C=3.7, solver=solver, max_iter=2000, coef0=1.0, gamma=1.0)
    gap, allowance = true_gap(model, X, y, 3.7, "poly", 1.0, coef0=1.0)
    assert gap <= model.dual_gap_[0] * (1 + 1e-9) + allowance


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("wide", ["ids", "timestamps", "sentinels"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_neighbours_far_from_the_centre_are_told_apart_beyond_512_rows(kernel, wide, loss):
    X, y, rng = labelled(700, 0, 5)
    column = {"ids": rng.integers(0, 500_000, 700), "timestamps": 1.6e9 + 60 * np.arange(700)}
    X[:, 1] = column.get(wide, np.where(np.arange(700) % 17 == 0, -999.0, X[:, 1]))
    model = fitted(X, y, kernel=kernel, gamma=1e-3, C=100.0, loss=loss)
    assert model.status_ == "solved"
    full = np.zeros(700, LONG)
    full[model.support_] = model.dual_coef_[0]
    score = long_kernel(X, kernel, 1e-3) @ full
    g = y - score - (full / 200 if loss == "squared_hinge" else 0)
    top = 100.0 if loss == "hinge" else np.inf
    up = np.where(y > 0, full < top, full < 0)
    down = np.where(y > 0, full > 0, full > -top)
    assert g[up].max() - g[down].min() <= 1.001e-3


def test_float32_rows_get_the_decision_values_of_the_same_float64_rows():
    rng = np.random.default_rng(1)
    X = np.c_[1e5 * rng.normal(size=500), rng.normal(size=(500, 4))].astype(np.float32)
    y = np.where(X[:, 1] + 0.5 * rng.normal(size=500) > 0, 1, -1)
    for kernel in ("rbf", "laplacian"):
        model = fitted(X, y, kernel=kernel, C=100.0, gamma=1e-3)
        np.testing.assert_allclose(
            model.decision_function(X), model.decision_function(X.astype(np.float64)), atol=1e-5
        )


@pytest.mark.parametrize("seed", range(4))
def test_the_gap_of_a_hard_margin_allows_for_the_rounding_of_its_coefficients(seed):
    rng = np.random.default_rng(seed)
    X = np.round(2 * rng.normal(size=(400, 3))) / 2 * [1e5, 1.0, 1.0]
    value = X @ [-4e-5, -2.4, 3.2]
    X, y = X[np.abs(value) >= 1], np.sign(value[np.abs(value) >= 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(C=np.inf, kernel="linear", tol=1e-8).fit(X, y)
    u = np.zeros(len(y), np.longdouble)
    u[model.support_] = model.dual_coef_[0]
    w = X.astype(np.longdouble).T @ u
    score = X.astype(np.longdouble) @ w
    margin = 0.5 * (score[y > 0].min() - score[y < 0].max())
    primal, dual_value = 0.5 * (w @ w) / margin**2, np.abs(u).sum() - 0.5 * (w @ w)
    assert primal - dual_value <= model.dual_gap_[0]


@pytest.mark.parametrize("seed", range(6))
def test_the_gap_of_nu_svc_allows_for_the_rounding_of_its_coefficients(seed):
    X, y, rng = labelled(60, seed)
    X = np.round(X, 2)
    X[rng.random(X.shape) < 0.1] = 999.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = NuSVC(nu=0.5, kernel="poly", degree=4, gamma=0.125, coef0=1.0, tol=1e-6).fit(X, y)
    # Kernel values reach 1e20: everything in fractions.
    coef = np.zeros(len(X), object) + Fraction(0)
    coef[model.support_] = [Fraction(float(c)) for c in model.dual_coef_[0]]
    rows = np.array([[Fraction(float(x)) for x in row] for row in X], dtype=object)
    K = (rows @ rows.T / 8 + 1) ** 4
    total = coef[y > 0].sum()
    score = K @ coef / total
    least, most = Fraction(0), Fraction(2) / (Fraction(model.nu) * len(X))
    for sign in (1, -1):  # the reduced hull's least point
        left = Fraction(1)
        for value in sorted(sign * score[y == sign]):
            share = min(most, left)
            least, left = least + share * value, left - share
    gap = float(coef @ score / total - least)
    assert gap <= model.dual_gap_[0] * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_the_gap_of_l2_one_class_svm_allows_for_the_rounding_of_its_coefficients(seed):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(11, 20)), 2)
    X[rng.random(X.shape) < 0.1] = 1e8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = L2OneClassSVM(C=512.0, kernel="poly", gamma=0.25, coef0=1.0).fit(X)
    # Kernel values reach 1e50: everything in fractions.
    coef = np.zeros(len(X), object) + Fraction(0)
    coef[model.support_] = [Fraction(float(c)) for c in model.dual_coef_[0]]
    rows = np.array([[Fraction(float(x)) for x in row] for row in X], dtype=object)
    score = (rows @ rows.T / 4 + 1) ** 3 @ coef
    slack = np.maximum(Fraction(0), 1 - score)
    square, C = coef @ score, Fraction(512)
    primal = square / 2 + C * (slack @ slack) / 2
    dual_value = coef.sum() - square / 2 - (coef @ coef) / (2 * C)
    assert primal - dual_value <= model.dual_gap_ * (1 + 1e-9)
