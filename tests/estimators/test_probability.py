import inspect
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, make_classification
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, NuSVC, solvers
from maxmargin.estimators import _cross_fit
from maxmargin.model_selection import SVMSearchCV

pytestmark = pytest.mark.filterwarnings("ignore:The `probability` parameter", "ignore:Attribute `prob")


def data(name="cancer"):
    X, y = {"cancer": load_breast_cancer, "iris": load_iris, "digits": load_digits}[name](return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[:500]
    return StandardScaler().fit_transform(X[order]), y[order]


@pytest.mark.parametrize("name", ["cancer", "iris", "digits"])
@pytest.mark.parametrize(("ours", "theirs"), [(SVC, sklearn.svm.SVC), (NuSVC, sklearn.svm.NuSVC)])
def test_the_log_loss_is_that_of_scikit_learn(name, ours, theirs):
    X, y = data(name)
    options = {} if ours is SVC else {"nu": 0.2}
    h = 2 * len(y) // 3
    losses = []
    for model in (ours(probability=True, **options), theirs(probability=True, random_state=0, **options)):
        model.fit(X[:h], y[:h])
        p = model.predict_proba(X[h:])
        np.testing.assert_allclose(p.sum(axis=1), 1.0)
        losses.append(log_loss(y[h:], p))
        assert model.probA_.shape == model.probB_.shape == model.intercept_.shape
        assert (model.probA_ < 0).all()
    assert losses[0] == pytest.approx(losses[1], abs=0.05)


@pytest.mark.parametrize("name", ["cancer", "iris"])
@pytest.mark.parametrize("model", [SVC(C=3.0), SVC(loss="squared_hinge"), NuSVC(nu=0.2)], ids=str)
def test_held_out_values_are_those_of_models_that_have_not_seen_the_rows(monkeypatch, name, model):
    monkeypatch.setattr(_cross_fit, "LEAST_TOL", 0.0)
    kept = []
    init = _cross_fit.CrossFit.__init__
    monkeypatch.setattr(
        _cross_fit.CrossFit, "__init__", lambda self, *a: (init(self, *a), kept.append(self))[0]
    )
    X, y = data(name)
    order = np.argsort(y, kind="stable")  # rows in the order of the classes
    X, y = X[order], y[order]
    model = clone(model).set_params(probability=True, tol=1e-6, gamma=0.05).fit(X, y)
    found = kept[0]
    a, b = found.first[0], found.second[0]
    rows = np.flatnonzero((y == a) | (y == b))
    plain = clone(model).set_params(probability="deprecated")
    for fold in range(_cross_fit.N_FOLDS):
        held = found.folds[rows] == fold
        plain.fit(X[rows[~held]], y[rows[~held]])
        expected = -plain.decision_function(X[rows[held]])
        np.testing.assert_allclose(found.values[0][held], expected, atol=2e-4)


def test_every_class_is_spread_evenly_over_the_folds():
    folds = _cross_fit.folds_of(np.array([0, 7, 20, 21]))
    for start, end in ((0, 7), (7, 20), (20, 21)):
        counts = np.bincount(folds[start:end], minlength=5)
        assert counts.max() - counts.min() <= 1
    assert np.ptp(np.bincount(folds)) <= 1


def test_the_same_data_give_the_same_probabilities_whatever_the_global_state():
    X, y = data("iris")
    found = []
    for seed in range(3):
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        found.append(SVC(probability=True).fit(X, y).predict_proba(X))
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    assert all(np.array_equal(p, found[0]) for p in found)
    other = SVC(probability=True, random_state=5).fit(X, y).predict_proba(X)
    assert not np.array_equal(other, found[0])
    np.testing.assert_array_equal(SVC(probability=True, random_state=5).fit(X, y).predict_proba(X), other)


def test_precomputed_sparse_and_callable_kernels_agree_with_the_dense_one():
    X, y = data("iris")
    dense, given = SVC(probability=True, gamma=0.1), rbf_kernel(X, gamma=0.1)
    expected = clone(dense).fit(X, y).predict_proba(X)
    own = clone(dense).set_params(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.1))
    sparse = sp.csr_array(X)
    others = {
        "precomputed": SVC(kernel="precomputed", probability=True).fit(given, y).predict_proba(given),
        "callable": own.fit(X, y).predict_proba(X),
        "sparse": clone(dense).fit(sparse, y).predict_proba(sparse),
    }
    for name, p in others.items():
        np.testing.assert_allclose(p, expected, atol=0.02, err_msg=name)


def test_strings_weights_and_class_weights():
    X, y = data("iris")
    names = np.array(["b", "a", "c"])[y]
    p = SVC(probability=True, class_weight="balanced").fit(X, names, np.linspace(0.5, 2.0, len(y)))
    assert (p.classes_[p.predict_proba(X).argmax(axis=1)] == names).mean() > 0.9
    # A weight of zero is the same as leaving the row out, in the sigmoids too.
    weight = np.ones(len(y))
    weight[::3] = 0.0
    zero = SVC(probability=True).fit(X, y, weight)
    left_out = SVC(probability=True).fit(X[weight > 0], y[weight > 0])
    np.testing.assert_allclose(zero.predict_proba(X), left_out.predict_proba(X), atol=2e-3)


@pytest.mark.parametrize("estimator", [SVC(), NuSVC(nu=0.03)])
def test_classes_with_fewer_rows_than_folds(estimator):
    X, y = data("iris")
    for n in (1, 2, 4):
        keep = np.concatenate([np.flatnonzero(y == 0)[:n], np.flatnonzero(y > 0)])
        model = clone(estimator).set_params(probability=True)
        p = model.fit(X[keep], y[keep]).predict_proba(X)
        assert np.isfinite(np.log(p)).all()


@pytest.mark.parametrize("solver", [s for s in solvers.names() if s not in ("auto", "batch")])
def test_every_solver_that_trains_has_probabilities(solver):
    X, y = data()
    for loss in ("hinge", "squared_hinge"):
        model = SVC(solver=solver, loss=loss, probability=True, max_iter=3000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                model.fit(X[:120], y[:120])
            except (TypeError, ValueError):
                continue
        assert np.mean(model.predict_proba(X).argmax(axis=1) == y) > 0.8


def test_hard_margins_large_problems_and_few_iterations():
    X, y = make_classification(5000, 10, class_sep=2.0, random_state=0)
    large = SVC(probability=True).fit(X, y)
    assert large.status_ == "solved"
    assert np.mean(large.predict_proba(X).argmax(axis=1) == large.predict(X)) > 0.97
    separable = y[:200] == (X[:200, 0] > 0)
    X, y = np.column_stack([X[:200], 9.0 * y[:200]]), y[:200]
    assert separable.any()
    hard = SVC(C=np.inf, probability=True).fit(X, y)
    assert np.mean(hard.predict_proba(X).argmax(axis=1) == y) > 0.95
    with pytest.warns(ConvergenceWarning):
        few = SVC(probability=True, max_iter=2).fit(X, y)
    assert few.status_ == "max_iter" and np.isfinite(few.predict_proba(X)).all()


def test_a_fit_whose_time_is_up_has_probabilities_and_says_so():
    X, y = make_classification(1500, 10, flip_y=0.3, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = SVC(C=1e3, probability=True, max_time=1e-3).fit(X, y)
    assert model.status_ == "max_time" and np.isfinite(model.predict_proba(X)).all()


def test_pickles_clones_and_warm_starts():
    X, y = data("iris")
    model = SVC(probability=True, warm_start=True).fit(X, y)
    p = model.predict_proba(X)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict_proba(X), p)
    assert clone(model).probability is True
    model.set_params(C=1.1).fit(X, y).set_params(C=1.0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), p, atol=0.02)
    model.set_params(probability=False).fit(X, y)
    assert model.probA_.size == model.probB_.size == 0
    model.probability = True
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        model.predict_proba(X)


def test_a_subclass_whose_fit_changes_the_data():
    class Halved(SVC):
        def fit(self, X, y, sample_weight=None):
            return super().fit(X / 2, y, sample_weight)

    X, y = data()
    expected = SVC(probability=True).fit(X / 2, y)
    np.testing.assert_array_equal(Halved(probability=True).fit(X, y).probA_, expected.probA_)


@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_the_warnings_name_the_line_of_the_user(kind):
    X, y = data()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = kind(probability=True, nu=0.1) if kind is NuSVC else kind(probability=True)
        model.fit(X, y)
    deprecations = [w for w in caught if w.category is FutureWarning]
    assert len(deprecations) == 1
    assert f"CalibratedClassifierCV({kind.__name__}(), ensemble=False)" in str(deprecations[0].message)
    assert deprecations[0].filename == __file__
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as error:
        kind().predict_proba  # noqa: B018
    assert "not available when probability=False" in str(error.value.__cause__)
    assert "probability" in inspect.signature(kind).parameters


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_do_not_change_the_probabilities(n_jobs):
    X, y = data("digits")
    expected = SVC(probability=True, n_jobs=1).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(SVC(probability=True, n_jobs=n_jobs).fit(X, y).predict_proba(X), expected)


# -- users of probabilities ----------------------------------------------------------------------------


def test_votes_stacks_and_scorers():
    X, y = data("iris")
    voting = VotingClassifier(
        [("svc", SVC(probability=True)), ("nu", NuSVC(nu=0.2, probability=True))], voting="soft"
    ).fit(X, y)
    assert voting.score(X, y) > 0.9
    stack = StackingClassifier(
        [("svc", SVC(probability=True))], LogisticRegression(), stack_method="predict_proba"
    )
    assert stack.fit(X, y).score(X, y) > 0.9
    model = SVC(probability=True).fit(X, y)
    assert get_scorer("roc_auc_ovr")(model, X, y) > 0.95
    assert get_scorer("neg_log_loss")(model, X, y) > -0.4


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", ["accuracy", "neg_log_loss"], "accuracy"])
@pytest.mark.parametrize("memory", [0.0, 2000.0])
def test_searches_score_probabilities(scoring, memory):
    X, y = data("iris")
    grid = {"C": [0.5, 5.0], "gamma": [0.05, 0.2]}
    options = {"cv": 3, "scoring": scoring, "refit": False}
    estimator = SVC(probability=True, tol=1e-6)
    ours = SVMSearchCV(estimator, grid, memory=memory, n_jobs=1, **options).fit(X, y)
    theirs = GridSearchCV(estimator, grid, **options).fit(X, y)
    for name in [k for k in theirs.cv_results_ if k.startswith("mean_test")]:
        np.testing.assert_allclose(ours.cv_results_[name], theirs.cv_results_[name], atol=5e-3)
