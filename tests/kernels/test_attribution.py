"""Shapley values of kernel expansions agree with their definition, a sum over all coalitions."""

import numpy as np
import pytest
import scipy.sparse as sp

from coalitions import shapley_values
from maxmargin._compiled.threads import Threads
from maxmargin.kernels import Kernel, _product_games, attribution
from maxmargin.kernels._product_games import LANES, RBF, Quadrature, add_joint
from maxmargin.kernels.attribution import attribute

ONE = Threads(1)


def data(n, m, vectors, d, seed=0, outputs=1):
    rng = np.random.default_rng(seed)
    return *(rng.normal(size=(k, d)) for k in (n, m, vectors)), rng.normal(size=(outputs, vectors))


def expansion(kernel, Z, coef):
    """The expansion from differences of rows, without the library."""

    def value(X):
        away = np.minimum(1e140, np.abs(X[:, None, :] - Z))  # no overflow
        far = away.sum(-1) if kernel.name == "laplacian" else (away**2).sum(-1)
        with np.errstate(over="ignore"):
            return np.exp(-kernel.gamma * far) @ coef.T

    return value


def agree(kernel, X, B, Z, coef, independent, **tolerance):
    values, base = attribute(kernel, X, B, Z, coef, independent=independent, threads=ONE)
    assert np.isfinite(values).all()
    for x, of_row in zip(X, values, strict=True):
        expected, empty = shapley_values(expansion(kernel, Z, coef), x, B, independent)
        np.testing.assert_allclose(of_row, expected, **tolerance)
        np.testing.assert_allclose(base, empty, **tolerance)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("d", [1, 2, 3, 6])
@pytest.mark.parametrize("gamma", [1e-3, 0.3, 20.0])
def test_values_are_the_sums_over_coalitions(name, d, gamma, independent):
    X, B, Z, coef = data(2, 3 if d < 6 else 2, 20, d, seed=d, outputs=2)
    agree(Kernel(name, gamma=gamma), X, B, Z, coef, independent, rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_far_points_and_enormous_gammas_give_zeros_not_nan(name, independent):
    X, B, Z, coef = data(3, 2, 18, 4)
    X[0] += 1e3
    X[1, 2] = 1e200
    Z[3] -= 1e5
    agree(Kernel(name, gamma=1.0), X, B, Z, coef, independent, rtol=1e-10, atol=1e-14)
    Z[:2] = X[2], B[0]  # kernel values of 1 between points that are equal, of 0 otherwise
    agree(Kernel(name, gamma=1e290), X, B, Z, coef, independent, rtol=1e-10, atol=1e-14)
    agree(Kernel(name, gamma=0.0), X, B, Z, coef, independent, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("independent", [False, True])
def test_features_that_rows_share_with_the_background_are_factors(independent):
    X, B, Z, coef = data(2, 3, 17, 5)
    X[:, 1] = B[:, 1] = 0.7  # in all rows
    B[0, 2], B[2] = X[0, 2], X[1]  # in some, and in all features of one
    agree(Kernel("rbf", gamma=0.4), X, B, Z, coef, independent, rtol=1e-10, atol=1e-14)
    values, _ = attribute(Kernel("rbf"), X, B, Z, coef, independent=independent, threads=ONE)
    assert (values[:, 1] == 0).all()


def test_a_row_that_is_the_whole_background_has_values_of_zero():
    X, _, Z, coef = data(1, 1, 17, 3)
    values, base = attribute(Kernel("rbf", gamma=0.3), X, X, Z, coef, threads=ONE)
    assert (values == 0).all()
    np.testing.assert_allclose(base, expansion(Kernel("rbf", gamma=0.3), Z, coef)(X)[0], rtol=1e-13)


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("d", [40, 300])
def test_values_of_many_features_add_up(d, independent):
    X, B, Z, coef = data(3, 4, 40, d)
    kernel = Kernel("rbf", gamma=0.7 / d)
    values, base = attribute(kernel, X, B, Z, coef, independent=independent, threads=ONE)
    f = expansion(kernel, Z, coef)
    np.testing.assert_allclose(values.sum(axis=1) + base, f(X), rtol=0, atol=1e-13)
    if not independent:
        np.testing.assert_allclose(base, f(B).mean(axis=0), rtol=0, atol=1e-13)


@pytest.mark.parametrize("d", [2, 7, 33, 120])
@pytest.mark.parametrize("spread", [1e-6, 1e-3, 0.03, 0.3, 3.0, 30.0])
def test_fewer_nodes_are_as_exact_as_those_of_the_polynomial_rule(d, spread):
    """The rule of ceil(D / 2) nodes is exact for every polynomial of the degree."""
    X, B, Z, coef = data(2, 2, LANES, d, seed=d)
    Z, coef = np.ascontiguousarray(Z.T)[None], np.eye(LANES)[None]  # an output for each support vector
    rules = Quadrature.of(d)
    used, whole = np.zeros((2 * d + 1, LANES)), np.zeros((2 * d + 1, LANES))
    scale = np.sqrt(spread / d)
    add_joint(RBF, scale, X, B, Z, coef, rules, used)
    add_joint(RBF, scale, X, B, Z, coef, rules._replace(limits=np.full(len(rules.limits), -1.0)), whole)
    np.testing.assert_allclose(used, whole, rtol=1e-13 * d, atol=0)


def test_close_points_need_few_nodes():
    rules = Quadrature.of(784)
    sizes = np.diff(rules.starts)
    assert sizes[-1] == 392 and sizes[rules.exact[-1]] == 392
    assert sizes[np.argmax(rules.limits >= 2.0)] <= 16
    assert (np.diff(rules.limits) > 0).all()


def test_the_error_bound_holds_for_the_worst_games():
    """The largest sums that a rule is used for, spread over the factors evenly or over few of them."""
    from scipy.special import roots_legendre

    for d in (3, 20, 90):
        rules = Quadrature.of(d)
        x, w = roots_legendre((d + 1) // 2)
        for rule, limit in enumerate(rules.limits):
            part = slice(rules.starts[rule], rules.starts[rule + 1])
            whole = min(int(limit), d)
            for spread in (np.full(d, min(1.0, limit / d)), (np.arange(d) < whole) * 1.0):
                for sign in (1.0, np.where(np.arange(d) % 2, 1.0, -1.0)):

                    def integral(t, w, r=sign * spread):
                        return np.prod(1 + (2 * t[:, None] - 1) * r, axis=1) @ w

                    exact = integral((1 + x) / 2, w / 2)
                    found = integral(rules.nodes[part], rules.weights[part])
                    assert abs(found - exact) <= 1e-14 * d * exact


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_sparse_rows_give_the_values_of_dense_rows(name, independent):
    X, B, Z, coef = data(4, 5, 50, 12)
    for part in (X, B, Z):
        part[np.random.default_rng(1).random(part.shape) < 0.7] = 0.0
    X[:, 3] = B[:, 3] = 0.0  # entries of support vectors only
    X[:, 4] = B[:, 4] = 2.0
    kernel = Kernel(name, gamma=0.3)
    dense = attribute(kernel, X, B, Z, coef, independent=independent, threads=ONE)
    for forms in (
        (sp.csr_array,) * 3,
        (np.asarray, np.asarray, sp.csr_matrix),
        (sp.csr_array, np.asarray, np.asarray),
    ):
        parts = [form(part) for form, part in zip(forms, (X, B, Z), strict=True)]
        found = attribute(kernel, *parts, coef, independent=independent, threads=ONE)
        for a, b in zip(found, dense, strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


def test_very_wide_sparse_rows_take_memory_for_their_own_columns():
    rng = np.random.default_rng(0)
    X, B, Z = (sp.random_array((n, 200_000), density=1e-4, format="csr", rng=rng) for n in (2, 3, 300))
    coef = rng.normal(size=(1, 300))
    values, base = attribute(Kernel("rbf", gamma=0.3), X, B, Z, coef, threads=ONE)
    both = np.unique(np.concatenate([X.indices, B.indices]))
    assert set(np.flatnonzero(values.any(axis=(0, 2)))) <= set(both)
    far = (X.multiply(X).sum(axis=1)[:, None] + Z.multiply(Z).sum(axis=1)) - 2 * (X @ Z.T).toarray()
    np.testing.assert_allclose(values.sum(axis=1) + base, np.exp(-0.3 * far) @ coef.T, rtol=0, atol=1e-11)


@pytest.mark.parametrize("independent", [False, True])
def test_the_result_depends_neither_on_threads_nor_on_how_the_work_is_cut(independent, monkeypatch):
    X, B, Z, coef = data(40, 7, 100, 5, outputs=3)
    kernel = Kernel("rbf", gamma=0.2)
    one = attribute(kernel, X, B, Z, coef, independent=independent, threads=ONE)
    two = attribute(kernel, X, B, Z, coef, independent=independent, threads=Threads(2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    for name, value in (("_CALL", 200), ("_FACTORS", 300), ("_VECTORS", 200), ("_MEANS", 1)):
        monkeypatch.setattr(attribution, name, value)
    cut = attribute(kernel, X, B, Z, coef, independent=independent, threads=Threads(2))
    for a, b in zip(one, cut, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-13)


def test_equal_features_have_equal_values_and_the_order_of_features_does_not_matter():
    X, B, Z, coef = data(3, 4, 30, 5)
    for part in (X, B, Z):
        part[:, 4] = part[:, 0]
    kernel = Kernel("rbf", gamma=0.2)
    values, _ = attribute(kernel, X, B, Z, coef, threads=ONE)
    np.testing.assert_allclose(values[:, 4], values[:, 0], rtol=0, atol=1e-14)
    order = [3, 1, 4, 0, 2]
    again, _ = attribute(kernel, X[:, order], B[:, order], Z[:, order], coef, threads=ONE)
    np.testing.assert_allclose(again, values[:, order], rtol=0, atol=1e-14)


def test_without_vectors_everything_is_zero():
    X, B, Z, coef = data(2, 3, 0, 4)
    values, base = attribute(Kernel("rbf"), X, B, Z, coef, threads=ONE)
    assert values.shape == (2, 4, 1) and not values.any() and not base.any()


def test_lanes_fill_whole_vector_registers():
    assert _product_games.LANES % 8 == 0
