import io
import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC as SklearnSVC
from sklearn.utils.validation import check_is_fitted

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    IncrementalSVR,
    L2OneClassSVM,
    NuSVC,
    NuSVCCV,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.model_selection import SVMSearchCV
from maxmargin.persistence import kind, load, native, save
from maxmargin.persistence.streams import ModelFileError
from maxmargin.solvers import get

X, y = load_iris(return_X_y=True)
MACHINES = [
    SVC(C=10.0),
    NuSVC(nu=0.2),
    OneClassSVM(nu=0.2),
    L2OneClassSVM(C=10.0),
    AllDistancesSVC(),
    AllDistancesSVC(loss="squared_hinge", C=10.0),
    CrammerSingerSVC(),
    SVR(C=10.0),
    SVR(loss="squared_epsilon_insensitive", epsilon=0.01),
    NuSVR(nu=0.3),
    QuantileSVR(C=10.0, quantile=0.8),
    QuantileSVR(C=10.0, quantiles=[0.1, 0.9]),
    IncrementalSVC(),
    IncrementalSVC(loss="hinge"),
    IncrementalSVR(),
]
KERNELS = ["rbf", "linear", "poly", "sigmoid", "laplacian"]


def name_of(machine):
    return type(machine).__name__


def bytes_of(model):
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


def again(model):
    return load(io.BytesIO(bytes_of(model)))


def fitted(machine, X, y, **parameters):
    machine = clone(machine).set_params(**parameters)
    if isinstance(machine, OneClassSVM | L2OneClassSVM):
        return machine.fit(X)
    return machine.fit(X, y)


def assert_same(one, other, X):
    for method in ("predict", "decision_function", "score_samples"):
        if hasattr(one, method):
            a, b = getattr(one, method)(X), getattr(other, method)(X)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", MACHINES, ids=name_of)
@pytest.mark.parametrize("form", [np.float64, np.float32, sp.csr_matrix])
def test_a_loaded_model_predicts_the_same_bits(machine, kernel, form):
    if isinstance(machine, L2OneClassSVM) and kernel == "sigmoid":
        kernel = "rbf"  # the sigmoid kernel does not have the data on one side
    data = form(X) if form is sp.csr_matrix else X.astype(form)
    model = fitted(machine, data, y, kernel=kernel)
    other = again(model)
    check_is_fitted(other)
    assert type(other) is type(model)
    assert other.get_params() == model.get_params()
    assert_same(model, other, data)


@pytest.mark.parametrize("machine", MACHINES, ids=name_of)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_fitted_attributes_survive_but_for_what_is_documented(machine, form):
    model = fitted(machine, form(X), y, kernel="linear")
    other = again(model)
    lost = {"trace_"}
    names = {n for n in [*vars(model), "coef_", "n_support_"] if n.endswith("_") and hasattr(model, n)} - lost
    for name in names:
        a, b = getattr(model, name), getattr(other, name)
        assert type(a) is type(b) or np.isscalar(a), name
        if sp.issparse(a):
            assert a.dtype == b.dtype and (a != b).nnz == 0, name
        else:
            np.testing.assert_array_equal(a, b, err_msg=name)
            assert np.asarray(a).dtype == np.asarray(b).dtype, name
    assert not hasattr(other, "trace_")


@pytest.mark.parametrize("machine", MACHINES, ids=name_of)
def test_saving_is_deterministic_and_so_is_saving_again(machine):
    model = fitted(machine, X, y)
    data = bytes_of(model)
    assert bytes_of(model) == data == bytes_of(again(model))


@pytest.mark.parametrize("machine", MACHINES, ids=name_of)
def test_a_loaded_model_can_be_fitted_and_cloned(machine):
    model = fitted(machine, X, y)
    other = fitted(again(model), X, y)
    assert_same(model, other, X)
    assert getattr(other, "status_", "solved") == "solved"


@pytest.mark.parametrize("machine", MACHINES[:-3], ids=name_of)
def test_precomputed_kernels_survive(machine):
    K = X @ X.T + 1.0
    model = fitted(machine, K, y, kernel="precomputed")
    assert_same(model, again(model), K)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, 5, 7]),
        np.array([-1, 0, 100], np.int8),
        np.array([1, 2, 2**32 - 1], np.uint32),
        np.array([0.0, 1.0, 2.0]),
        np.array([0.0, 1.0, 2.0], np.float32),
        np.array(["b", "a", "ä☃"]),
        np.array(["b", "a", "ä☃"], dtype=object),
    ],
    ids=lambda labels: f"{labels.dtype}",
)
def test_labels_keep_their_values_and_dtype(labels):
    model = SVC().fit(X, labels[y])
    other = again(model)
    assert other.classes_.dtype == model.classes_.dtype
    assert_same(model, other, X)


def test_bool_labels_survive():
    model = SVC().fit(X, y > 0)
    assert again(model).classes_.tolist() == [False, True]
    assert_same(model, again(model), X)


@pytest.mark.parametrize(
    "parameters",
    [
        {"C": np.inf},
        {"C": np.float32(0.1), "gamma": np.float64(0.3), "degree": np.int64(2)},
        {"class_weight": {0: 2, 1: 1.5, 2: np.float64(1.0)}},
        {"class_weight": "balanced", "max_time": 100.0, "cache_size": 50, "verbose": 0},
        {"solver": "smo", "random_state": 7, "n_jobs": 1, "max_iter": 10**6},
    ],
    ids=str,
)
def test_parameters_survive(parameters):
    model = SVC(kernel="poly").fit(X, y).set_params(**parameters)
    assert again(model).get_params() == model.get_params()


def test_feature_names_survive():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["a", "b", "ç", "d"])
    model = SVC().fit(frame, y)
    other = again(model)
    assert other.feature_names_in_.tolist() == list(frame.columns)
    assert_same(model, other, frame)
    with pytest.raises(ValueError, match="feature names"):
        other.predict(frame[["b", "a", "ç", "d"]])


def pipelines():
    yield make_pipeline(StandardScaler(), SVC())
    yield make_pipeline(StandardScaler(with_mean=False), NuSVC(nu=0.2))
    yield make_pipeline(StandardScaler(with_std=False), "passthrough", SVC())
    yield make_pipeline(MinMaxScaler((-1, 2.5), clip=True), MaxAbsScaler(), CrammerSingerSVC())
    yield Pipeline([("s", "passthrough"), ("m", OneClassSVM())], verbose=False)
    yield make_pipeline(StandardScaler(), SVR(epsilon=0.05))
    yield make_pipeline(MinMaxScaler(), NuSVR())


@pytest.mark.parametrize("model", list(pipelines()), ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pipelines_of_scalers_survive(model, dtype):
    data = X.astype(dtype)
    model = clone(model).fit(data, y)
    other = again(model)
    check_is_fitted(other)
    assert_same(model, other, data)
    assert bytes_of(other) == bytes_of(model)
    assert [name for name, _ in other.steps] == [name for name, _ in model.steps]
    assert_same(model, clone(other).fit(data, y), data)


def test_scalers_that_give_frames_do_so_again(recwarn):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = make_pipeline(StandardScaler(), SVC()).set_output(transform="pandas").fit(frame, y)
    other = again(model)
    assert_same(model, other, frame)
    assert other[-1].feature_names_in_.tolist() == list("abcd") and not recwarn.list


def test_scalers_go_on_with_partial_fit():
    model = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    one, other = (m[0].partial_fit(X + 1.0) for m in (again(model), model))
    np.testing.assert_array_equal(one.mean_, other.mean_)
    np.testing.assert_array_equal(one.var_, other.var_)


def test_a_search_is_stored_as_its_best_estimator():
    search = SVMSearchCV(SVC(), {"C": [0.1, 1.0, 10.0]}).fit(X, y)
    other = again(search)
    assert type(other) is SVC and search.best_params_["C"] == other.C
    assert_same(search.best_estimator_, other, X)
    with pytest.raises(ValueError, match="refit=True"):
        bytes_of(SVMSearchCV(SVC(), {"C": [1.0]}, refit=False).fit(X, y))


def test_a_search_of_a_regression_is_stored_as_its_best_estimator():
    search = SVMSearchCV(SVR(), {"C": [0.1, 10.0], "epsilon": [0.01, 0.1]}).fit(X[:, :3], X[:, 3])
    other = again(search)
    assert type(other) is SVR and search.best_params_ == {"C": other.C, "epsilon": other.epsilon}
    assert_same(search.best_estimator_, other, X[:, :3])


def test_a_regression_of_constant_targets_has_no_support_vectors_and_survives():
    for model in (SVR().fit(X, np.full(len(X), 3.5)), SVR(kernel="linear").fit(X, np.full(len(X), 3.5))):
        assert len(model.support_) == 0
        assert_same(model, again(model), X)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("machine", [SVR(C=10.0, epsilon=0.3), NuSVR(nu=0.3)], ids=name_of)
def test_a_regression_of_several_targets_has_a_number_for_each_after_loading(machine, kernel):
    model = clone(machine).set_params(kernel=kernel).fit(X[:, 2:], X[:, :2])
    other = again(model)
    assert bytes_of(other) == bytes_of(model) and other.predict(X[:, 2:]).shape == (len(X), 2)
    assert_same(model, other, X[:, 2:])
    for name in {"n_iter_", "dual_gap_", "relative_gap_", "intercept_", "epsilon_"} & set(vars(model)):
        np.testing.assert_array_equal(getattr(other, name), getattr(model, name))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_an_incremental_model_goes_on_learning_and_forgetting(form):
    data = form(X[:100])
    model = IncrementalSVC(gamma=0.3).fit(data[:60], y[:60]).forget([3, 57])
    other = again(model)
    assert bytes_of(other) == bytes_of(model)
    np.testing.assert_allclose(other.leave_one_out(), model.leave_one_out(), atol=1e-8)
    for clf in (model, again(model)):
        clf.partial_fit(data[60:], y[60:100]).forget([0, 5])
        scratch = IncrementalSVC(gamma=0.3).fit(
            data[np.delete(np.arange(100), [0, 3, 6, 57])], np.delete(y[:100], [0, 3, 6, 57])
        )
        assert clf.n_held_ == 96
        np.testing.assert_allclose(clf.decision_function(data), scratch.decision_function(data), atol=1e-8)


@pytest.mark.parametrize(
    "model", [IncrementalSVC(gamma=0.3, loss="hinge"), IncrementalSVR(gamma=0.3)], ids=str
)
def test_incremental_models_with_bounds_go_on_learning_and_forgetting(model):
    mixed = np.random.default_rng(0).permutation(150)
    data, labels = X[mixed], y[mixed]  # classes in another order than ascending
    model.partial_fit(data[:5], labels[:5]).partial_fit(data[5:90], labels[5:90]).forget([3, 57])
    other = again(model)
    assert bytes_of(other) == bytes_of(model)
    np.testing.assert_allclose(other.leave_one_out(), model.leave_one_out(), atol=1e-8)
    other.partial_fit(data[90:], labels[90:]).forget([0, 5])
    scratch = clone(model).fit(*(np.delete(v, [0, 3, 6, 57], 0) for v in (data, labels)))
    np.testing.assert_allclose(other.predict(X), scratch.predict(X), atol=1e-8)


def test_an_incremental_model_of_one_class_survives():
    model = IncrementalSVC(gamma=0.3).partial_fit(X[50:60], ["b"] * 10)
    other = again(model)
    assert_same(model, other, X)
    other.partial_fit(X[:50], ["a"] * 50)  # the smaller label comes second
    assert_same(model.partial_fit(X[:50], ["a"] * 50), other, X)
    assert_same(other, again(other), X)


def test_what_cannot_be_stored_is_refused_with_a_reason(tmp_path):
    path = tmp_path / "kept"
    path.write_bytes(b"old")
    memory = str(tmp_path / "memory")
    cases = [
        (SVC(kernel=lambda a, b: a @ b.T).fit(X, y), ValueError, "parameter kernel of SVC is a function"),
        (SVC(solver=get("smo")).fit(X, y), ValueError, "parameter solver of SVC is of type SMO"),
        (SVC(random_state=np.random.RandomState(0)).fit(X, y), ValueError, "random_state of SVC"),
        (SVC(), NotFittedError, "not fitted"),
        (SklearnSVC().fit(X, y), TypeError, "SVC cannot be stored"),
        (StandardScaler().fit(X), TypeError, "StandardScaler cannot be stored"),
        (make_pipeline(Normalizer(), SVC()).fit(X, y), TypeError, "Normalizer cannot be stored"),
        (make_pipeline(StandardScaler()).fit(X), TypeError, "StandardScaler cannot be stored"),
        (
            Pipeline([("m", SVC())], memory=memory).fit(X, y),
            ValueError,
            "pipeline with memory",
        ),
        (SVC().fit(X, y).set_params(cache_size=10**30), ValueError, "beyond 64 bits"),
        (SVC().fit(X, y).set_params(cache_size=np.inf), ValueError, "'cache_size' parameter of SVC"),
        ("text", TypeError, "str cannot be stored"),
    ]
    for model, error, message in cases:
        with pytest.raises(error, match=message):
            save(model, path)
    assert path.read_bytes() == b"old" and set(os.listdir(tmp_path)) == {"kept", "memory"}


def test_a_failure_while_writing_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model"
    save(SVC().fit(X, y), path)
    old = path.read_bytes()

    def fail(descriptor):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        save(SVC(C=5.0).fit(X, y), path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["model"]


def test_paths_and_streams(tmp_path):
    model = SVC().fit(X, y)
    save(model, str(tmp_path / "one"))
    assert_same(model, load(os.fsencode(tmp_path / "one")), X)
    with open(tmp_path / "two", "wb") as file:  # several models in one file
        save(model, file)
        save(OneClassSVM().fit(X), file)
    with open(tmp_path / "two", "rb") as file:
        assert type(load(file)) is SVC and type(load(file)) is OneClassSVM
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    for wrong in (3, None):
        with pytest.raises(TypeError, match="path or a binary file object"):
            load(wrong)
        with pytest.raises(TypeError, match="path or a binary file object"):
            save(model, wrong)


def test_a_link_stays_a_link(tmp_path):
    save(SVC().fit(X, y), tmp_path / "model")
    (tmp_path / "link").symlink_to("model")
    save(OneClassSVM().fit(X), tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and type(load(tmp_path / "model")) is OneClassSVM


def test_kinds_are_told(tmp_path):
    model = SVC().fit(X, y)
    file = io.BytesIO(bytes_of(model))
    assert kind(file) == "maxmargin" and file.tell() == 0
    assert kind(io.BytesIO(b"\x80\x04\x95")) is None and kind(io.BytesIO(b"")) is None
    save(model, tmp_path / "model")
    assert kind(tmp_path / "model") == "maxmargin"


@pytest.mark.parametrize("machine", MACHINES, ids=name_of)
def test_a_file_without_relative_gaps_as_earlier_versions_wrote_them_is_read(machine, monkeypatch):
    from dataclasses import replace

    from maxmargin.persistence import models

    model = fitted(machine, X, y)
    name = type(model).__name__
    if name.startswith("Incremental"):
        pytest.skip("has no gap")
    entry = models.ENTRIES[name]
    older = {key: field for key, field in entry.fields.items() if key != "relative_gap_"}
    with monkeypatch.context() as patch:
        patch.setitem(models.ENTRIES, name, replace(entry, fields=older))
        file = bytes_of(model)
    loaded = load(io.BytesIO(file))
    assert np.isnan(loaded.relative_gap_).all() and np.shape(loaded.relative_gap_) == np.shape(
        model.dual_gap_
    )
    assert_same(loaded, model, X)
    np.testing.assert_array_equal(again(model).relative_gap_, model.relative_gap_)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
@pytest.mark.parametrize("kind", [SVC, NuSVC])
def test_probabilities_are_stored(kind):
    for labels in (y, np.minimum(y, 1)):
        model = kind(probability=True, nu=0.2) if kind is NuSVC else kind(probability=True)
        model.fit(X, labels)
        np.testing.assert_array_equal(again(model).predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("calibrate", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("labels", [y, np.minimum(y, 1)], ids=["three classes", "two classes"])
def test_the_calibrator_of_a_tuner_is_stored(calibrate, labels):
    for tuner in (SVCCV, NuSVCCV):
        model = tuner(calibrate=calibrate, refine=0).fit(X, labels)
        loaded = again(model)
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(again(loaded).predict_proba(X), model.predict_proba(X))
        loaded[-1].fit(X, labels)
        assert not hasattr(loaded[-1], "predict_proba")  # it belonged to the model before


def test_the_calibrator_of_a_search_is_stored():
    search = SVMSearchCV(SVC(), {"C": [1.0, 10.0]}, calibrate="isotonic").fit(X, y)
    np.testing.assert_array_equal(again(search).predict_proba(X), search.predict_proba(X))
    np.testing.assert_array_equal(search.best_estimator_.predict_proba(X), search.predict_proba(X))


@pytest.mark.parametrize("tuner", [SVRCV(refine=0), SVCCV(scale="robust", calibrate=None, refine=0)])
def test_other_tuners_are_stored_as_their_final_model(tuner):
    model = tuner.fit(X, y)
    loaded = again(model)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert not hasattr(loaded, "predict_proba")


def test_an_unfitted_tuner_is_not_stored():
    with pytest.raises(NotFittedError):
        bytes_of(SVCCV())


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("_knots_ends", lambda a: a[::-1].copy()),
        ("_knots_y", lambda a: a + 2.0),
        ("_knots_x", lambda a: a[::-1].copy()),
        ("_knots_x", lambda a: a[:-1]),
        ("_beta", lambda a: -a),
        ("_prob_a", lambda a: a[:-1]),
    ],
)
def test_a_manipulated_calibrator_is_refused(name, change):
    kind = {"_knots": "isotonic", "_beta": "temperature", "_prob": "sigmoid"}[name.rsplit("_", 1)[0] or name]
    model = SVCCV(calibrate=kind, scale=None, refine=0).fit(X, y)
    stream = io.BytesIO(bytes_of(model))
    content, arrays = native.read(stream, "file", None)
    arrays[name] = change(arrays[name])
    out = io.BytesIO()
    native.write(out, content, arrays)
    with pytest.raises(ModelFileError):
        load(io.BytesIO(out.getvalue()))


@pytest.mark.parametrize("contamination", ["auto", "margin", 0.1])
def test_a_threshold_is_stored(contamination):
    model = again(L2OneClassSVM(contamination=contamination).fit(X))
    assert model.contamination == contamination and (model.offset_ == 1.0) == (contamination == "margin")


def test_a_file_without_contamination_is_one_of_the_margin():
    content, arrays = native.read(
        io.BytesIO(bytes_of(L2OneClassSVM(contamination="margin").fit(X))), "", None
    )
    del content["model"]["parameters"]["contamination"]
    file = io.BytesIO()
    native.write(file, content, arrays)
    file.seek(0)
    model = load(file)
    assert model.contamination == "margin" and model.offset_ == 1.0
    assert model.fit(X).offset_ == 1.0
