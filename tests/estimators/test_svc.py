import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_classification,
    make_moons,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, NuSVC, dual, solvers
from maxmargin.gram.gram import Gram

LOADERS = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer, "digits": load_digits}


def data(name):
    X, y = LOADERS[name](return_X_y=True)
    # Equal rows (iris has some) share their coefficient in any proportion.
    first = np.sort(np.unique(X, axis=0, return_index=True)[1])[:600]
    return StandardScaler().fit_transform(X[first]), y[first]


def weights(y):
    return np.random.default_rng(0).uniform(0.5, 2.0, len(y))


def assert_same_model(ours, theirs, X, *, rtol=1e-6):
    expected = theirs.decision_function(X)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(ours.decision_function(X), expected, atol=rtol * scale)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for name in ("support_", "n_support_", "classes_", "class_weight_"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name), err_msg=name)
        assert getattr(ours, name).dtype == getattr(theirs, name).dtype, name
    for name in ("dual_coef_", "intercept_", "support_vectors_"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert a.shape == b.shape, name
        a, b = (x.toarray() if sp.issparse(x) else x for x in (a, b))
        np.testing.assert_allclose(a, b, atol=1e-4 * max(1.0, np.abs(b).max(initial=0)), err_msg=name)
    assert ours.n_iter_.shape == theirs.n_iter_.shape
    assert ours.fit_status_ == theirs.fit_status_ == 0
    assert ours.shape_fit_ == theirs.shape_fit_


# -- equal to scikit-learn ---------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
@pytest.mark.parametrize("name", list(LOADERS))
def test_equals_scikit_learn_at_tight_tolerance(name, kernel, weighted):
    X, y = data(name)
    w = weights(y) if weighted else None
    kind = {"kernel": kernel, "tol": 1e-9, "class_weight": "balanced" if weighted else None}
    assert_same_model(SVC(**kind).fit(X, y, w), sklearn.svm.SVC(**kind).fit(X, y, w), X)


@pytest.mark.parametrize("name", list(LOADERS))
def test_nu_svc_equals_scikit_learn_at_tight_tolerance(name):
    X, y = data(name)
    w = weights(y)
    ours, theirs = (cls(nu=0.15, tol=1e-9).fit(X, y, w) for cls in (NuSVC, sklearn.svm.NuSVC))
    assert_same_model(ours, theirs, X)


@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_squared_hinge_equals_linear_svc(name):
    X, y = data(name)
    y = y == y[0]
    # LinearSVC penalises its intercept; a large scaling makes that penalty vanish.
    theirs = sklearn.svm.LinearSVC(C=0.1, tol=1e-12, max_iter=10**6, intercept_scaling=1e4, dual=False).fit(
        X, y
    )
    ours = SVC(kernel="linear", loss="squared_hinge", C=0.1, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5 * np.abs(theirs.coef_).max())
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-4)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("name", list(LOADERS))
def test_default_tolerance_is_no_worse_than_scikit_learn(name, kernel):
    X, y = data(name)
    y = (y == y[0]).astype(int)
    ours, theirs = (cls(kernel=kernel, C=10.0).fit(X, y) for cls in (SVC, sklearn.svm.SVC))
    problem = dual.c_svc(np.where(y == 1, 1, -1), C=10.0)
    gram = Gram(X, kernel, gamma="scale", dtype="float64")

    def objective(model):
        u = np.zeros(len(y))
        u[model.support_] = model.dual_coef_[0]
        return problem.objective(u, problem.gradient(u, gram))

    best = objective(theirs)
    assert objective(ours) <= best + 1e-4 * abs(best)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_sparse_input_gives_the_model_of_dense_input(kind, index):
    X, y = data("digits")
    X = np.where(np.abs(X) > 1.0, X, 0.0)
    S = kind(X)
    if hasattr(S, "indptr"):
        S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
    dense, sparse = SVC(gamma=0.01).fit(X, y), SVC(gamma=0.01).fit(S, y)
    np.testing.assert_allclose(
        sparse.decision_function(S), dense.decision_function(X), atol=2e-3, err_msg="decision"
    )
    assert sp.issparse(sparse.dual_coef_) and sp.issparse(sparse.support_vectors_)
    np.testing.assert_allclose(sparse.decision_function(X), sparse.decision_function(S))
    with pytest.raises(ValueError, match="sparse input"):
        dense.predict(S)


def test_sparse_models_equal_scikit_learns():
    X, y = data("wine")
    S = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    for kernel in ("rbf", "linear"):
        ours, theirs = (cls(kernel=kernel, tol=1e-9).fit(S, y) for cls in (SVC, sklearn.svm.SVC))
        assert_same_model(ours, theirs, S)
    assert sp.issparse(ours.coef_)
    np.testing.assert_allclose(ours.coef_.toarray(), theirs.coef_.toarray(), atol=1e-5)
    assert type(ours.dual_coef_) is type(theirs.dual_coef_)


def test_explicit_zeros_and_unsorted_indices_change_nothing():
    X, y = data("wine")
    S = sp.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0))
    odd = sp.csr_matrix(
        (
            np.concatenate([[0.0], S.data])[np.r_[1 : len(S.data) + 1]],
            S.indices,
            S.indptr,
        ),
        S.shape,
    )
    odd.data[:3] = 0.0
    clean = odd.copy()
    clean.eliminate_zeros()
    for i in range(odd.shape[0]):
        part = slice(odd.indptr[i], odd.indptr[i + 1])
        odd.indices[part] = odd.indices[part][::-1].copy()
        odd.data[part] = odd.data[part][::-1].copy()
    odd.has_sorted_indices = False
    before = odd.indices.copy()
    a, b = SVC(gamma=0.1).fit(odd, y), SVC(gamma=0.1).fit(clean, y)
    np.testing.assert_allclose(a.decision_function(clean), b.decision_function(clean), atol=1e-6)
    np.testing.assert_array_equal(odd.indices, before, err_msg="the caller's matrix was changed")


@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_precomputed_and_callable_kernels_equal_the_named_one(name):
    X, y = data(name)

    def kernel(A, B):
        return np.asarray(A) @ np.asarray(B).T

    named = SVC(kernel="linear", tol=1e-9).fit(X, y)
    K = X @ X.T
    for model, Z in (
        (SVC(kernel="precomputed", tol=1e-9).fit(K, y), K),
        (SVC(kernel=kernel, tol=1e-9).fit(X, y), X),
    ):
        np.testing.assert_allclose(model.decision_function(Z), named.decision_function(X), atol=1e-6)
        theirs = sklearn.svm.SVC(kernel=model.kernel, tol=1e-9).fit(Z, y)
        np.testing.assert_array_equal(model.support_, theirs.support_)
        assert model.support_vectors_.size == 0
        with pytest.raises(AttributeError, match="linear"):
            _ = model.coef_


def test_callable_kernels_take_any_data():
    words = ["aa", "ab", "ba", "bb", "aab", "bba"] * 3
    y = [w.count("a") > w.count("b") for w in words]

    def shared(A, B):
        return np.array([[sum(c in z for c in x) for z in B] for x in A], dtype=float)

    model = SVC(kernel=shared).fit(words, y)
    assert model.predict(words[:4]).shape == (4,)


def test_linear_coef_is_read_only_and_equals_scikit_learns():
    X, y = data("iris")
    ours, theirs = (cls(kernel="linear", tol=1e-9).fit(X, y) for cls in (SVC, sklearn.svm.SVC))
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    with pytest.raises(ValueError, match="read-only"):
        ours.coef_[0, 0] = 1.0
    with pytest.raises(AttributeError):
        ours.coef_ = 1.0


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_decision_function_shape_and_ties_follow_scikit_learn(shape):
    X, y = data("wine")
    kind = {"decision_function_shape": shape, "tol": 1e-9, "break_ties": shape == "ovr"}
    ours, theirs = SVC(**kind).fit(X, y), sklearn.svm.SVC(**kind).fit(X, y)
    grid = np.random.default_rng(1).normal(scale=3.0, size=(500, X.shape[1]))
    np.testing.assert_allclose(ours.decision_function(grid), theirs.decision_function(grid), atol=1e-5)
    np.testing.assert_array_equal(ours.predict(grid), theirs.predict(grid))


def test_break_ties_needs_ovr():
    X, y = data("wine")
    model = SVC(decision_function_shape="ovo", break_ties=True).fit(X, y)
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.predict(X)


# -- what users bring --------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [["no", "yes"], [False, True], [-3, 7], [1.0, 2.0]])
def test_labels_of_any_kind_come_back(labels):
    X, y = make_moons(100, noise=0.1, random_state=0)
    target = np.array(labels)[y]
    model = SVC(C=100.0, gamma=2.0).fit(X, target)
    assert model.predict(X).dtype == target.dtype
    assert (model.predict(X) == target).all()
    assert list(model.classes_) == sorted(labels)


def test_pandas_frames_keep_their_feature_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SVC().fit(X, y.map({0: "a", 1: "b", 2: "c"}))
    assert list(model.feature_names_in_) == list(X.columns)
    assert set(model.predict(X)) == {"a", "b", "c"}
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X.rename(columns={X.columns[0]: "other"}))
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X.to_numpy())


def test_float32_input_is_taken_as_it_is():
    X, y = data("cancer")
    a = SVC(gamma=0.05).fit(X.astype(np.float32), y)
    b = SVC(gamma=0.05).fit(X, y)
    assert a.support_vectors_.dtype == np.float32
    assert np.abs(a.decision_function(X) - b.decision_function(X)).max() < 5e-3


def test_pickle_and_clone_round_trip():
    X, y = data("wine")
    model = SVC(C=3.0, n_jobs=2).fit(X, y)
    before = model.decision_function(X)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), before)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    assert not hasattr(fresh, "support_")


def test_pipelines_and_grid_search_work():
    X, y = load_breast_cancer(return_X_y=True)
    pipe = make_pipeline(StandardScaler(), SVC())
    search = GridSearchCV(pipe, {"svc__C": [0.1, 1.0], "svc__gamma": [0.01, "scale"]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.95
    K = X @ X.T / 1e6
    assert cross_val_score(SVC(kernel="precomputed"), K, y, cv=3).mean() > 0.85


def test_sample_weight_is_routed():
    X, y = data("cancer")
    w = weights(y)
    with config_context(enable_metadata_routing=True):
        model = SVC(tol=1e-9).set_fit_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model).fit(
            X, y, sample_weight=w
        )
    direct = SVC(tol=1e-9).fit(StandardScaler().fit_transform(X), y, w)
    np.testing.assert_allclose(pipe[-1].intercept_, direct.intercept_)


@pytest.mark.parametrize("estimator", [SVC(tol=1e-9), NuSVC(nu=0.2, tol=1e-9)])
def test_weight_zero_equals_a_removed_row(estimator):
    X, y = data("wine")
    w = weights(y)
    w[::3] = 0.0
    keep = w > 0
    a, b = clone(estimator).fit(X, y, w), clone(estimator).fit(X[keep], y[keep], w[keep])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-7)
    np.testing.assert_array_equal(a.support_, np.flatnonzero(keep)[b.support_])
    # a class without weight is a class without rows
    w = np.where(y == 1, 0.0, 1.0)
    assert list(SVC().fit(X, y, w).classes_) == [0, 2]
    # negative weights count as zero, as in scikit-learn
    np.testing.assert_array_equal(SVC().fit(X, y, w - (y == 1)).classes_, [0, 2])


def test_weights_scale_c():
    X, y = data("cancer")
    a = SVC(C=0.5, tol=1e-9).fit(X, y, np.full(len(y), 4.0))
    b = SVC(C=2.0, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)


def test_input_is_never_modified():
    X, y = data("cancer")
    w = weights(y)
    copies = X.copy(), y.copy(), w.copy()
    X.flags.writeable = False
    SVC(C=10.0).fit(X, y, w).predict(X)
    for now, before in zip((X, y, w), copies, strict=True):
        np.testing.assert_array_equal(now, before)


def test_read_only_and_fortran_and_strided_input():
    X, y = data("cancer")
    expected = SVC().fit(X, y).intercept_
    for Z in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        np.testing.assert_allclose(SVC().fit(Z, y).intercept_, expected, atol=1e-5)


# -- more than scikit-learn --------------------------------------------------------------------


@pytest.mark.parametrize(
    "solver", ["auto", "batch", "smo", "smo-accelerated", "smo-first-order", solvers.SMO()]
)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_every_solver_trains_the_same_machine(solver, loss):
    X, y = data("wine")
    a = SVC(loss=loss, solver=solver, tol=1e-8).fit(X, y)
    b = SVC(loss=loss, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-6)


def test_fitted_attributes_tell_how_training_went():
    X, y = data("wine")
    model = SVC().fit(X, y)
    assert model.status_ == "solved" and model.fit_status_ == 0
    assert model.dual_gap_.shape == (3,) and (model.dual_gap_ >= 0).all()
    assert 0 < model.n_kernel_evals_ <= 3 * len(y) ** 2
    assert model.n_kernel_calls_ >= model.n_kernel_evals_ > 0
    assert len(model.trace_) == 3 and model.trace_[0][-1].violation <= model.tol
    assert (model.n_iter_ >= 1).all()


def test_gap_bounds_the_distance_to_a_tight_solution():
    X, y = data("cancer")
    problem = dual.c_svc(np.where(y == 1, 1, -1), C=1.0)
    gram = Gram(X, gamma=0.05, dtype="float64")

    def objective(model):
        u = np.zeros(len(y))
        u[model.support_] = model.dual_coef_[0]
        return problem.objective(u, problem.gradient(u, gram))

    tight = objective(SVC(gamma=0.05, tol=1e-10).fit(X, y))
    for tol in (1.0, 0.1, 1e-3):
        loose = SVC(gamma=0.05, tol=tol).fit(X, y)
        assert 0 <= objective(loose) - tight <= loose.dual_gap_[0]


def test_warm_start_continues_from_the_previous_solution():
    X, y = make_classification(600, 10, random_state=0)
    model = SVC(C=1.0, warm_start=True, tol=1e-6).fit(X, y)
    cold = model.n_iter_[0]
    assert model.fit(X, y).n_iter_[0] <= 2
    for C in (1.5, 0.7):
        model.set_params(C=C).fit(X, y)
        fresh = SVC(C=C, tol=1e-6).fit(X, y)
        assert model.n_iter_[0] < fresh.n_iter_[0] <= 2 * cold
        np.testing.assert_allclose(model.decision_function(X), fresh.decision_function(X), atol=1e-4)
    # other data: a cold start, not an error
    assert model.fit(X[:300], y[:300]).status_ == "solved"
    assert model.set_params(C=np.inf).fit(*make_moons(600, random_state=0)).fit_status_ == 0


def test_budgets_end_the_fit_with_a_warning_that_says_what_to_do():
    X, y = make_classification(2000, 20, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter") as caught:
        model = SVC(C=1e3, max_iter=10).fit(X, y)
    assert model.status_ == "max_iter" and model.fit_status_ == 1 and len(caught) == 1
    assert model.n_iter_[0] <= 10
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(C=1e6, max_time=0.0).fit(X, y)
    assert model.status_ == "max_time"
    assert model.predict(X).shape == y.shape
    digits = load_digits(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="of 45 class pairs"):
        assert SVC(max_iter=1).fit(*digits).status_ == "max_iter"


def test_verbose_prints_a_table_also_into_a_pipe(capsys):
    X, y = data("iris")
    SVC(verbose=True).fit(X, y)
    out = capsys.readouterr().out
    assert "violation" in out and "0 / 2" in out and "SVC" in out and "relative gap" in out


def test_scikit_learns_callbacks_are_called_and_can_stop_the_fit():
    callback = pytest.importorskip("sklearn.callback")

    class Counter:
        def __init__(self, stop_after):
            self.ends, self.stop_after = 0, stop_after

        def setup(self, estimator, context):
            self.open = True

        def teardown(self, estimator, context):
            self.open = False

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.ends += context.task_name == "checkpoint"
            return self.ends >= self.stop_after

    X, y = make_classification(5000, 20, flip_y=0.3, random_state=0)  # too many for one compiled call
    counter = Counter(10**9)
    model = SVC(C=100.0).set_callbacks(counter).fit(X, y)
    assert counter.ends >= 2 and not counter.open and model.status_ == "solved"
    counter = Counter(2)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = SVC(C=100.0).set_callbacks(counter).fit(X, y)
    assert model.status_ == "interrupted" and counter.ends == 2
    assert SVC().set_callbacks(callback.ProgressBar()).fit(*data("iris")).status_ == "solved"


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("solver", ["auto", "smo"])
def test_every_task_that_callbacks_see_begin_also_ends(solver, n_jobs):
    pytest.importorskip("sklearn.callback")

    class Tasks:
        def __init__(self):
            self.begun, self.ended = [], []

        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            self.begun.append(context.task_name)

        def on_fit_task_end(self, estimator, context):
            self.ended.append(context.task_name)
            return False

    tasks = Tasks()
    X, y = data("iris")
    SVC(solver=solver, n_jobs=n_jobs).set_callbacks(tasks).fit(np.tile(X, (20, 1)), np.tile(y, 20))
    assert sorted(tasks.begun) == sorted(tasks.ended)
    assert tasks.begun[0] == tasks.ended[-1] == "fit"
    if solver == "smo":
        assert sum(name.startswith("problem") for name in tasks.ended) == 3


def test_a_solver_of_a_third_party_can_be_registered(monkeypatch):
    from maxmargin.solvers import registry

    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    solvers.register("slow", lambda: solvers.SMO("first-order", prefetch=0))
    X, y = data("iris")
    np.testing.assert_array_equal(SVC(solver="slow").fit(X, y).predict(X), SVC().fit(X, y).predict(X))


# -- never hangs, never lies -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"C": -1.0}, "'C' parameter"),
        ({"C": 0.0}, "'C' parameter"),
        ({"C": np.nan}, "C"),
        ({"kernel": "gauss"}, "'kernel' parameter"),
        ({"gamma": -0.1}, "'gamma' parameter"),
        ({"gamma": "wide"}, "'gamma' parameter"),
        ({"degree": -1}, "'degree' parameter"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"loss": "logistic"}, "'loss' parameter"),
        ({"solver": "magic"}, "Unknown solver 'magic'"),
        ({"solver": 3}, "'solver' parameter"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"max_time": -1}, "'max_time' parameter"),
        ({"max_iter": -2}, "'max_iter' parameter"),
        ({"cache_size": 0}, "'cache_size' parameter"),
        ({"class_weight": "auto"}, "'class_weight' parameter"),
        ({"decision_function_shape": "ova"}, "'decision_function_shape' parameter"),
        ({"probability": "yes"}, "'probability' parameter"),
        ({"class_weight": {0: -1.0, 1: 1.0}}, "class_weight"),
    ],
)
def test_bad_parameters_are_named(parameters, match):
    X, y = make_moons(40, random_state=0)
    with pytest.raises(ValueError, match=match):
        SVC(**parameters).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_refused(bad):
    X, y = make_moons(40, random_state=0)
    X[3, 1] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        SVC().fit(X, y)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        SVC().fit(sp.csr_matrix(X), y)
    model = SVC().fit(*make_moons(40, random_state=0))
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.predict(X)


def test_wrong_shapes_are_refused():
    X, y = make_moons(40, random_state=0)
    with pytest.raises(ValueError, match="inconsistent"):
        SVC().fit(X, y[:-1])
    with pytest.raises(ValueError, match="2D array"):
        SVC().fit(X[:, 0], y)
    with pytest.raises(ValueError, match="0 sample"):
        SVC().fit(X[:0], y[:0])
    with pytest.raises(ValueError, match="got 1 class"):
        SVC().fit(X, np.ones(40))
    with pytest.raises(ValueError, match="same class"):
        SVC().fit(X, y, sample_weight=y.astype(float))
    with pytest.raises(ValueError, match="weights"):
        SVC().fit(X, y, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="square matrix"):
        SVC(kernel="precomputed").fit(X, y)
    with pytest.raises(TypeError, match="precomputed"):
        SVC(kernel="precomputed").fit(sp.eye(40).tocsr(), y)
    with pytest.raises(ValueError, match="40"):
        SVC(kernel="precomputed").fit(X @ X.T, y).predict(np.ones((2, 39)))
    with pytest.raises(ValueError, match="continuous"):
        SVC().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="infeasible"):
        NuSVC(nu=0.9).fit(X, np.arange(40) < 10)
    with pytest.raises(ValueError, match="shape"):
        SVC(kernel=lambda A, B: np.ones((1, 1))).fit(X, y)


def test_altered_models_are_noticed():
    X, y = data("iris")
    model = SVC().fit(X, y)
    model.n_support_[0] += 1
    with pytest.raises(ValueError, match="altered"):
        model.predict(X)


def test_hard_margin_separates_with_margin_one():
    X, y = make_moons(200, noise=0.05, random_state=0)
    model = SVC(C=np.inf, gamma=2.0, tol=1e-6).fit(X, y)
    assert model.status_ == "solved"
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    assert margin.min() == pytest.approx(1.0, abs=1e-4)
    soft = SVC(C=1e6, gamma=2.0, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), soft.decision_function(X), atol=1e-2)
    assert SVC(C=np.inf, kernel="linear", loss="squared_hinge").fit([[0.0], [2.0]], [0, 1]).coef_[
        0, 0
    ] == pytest.approx(1.0)


def test_hard_margin_without_a_margin_is_reported_as_infeasible():
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    with pytest.warns(ConvergenceWarning, match="finite C"):
        model = SVC(C=np.inf).fit(X, [0, 0, 1, 1])
    assert model.status_ == "infeasible"
    assert np.isfinite(model.decision_function(X)).all()
    X, y = make_classification(200, 5, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="finite C"):
        assert SVC(C=np.inf, kernel="linear").fit(X, y).status_ == "infeasible"


def nasty_problems():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)
    yield "unscaled", X * 1e6, y
    yield "tiny", X * 1e-6, y
    yield "offset", X + 1e6, y
    yield "constant feature", np.c_[X, np.full(60, 3.0)], y
    yield "all constant", np.ones((20, 2)), np.arange(20) % 2
    yield "duplicates", np.repeat(X[:10], 6, axis=0), np.repeat(y[:10], 6)
    yield "opposite labels", np.repeat(X[:30], 2, axis=0), np.tile([0, 1], 30)
    yield "rank deficient", np.c_[X, X @ rng.normal(size=(4, 4))], y
    yield "two rows", np.array([[0.0], [1.0]]), np.array([0, 1])
    yield "two equal rows", np.zeros((2, 1)), np.array([0, 1])


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e9])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "sigmoid", "laplacian"])
@pytest.mark.parametrize(("X", "y"), [p[1:] for p in nasty_problems()], ids=[p[0] for p in nasty_problems()])
def test_nasty_problems_end_with_a_status_and_a_true_gap(X, y, kernel, C):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(kernel=kernel, C=C, max_iter=200_000).fit(X, y)
    assert model.status_ in ("solved", "max_iter", "stalled")
    assert (model.dual_gap_ >= 0).all()
    assert np.isfinite(model.decision_function(X)).all()
    assert model.predict(X).shape == y.shape


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(4, 40),
    d=st.integers(1, 5),
    C=st.floats(1e-3, 1e3),
    gamma=st.floats(1e-3, 10.0),
    seed=st.integers(0, 10**6),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
)
def test_kkt_conditions_hold(n, d, C, gamma, seed, loss):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).round(1)
    y = rng.integers(0, 2, n)
    y[:2] = [0, 1]
    model = SVC(C=C, gamma=gamma, loss=loss, tol=1e-6).fit(X, y)
    assert model.status_ == "solved"
    sign = np.where(y == 1, 1, -1)
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    assert abs((sign * alpha).sum()) <= 1e-9 * max(1.0, alpha.sum())
    margin = sign * model.decision_function(X)
    slack = 1e-5
    if loss == "hinge":
        assert alpha.max() <= C * (1 + 1e-12)
        assert (margin[alpha <= 0] >= 1 - slack).all()
        assert (margin[alpha >= C] <= 1 + slack).all()
        free = (alpha > 0) & (alpha < C)
        np.testing.assert_allclose(margin[free], 1.0, atol=slack)
    else:
        np.testing.assert_allclose(alpha, 2 * C * np.maximum(0.0, 1 - margin), atol=slack * max(1.0, 2 * C))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_order_of_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3))
    y = rng.integers(0, 3, 50)
    y[:3] = [0, 1, 2]
    order = rng.permutation(50)
    a = SVC(C=5.0, tol=1e-8).fit(X, y)
    b = SVC(C=5.0, tol=1e-8).fit(X[order], y[order])
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-5)


# -- resources ---------------------------------------------------------------------------------


def test_ctrl_c_keeps_the_best_solution_so_far():
    script = """
import os, signal, threading, warnings
import numpy as np
from sklearn.datasets import make_classification
from maxmargin import SVC
X, y = make_classification(12000, 20, n_informative=15, flip_y=0.3, n_classes=3, random_state=0)
SVC().fit(X[:600], y[:600])
threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model = SVC(C=1e5, gamma=0.005, tol=1e-7).fit(X, y)
assert model.status_ == "interrupted", model.status_
assert any("interrupted" in str(w.message) for w in caught)
assert np.isfinite(model.decision_function(X)).all() and (model.dual_gap_ >= 0).all()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
print("kept")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "kept", done.stderr


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("rows", "cache"), [(15_000, 20), (6000, 200)])
def test_peak_memory_is_data_and_cache_and_a_little(rows, cache):
    script = f"""
from pathlib import Path
import numpy as np
from maxmargin import SVC
from maxmargin.solvers import registry
def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024
rng = np.random.default_rng(0)
X = rng.normal(size=({rows}, 40))
y = (np.abs(X[:, 0]) + X[:, 1] > 0.5).astype(int)
SVC().fit(X[:700], y[:700])
before = peak()
SVC(C=10.0, cache_size={cache}, n_jobs=2).fit(X, y).predict(X)
print(peak() - before)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200)
    assert float(done.stdout) <= rows * 40 * 8 / 2**20 + cache + 300, done.stderr
