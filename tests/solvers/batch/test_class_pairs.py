"""The pairs of many classes in one compiled call."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import rbf_kernel

from maxmargin import SVC
from maxmargin.solvers.batch import batch, class_pairs, whole

K = 24


@pytest.fixture(scope="module")
def many():
    rng = np.random.default_rng(3)
    y = rng.permutation(np.arange(700) % K)
    X = rng.normal(size=(700, 6))
    X[:, 0] += y % 5
    X[:, 1] += y // 5
    return X, y


@pytest.fixture
def together(monkeypatch):
    """Record the outcome of each call."""
    outcomes = []

    def recorded(*arguments):
        outcomes.append(class_pairs.solve_together(*arguments))
        return outcomes[-1]

    monkeypatch.setattr(batch, "solve_together", recorded)
    return outcomes


def one_by_one(monkeypatch, model, *data):
    with monkeypatch.context() as patch:
        patch.setattr(whole.WholeProblems, "takes_pairs", False)
        return model.fit(*data)


def assert_same(model, other, tolerance=2e-3):
    assert model.status_ == other.status_ == "solved"
    assert np.isfinite(model.dual_gap_).all()
    assert (model.relative_gap_ <= 2.0 * other.relative_gap_.max()).all()
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=0, atol=tolerance)
    assert model.n_iter_.shape == other.n_iter_.shape
    assert [len(trace) for trace in model.trace_] == [1] * len(model.trace_)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"C": 0.01, "class_weight": "balanced"},
        {"C": 300.0},
        {"loss": "squared_hinge"},
        {"kernel": "linear", "C": 0.1},
        {"kernel": "poly", "degree": 2, "coef0": 1},
        {"kernel": "laplacian"},
        {"tol": 1e-6},
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array], ids=["dense", "float32", "sparse"])
def test_the_models_are_those_of_pairs_solved_one_by_one(many, together, monkeypatch, options, form):
    X, y = form(many[0]), many[1]
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = SVC(gamma=0.2, n_jobs=1).set_params(**options)
    other = one_by_one(monkeypatch, SVC(**model.get_params()), X, y, weight)
    model.fit(X, y, weight)
    if options.get("tol", 1e-3) == 1e-3:
        assert len(together[0].solutions) >= 0.9 * K * (K - 1) / 2
    assert_same(model, other)
    values = np.abs(model.decision_function(X[:50]) - other.decision_function(X[:50]))
    assert np.median(values) < 2e-3


def test_a_given_matrix(many, together):
    X, y = many
    matrix = rbf_kernel(X, gamma=0.2)
    model = SVC(kernel="precomputed").fit(matrix, y)
    assert len(together[0].solutions) == K * (K - 1) // 2
    assert_same(model, SVC(gamma=0.2).fit(X, y))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_do_not_fit_are_computed_again(many, together, monkeypatch, n_jobs):
    monkeypatch.setattr(batch.costs, "WORTH_A_TEAM", 0.0)
    X, y = many
    kept = []
    shared = class_pairs._shared_or_own

    def recorded(rows, n):
        kept.append(shared(rows, n))
        return kept[-1]

    monkeypatch.setattr(class_pairs, "_shared_or_own", recorded)
    model = SVC(gamma=0.2, cache_size=0.5, n_jobs=n_jobs).fit(X, y)
    assert len(kept[0]) == n_jobs
    assert not kept[0][0].holds_all
    assert len(together[0].solutions) == K * (K - 1) // 2
    assert_same(model, SVC(gamma=0.2, n_jobs=1).fit(X, y), tolerance=1e-12)


def test_threads_change_no_number(many, monkeypatch):
    monkeypatch.setattr(batch.costs, "WORTH_A_TEAM", 0.0)
    X, y = many
    one, two = (SVC(gamma=0.2, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, two.intercept_)


def test_pairs_that_need_more_steps_go_on_one_by_one(many, together, monkeypatch):
    monkeypatch.setattr(class_pairs.costs, "PAIRS_FEWEST_STEPS", 1)
    monkeypatch.setattr(whole.costs, "WHOLE_PATIENCE", 0)
    X, y = many
    model = SVC(gamma=0.2, C=10.0).fit(X, y)
    assert together[0].points
    assert model.status_ == "solved"
    assert (model.dual_gap_ >= 0).all()
    monkeypatch.undo()
    assert_same(model.fit(X, y), SVC(gamma=0.2, C=10.0).fit(X, y))


def test_pairs_are_observed_one_by_one(many, together, capsys):
    X, y = many
    SVC(gamma=0.2, verbose=True).fit(X[:100], y[:100])
    assert not together
    assert capsys.readouterr().out


def test_a_warm_start_is_used(many, together):
    X, y = many
    model = SVC(gamma=0.2, warm_start=True).fit(X, y)
    steps = model.n_iter_.sum()
    assert model.fit(X, y).n_iter_.sum() < 0.1 * steps
    assert not together


def test_votes_are_those_of_scikit_learn():
    from sklearn.svm import SVC as Reference

    X, y = load_digits(return_X_y=True)
    ours, reference = (make(C=10.0, gamma=0.001, tol=1e-5).fit(X[:900], y[:900]) for make in (SVC, Reference))
    np.testing.assert_array_equal(ours.predict(X[900:]), reference.predict(X[900:]))
    np.testing.assert_array_equal(ours.n_support_, reference.n_support_)
