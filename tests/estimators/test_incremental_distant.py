"""Rows that are far from all others: learnt exactly, or refused with nothing changed."""

import pickle
import warnings

import numpy as np
import pytest

from maxmargin import IncrementalSVC

Long = np.longdouble


def kernel_matrix(model, X):
    """In long double, from differences."""
    X = X.astype(Long)
    if model.kernel == "rbf":
        return np.exp(-Long(model.gamma_) * ((X[:, None] - X[None]) ** 2).sum(axis=-1))
    K = X @ X.T
    return K if model.kernel == "linear" else (Long(model.gamma_) * K + Long(model.coef0)) ** model.degree


def true_gap(model, X, y, weight):
    """(primal - dual) / primal of the model as it is, where slacks of 1e-4 cost nothing."""
    if len(np.unique(y)) < 2:
        return 0.0
    side = np.where(y == model.classes_[1], 1, -1).astype(Long)
    u = np.zeros(len(X), Long)
    u[model.support_] = model.dual_coef_.ravel()
    C, K = Long(model.C) * weight.astype(Long), kernel_matrix(model, X)
    assert np.abs(u.sum()) <= 1e-6 * np.abs(u).sum() and (side * u >= 0).all()
    slack = np.maximum(0, 1 - side * (K @ u + Long(model.intercept_[0])))
    square = u @ K @ u
    primal = square / 2 + (C * slack**2).sum()
    dual = (side * u).sum() - square / 2 - (u**2 / (4 * C)).sum()
    return float((primal - dual) / (primal + (C * Long(1e-8)).sum()))


class Sequence:
    """A model and the rows that it should hold."""

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        self.d = int(rng.integers(1, 5))
        kernel = str(rng.choice(["linear", "poly", "rbf"]))
        self.model = IncrementalSVC(
            C=float(10 ** rng.uniform(-3, 6)),
            kernel=kernel,
            gamma=float(10 ** rng.uniform(-2, 1)),
            degree=int(rng.integers(2, 4)),
            coef0=float(rng.choice([0.0, 1.0])),
            cache_size=float(rng.choice([1e-4, 200.0])),
        )
        self.X, self.y, self.weight = np.zeros((0, self.d)), np.zeros(0, int), np.zeros(0)

    def rows(self, kind):
        rng, k = self.rng, int(self.rng.integers(1, 6))
        if kind == "many":
            k = 80
        if kind == "distant":
            return rng.normal(size=(k, self.d)) * 10 ** rng.uniform(3, 8), rng.integers(0, 2, k)
        if kind in ("equal", "opposite"):
            i = rng.integers(0, len(self.X), k)
            return self.X[i], self.y[i] if kind == "equal" else 1 - self.y[i]
        X = rng.normal(size=(k, self.d))
        return X, (X[:, 0] + 0.5 * rng.normal(size=k) > 0).astype(int)

    def change(self):
        """One change; the error that it was refused with, and whether there was a warning."""
        kinds = ["near", "distant", "equal", "opposite", "forget", "many"]
        kind = self.rng.choice(kinds, p=[0.3, 0.25, 0.1, 0.15, 0.1, 0.1]) if len(self.X) > 3 else "near"
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                if kind == "forget":
                    gone = self.rng.choice(len(self.X), 2, replace=False)
                    self.model.forget(gone)
                    self.X, self.y, self.weight = (
                        np.delete(a, gone, axis=0) for a in (self.X, self.y, self.weight)
                    )
                else:
                    X, y = self.rows(kind)
                    weight = np.where(self.rng.random(len(y)) < 0.2, 10.0, 1.0)
                    self.model.partial_fit(X, y, classes=[0, 1], sample_weight=weight)
                    self.X, self.y = np.vstack([self.X, X]), np.concatenate([self.y, y])
                    self.weight = np.concatenate([self.weight, weight])
            except ValueError as error:
                return str(error), False
        return "", bool(caught)


@pytest.mark.parametrize("first", range(0, 80, 10))
def test_any_sequence_with_distant_rows_is_exact_or_refused(first):
    for seed in range(first, first + 10):
        sequence = Sequence(seed)
        for _ in range(8):
            refused, warned = sequence.change()
            assert not refused or ("nothing was changed" in refused and len(sequence.X))
            assert sequence.model.n_held_ == len(sequence.X)
            gap = true_gap(sequence.model, sequence.X, sequence.y, sequence.weight)
            assert gap <= (2e-3 if warned else 1e-3), seed


def distant(C=3e4, n=30):
    """A model of rows near 0, and rows far away that a polynomial of this C cannot follow."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = (X[:, 0] > 0).astype(int)
    model = IncrementalSVC(C=C, kernel="poly", degree=3, gamma=1.0, coef0=1.0).fit(X, y)
    return model, X, y, 1e6 * rng.normal(size=(4, 2)), np.array([0, 1, 0, 1])


def test_refused_rows_leave_the_model_as_it_was():
    model, X, y, far, labels = distant()
    before, coef = model.decision_function(X), model.dual_coef_.copy()
    with pytest.raises(ValueError, match=r"cannot be learnt, and nothing was changed.*Scale"):
        model.partial_fit(far, labels)
    assert model.n_held_ == 30
    np.testing.assert_array_equal(model.decision_function(X), before)
    np.testing.assert_array_equal(model.dual_coef_, coef)
    again = pickle.loads(pickle.dumps(model))
    for clf in (model, again):  # and it goes on learning, and forgetting
        clf.partial_fit(X[:5] + 0.1, y[:5]).forget([0, 3])
        fresh = IncrementalSVC(C=3e4, kernel="poly", degree=3, gamma=1.0, coef0=1.0)
        kept = np.delete(np.arange(35), [0, 3])
        fresh.fit(np.vstack([X, X[:5] + 0.1])[kept], np.concatenate([y, y[:5]])[kept])
        np.testing.assert_allclose(clf.decision_function(X), fresh.decision_function(X), rtol=1e-3, atol=1e-3)


def test_a_first_fit_that_is_refused_leaves_the_estimator_unfitted():
    _, X, y, far, labels = distant()
    model = IncrementalSVC(C=3e4, kernel="poly", degree=3, gamma=1.0, coef0=1.0)
    with pytest.raises(ValueError, match="double precision"):
        model.fit(np.vstack([X, far]), np.concatenate([y, labels]))
    assert not hasattr(model, "support_")
    model.partial_fit(X, y)
    assert model.n_held_ == 30


def test_kernel_values_that_overflow_are_refused():
    model = distant()[0]
    with pytest.raises(ValueError, match="nothing was changed"):
        model.partial_fit([[1e120, 0.0]], [0])
    assert model.n_held_ == 30


def test_too_little_memory_for_a_row_leaves_the_model_as_it_was():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = rng.integers(0, 2, 60)
    model = IncrementalSVC(gamma=1.0, max_factor=8e-6 * 30 * 31 / 2).fit(X[:25], y[:25])
    before = model.decision_function(X)
    with pytest.raises(MemoryError, match="support vectors"):
        model.partial_fit(X[25:], y[25:])
    assert model.n_held_ == 25
    np.testing.assert_array_equal(model.decision_function(X), before)
    model.forget([0])
    assert model.n_held_ == 24


def test_leave_one_out_without_a_factor_is_that_of_retrainings():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    y = (X[:, 0] + rng.normal(size=20) > 0).astype(int)
    model = IncrementalSVC(C=3.0, gamma=1.0).fit(X, y)
    exact = model.leave_one_out()
    model._svm.problems[
        0
    ].active.size = 0  # as where no factor was found, and the solver's solution was taken
    np.testing.assert_allclose(model.leave_one_out(), exact, atol=1e-5)
