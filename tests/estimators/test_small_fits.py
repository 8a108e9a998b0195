"""Many small problems behind the estimators: one compiled call, the loop and scikit-learn agree."""

import warnings
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, OneClassSVM
from maxmargin.solvers import Batch
from maxmargin.solvers.batch import batch
from maxmargin.solvers.batch.whole import WholeProblems


@pytest.fixture
def quick(monkeypatch):
    """For every problem, whether compiled code has solved it, alone or with others."""
    count, solve, solve_all = [], WholeProblems.attempt, batch.solve_together

    def spy(self, *arguments):
        found = solve(self, *arguments)
        count.append(found.solution is not None)
        return found

    def spy_all(*arguments):
        found = solve_all(*arguments)
        count.extend([True] * len(found.solutions))
        return found

    monkeypatch.setattr(WholeProblems, "attempt", spy)
    monkeypatch.setattr(batch, "solve_together", spy_all)
    return count


def data(sizes=(60, 40, 25, 10), d=4, seed=0, apart=1.0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = apart * rng.normal(size=(len(sizes), d))
    return centres[y] + rng.normal(size=(len(y), d)), y


def ordinary(model, X, y=None, **weights):
    """The same fit by checkpoints and steps: a working set of a given size has no other engine."""
    return type(model)(**{**model.get_params(), "solver": Batch(working_set=1024)}).fit(X, y, **weights)


def objectives(model, X, y, gamma):
    """The dual objective of every class pair, from the coefficients in LIBSVM's layout."""
    vectors = model.support_vectors_
    vectors = vectors.toarray() if sp.issparse(vectors) else np.asarray(vectors, dtype=np.float64)
    K = np.exp(-gamma * ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2))
    coef = model.dual_coef_
    coef = coef.toarray() if sp.issparse(coef) else coef
    at = np.concatenate([[0], np.cumsum(model.n_support_)])
    out = []
    for a, b in combinations(range(len(at) - 1), 2):
        first, second = np.arange(at[a], at[a + 1]), np.arange(at[b], at[b + 1])
        u = np.concatenate([coef[b - 1, first], coef[a, second]])
        both = np.concatenate([first, second])
        out.append(0.5 * u @ K[np.ix_(both, both)] @ u - np.abs(u).sum())
    return np.array(out)


def pair_values(model, X):
    return model.set_params(decision_function_shape="ovo").decision_function(X)


def assert_same_values(one, other, X, tol):
    scale = np.maximum(1.0, np.abs(pair_values(other, X)))
    assert (np.abs(pair_values(one, X) - pair_values(other, X)) <= tol * scale).all()


SIZES = {
    "three": (50, 50, 50),
    "unequal": (150, 40, 6, 3),
    "tiny classes": (60, 1, 2, 1, 30),
    "twelve": tuple(range(2, 26, 2)),
    "single samples": (1,) * 6,
    "two": (70, 50),
}


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_same_models_as_the_loop_and_as_scikit_learn(sizes, tol, quick):
    X, y = data(sizes)
    for C in (0.1, 1.0, 50.0):
        model = SVC(C=C, gamma=0.3, tol=tol).fit(X, y)
        assert quick.count(True) == len(sizes) * (len(sizes) - 1) // 2
        quick.clear()
        slow = ordinary(model, X, y)
        assert not quick
        theirs = svm.SVC(C=C, gamma=0.3, tol=1e-6).fit(X, y)
        assert model.status_ == slow.status_ == "solved"
        np.testing.assert_array_equal(model.classes_, theirs.classes_)
        assert_same_values(model, theirs, X, 20 * tol)
        assert_same_values(model, slow, X, 20 * tol)
        best = objectives(theirs, X, y, 0.3)
        mine = objectives(model, X, y, 0.3)
        np.testing.assert_array_less(mine - best, model.dual_gap_ + 1e-9 * (1 + np.abs(best)))
        np.testing.assert_array_less(best - mine, 1e-6 * C * len(y) + 1e-9)
        assert (model.dual_gap_ <= 4 * tol * C * len(y) + 1e-9).all()


@pytest.mark.parametrize("storage", [np.asarray, np.float32, sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_any_storage_and_number_of_threads_gives_the_same_machines(storage, n_jobs, quick):
    rng = np.random.default_rng(0)
    X, y = data((40, 30, 20, 10, 5), d=12)
    X = (X * (rng.random(X.shape) < 0.4)).astype(np.float32).astype(np.float64)
    model = SVC(C=5.0, gamma=0.2, tol=1e-5, n_jobs=n_jobs).fit(storage(X), y)
    assert quick and all(quick)
    dense = svm.SVC(C=5.0, gamma=0.2, tol=1e-6).fit(X, y)
    values = pair_values(model, storage(X))
    np.testing.assert_allclose(values, pair_values(dense, X), atol=1e-4)
    assert sp.issparse(model.dual_coef_) == sp.issparse(storage(X))


@pytest.mark.parametrize("weighted", ["samples", "zeros", "classes", "balanced", "both"])
def test_weights_have_the_effect_that_they_have_in_scikit_learn(weighted, quick):
    rng = np.random.default_rng(1)
    X, y = data((50, 30, 15, 4))
    weight = rng.uniform(0.1, 3.0, len(y))
    if weighted != "samples":
        weight[rng.random(len(y)) < 0.3] = 0.0
        weight[[np.flatnonzero(y == c)[0] for c in range(4)]] = 1.0
    by_class = {"classes": {0: 0.3, 3: 20.0}, "both": {1: 5.0}, "balanced": "balanced"}.get(weighted)
    weight = weight if weighted in ("samples", "zeros", "both") else None
    names = np.array(["ant", "bee", "cat", "dog"])[y]
    if isinstance(by_class, dict):
        by_class = {["ant", "bee", "cat", "dog"][c]: w for c, w in by_class.items()}
    options = {"C": 3.0, "gamma": 0.3, "class_weight": by_class}
    model = SVC(**options, tol=1e-5).fit(X, names, sample_weight=weight)
    theirs = svm.SVC(**options, tol=1e-6).fit(X, names, sample_weight=weight)
    assert quick and all(quick) and model.status_ == "solved"
    assert_same_values(model, theirs, X, 1e-3)
    np.testing.assert_array_equal(model.predict(X), theirs.predict(X))
    assert_same_values(model, ordinary(model, X, names, sample_weight=weight), X, 1e-3)
    if weight is not None:
        assert not np.isin(np.flatnonzero(weight == 0), model.support_).any()


@pytest.mark.parametrize("C", [1e-8, 1e-3, 1e3, 1e7])
@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1e3, 1e9])
def test_extreme_penalties_and_widths_are_solved_or_say_so(C, gamma, quick):
    X, y = data((20, 15, 10), apart=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(C=C, gamma=gamma, max_time=10).fit(X, y)
        slow = ordinary(model, X, y)
    assert quick or gamma == 1e9  # all rows are distant then: their values come from differences
    assert np.isfinite(model.dual_coef_).all() and (np.abs(model.dual_coef_) <= C).all()
    mine, theirs = objectives(model, X, y, gamma), objectives(slow, X, y, gamma)
    slack = 1e-9 * C * len(y) + 1e-12
    assert model.status_ == slow.status_ == "solved"
    assert (mine - theirs <= model.dual_gap_ + slack).all()
    assert (theirs - mine <= slow.dual_gap_ + slack).all()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_duplicates_with_equal_and_opposite_labels_are_solved(loss, quick):
    X, y = data((20, 20, 20))
    X, y = np.concatenate([X, X, X[:15]]), np.concatenate([y, y, (y[:15] + 1) % 3])
    model = SVC(C=10.0, gamma=0.3, tol=1e-5, loss=loss).fit(X, y)
    slow = ordinary(model, X, y)
    assert all(quick) and model.status_ == slow.status_ == "solved"
    assert_same_values(model, slow, X, 1e-3)
    if loss == "hinge":
        assert_same_values(model, svm.SVC(C=10.0, gamma=0.3, tol=1e-6).fit(X, y), X, 1e-3)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("cache_size", [1e-6, 0.01, 0.05, 200])
def test_the_budget_of_the_cache_does_not_change_the_machines(cache_size, n_jobs, quick, monkeypatch):
    used, solve = [], batch.solve_together

    def spy(engine, *arguments):
        found = solve(engine, *arguments)
        used.append((engine.rows.pool.nbytes, engine.bytes_used))
        return found

    monkeypatch.setattr(batch, "solve_together", spy)
    X, y = data((80, 60, 40, 5))
    model = SVC(C=5.0, gamma=0.3, tol=1e-5, cache_size=cache_size, n_jobs=n_jobs).fit(X, y)
    assert model.status_ == "solved"
    assert used and max(max(pair) for pair in used) <= cache_size * 2**20
    assert all(quick) == (cache_size == 200)
    theirs = svm.SVC(C=5.0, gamma=0.3, tol=1e-6).fit(X, y)
    assert_same_values(model, theirs, X, 1e-3)


@pytest.mark.parametrize("estimator", [SVC, OneClassSVM])
@pytest.mark.parametrize(("budget", "status"), [({"max_time": 0}, "max_time"), ({"max_iter": 1}, "max_iter")])
def test_used_up_budgets_give_their_status(estimator, budget, status):
    X, y = data((40, 30, 20), apart=0.2)
    with pytest.warns(ConvergenceWarning, match=status):
        model = estimator(gamma=2.0, tol=1e-6, **budget).fit(X, y)
    assert model.status_ == status and model.fit_status_ == 1
    assert (np.asarray(model.dual_gap_) > 0).any()
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("storage", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize("nu", [0.01, 0.2, 0.8, 0.97])
def test_one_class_machines_are_those_of_scikit_learn(nu, storage, quick):
    X, _ = data((120,), d=3)
    X = X.astype(np.float32).astype(np.float64)
    for tol in (1e-3, 1e-5):
        model = OneClassSVM(nu=nu, gamma=0.5, tol=tol).fit(storage(X))
        slow = ordinary(model, storage(X))
        theirs = svm.OneClassSVM(nu=nu, gamma=0.5, tol=1e-5).fit(X)
        assert model.status_ == slow.status_ == "solved"
        scores = model.score_samples(storage(X))
        np.testing.assert_allclose(scores, theirs.score_samples(X), atol=20 * tol)
        np.testing.assert_allclose(scores, slow.score_samples(storage(X)), atol=20 * tol)
        np.testing.assert_allclose(model.offset_, theirs.offset_, atol=20 * tol)
    assert len(quick) == 2


def test_one_class_with_weights_gap_and_a_tiny_cache(quick):
    rng = np.random.default_rng(0)
    X, _ = data((150,), d=3)
    weight = rng.uniform(0.1, 2.0, 150) * (rng.random(150) < 0.7)
    theirs = svm.OneClassSVM(nu=0.3, gamma=0.5, tol=1e-5).fit(X, sample_weight=weight)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))

    def value(model):
        coef, at = np.ravel(model.dual_coef_), model.support_
        return 0.5 * coef @ K[np.ix_(at, at)] @ coef

    for cache_size in (0.01, 200):
        model = OneClassSVM(nu=0.3, gamma=0.5, tol=1e-3, cache_size=cache_size).fit(X, sample_weight=weight)
        assert model.status_ == "solved"
        assert value(model) - value(theirs) <= model.dual_gap_ + 1e-9
        np.testing.assert_allclose(model.score_samples(X), theirs.score_samples(X), atol=2e-2)
        assert not np.isin(np.flatnonzero(weight == 0), model.support_).any()
    assert quick == [False, True]


def test_a_warm_start_from_the_solution_takes_no_steps(quick):
    X, y = data((60, 40, 20))
    model = SVC(C=10.0, gamma=0.3, warm_start=True).fit(X, y)
    before = model.dual_coef_.copy()
    model.fit(X, y)
    assert all(quick) and (model.n_iter_ == 1).all()
    np.testing.assert_array_equal(model.dual_coef_, before)


def test_order_of_the_samples_and_names_of_the_classes_do_not_matter(quick):
    X, y = data((40, 30, 20, 3))
    order = np.random.default_rng(5).permutation(len(y))
    names = np.array(["d", "c", "b", "a"])
    one = SVC(C=10.0, gamma=0.3, tol=1e-6).fit(X, y)
    other = SVC(C=10.0, gamma=0.3, tol=1e-6).fit(X[order], names[y[order]])
    np.testing.assert_array_equal(names[one.predict(X)], other.predict(X))
    assert np.sort(objectives(one, X, y, 0.3)) == pytest.approx(
        np.sort(objectives(other, X, y, 0.3)), rel=1e-7
    )
    assert all(quick)


def test_another_solver_gives_the_same_machines(quick):
    X, y = data((40, 30, 20, 3))
    model = SVC(C=10.0, gamma=0.3, tol=1e-5).fit(X, y)
    count = len(quick)
    for solver in ("smo", Batch(working_set=16), Batch(working_set=16, finish="newton")):
        other = SVC(C=10.0, gamma=0.3, tol=1e-5, solver=solver).fit(X, y)
        assert_same_values(model, other, X, 1e-3)
    assert len(quick) == count
