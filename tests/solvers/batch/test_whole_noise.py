"""The noise estimate of problems in one compiled call is that of `maxmargin.solvers.precision`."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_classification

from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Stop, precision
from maxmargin.solvers.batch import whole_steps
from maxmargin.solvers.batch.whole import WholeProblems, _noise


def problem_on(n, kind, rng):
    y = np.where(rng.random(n) > 0.4, 1.0, -1.0)
    return {
        "c_svc": lambda: dual.c_svc(y, bounds=rng.uniform(0.5, 5.0, n)),
        "squared_c_svc": lambda: dual.squared_c_svc(y, ridge=rng.uniform(0.05, 1.0, n)),
        "one_class": lambda: dual.one_class(n, nu=0.3),
        "epsilon_svr": lambda: dual.epsilon_svr(rng.normal(size=n), C=2.0, epsilon=0.1),
    }[kind]()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("m", [2, 30, 64, 700])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_compiled_sample_is_that_of_precision(dtype, m, seed):
    rng = np.random.default_rng(seed)
    problem = dual.c_svc(np.where(np.arange(m) % 2, 1.0, -1.0), C=1.0)
    u = np.where(rng.random(m) < 0.5, problem.lo, problem.hi)
    u[rng.random(m) < 0.1] *= 0.5
    g = rng.normal(size=m)
    for pad in (0.0, 1e-3, 0.5):
        near, rest = whole_steps.near_boundary(u, g, problem.lo, problem.hi, problem.ranges, pad)
        np.testing.assert_array_equal(near, precision.near_boundary(problem, u, g, pad))
        np.testing.assert_array_equal(np.union1d(near, rest), np.arange(m))
        doubt = rng.random(m).astype(dtype)
        for first, of in ((near, near), (near[:0], rest), (near, np.arange(m))):
            if len(of):
                expected = precision.sampled(first, of, doubt)
                np.testing.assert_array_equal(whole_steps.sampled(first, of, doubt), expected)
                assert len(expected) <= 1.75 * precision.SAMPLE
    assert not len(whole_steps.sampled(near[:0], near[:0], doubt))


@pytest.mark.parametrize("pad", [0.0, 1e-3, 0.5])
def test_entries_near_the_boundary_are_those_of_each_group(pad):
    rng = np.random.default_rng(0)
    problem = dual.reduced_hulls(np.repeat([-1.0, 1.0], [40, 60]), mu=0.1).without_signs
    u = np.where(rng.random(100) < 0.5, problem.lo, problem.hi)
    u[rng.random(100) < 0.1] *= 0.5
    g = rng.normal(size=100) + np.where(np.arange(100) < 40, 5.0, -5.0)  # groups far from each other
    near, rest = whole_steps.near_boundary(u, g, problem.lo, problem.hi, problem.ranges, pad)
    np.testing.assert_array_equal(near, precision.near_boundary(problem, u, g, pad))
    np.testing.assert_array_equal(np.union1d(near, rest), np.arange(100))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["c_svc", "squared_c_svc", "one_class", "epsilon_svr"])
@pytest.mark.parametrize("storage", ["dense", "sparse", "index"])
def test_the_compiled_error_of_the_gradient_is_that_from_exact_values(storage, kind, dtype):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 4)) + 3.0
    index = rng.permutation(150)[:120] if storage == "index" else None
    X = sp.csr_array(np.where(X > 3.0, X, 0.0)) if storage == "sparse" else X
    gram = Gram(X, gamma=0.3, dtype=dtype, index=index)
    problem = problem_on(gram.n, kind, rng)
    u = problem.repair(rng.uniform(-1.0, 1.0, problem.m) * (rng.random(problem.m) < 0.6))
    g = problem.gradient(u, gram) + 1e-5 * rng.normal(size=problem.m)
    some = rng.permutation(problem.m)[:40]
    samples = np.arange(gram.n)[problem.row]
    whole = whole_steps.Whole(
        np.zeros(1, np.intp), samples, problem.p, problem.lo, problem.hi, problem.ridge, problem.ranges,
        problem.sums,
    )  # fmt: skip
    found = whole_steps.largest_errors(whole, u, g, some[:25], some[25:], gram.exact_data)
    exact = problem.exact_gradient(u, some, gram)
    error = np.abs(exact - g[some])
    assert found == pytest.approx((error[:25].max(), error[25:].max()), rel=1e-6)
    # The bound that holds without a measurement is one, and so is that of the exact values.
    size = float(np.abs(u).sum())
    plain = problem.gradient(u, gram)
    best = problem.accurate_gradient(u, some, gram)
    assert np.abs(plain[some] - best).max() <= gram.largest_bound() * size + 1e-14
    assert np.abs(exact - best).max() <= gram.largest_bound(double=True) * size + 1e-14
    everything = np.arange(problem.m)
    for double in (False, True):
        bound = problem.rounding(u, everything, gram, double).max()
        assert bound <= _noise(problem, u, gram.largest_bound(double)) * (1 + 1e-12)


def test_refinement_ends_with_the_tolerance():
    tol, asked = 1e-9, [1e-4]
    while asked[-1] > tol:
        asked.append(precision.finer(asked[-1], tol))
    np.testing.assert_allclose(asked, [1e-4, 1e-6, 1e-8, 1e-9])


def test_the_noise_of_a_solution_bounds_the_errors_of_all_entries():
    # Samples of many features, of which those with large norms have larger errors than most.
    X, y = make_classification(1200, 60, n_informative=30, flip_y=0.08, random_state=1200)
    problem, gram = dual.c_svc(np.where(y > 0, 1.0, -1.0), C=1.0), Gram(X, gamma=0.02)
    whole = WholeProblems.over(gram, np.array([0, 1200]), [problem], Stop())
    found = whole.attempt(problem, np.arange(1200), np.zeros(1, np.intp), None).solution
    assert found is not None
    exact = problem.exact_gradient(found.u, np.arange(1200), gram)
    assert np.abs(found.gradient - exact).max() <= found.noise
    assert problem.gap(found.u, exact) <= found.gap
    assert problem.violation(found.u, exact) <= found.violation <= 1e-3
