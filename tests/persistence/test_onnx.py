import io
import sys
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, StandardScaler, scale

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.model_selection import SVMSearchCV
from maxmargin.persistence import kind, load_libsvm, save_libsvm, to_onnx

pytest.importorskip("onnx")
X, y = load_wine(return_X_y=True)
X = scale(X)
KERNELS = ["rbf", "linear", "poly", "sigmoid", "laplacian"]


def run(model, X, dtype=np.float64, outputs=("label", "decision_function")):
    """Labels and decision values by onnxruntime."""
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        to_onnx(model, dtype=dtype).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert [output.name for output in session.get_outputs()] == list(outputs)
    return session.run(list(outputs), {"X": np.asarray(X, dtype)})


def size(model):
    """The largest sum of coefficients: what errors of kernel values are multiplied by."""
    machine = model[-1] if hasattr(model, "steps") else model
    return 1.0 + float(np.abs(machine.dual_coef_).sum())


def assert_equal(model, X):
    labels, values = run(model, X)
    np.testing.assert_array_equal(labels, model.predict(X))
    expected = model.decision_function(X)
    assert values.shape == expected.shape and values.dtype == np.float64
    np.testing.assert_allclose(values, expected, rtol=1e-10, atol=1e-13 * size(model))
    labels, values = run(model, X, np.float32)
    assert values.dtype == np.float32
    expected = model.decision_function(X.astype(np.float32).astype(np.float64))
    clear = np.abs(expected).reshape(len(X), -1).min(axis=1) > 1e-5 * size(model)
    assert clear.any()
    if expected.ndim == 1:
        np.testing.assert_array_equal(labels[clear], model.predict(X)[clear])
        np.testing.assert_allclose(values, expected, atol=1e-5 * max(size(model), np.abs(expected).max()))
    else:
        assert np.mean(labels == model.predict(X)) > 0.99


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "machine",
    [
        SVC(),
        NuSVC(nu=0.2),
        AllDistancesSVC(),
        AllDistancesSVC(loss="squared_hinge"),
        CrammerSingerSVC(),
        IncrementalSVC(),
    ],
    ids=lambda m: f"{type(m).__name__} {m.get_params().get('loss', '')}",
)
def test_classifiers_give_the_same_labels_and_values(machine, n_classes, kernel):
    labels = np.array(["one", "two", "three"])[y] if n_classes == 3 else y > 0
    machine.set_params(kernel=kernel, gamma=0.05, degree=2, coef0=0.5)
    assert_equal(machine.fit(X, labels), X)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", [OneClassSVM(nu=0.2), L2OneClassSVM()], ids=lambda m: type(m).__name__)
def test_one_class_machines_give_the_same_labels_and_values(machine, kernel):
    data = X + 5.0  # on one side of the origin
    assert_equal(machine.set_params(kernel=kernel, gamma=0.005, degree=2).fit(data), data)


def assert_equal_targets(model, X):
    for dtype, rtol, atol in ((np.float64, 1e-10, 1e-13), (np.float32, 1e-5, 1e-5)):
        (values,) = run(model, X, dtype, outputs=("variable",))
        expected = model.predict(X.astype(dtype).astype(np.float64))
        assert values.shape == expected.shape and values.dtype == dtype
        np.testing.assert_allclose(values, expected, rtol=rtol, atol=atol * size(model))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "machine",
    [SVR(), SVR(loss="squared_epsilon_insensitive"), NuSVR(nu=0.3), QuantileSVR(quantiles=[0.4, 0.5, 0.6])],
    ids=lambda m: f"{type(m).__name__} {m.get_params().get('loss', '')}",
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # sigmoid is not definite
def test_regressions_give_the_same_targets(machine, kernel):
    machine.set_params(kernel=kernel, gamma=0.05, degree=2, coef0=0.5)
    assert_equal_targets(machine.fit(X[:, 1:], X[:, 0]), X[:, 1:])


def test_regressions_in_pipelines_searches_and_of_sparse_data_can_be_exported():
    raw, _ = load_wine(return_X_y=True)
    assert_equal_targets(make_pipeline(StandardScaler(), SVR()).fit(raw[:, 1:], raw[:, 0]), raw[:, 1:])
    sparse = sp.csr_matrix(np.where(X > 0.5, X, 0.0))
    assert_equal_targets(NuSVR().fit(sparse, X[:, 0]), sparse.toarray())
    assert_equal_targets(SVR().fit(X, np.full(len(X), 3.5)), X)  # without support vectors
    assert_equal_targets(SVR(C=3.0).fit(X[:, 3:], X[:, :3]), X[:, 3:])  # a column for each target
    for options in ({"quantile": 0.8}, {"quantiles": [0.8]}):
        assert_equal_targets(QuantileSVR(**options).fit(X[:, 1:], X[:, 0]), X[:, 1:])
    search = SVMSearchCV(SVR(), {"C": [0.1, 1.0]}).fit(X[:, 1:], X[:, 0])
    assert_equal_targets(search.best_estimator_, X[:, 1:])


@pytest.mark.parametrize("options", [{"decision_function_shape": "ovo"}, {"break_ties": True}], ids=str)
def test_shapes_and_ties_are_as_the_options_say(options):
    assert_equal(SVC(**options).fit(X, y), X)


def test_ties_of_votes_go_to_the_first_class_or_as_a_file_says():
    rng = np.random.default_rng(0)
    data, labels = rng.random((200, 3)), rng.integers(0, 5, 200)
    probes = rng.random((500, 3))
    model = SVC(C=10.0, gamma=3.0).fit(data, labels)
    assert_equal(model, probes)
    file = io.BytesIO()
    save_libsvm(model, file)
    file.seek(0)
    other = load_libsvm(file)
    order = np.array([3, 1, 4, 0, 2])
    other.set_model(replace(other.get_model(), vote_order=order))
    assert (other.predict(probes) != model.predict(probes)).any()
    assert_equal(other, probes)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64, np.float32, bool, str, object])
def test_labels_keep_their_type(dtype):
    labels = np.array(["ä", "b"])[y.clip(0, 1)] if dtype in (str, object) else y.clip(0, 1)
    model = SVC().fit(X, labels.astype(dtype))
    found = run(model, X)[0]
    np.testing.assert_array_equal(found, model.predict(X))
    if dtype not in (str, object):
        assert found.dtype == dtype


@pytest.mark.parametrize(
    "scalers",
    [
        [StandardScaler()],
        [StandardScaler(with_mean=False), MaxAbsScaler()],
        [StandardScaler(with_std=False), "passthrough", MinMaxScaler()],
        [MinMaxScaler((-1, 2), clip=True)],
    ],
    ids=str,
)
def test_scalers_are_part_of_the_graph(scalers):
    raw, labels = load_iris(return_X_y=True)
    model = make_pipeline(*scalers, SVC()).fit(raw[::2], labels[::2])
    assert_equal(model, raw)


def test_sparse_models_and_searches_can_be_exported():
    sparse = sp.csr_matrix(np.where(X > 0.5, X, 0.0))
    assert_equal(SVC().fit(sparse, y), sparse.toarray())
    assert_equal(SVC(kernel="linear").fit(sparse, y), sparse.toarray())
    search = SVMSearchCV(SVC(), {"C": [0.1, 1.0]}).fit(X, y)
    np.testing.assert_array_equal(run(search, X)[0], search.predict(X))


def test_the_file_is_written_and_recognised(tmp_path):
    model = SVC().fit(X, y)
    proto = to_onnx(model, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == proto.SerializeToString()
    assert kind(tmp_path / "model.onnx") == "onnx"


def test_what_cannot_be_exported_is_told():
    with pytest.raises(ValueError, match="'precomputed' cannot be exported"):
        to_onnx(SVC(kernel="precomputed").fit(X @ X.T, y))
    with pytest.raises(ValueError, match="a function cannot be exported"):
        to_onnx(SVC(kernel=lambda a, b: a @ b.T).fit(X, y))
    with pytest.raises(ValueError, match="one class only"):
        to_onnx(IncrementalSVC().partial_fit(X[:3], [1, 1, 1]))
    with pytest.raises(ValueError, match="float32 or float64"):
        to_onnx(SVC().fit(X, y), dtype=np.int64)
    with pytest.raises(TypeError, match="Normalizer"):
        to_onnx(make_pipeline(Normalizer(), SVC()).fit(X, y))


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_sparse_models_that_are_too_large_for_a_graph_are_refused_before_memory_is_allocated(kernel):
    file = io.BytesIO()
    save_libsvm(SVC(kernel=kernel).fit(X[:90], y[:90]), file)
    lines = file.getvalue().splitlines()
    lines[-1] += b" 2000000000:1"
    model = load_libsvm(io.BytesIO(b"\n".join(lines) + b"\n"))
    tracemalloc.start()
    with pytest.raises(
        ValueError, match=r"vectors of 2,000,000,000 features are dense .* GiB, more than 2 GiB"
    ):
        to_onnx(model)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26


def test_without_onnx_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"maxmargin\[onnx\]"):
        to_onnx(SVC().fit(X, y))


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_probabilities_of_two_classes_are_an_output(dtype):
    model = SVC(probability=True).fit(X[y < 2], y[y < 2])
    outputs = ("label", "decision_function", "probabilities")
    found = run(model, X, dtype, outputs)[2]
    assert found.dtype == dtype
    np.testing.assert_allclose(found, model.predict_proba(X.astype(dtype)), atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("calibrate", ["sigmoid", "isotonic", "temperature"])
@pytest.mark.parametrize("labels", [y, np.minimum(y, 1)], ids=["three classes", "two classes"])
def test_probabilities_of_a_tuner_are_an_output(calibrate, labels, dtype):
    model = SVCCV(calibrate=calibrate, refine=0, scale="robust").fit(X, labels)
    found = run(model, X, dtype, ("label", "decision_function", "probabilities"))[2]
    assert found.dtype == dtype
    np.testing.assert_allclose(found, model.predict_proba(X), atol=2e-3 if dtype == np.float32 else 1e-9)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_probabilities_of_many_classes_are_coupled_as_in_the_model():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16.0, y[:600]
    model = SVC(probability=True).fit(X, y)
    found = run(model, X, np.float64, ("label", "decision_function", "probabilities"))[2]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-9)
    assert run(model, X[:0], np.float64, ("label", "decision_function", "probabilities"))[2].shape == (0, 10)


@pytest.mark.filterwarnings("ignore:The `probability` parameter")
def test_probabilities_of_a_libsvm_model_are_coupled_in_its_order():
    file = io.BytesIO()
    save_libsvm(SVC(probability=True).fit(X, y), file)
    lines = file.getvalue().replace(b"label 0 1 2", b"label 2 0 1")
    model = load_libsvm(io.BytesIO(lines))
    assert model.get_model().vote_order is not None
    found = run(model, X, np.float64, ("label", "decision_function", "probabilities"))[2]
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-9)
