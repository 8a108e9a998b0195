import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import dual
from maxmargin.gram import Gram
from maxmargin.solvers import Batch, Status, Stop
from maxmargin.solvers.on_demand import LARGEST, suits


def problem_on(X, kind="c_svc", seed=0):
    rng = np.random.default_rng(seed)
    n = X.shape[0]
    y = np.where(rng.random(n) > 0.4, 1.0, -1.0)
    return {
        "c_svc": lambda: dual.c_svc(y, bounds=rng.uniform(0.5, 5.0, n)),
        "squared_c_svc": lambda: dual.squared_c_svc(y, ridge=rng.uniform(0.05, 1.0, n)),
        "one_class": lambda: dual.one_class(n, nu=0.3),
        "one_class_l2": lambda: dual.one_class_l2(n, ridge=0.1),
    }[kind]()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("kind", ["c_svc", "squared_c_svc", "one_class", "one_class_l2"])
def test_reaches_the_solution_of_the_working_set(kind, storage, dtype):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.15)
    X = sp.csr_array(X) if storage == "sparse" else X + 0.1 * rng.normal(size=X.shape)
    problem = problem_on(X, kind)
    stop = Stop(1e-3 if dtype == "float32" else 1e-8)
    gram = Gram(X, gamma=0.3, dtype=dtype)
    assert suits(problem, gram)
    quick = Batch().solve(problem, gram, stop=stop)
    slow = Batch(working_set=64).solve(problem, Gram(X, gamma=0.3, dtype=dtype), stop=stop)
    assert quick.status is slow.status is Status.SOLVED
    assert quick.objective == pytest.approx(slow.objective, rel=1e-3 if dtype == "float32" else 1e-7)
    exact = problem.gradient(quick.u, Gram(X, gamma=0.3, dtype="float64"))
    assert problem.violation(quick.u, exact) <= stop.tol * 1.001


def test_class_pairs_share_the_segments_of_their_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    gram = Gram(X, gamma=0.5, segments=[0, 30, 60, 90], dtype="float64")
    total = 0
    for a, b in ((0, 1), (0, 2), (1, 2), (0, 1)):
        samples = np.r_[30 * a : 30 * a + 30, 30 * b : 30 * b + 30]
        view = gram.view(samples)
        problem = dual.c_svc(np.repeat([1.0, -1.0], 30), C=10.0)
        assert suits(problem, view)
        solution = Batch().solve(problem, view, stop=Stop(1e-8))
        alone = Batch().solve(problem, Gram(X[samples], gamma=0.5, dtype="float64"), stop=Stop(1e-8))
        np.testing.assert_allclose(solution.u, alone.u, atol=1e-6)
        total += solution.n_kernel_evals
        assert solution.n_kernel_evals <= alone.n_kernel_evals
    assert solution.n_kernel_evals == 0  # the last pair was the first again
    assert total <= 90 * 90


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"kernel": "linear"}, "another kernel"),
        ({"cache_bytes": 1000}, "a cache that does not hold all"),
    ],
)
def test_leaves_what_it_cannot_take_to_the_working_set(change, why):
    X = np.random.default_rng(0).normal(size=(50, 3))
    gram = Gram(X, **{"gamma": 0.5, **change})
    assert not suits(problem_on(X), gram), why
    assert Batch().solve(problem_on(X), gram).status is Status.SOLVED


def test_large_several_group_and_partial_problems_are_left_alone():
    X = np.random.default_rng(0).normal(size=(LARGEST + 1, 2))
    gram = Gram(X, gamma=0.5)
    assert not suits(problem_on(X), gram)
    small = Gram(X[:50], gamma=0.5)
    y = np.where(np.arange(50) % 2, 1.0, -1.0)
    assert not suits(dual.reduced_hulls(y, mu=0.1), small)
    assert not suits(dual.minimum_norm(y), small)
    assert not suits(dual.c_svc(y[:20], rows=np.arange(10, 30)), small)


def test_budget_of_steps_is_kept():
    X = np.random.default_rng(0).normal(size=(200, 3))
    solution = Batch().solve(problem_on(X), Gram(X, gamma=0.5), stop=Stop(1e-3, max_iter=7))
    assert solution.status is Status.MAX_ITER and solution.n_iter == 7


def test_a_pair_of_equal_points_with_opposite_labels_ends():
    X = np.zeros((2, 1))
    solution = Batch().solve(dual.c_svc([1, -1], C=3.0), Gram(X, gamma=1.0))
    assert solution.status is Status.SOLVED
    np.testing.assert_allclose(solution.u, [3.0, -3.0])
