import pickle
import signal
import threading
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVR, NuSVR, dual, solvers
from maxmargin.gram.gram import Gram
from qp import dense_q, rbf, reference

SQUARED = "squared_epsilon_insensitive"


def friedman(n=200, seed=0):
    X, y = make_friedman1(n, n_features=6, noise=1.0, random_state=seed)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def full_coef(model, n):
    coef = np.zeros(n)
    coef[model.support_] = model.get_model().coef[0]
    return coef


def primal(model, X, y, squared=False):
    """½‖w‖² + C Σ loss, from predictions and coefficients."""
    coef, f = full_coef(model, len(y)), model.predict(X)
    slack = np.maximum(0.0, np.abs(y - f) - model.epsilon)
    return 0.5 * coef @ (f - model.intercept_[0]) + model.C * (slack**2 if squared else slack).sum()


# -- agreement with scikit-learn -------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        (SVR, sklearn.svm.SVR, {"C": 1.0, "epsilon": 0.1}),
        (SVR, sklearn.svm.SVR, {"C": 20.0, "epsilon": 0.0}),
        (SVR, sklearn.svm.SVR, {"C": 0.01, "epsilon": 0.5}),
        (SVR, sklearn.svm.SVR, {"kernel": "poly", "degree": 2, "coef0": 1.0, "epsilon": 0.3}),
        (NuSVR, sklearn.svm.NuSVR, {"nu": 0.3, "C": 1.0}),
        (NuSVR, sklearn.svm.NuSVR, {"nu": 0.8, "C": 5.0}),
    ],
)
def test_equals_scikit_learn_at_tight_tolerance(ours, theirs, kind, weighted):
    X, y = friedman()
    w = np.random.default_rng(0).uniform(0.3, 2.0, len(y)) if weighted else None
    a, b = ours(tol=1e-9, **kind).fit(X, y, w), theirs(tol=1e-9, **kind).fit(X, y, w)
    assert a.status_ == "solved"
    # LIBSVM's cache is float32: the larger C, the fewer digits of its solution are right.
    np.testing.assert_allclose(a.predict(X), b.predict(X), atol=1e-5)
    np.testing.assert_allclose(full_coef(a, len(y)), _their_coef(b, len(y)), atol=1e-4 * kind.get("C", 1.0))
    np.testing.assert_allclose(a.intercept_, b.intercept_, atol=1e-5)
    for name in ("dual_coef_", "intercept_", "support_", "n_support_", "support_vectors_"):
        assert getattr(a, name).shape == getattr(b, name).shape, name
        assert getattr(a, name).dtype == getattr(b, name).dtype, name
    np.testing.assert_array_equal(a.support_, b.support_)
    assert isinstance(a.n_iter_, int) and a.shape_fit_ == b.shape_fit_


def _their_coef(model, n):
    coef = np.zeros(n)
    coef[model.support_] = model.dual_coef_[0]
    return coef


def test_parameters_defaults_and_signatures_are_scikit_learns():
    for ours, theirs in ((SVR, sklearn.svm.SVR), (NuSVR, sklearn.svm.NuSVR)):
        mine = ours().get_params()
        assert {k: mine[k] for k in theirs().get_params()} == theirs().get_params()


def test_coef_of_the_linear_kernel_is_scikit_learns():
    X, y = diabetes()
    a = SVR(kernel="linear", tol=1e-8, epsilon=0.3).fit(X, y)
    b = sklearn.svm.SVR(kernel="linear", tol=1e-8, epsilon=0.3).fit(X, y)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-4)
    np.testing.assert_allclose(X @ a.coef_[0] + a.intercept_, a.predict(X), atol=1e-10)
    with pytest.raises(AttributeError, match="linear"):
        SVR().fit(X, y).coef_  # noqa: B018


# -- the optimum -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["epsilon", "squared", "nu"])
def test_a_qp_solver_finds_the_same_machine(kind, seed):
    rng = np.random.default_rng(seed)
    n = 30
    X = rng.normal(size=(n, 2))
    X[::5] = X[1::5]  # equal points, opposite targets
    y = rng.normal(size=n) * 10 ** rng.uniform(-1, 1)
    w, C = rng.uniform(0.1, 3.0, n), 10 ** rng.uniform(-1, 1.5)
    epsilon = rng.uniform(0, 0.5)
    if kind == "nu":
        problem = dual.nu_svr(y, 0.4, C * w)
        model = NuSVR(nu=0.4, C=C, gamma=0.5, tol=1e-10).fit(X, y, w)
    elif kind == "squared":
        problem = dual.squared_epsilon_svr(y, epsilon, 0.5 / (C * w))
        model = SVR(C=C, epsilon=epsilon, loss=SQUARED, gamma=0.5, tol=1e-10).fit(X, y, w)
    else:
        problem = dual.epsilon_svr(y, epsilon, bounds=C * w)
        model = SVR(C=C, epsilon=epsilon, gamma=0.5, tol=1e-10).fit(X, y, w)
    K = rbf(X)
    u, best = reference(problem, K)
    assert model.status_ == "solved"
    np.testing.assert_allclose(K @ full_coef(model, n), K @ (u[:n] + u[n:]), atol=1e-6 * max(1.0, abs(best)))
    assert model.dual_gap_ <= 1e-6 * max(1.0, abs(best))


@pytest.mark.parametrize("tol", [1.0, 1e-1, 1e-3])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
def test_the_gap_bounds_primal_minus_optimal_value(loss, tol):
    X, y = friedman(150)
    kind = {"C": 10.0, "epsilon": 0.1, "loss": loss}
    rough, exact = SVR(tol=tol, **kind).fit(X, y), SVR(tol=1e-9, **kind).fit(X, y)
    squared = loss == SQUARED
    optimum = primal(exact, X, y, squared) - exact.dual_gap_
    coef = full_coef(rough, len(y))
    gamma = 1 / (X.shape[1] * X.var())
    half = 0.5 * coef @ rbf(X, gamma) @ coef
    dual_value = y @ coef - 0.1 * np.abs(coef).sum() - half
    if squared:
        dual_value -= 0.5 * (0.5 / 10.0) * (coef**2).sum()
    assert optimum - dual_value <= rough.dual_gap_ + 1e-7
    assert exact.dual_gap_ <= 1e-6


def test_sample_weight_two_is_a_row_twice_and_zero_a_row_removed():
    X, y = friedman(120)
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    repeated = np.repeat(np.arange(len(y)), w.astype(int))
    kind = {"gamma": 0.2, "tol": 1e-10}
    for model in (SVR(**kind), NuSVR(**kind), SVR(loss=SQUARED, **kind)):
        a = clone(model).fit(X, y, w).predict(X)
        b = clone(model).fit(X[repeated], y[repeated]).predict(X)
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_nu_finds_the_epsilon_with_which_svr_is_the_same_machine():
    X, y = friedman()
    nu = NuSVR(nu=0.4, C=2.0, tol=1e-9).fit(X, y)
    assert nu.epsilon_ > 0.05
    same = SVR(epsilon=nu.epsilon_, C=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(same.predict(X), nu.predict(X), atol=1e-6)
    outside = np.abs(y - nu.predict(X)) > nu.epsilon_ + 1e-6
    assert outside.mean() <= 0.4 <= len(nu.support_) / len(y)


def test_twins_are_never_both_in_use():
    X, y = friedman()
    problem = dual.epsilon_svr(y, 0.05, C=3.0)
    solution = solvers.Batch().solve(problem, Gram(X, gamma=0.2, dtype="float64"))
    assert not (solution.u[: len(y)] * solution.u[len(y) :]).any()


@pytest.mark.parametrize(
    "solver",
    ["smo", "smo-accelerated", "smo-first-order", "rosen", "rosen-conjugate", "simple", "simple-block"],
)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", SQUARED])
def test_every_solver_that_takes_the_dual_finds_the_same_machine(loss, solver):
    X, y = friedman(80)
    expected = SVR(C=3.0, tol=1e-9, loss=loss).fit(X, y)
    model = SVR(C=3.0, tol=1e-7, loss=loss, solver=solver).fit(X, y)
    assert model.status_ == "solved"
    np.testing.assert_allclose(model.predict(X), expected.predict(X), atol=1e-5)


@pytest.mark.parametrize("solver", ["smo", "rosen-conjugate"])
def test_solvers_for_several_groups_train_nu(solver):
    X, y = friedman(80)
    expected = NuSVR(nu=0.3, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        NuSVR(nu=0.3, tol=1e-7, solver=solver).fit(X, y).predict(X), expected.predict(X), atol=1e-5
    )


@pytest.mark.parametrize("solver", ["mdm", "npa", "gilbert", "geometric", "direct", "maxminover"])
@pytest.mark.parametrize("model", [SVR(loss=SQUARED), SVR(), NuSVR()])
def test_solvers_that_cannot_name_those_that_can(model, solver):
    X, y = friedman(30)
    with pytest.raises(ValueError, match=r"cannot train .*VR.*smo"):
        clone(model).set_params(solver=solver).fit(X, y)


# -- hard tubes ------------------------------------------------------------------------------------


def test_a_hard_tube_holds_all_residuals_and_its_gap_is_small():
    X, y = friedman(100)
    model = SVR(C=np.inf, epsilon=0.2, tol=1e-6).fit(X, y)
    assert model.status_ == "solved"
    assert np.abs(y - model.predict(X)).max() <= 0.2 + 1e-6
    large = SVR(C=1e6, epsilon=0.2, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.predict(X), large.predict(X), atol=1e-4)
    assert 0 <= model.dual_gap_ <= 1e-3


def test_the_gap_of_a_hard_tube_is_that_of_the_widened_machine():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 2)), rng.normal(size=12)
    K, n = rbf(X), 12
    narrow = dual.epsilon_svr(y, 0.05, C=np.inf)
    u = narrow.repair(0.3 * rng.normal(size=2 * n))
    g = dense_q(narrow, K) @ u - narrow.p
    residual = y - K @ (u[:n] + u[n:])
    wide = dual.epsilon_svr(y, 0.5 * np.ptp(residual), C=np.inf)
    _, best = reference(wide, K)
    Q = dense_q(wide, K)
    distance = 0.5 * u @ Q @ u - wide.p @ u - best
    assert np.isfinite(narrow.gap(u, g))
    assert narrow.gap(u, g) >= distance - 1e-9


def test_a_tube_that_no_function_fits_into_is_reported_soon():
    X, y = friedman(100)
    began = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="larger epsilon"):
        model = SVR(kernel="linear", C=np.inf, epsilon=0.01, max_time=20).fit(X, y)
    assert model.status_ == "infeasible"
    assert time.perf_counter() - began < 15


def test_nu_without_bounds_is_refused():
    with pytest.raises(ValueError, match="finite"):
        NuSVR(C=np.inf).fit(*friedman(20))


# -- degenerate data -------------------------------------------------------------------------------


def test_a_tube_wider_than_the_targets_predicts_the_middle():
    X, y = friedman(50)
    a, b = SVR(epsilon=10.0).fit(X, y), sklearn.svm.SVR(epsilon=10.0).fit(X, y)
    assert a.n_support_.tolist() == [0] and a.support_vectors_.shape == b.support_vectors_.shape
    np.testing.assert_allclose(a.predict(X), 0.5 * (y.min() + y.max()))
    np.testing.assert_allclose(a.intercept_, b.intercept_)


@pytest.mark.parametrize("model", [SVR(), SVR(epsilon=0.0), SVR(C=np.inf), NuSVR(), SVR(loss=SQUARED)])
def test_constant_targets_and_single_rows_are_predicted(model):
    X, _ = friedman(20)
    np.testing.assert_allclose(clone(model).fit(X, np.full(20, 3.5)).predict(X), 3.5, atol=1e-3)
    np.testing.assert_allclose(clone(model).fit(X[:1], [7.0]).predict(X), 7.0, atol=1e-9)


def test_opposite_targets_on_equal_points_meet_in_the_middle():
    X, y = np.zeros((10, 1)), np.tile([1.0, -1.0], 5)
    np.testing.assert_allclose(SVR(gamma=1.0).fit(X, y).predict(X), 0.0, atol=1e-3)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_scaling_targets_tube_c_and_tolerance_scales_the_machine(unit):
    X, y = friedman()
    a = SVR(C=1.0, epsilon=0.1, tol=1e-5).fit(X, y).predict(X)
    b = SVR(C=unit, epsilon=0.1 * unit, tol=1e-5 * unit).fit(X, unit * y).predict(X)
    np.testing.assert_allclose(b / unit, a, atol=1e-4)


@pytest.mark.parametrize("C", [1e-8, 1e6])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_extreme_c_ends_with_a_status_and_finite_numbers(kernel, C):
    X, y = friedman(300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVR(kernel=kernel, C=C, max_time=5).fit(X, y)
    assert model.status_ in ("solved", "stalled", "max_time", "max_iter")
    assert np.isfinite(model.predict(X)).all() and np.isfinite(model.dual_gap_)


def test_a_rank_deficient_kernel_is_solved():
    X, y = friedman(400)
    model = SVR(kernel="linear", C=1.0, tol=1e-5).fit(X[:, :2], y)
    assert model.status_ == "solved" and model.dual_gap_ < 1e-2


# -- input -----------------------------------------------------------------------------------------


def test_sparse_precomputed_callable_and_float32_agree_with_dense():
    X, y = friedman()
    X = np.maximum(X, 0.0)
    kind = {"gamma": 0.2, "tol": 1e-7}
    expected = SVR(**kind).fit(X, y).predict(X)
    K = rbf(X, 0.2)
    sparse = SVR(**kind).fit(sp.csr_matrix(X), y)
    assert sp.issparse(sparse.dual_coef_) and sparse.dual_coef_.shape == (1, len(sparse.support_))
    for model, Z in (
        (sparse, sp.csr_matrix(X)),
        (SVR(kernel="precomputed", tol=1e-7).fit(K, y), K),
        (SVR(kernel=lambda A, B: rbf(np.vstack([A, B]), 0.2)[: len(A), len(A) :], tol=1e-7).fit(X, y), X),
        (SVR(**kind).fit(X.astype(np.float32), y.astype(np.float32)), X.astype(np.float32)),
    ):
        np.testing.assert_allclose(model.predict(Z), expected, atol=2e-4)


def test_frames_columns_and_integers_are_accepted():
    X, y = friedman(60)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = SVR().fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == list("abcdef")
    expected = SVR().fit(X, y).predict(X)
    np.testing.assert_allclose(model.predict(frame), expected)
    with pytest.warns(DataConversionWarning):
        column = SVR().fit(X, y[:, None])
    np.testing.assert_allclose(column.predict(X), expected)
    assert SVR().fit(X, np.arange(60)).predict(X).dtype == np.float64


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.full(20, np.nan), "NaN"),
        (np.array(["a"] * 20), "number"),
    ],
)
def test_targets_that_are_none_are_refused(y, message):
    X, _ = friedman(20)
    for kernel in ("rbf", lambda A, B: A @ B.T):
        with pytest.raises(ValueError, match=message):
            SVR(kernel=kernel).fit(X, y)


@pytest.mark.parametrize("bad", [{"epsilon": -0.1}, {"C": 0.0}, {"loss": "hinge"}, {"solver": 3}])
def test_bad_parameters_are_refused_in_fit(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SVR(**bad).fit(*friedman(20))


# -- the run ---------------------------------------------------------------------------------------


def test_budgets_end_with_a_status_and_a_true_gap():
    X, y = friedman(400)
    for kind, status in (({"max_iter": 5}, "max_iter"), ({"max_time": 0.0}, "max_time")):
        with pytest.warns(ConvergenceWarning, match=status):
            model = SVR(C=100.0, tol=1e-7, **kind).fit(X, y)
        assert model.status_ == status and model.fit_status_ == 1
        best = SVR(C=100.0, tol=1e-7).fit(X, y)
        assert model.dual_gap_ >= primal(best, X, y) - best.dual_gap_ - _dual_value(model, X, y) - 1e-6


def _dual_value(model, X, y):
    coef = full_coef(model, len(y))
    K = rbf(X, 1 / (X.shape[1] * X.var()))
    return y @ coef - model.epsilon * np.abs(coef).sum() - 0.5 * coef @ K @ coef


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
def test_ctrl_c_keeps_the_best_so_far():
    X, y = friedman(3000)
    timer = threading.Timer(1.0, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    timer.start()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SVR(C=1e6, epsilon=0.0, tol=1e-9, solver="smo-first-order", max_time=60).fit(X, y)
    timer.join()
    assert model.status_ == "interrupted" and np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("model", [SVR(tol=1e-6), NuSVR(tol=1e-6), SVR(tol=1e-6, loss=SQUARED)])
def test_a_warm_start_saves_steps_and_changes_nothing_else(model):
    X, y = friedman(300)
    model = clone(model).set_params(warm_start=True, C=5.0).fit(X, y)
    cold = model.n_iter_
    expected = model.predict(X)
    assert model.fit(X, y).n_iter_ < 0.2 * cold
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)
    other = model.set_params(C=8.0).fit(X, y).predict(X)
    np.testing.assert_allclose(clone(model).fit(X, y).predict(X), other, atol=1e-4)
    assert model.fit(X[:200], y[:200]).shape_fit_ == (200, X.shape[1])


def test_a_model_survives_pickling_and_works_in_a_pipeline():
    X, y = friedman()
    pipeline = make_pipeline(StandardScaler(), SVR(C=10.0)).fit(X, y)
    again = pickle.loads(pickle.dumps(pipeline))
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    assert pipeline.score(X, y) > 0.8


def test_large_problems_use_float32_rows_and_reach_the_tolerance_in_float64():
    X, y = friedman(2500)
    model = SVR(C=10.0, epsilon=0.1).fit(X, y)
    gram = Gram(X, gamma=1 / (X.shape[1] * X.var()), dtype="float64")
    coef = full_coef(model, len(y))
    problem = dual.epsilon_svr(y, 0.1, C=10.0)
    u = np.concatenate([np.maximum(coef, 0), np.minimum(coef, 0)])
    assert problem.violation(u, problem.gradient(u, gram)) <= 1e-3
    assert model.status_ == "solved"


def test_the_course_of_the_run_is_kept():
    X, y = friedman(100)
    model = SVR(C=10.0).fit(X, y)
    assert len(model.trace_) == 1 and model.trace_[0][-1].violation <= 1e-3
    assert model.n_kernel_calls_ > 0


def test_a_callback_sees_checkpoints_and_can_end_the_run():
    pytest.importorskip("sklearn.callback")

    class Counter:
        max_propagation_depth = None
        ends = 0

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.ends += context.task_name == "checkpoint"
            return self.ends >= 2

    X, y = friedman(3000)
    counter = Counter()
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SVR(C=100.0).set_callbacks(counter).fit(X, y)
    assert model.status_ == "interrupted" and counter.ends == 2


@pytest.mark.parametrize("seed", [0, 4, 11])
def test_a_kernel_that_rounding_makes_indefinite_does_not_end_far_away(seed):
    # Values of 1e18, which are right to 100: pair steps without bounds would go on for ever.
    rng = np.random.default_rng(seed)
    X, y = 1.5 * rng.normal(size=(13, 3)), rng.normal(size=13)
    model = SVR(kernel="poly", coef0=1e6, gamma=0.05, C=4.8, epsilon=0.5, tol=1e-9)
    model.set_params(loss="squared_epsilon_insensitive")
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.status_ == "stalled"
    assert 0 < np.abs(model.dual_coef_).max() < 1e3
    assert model.dual_gap_ < 1e9
