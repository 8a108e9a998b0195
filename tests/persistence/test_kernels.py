"""Kernels that are objects in model files and ONNX graphs."""

import io
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from maxmargin import SVC, SVR, IncrementalSVC, OneClassSVM
from maxmargin.kernels import laplacian, linear, of_products, of_rows, poly, rbf, sigmoid
from maxmargin.persistence import load, save, save_libsvm, to_onnx
from maxmargin.persistence.kernels import decode_kernel, encode_kernel

X, y = load_iris(return_X_y=True)
KERNELS = {
    "sum": rbf(0.1) + 0.5 * linear() + 1,
    "product": 0.3 * (poly(2, 0.1, 1.0) + 1) * laplacian(0.2) * linear(),
    "features": rbf([0.1, 0.0, 0.2, 0.3]) + laplacian([0.1, 0.2, 0.0, 0.0]),
    "sigmoid": sigmoid(0.01, -0.1) + rbf(1.0),
    "one": rbf(0.3),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_a_kernel_is_the_same_after_json(kernel):
    assert decode_kernel(json.loads(json.dumps(encode_kernel(kernel, "the kernel")))) == kernel


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("machine", [SVC(), SVR(), OneClassSVM(nu=0.2), IncrementalSVC()])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_a_stored_model_predicts_the_same_bits(kernel, machine, form):
    model = machine.set_params(kernel=kernel).fit(
        form(X), y > 0 if isinstance(machine, IncrementalSVC) else y
    )
    file = io.BytesIO()
    save(model, file)
    file.seek(0)
    again = load(file)
    assert again.kernel == kernel
    assert np.array_equal(again.predict(form(X)), model.predict(form(X)))


@pytest.mark.parametrize(
    "kernel", [of_products(lambda d, a, b: d), linear() + of_rows(lambda x, z: x[0] * z[0])]
)
def test_functions_are_refused_with_a_way_out(kernel):
    model = SVC(kernel=kernel).fit(X, y)
    with pytest.raises(ValueError, match=r"holds no functions: .* pickle the model"):
        save(model, io.BytesIO())
    with pytest.raises(ValueError, match=r"a function cannot be exported.*sums and products"):
        to_onnx(model)
    with pytest.raises(ValueError, match=r"does not have the kernel of the model, of_products|linear"):
        save_libsvm(model, io.BytesIO())


@pytest.mark.parametrize(
    "stored",
    [
        -1.0, True, None, "rbf", float("nan"), [], {}, {"sum": []}, {"sum": [1.0]}, {"sum": 3},
        {"name": "rbf", "gamma": -1.0, "degree": 3, "coef0": 0.0},
        {"name": "rbf", "gamma": "x", "degree": 3, "coef0": 0.0},
        {"name": "rbf", "gamma": [], "degree": 3, "coef0": 0.0},
        {"name": "rbf", "gamma": [[1.0]], "degree": 3, "coef0": 0.0},
        {"name": "rbf", "gamma": ["a"], "degree": 3, "coef0": 0.0},
        {"name": "rbf", "gamma": {}, "degree": 3, "coef0": 0.0},
        {"name": "poly", "gamma": 1.0, "degree": 2.5, "coef0": 0.0},
        {"name": "poly", "gamma": [1.0], "degree": 2, "coef0": 0.0},
        {"name": "other", "gamma": 1.0, "degree": 2, "coef0": 0.0},
        {"name": ["rbf"], "gamma": 1.0, "degree": 2, "coef0": 0.0},
        {"name": "rbf", "gamma": 1.0},
    ],
)  # fmt: skip
def test_damaged_kernels_are_refused(stored):
    with pytest.raises(ValueError):
        decode_kernel({"sum": [stored, 1.0]})


def test_kernels_inside_each_other_without_end_are_refused():
    nested = 1.0
    for _ in range(900):
        nested = {"sum": [nested, 1.0]}
    with pytest.raises(ValueError, match="unknown form"):
        decode_kernel(nested)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_onnx_graphs_have_the_values_of_the_kernel(kernel):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = SVC(kernel=kernel).fit(X, y)
    graph = to_onnx(model, dtype=np.float64).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    label, values = session.run(["label", "decision_function"], {"X": X})
    assert np.array_equal(label, model.predict(X))
    assert values == pytest.approx(model.decision_function(X), rel=1e-9, abs=1e-9)
