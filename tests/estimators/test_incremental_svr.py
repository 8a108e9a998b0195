"""Rows that come and go in a regression, and with the hinge and any number of classes in a classification."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from long_double import LONG, long_kernel
from maxmargin import SVC, SVR, IncrementalSVC, IncrementalSVR

GAMMA = 0.2
LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, 2.0 * X[:, 0] + np.sin(3.0 * X[:, 1]) + 0.3 * rng.normal(size=n)


def classes(n, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (np.clip(X[:, 0] + 0.7 * rng.normal(size=n), -1.4, 1.4) * k / 3 + k / 2).astype(int)


def scratch(model):
    """The same model, to be trained by a solver."""
    kind = SVR if isinstance(model, IncrementalSVR) else SVC
    parameters = {k: v for k, v in model.get_params().items() if k not in ("cache_size", "max_factor")}
    return kind(tol=1e-10, **parameters)


def values(model, X):
    return model.predict(X) if hasattr(model, "epsilon") else model.decision_function(X)


def held_out(model, X, y):
    rows = np.arange(len(y))
    return np.array([
        values(scratch(model).fit(X[rows != i], y[rows != i]), X[[i]])[0] for i in rows
    ])  # fmt: skip


class Learner(RuleBasedStateMachine):
    """Rows come and go; the model must always be the one that is trained from scratch."""

    @initialize(
        seed=st.integers(0, 1000),
        C=st.sampled_from([0.01, 1.0, 300.0]),
        kind=st.sampled_from(["hinge", "squared_hinge", *LOSSES]),
    )
    def begin(self, seed, C, kind):
        self.rng = np.random.default_rng(seed)
        self.regression = kind in LOSSES
        make = IncrementalSVR if self.regression else IncrementalSVC
        self.model = make(C, gamma=GAMMA, loss=kind)
        self.X, self.y = self.draw(6)
        self.y[:3] = [0, 1, 2]
        self.model.fit(self.X, self.y)
        self.probe = self.rng.normal(size=(7, 2))

    def draw(self, n):
        X = self.rng.normal(size=(n, 2)).round(1)  # equal points come up
        return X, self.rng.normal(size=n).round(1) if self.regression else self.rng.integers(0, 3, n)

    @rule(n=st.sampled_from([1, 2, 4, 120]))
    def learn(self, n):
        X, y = self.draw(n)
        self.model.partial_fit(X, y)
        self.X, self.y = np.vstack([self.X, X]), np.concatenate([self.y, y])

    @precondition(lambda self: len(self.y) > 3)
    @rule(share=st.floats(0.0, 0.9))
    def forget(self, share):
        rows = self.rng.permutation(len(self.y))[: max(1, int(share * (len(self.y) - 1)))]
        self.model.forget(rows)
        self.X, self.y = np.delete(self.X, rows, 0), np.delete(self.y, rows)

    @precondition(lambda self: len(self.y) > 3 and len(self.y) < 60)
    @rule()
    def look_at_leave_one_out(self):
        self.model.leave_one_out()  # must leave everything as it is

    @invariant()
    def the_model_is_that_of_a_training_from_scratch(self):
        if not hasattr(self, "probe"):
            return
        assert self.model.n_held_ == len(self.y)
        if not self.regression and len(np.unique(self.y)) < 3:
            return  # a class that has vanished is still known
        expected = scratch(self.model).fit(self.X, self.y)
        found = values(self.model, self.probe)
        np.testing.assert_allclose(found, values(expected, self.probe), atol=1e-6)


Learner.TestCase.settings = settings(
    max_examples=25, stateful_step_count=8, deadline=None, suppress_health_check=list(HealthCheck)
)
test_any_sequence_of_additions_and_removals_is_exact = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning"  # of the solver's training
)(Learner.TestCase)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_leave_one_out_of_the_hinge_equals_n_retrainings(C, kernel):
    X, y = classes(40, 2)
    model = IncrementalSVC(C, gamma=GAMMA, kernel=kernel, loss="hinge").fit(X, y)
    np.testing.assert_allclose(model.leave_one_out(), held_out(model, X, y), atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_leave_one_out_of_a_regression_equals_n_retrainings(C, loss):
    X, y = data(40)
    model = IncrementalSVR(C, gamma=GAMMA, loss=loss).fit(X, y)
    np.testing.assert_allclose(model.leave_one_out(), held_out(model, X, y), atol=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_leave_one_out_with_several_classes_equals_n_retrainings(loss, shape):
    X, y = classes(50, 4)
    model = IncrementalSVC(2.0, gamma=GAMMA, loss=loss, decision_function_shape=shape).fit(X, y)
    np.testing.assert_allclose(model.leave_one_out(), held_out(model, X, y), atol=1e-6)
    rows = np.arange(len(y))
    labels = [scratch(model).fit(X[rows != i], y[rows != i]).predict(X[[i]])[0] for i in rows]
    np.testing.assert_array_equal(model.leave_one_out_predict(), labels)


def test_leave_one_out_is_that_of_scikit_learn():
    X, y = load_iris(return_X_y=True)
    for ours, theirs, target, how in (
        (
            IncrementalSVC(gamma=0.3, loss="hinge"),
            sklearn.svm.SVC(gamma=0.3, tol=1e-9),
            y,
            "decision_function",
        ),
        (IncrementalSVR(gamma=0.3), sklearn.svm.SVR(gamma=0.3, tol=1e-9), X[:, 3], "predict"),
    ):
        D = X if how == "decision_function" else X[:, :3]
        found = ours.fit(D[::2], target[::2]).leave_one_out()
        expected = cross_val_predict(theirs, D[::2], target[::2], cv=LeaveOneOut(), method=how)
        np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_duplicates_and_opposite_labels_are_learnt_and_left_out_exactly(kernel):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(10, 2)).round(1), 4, axis=0)
    for model, y in (
        (IncrementalSVC(50.0, kernel=kernel, gamma=1.0, loss="hinge"), np.tile([0, 1, 0, 0], 10)),
        (IncrementalSVR(50.0, kernel=kernel, gamma=1.0, epsilon=0.0), rng.normal(size=40).round(1)),
    ):
        model.fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
        np.testing.assert_allclose(values(model, X), values(scratch(model).fit(X, y), X), atol=1e-6)
        np.testing.assert_allclose(model.leave_one_out(), held_out(model, X, y), atol=1e-6)


@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_tiny_and_huge_penalties_are_exact(C):
    for model, (X, y) in (
        (IncrementalSVC(C, gamma=GAMMA, loss="hinge"), classes(60, 2)),
        (IncrementalSVR(C, gamma=GAMMA), data(60)),
    ):
        model.fit(X[:40], y[:40]).partial_fit(X[40:], y[40:]).forget([1, 45])
        keep = np.delete(np.arange(60), [1, 45])
        expected = values(scratch(model).fit(X[keep], y[keep]), X)
        np.testing.assert_allclose(values(model, X), expected, atol=1e-5)


def test_a_sentinel_value_is_learnt_as_well_as_by_a_solver():
    X, y = classes(60, 2)
    X[7, 0] = 1e8
    for model in (IncrementalSVC(gamma=GAMMA, loss="hinge"), IncrementalSVR(gamma=GAMMA)):
        model.fit(X, y)
        np.testing.assert_allclose(values(model, X), values(scratch(model).fit(X, y), X), atol=1e-6)


def test_margins_that_cannot_be_exact_are_refused_and_nothing_is_changed():
    X, y = classes(60, 2)
    for model in (IncrementalSVC(kernel="linear", loss="hinge"), IncrementalSVR(kernel="linear")):
        model.fit(X, y)
        before = values(model, X)
        with pytest.raises(ValueError, match="double precision"):
            model.partial_fit(np.full((3, 3), 1e12) + X[:3], y[:3])
        assert model.n_held_ == 60
        np.testing.assert_array_equal(values(model, X), before)
        model.forget([0])
        np.testing.assert_allclose(values(model, X), values(scratch(model).fit(X[1:], y[1:]), X), atol=1e-6)


def test_a_class_may_come_later_and_labels_may_be_strings():
    X, y = classes(90, 3)
    names = np.array(["pear", "apple", "fig"])[y]
    model = IncrementalSVC(gamma=GAMMA, loss="hinge", decision_function_shape="ovo")
    for k in (2, 0, 1):
        model.partial_fit(X[y == k], names[y == k])
    order = np.concatenate([np.flatnonzero(y == k) for k in (2, 0, 1)])
    expected = scratch(model).fit(X[order], names[order])
    assert model.classes_.tolist() == ["apple", "fig", "pear"]
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    np.testing.assert_allclose(values(model, X), values(expected, X), atol=1e-6)
    np.testing.assert_array_equal(model.n_support_, expected.n_support_)
    np.testing.assert_array_equal(model.support_, expected.support_)
    np.testing.assert_allclose(model.dual_coef_, expected.dual_coef_, atol=1e-5)


def test_a_class_that_has_not_been_seen_gets_no_rows():
    X, y = classes(60, 3)
    some = y < 2
    model = IncrementalSVC(gamma=GAMMA).partial_fit(X[some], y[some], classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2] and model.decision_function(X).shape == (60, 3)
    two = IncrementalSVC(gamma=GAMMA).fit(X[some], y[some])
    np.testing.assert_array_equal(model.predict(X), two.predict(X))
    model.partial_fit(X[~some], y[~some])
    order = np.concatenate([np.flatnonzero(some), np.flatnonzero(~some)])
    np.testing.assert_allclose(values(model, X), values(scratch(model).fit(X[order], y[order]), X), atol=1e-6)


def test_ties_are_broken_by_decision_values():
    X, y = classes(60, 3)
    options = {"gamma": GAMMA, "break_ties": True, "loss": "hinge"}
    model = IncrementalSVC(**options).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), SVC(tol=1e-10, **options).fit(X, y).predict(X))
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.set_params(decision_function_shape="ovo").predict(X)


@pytest.mark.parametrize(
    "model", [IncrementalSVC(gamma=GAMMA, loss="hinge"), IncrementalSVR(gamma=GAMMA)], ids=str
)
def test_weights_sparse_and_float32_rows_give_the_same_model(model):
    X, y = classes(80, 3)
    X = X.astype(np.float32)
    weight = np.random.default_rng(1).integers(0, 3, 80).astype(float)
    expected = scratch(model).fit(X.astype(np.float64), y, weight)
    for form in (np.asarray, sp.csr_matrix, sp.csr_array):
        learner = clone(model).fit(form(X[:50]), y[:50], weight[:50])
        learner.partial_fit(form(X[50:]), y[50:], sample_weight=weight[50:])
        assert learner.n_held_ == np.count_nonzero(weight)
        np.testing.assert_allclose(values(learner, form(X)), values(expected, X), atol=1e-5)


def test_a_refused_batch_leaves_all_pairs_as_they_were():
    X, y = classes(90, 3)
    model = IncrementalSVC(gamma=5.0, max_factor=8e-6 * 30 * 31 / 2).fit(X[:30], y[:30])
    before, loo = values(model, X), model.leave_one_out()
    with pytest.raises(MemoryError, match="support vectors"):
        model.partial_fit(X[30:], y[30:])
    assert model.n_held_ == 30
    np.testing.assert_array_equal(values(model, X), before)
    np.testing.assert_allclose(model.leave_one_out(), loo, atol=1e-9)
    assert model.forget([0]).n_held_ == 29


def test_little_memory_gives_the_same_values():
    for model, (X, y) in (
        (IncrementalSVC(gamma=GAMMA, loss="hinge"), classes(70, 3)),
        (IncrementalSVR(gamma=GAMMA), data(70)),
    ):
        slow = clone(model).set_params(cache_size=0.0)
        for learner in (model, slow):
            learner.fit(X[:60], y[:60]).partial_fit(X[60:], y[60:]).forget([2])
        np.testing.assert_allclose(values(slow, X), values(model, X), atol=1e-8)
        np.testing.assert_allclose(slow.leave_one_out(), model.leave_one_out(), atol=1e-8)


def test_targets_of_any_scale_are_exact():
    X, y = data(60)
    for scale in (1e-6, 1e6):
        model = IncrementalSVR(C=scale, gamma=GAMMA, epsilon=0.1 * scale).fit(X, scale * y)
        unit = IncrementalSVR(C=1.0, gamma=GAMMA).fit(X, y)
        np.testing.assert_allclose(model.predict(X) / scale, unit.predict(X), atol=1e-6)
        np.testing.assert_allclose(model.leave_one_out() / scale, unit.leave_one_out(), atol=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_of_a_regression_bounds_the_distance_in_long_double(loss, C):
    X, y = data(60)
    model = IncrementalSVR(C, gamma=GAMMA, loss=loss).fit(X, y)
    coef = np.zeros(60, LONG)
    coef[model.support_] = model.dual_coef_[0]
    K = long_kernel(X, "rbf", GAMMA)
    slack = np.maximum(0, abs(y - K @ coef - LONG(model.intercept_[0])) - LONG(0.1))
    penalty, cost = (slack, 0) if loss == LOSSES[0] else (slack**2, (coef**2).sum() / (4 * C))
    primal = 0.5 * coef @ K @ coef + C * penalty.sum()
    value = y @ coef - LONG(0.1) * abs(coef).sum() - 0.5 * coef @ K @ coef - cost
    assert model.status_ == "solved" and 0 <= model.relative_gap_ < 1e-7
    # Of sums in float64, whose rounding the bound has; the values themselves have that of the targets.
    assert primal - value <= model.dual_gap_ + 1e-14 * (primal + abs(y) @ abs(coef))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_gaps_of_pairs_are_in_the_order_of_sorted_labels_and_follow_changes(loss):
    X, y = classes(90, seed=2)
    names = np.array(["z", "a", "m"])[y]
    model = IncrementalSVC(300.0, gamma=GAMMA, loss=loss)
    assert not hasattr(model, "dual_gap_")
    for k in range(3):
        model.partial_fit(X[y == k], names[y == k])
        assert len(model.dual_gap_) == max(1, k * (k + 1) // 2) and (model.relative_gap_ < 1e-7).all()
    before = model.dual_gap_
    model.forget(np.arange(30))
    assert not np.array_equal(model.dual_gap_, before)
    model._certificates = np.array([[1.0, 0.1], [2.0, 0.2], [3.0, 0.3]])  # z and a, z and m, a and m
    assert model.dual_gap_.tolist() == [3.0, 1.0, 2.0] and model.relative_gap_.tolist() == [0.3, 0.1, 0.2]


def test_constant_targets_have_no_support_vectors():
    X, _ = data(20)
    model = IncrementalSVR().fit(X, np.full(20, 3.5))
    assert len(model.support_) == 0 and model.dual_gap_ == model.relative_gap_ == 0.0
    np.testing.assert_allclose(model.predict(X), 3.5)
    np.testing.assert_allclose(model.leave_one_out(), 3.5)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_only_row_outside_the_tube_is_unlearnt_and_left_out(loss, kernel):
    X, _ = data(20)
    y = np.append(np.linspace(-0.3, 0.3, 19), 3.0)
    model = IncrementalSVR(kernel=kernel, gamma=GAMMA, epsilon=0.5, loss=loss).fit(X, y)
    np.testing.assert_allclose(model.leave_one_out(), held_out(model, X, y), atol=1e-6)
    model.forget(-1)
    assert len(model.support_) == 0
    np.testing.assert_allclose(model.predict(X), 0.0, atol=1e-12)


def test_one_row_cannot_be_left_out():
    model = IncrementalSVR().partial_fit([[1.0, 2.0]], [3.0])
    np.testing.assert_allclose(model.predict([[0.0, 0.0]]), 3.0)
    with pytest.raises(ValueError, match="at least two rows"):
        model.leave_one_out()


def test_pickles_go_on_learning():
    X, y = data(60)
    model = IncrementalSVR(gamma=GAMMA).fit(X[:30], y[:30])
    twin = pickle.loads(pickle.dumps(model)).partial_fit(X[30:], y[30:])
    assert model.n_held_ == 30
    np.testing.assert_allclose(twin.predict(X), scratch(model).fit(X, y).predict(X), atol=1e-6)
