"""Copies of the estimators of maxmargin.dask: without dask, pickled, cloned, in other tools; the package."""

import io
import pickle
import textwrap

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin
import maxmargin.persistence
from expected_failures import failures_of_scikit_learns_own_class
from maxmargin.dask import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from processes import run_python

pytestmark = pytest.mark.timeout(300)

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 4))
TWO = np.where(X[:, 0] + X[:, 1] ** 2 > 0.5, "yes", "no")
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
VALUES = np.sin(X[:, 0]) + 0.1 * rng.normal(size=400)
LAZY = da.from_array(X, chunks=(150, 4))
FRAME = pd.DataFrame(X, columns=list("abcd"), index=rng.permutation(400))
KINDS = pytest.mark.parametrize(
    ("kind", "y"),
    [(SVC, TWO), (SVC, THREE), (NuSVC, TWO), (SVR, VALUES), (NuSVR, VALUES), (OneClassSVM, None)],
    ids=["SVC", "SVC-3", "NuSVC", "SVR", "NuSVR", "OneClassSVM"],
)


def values_of(model, rows):
    method = "decision_function" if hasattr(model, "decision_function") else "predict"
    return getattr(model, method)(rows)


def without_dask(script, *arguments):
    """Run a script in a process in which dask cannot be imported."""
    blocked = 'import sys\nsys.modules["dask"] = sys.modules["distributed"] = None\n'
    run_python(blocked + textwrap.dedent(script), *arguments)


@KINDS
def test_the_ordinary_estimator_does_not_need_dask(client, tmp_path, kind, y):
    model = kind(distribute=True).fit(LAZY, y)
    local = model.to_local()
    assert type(local) is kind._local_class
    expected = {k: v for k, v in model.get_params().items() if k not in ("client", "distribute")}
    assert local.get_params() == expected
    np.testing.assert_array_equal(values_of(local, X), values_of(model, X))
    np.testing.assert_allclose(values_of(local, X), values_of(model, LAZY).compute(), rtol=1e-9)
    (tmp_path / "model").write_bytes(pickle.dumps((local, X, values_of(local, X))))
    without_dask(
        """
        import pickle
        import numpy as np
        with open(sys.argv[1], "rb") as file:
            model, X, expected = pickle.load(file)
        method = "decision_function" if hasattr(model, "decision_function") else "predict"
        np.testing.assert_array_equal(getattr(model, method)(X), expected)
        """,
        str(tmp_path / "model"),
    )


def test_an_estimator_that_is_not_fitted_has_an_ordinary_one_too():
    local = SVC(C=3.0).to_local()
    assert type(local) is maxmargin.SVC and local.C == 3.0 and not hasattr(local, "support_")


@KINDS
def test_the_ordinary_estimator_can_be_stored_in_model_files(client, tmp_path, kind, y):
    model = kind().fit(LAZY, y)
    maxmargin.persistence.save(model.to_local(), tmp_path / "model.npz")
    found = maxmargin.persistence.load(tmp_path / "model.npz")
    np.testing.assert_allclose(values_of(found, X), values_of(model, X), rtol=1e-12)


@pytest.mark.parametrize("steps", [(), (StandardScaler(),)], ids=["alone", "pipeline"])
def test_storing_an_estimator_with_a_client_is_refused_with_what_to_store(steps):
    model = SVC(distribute=False)
    model = make_pipeline(*steps, model).fit(X, TWO) if steps else model.fit(X, TWO)
    with pytest.raises(TypeError, match=r"^SVC of maxmargin\.dask cannot be stored: .* to_local\(\)"):
        maxmargin.persistence.save(model, io.BytesIO())


def test_clones_share_the_client_and_copy_nothing_that_was_fitted(client):
    model = SVC(C=2.0, class_weight={"yes": 2.0}, client=client)
    with config_context(enable_metadata_routing=True):
        model.set_fit_request(sample_weight=True)
    model.fit(LAZY, TWO).predict(LAZY)
    for found in (clone(model), clone(make_pipeline(model)).steps[0][1]):
        assert type(found) is SVC and found.client is client and found.get_params() == model.get_params()
        assert found.class_weight is not model.class_weight and not hasattr(found, "support_")
        assert found._models is None and found._metadata_request is not None


def test_parameters_can_be_read_and_set(client):
    model = SVC(C=2.0)
    assert model.get_params()["distribute"] == "auto" and model.get_params()["client"] is None
    assert repr(model) == "SVC(C=2.0)"
    model.set_params(client=client, distribute=True, C=3.0)
    assert model.client is client and "distribute=True" in repr(model) and "Client" in repr(model)
    assert "SVC" in model._repr_html_()


def test_a_subclass_with_parameters_of_its_own_is_trained_and_copied(client):
    class Linear(SVC):
        def __init__(self, strength=2.0):
            super().__init__(C=strength, kernel="linear")
            self.strength = strength

        def fit(self, X, y):
            self.seen_ = X.shape
            return super().fit(X, y)

    model = Linear(0.5).fit(LAZY, TWO)
    expected = maxmargin.SVC(C=0.5, kernel="linear").fit(X, TWO)
    np.testing.assert_allclose(model.decision_function(LAZY), expected.decision_function(X), atol=1e-6)
    assert model.seen_ == (400, 4) and clone(model).strength == 0.5
    local = model.to_local()
    assert type(local) is maxmargin.SVC and local.kernel == "linear" and local.C == 0.5
    assert not hasattr(local, "strength")


@pytest.mark.parametrize("with_client", [True, False])
def test_pipelines_and_searches_take_the_estimators(request, with_client):
    if with_client:
        request.getfixturevalue("client")
    model = make_pipeline(StandardScaler(), SVC()).fit(X, TWO)
    assert model.score(X, TWO) > 0.9 and isinstance(model.predict(X), np.ndarray)
    search = GridSearchCV(SVC(), {"C": [0.1, 10.0]}, cv=2).fit(X, TWO)
    expected = GridSearchCV(maxmargin.SVC(), {"C": [0.1, 10.0]}, cv=2).fit(X, TWO)
    assert search.best_params_ == expected.best_params_
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])


def test_names_of_features_are_forgotten_by_a_fit_without(client):
    model = SVC().fit(dd.from_pandas(FRAME, npartitions=2, sort=False), TWO)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert not hasattr(model.fit(LAZY, TWO), "feature_names_in_")


def test_a_failed_fit_leaves_the_estimator_as_it_was(client):
    model = SVC().fit(LAZY, TWO)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="y has 3 values"):
        model.fit(LAZY, TWO[:3])
    np.testing.assert_array_equal(model.predict(X), expected)


ESTIMATORS = [
    kind(**more) for kind in (SVC, NuSVC, SVR, NuSVR, OneClassSVM) for more in ({}, {"distribute": False})
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=failures_of_scikit_learns_own_class)
def test_scikit_learns_checks_pass_without_a_client(estimator, check):
    check(estimator)


# -- the package -------------------------------------------------------------------------------------------


def test_the_package_says_that_dask_is_missing():
    without_dask(
        """
        try:
            import maxmargin.dask
        except ImportError as error:
            assert 'needs dask and distributed' in str(error) and 'maxmargin[dask]' in str(error), error
        else:
            raise AssertionError
        """
    )


def test_the_library_does_not_import_dask():
    loaded = run_python("import sys, maxmargin; from maxmargin import SVC; print(*sys.modules)").split()
    assert not {"dask", "distributed", "maxmargin.dask"} & set(loaded)


def test_docstrings_describe_all_parameters_and_methods():
    for kind in (SVC, NuSVC, SVR, NuSVR, OneClassSVM):
        text = kind.__doc__.split("Parameters\n----------\n")[1].split("\n\n")[0]
        described = {
            name for line in text.splitlines() if line[0] != " " for name in line.split(" : ")[0].split(", ")
        }
        assert described == set(kind().get_params())
        for name in ("fit", "predict", "to_local"):
            assert "Returns\n" in getattr(kind, name).__doc__
