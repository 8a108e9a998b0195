import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.svm import LinearSVC

from maxmargin import SVC, IncrementalSVC

GAMMA = 0.2


def data(n, seed=0, flip=0.1):
    X, y = make_classification(n, 6, flip_y=flip, random_state=seed)
    return X, y


def scratch(X, y, C=1.0, weight=None, **options):
    options = {"gamma": GAMMA, **options}
    return SVC(C=C, loss="squared_hinge", tol=1e-10, **options).fit(X, y, weight)


def held_out(X, y, C=1.0, **options):
    keep = lambda i: np.delete(np.arange(len(y)), i)  # noqa: E731
    return np.array([
        scratch(X[keep(i)], y[keep(i)], C, **options).decision_function(X[[i]])[0] for i in range(len(y))
    ])  # fmt: skip


class Learner(RuleBasedStateMachine):
    """Rows come and go; the model must always be the one that is trained from scratch."""

    @initialize(seed=st.integers(0, 1000), C=st.sampled_from([0.01, 1.0, 300.0]))
    def begin(self, seed, C):
        self.rng = np.random.default_rng(seed)
        self.C = C
        X, y = self.draw(6)
        y[:2] = [0, 1]
        self.clf = IncrementalSVC(C, gamma=GAMMA).fit(X, y)
        self.X, self.y = X, y
        self.probe = self.rng.normal(size=(7, 2))

    def draw(self, n):
        X = self.rng.normal(size=(n, 2)).round(1)  # equal points come up
        return X, self.rng.integers(0, 2, n)

    @rule(n=st.integers(1, 4))
    def learn(self, n):
        X, y = self.draw(n)
        self.clf.partial_fit(X, y)
        self.X, self.y = np.vstack([self.X, X]), np.concatenate([self.y, y])

    @rule()
    def learn_many(self):
        X, y = self.draw(120)
        self.clf.partial_fit(X, y)
        self.X, self.y = np.vstack([self.X, X]), np.concatenate([self.y, y])

    @precondition(lambda self: len(self.y) > 3)
    @rule(share=st.floats(0.0, 0.9))
    def forget(self, share):
        rows = self.rng.permutation(len(self.y))[: max(1, int(share * (len(self.y) - 1)))]
        self.clf.forget(rows)
        self.X, self.y = np.delete(self.X, rows, 0), np.delete(self.y, rows)

    @precondition(lambda self: len(self.y) > 3)
    @rule()
    def forget_a_support_vector(self):
        if len(self.clf.support_):
            k = int(self.rng.choice(self.clf.support_))
            self.clf.forget(k)
            self.X, self.y = np.delete(self.X, k, 0), np.delete(self.y, k)

    @rule()
    def look_at_leave_one_out(self):
        self.clf.leave_one_out()  # must leave everything as it is

    @invariant()
    def the_model_is_that_of_a_training_from_scratch(self):
        if not hasattr(self, "clf"):
            return
        assert self.clf.n_held_ == len(self.y)
        values = self.clf.decision_function(self.probe)
        if len(np.unique(self.y)) < 2:
            np.testing.assert_array_equal(self.clf.predict(self.probe), np.full(7, self.y[0]))
            return
        expected = scratch(self.X, self.y, self.C)
        np.testing.assert_allclose(values, expected.decision_function(self.probe), atol=1e-6)


Learner.TestCase.settings = settings(
    max_examples=25, stateful_step_count=12, deadline=None, suppress_health_check=list(HealthCheck)
)
test_any_sequence_of_additions_and_removals_is_exact = Learner.TestCase


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_leave_one_out_equals_n_retrainings(C):
    X, y = data(90)
    clf = IncrementalSVC(C, gamma=GAMMA).fit(X, y)
    np.testing.assert_allclose(clf.leave_one_out(), held_out(X, y, C), atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian"])
def test_leave_one_out_equals_n_retrainings_with_other_kernels(kernel):
    X, y = data(60)
    options = {"kernel": kernel, "gamma": 0.1, "coef0": 1.0}
    clf = IncrementalSVC(0.5, **options).fit(X, y)
    np.testing.assert_allclose(clf.leave_one_out(), held_out(X, y, 0.5, **options), atol=1e-6)


def test_leave_one_out_is_scikit_learns_cross_validation_of_a_linear_machine():
    X, y = data(70)
    # LinearSVC regularises the bias; with a large intercept_scaling hardly.
    linear = LinearSVC(C=0.3, intercept_scaling=1e3, tol=1e-10, max_iter=10**6)
    expected = cross_val_predict(linear, X, y, cv=LeaveOneOut(), method="decision_function")
    clf = IncrementalSVC(0.3, kernel="linear").fit(X, y)
    np.testing.assert_allclose(clf.leave_one_out(), expected, atol=1e-3)


def test_leave_one_out_with_little_memory_goes_row_by_row_to_the_same_values():
    X, y = data(120)
    clf = IncrementalSVC(gamma=GAMMA).fit(X, y)
    slow = IncrementalSVC(gamma=GAMMA, cache_size=0.0).fit(X, y)
    before = slow.decision_function(X)
    np.testing.assert_allclose(slow.leave_one_out(), clf.leave_one_out(), atol=1e-8)
    np.testing.assert_array_equal(slow.decision_function(X), before)


def test_leave_one_out_with_duplicates_and_opposite_labels_on_equal_points():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(15, 2)), 3, axis=0)
    y = np.arange(45) % 3 // 2
    clf = IncrementalSVC(50.0, gamma=1.0).fit(X, y)
    np.testing.assert_allclose(clf.leave_one_out(), held_out(X, y, 50.0, gamma=1.0), atol=1e-6)


def test_the_only_row_of_a_class_is_left_to_the_other_class():
    X, y = np.array([[0.0], [1.0], [1.5], [4.0]]), np.array(["a", "a", "a", "b"])
    values = IncrementalSVC(gamma=1.0).fit(X, y).leave_one_out()
    assert values[3] == -1.0


def test_single_rows_arrive_in_any_order():
    X, y = data(80)
    clf = IncrementalSVC(gamma=GAMMA)
    for k in np.random.default_rng(0).permutation(80):
        clf.partial_fit(X[[k]], y[[k]])
    np.testing.assert_allclose(clf.decision_function(X), scratch(X, y).decision_function(X), atol=1e-6)


def test_rows_that_are_no_support_vectors_change_nothing():
    X, y = data(200, flip=0.0)
    clf = IncrementalSVC(10.0, gamma=0.05).fit(X, y)
    others = np.setdiff1d(np.arange(200), clf.support_)
    before = clf.decision_function(X)
    clf.forget(others)
    assert clf.n_held_ == 200 - len(others)
    np.testing.assert_allclose(clf.decision_function(X), before, atol=1e-9)


def test_attributes_are_those_of_svc():
    X, y = data(80)
    ours, other = IncrementalSVC(gamma=GAMMA).fit(X, y), scratch(X, y)
    np.testing.assert_array_equal(ours.support_, np.sort(other.support_))
    np.testing.assert_array_equal(ours.support_vectors_, X[ours.support_])
    np.testing.assert_allclose(ours.intercept_, other.intercept_, atol=1e-7)
    np.testing.assert_array_equal(ours.n_support_, other.n_support_)
    order = np.argsort(other.support_)
    np.testing.assert_allclose(ours.dual_coef_[0], other.dual_coef_[0, order], atol=1e-6)


def test_weights_are_factors_of_c_and_zero_leaves_a_row_out():
    X, y = data(60)
    weight = np.random.default_rng(0).choice([0.0, 0.5, 3.0], 60)
    ours = IncrementalSVC(gamma=GAMMA).fit(X, y, weight)
    assert ours.n_held_ == np.count_nonzero(weight)
    expected = scratch(X, y, 1.0, weight)
    np.testing.assert_allclose(ours.decision_function(X), expected.decision_function(X), atol=1e-6)


@pytest.mark.parametrize("convert", [sp.csr_matrix, sp.csr_array, sp.coo_array])
def test_sparse_rows(convert):
    X, y = data(60)
    X[np.abs(X) < 0.7] = 0.0
    dense = IncrementalSVC(gamma=GAMMA).fit(X[:40], y[:40]).partial_fit(X[40:], y[40:]).forget([3, 50])
    sparse = IncrementalSVC(gamma=GAMMA).fit(convert(X[:40]), y[:40])
    sparse.partial_fit(convert(X[40:]), y[40:]).forget([3, 50])
    np.testing.assert_allclose(sparse.decision_function(convert(X)), dense.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(sparse.leave_one_out(), dense.leave_one_out(), atol=1e-9)
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=1e-9)


def test_float32_rows_are_as_good_as_their_float64_values():
    X, y = data(60)
    X32 = X.astype(np.float32)
    a = IncrementalSVC(gamma=GAMMA).fit(X32, y).decision_function(X32)
    b = IncrementalSVC(gamma=GAMMA).fit(X32.astype(np.float64), y).decision_function(X32.astype(np.float64))
    np.testing.assert_allclose(a, b, atol=1e-6)


def test_labels_may_be_strings_and_come_one_after_the_other():
    X, y = data(40)
    names = np.where(y == 0, "no", "yes")
    order = np.argsort(names)[::-1]  # all "yes" first
    clf = IncrementalSVC(gamma=GAMMA)
    clf.partial_fit(X[order[:5]], names[order[:5]])
    np.testing.assert_array_equal(clf.classes_, ["yes"])
    np.testing.assert_array_equal(clf.predict(X), np.full(40, "yes"))
    clf.partial_fit(X[order[5:]], names[order[5:]])
    expected = scratch(X, names)
    np.testing.assert_array_equal(clf.classes_, expected.classes_)
    np.testing.assert_allclose(clf.decision_function(X), expected.decision_function(X), atol=1e-6)


def test_classes_may_be_announced():
    X, y = data(30)
    clf = IncrementalSVC(gamma=GAMMA).partial_fit(X[y == 1], y[y == 1], classes=[0, 1])
    np.testing.assert_array_equal(clf.classes_, [0, 1])
    np.testing.assert_array_equal(clf.decision_function(X), np.ones(30))
    clf.partial_fit(X[y == 0], y[y == 0])
    np.testing.assert_allclose(clf.decision_function(X), scratch(X, y).decision_function(X), atol=1e-6)


def test_labels_outside_of_classes_are_refused():
    X, y = data(30)
    with pytest.raises(ValueError, match="not in classes"):
        IncrementalSVC().partial_fit(X, y, classes=[1, 2])


def test_a_class_may_vanish_and_come_back():
    X, y = data(30)
    clf = IncrementalSVC(gamma=GAMMA).fit(X, y)
    clf.forget(y == 1)
    np.testing.assert_array_equal(clf.predict(X), np.zeros(30))
    np.testing.assert_array_equal(clf.leave_one_out(), -np.ones(np.sum(y == 0)))
    clf.partial_fit(X[y == 1], y[y == 1])
    order = np.concatenate([np.flatnonzero(y == 0), np.flatnonzero(y == 1)])
    expected = scratch(X[order], y[order])
    np.testing.assert_allclose(clf.decision_function(X), expected.decision_function(X), atol=1e-6)


def test_forget_says_what_is_wrong():
    X, y = data(10)
    clf = IncrementalSVC(gamma=GAMMA).fit(X, y)
    with pytest.raises(IndexError, match="There are 10 rows, at positions 0 to 9"):
        clf.forget(10)
    with pytest.raises(ValueError, match="All rows would be forgotten"):
        clf.forget(np.arange(10))
    with pytest.raises(ValueError, match="one entry for each of the 10 rows"):
        clf.forget(np.ones(3, dtype=bool))
    with pytest.raises(ValueError, match="integers in one dimension"):
        clf.forget([0.5])
    assert clf.forget([]).n_held_ == 10
    assert clf.forget([-1, 9, 9]).n_held_ == 9


def test_forgotten_rows_give_their_memory_back():
    X, y = data(400)
    clf = IncrementalSVC(gamma=GAMMA).fit(X, y)
    clf.forget(np.arange(300))
    assert clf._svm.samples.n == clf._svm.problems[0].n == 100
    np.testing.assert_allclose(
        clf.decision_function(X), scratch(X[300:], y[300:]).decision_function(X), atol=1e-6
    )


def test_too_many_support_vectors_for_the_factor_are_an_error_with_numbers():
    X, y = data(300)
    with pytest.raises(MemoryError, match=r"factor of .* support vectors takes"):
        IncrementalSVC(gamma=GAMMA, max_factor=0.01).fit(X, y)


def test_an_interrupt_loses_nothing(monkeypatch):
    from maxmargin.solvers.incremental.checked import CheckedMargins

    X, y = data(120)
    clf = IncrementalSVC(gamma=GAMMA).fit(X[:100], y[:100])

    def interrupted(self, base):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CheckedMargins, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            clf.forget(clf.support_[:1])
    clf.partial_fit(X[100:], y[100:])
    held = clf._svm.held  # the row was being forgotten, and is still held
    np.testing.assert_array_equal(held, np.arange(120))
    np.testing.assert_allclose(clf.decision_function(X), scratch(X, y).decision_function(X), atol=1e-6)


def test_gamma_is_that_of_the_first_rows():
    X, y = data(60)
    clf = IncrementalSVC().fit(X[:30], y[:30])
    gamma = clf.gamma_
    assert gamma == pytest.approx(1.0 / (6 * X[:30].var()))
    clf.partial_fit(X[30:], y[30:])
    assert clf.gamma_ == gamma
    np.testing.assert_allclose(
        clf.decision_function(X), scratch(X, y, gamma=gamma).decision_function(X), atol=1e-6
    )


def test_pickles_and_clones_go_on_learning():
    X, y = data(60)
    clf = IncrementalSVC(gamma=GAMMA).fit(X[:30], y[:30])
    twin = pickle.loads(pickle.dumps(clf)).partial_fit(X[30:], y[30:])
    assert clf.n_held_ == 30
    np.testing.assert_allclose(twin.decision_function(X), scratch(X, y).decision_function(X), atol=1e-6)
    assert not hasattr(clone(clf), "n_held_")


def test_a_precomputed_kernel_is_refused():
    with pytest.raises(ValueError, match="kernel"):
        IncrementalSVC(kernel="precomputed").fit(np.eye(2), [0, 1])


def test_a_callable_kernel():
    X, y = data(40)
    kernel = lambda A, B: np.exp(-GAMMA * ((A[:, None] - B[None]) ** 2).sum(axis=2))  # noqa: E731
    ours = IncrementalSVC(kernel=kernel).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), scratch(X, y).decision_function(X), atol=1e-6)
