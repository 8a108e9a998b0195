"""Models as ONNX graphs of plain operators.

The operators SVMClassifier and SVMRegressor of ai.onnx.ml support float32 only, break ties of votes and order
classes in their own way, and have no laplacian kernel. So a graph is built of MatMul, Exp and the like. It
has one input ``X`` and two outputs, ``label`` and ``decision_function``, which are those of the estimator. A
classifier that has probabilities has a third, ``probabilities``; a regression has one, ``variable``.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from maxmargin._files import File, writing
from maxmargin._types import Floats
from maxmargin.estimators.model import KernelModel
from maxmargin.kernels.functions import opaque
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.parts import Constant, KernelFunction, Named, Sum
from maxmargin.persistence.estimators import ESTIMATORS
from maxmargin.persistence.models import BEFORE, check_class
from maxmargin.persistence.onnx_columns import features, of_numbers
from maxmargin.persistence.onnx_graph import Graph
from maxmargin.persistence.onnx_probabilities import probabilities
from maxmargin.persistence.store import chosen

# Largest size in bytes of a matrix of float64 in a graph: that of an ONNX file.
_LARGEST = 1 << 31


def to_onnx(estimator: Any, file: File | None = None, *, dtype: DTypeLike = np.float32) -> Any:
    """Translate a fitted model to ONNX.

    Parameters
    ----------
    estimator : object
        A fitted estimator of maxmargin, a pipeline of scikit-learn's `StandardScaler`, `MinMaxScaler`,
        `MaxAbsScaler`, `RobustScaler`, `SimpleImputer` and "passthrough" that ends in one, or a fitted
        `SVMSearchCV`, `SVCCV` or other tuner. The pipeline may begin with a `ColumnTransformer` of these,
        `OneHotEncoder` and `OrdinalEncoder`.
    file : path or binary file object, default=None
        Where to write the model, if anywhere.
    dtype : {np.float32, np.float64}, default=np.float32
        Of the input and all numbers. Rounding changes decision values in proportion to the sum of the
        coefficients' sizes and the largest kernel value: in float32 by less than 1e-5 of these in the tests,
        in float64 by less than 1e-10 of the value plus 1e-13 of these.

    Returns
    -------
    onnx.ModelProto
        Input ``X`` of shape (n_samples, n_features), dense; outputs ``label`` and ``decision_function``, of a
        classifier with `predict_proba` also ``probabilities``; of a regression ``variable`` of shape
        (n_samples,), the predicted targets. With a `ColumnTransformer` there is one input for each of its
        columns, with its name and of shape (n_samples, 1): numbers (NaN where there is no value; days since
        the beginning of 1970 for dates) or texts ("" where there is no value).

    Raises
    ------
    ImportError
        Without the package `onnx`.
    ValueError
        For precomputed kernels and functions, for columns of text that are split into words, and if the
        support vectors, which are dense in the graph, take more than 2 GiB in float64 (ONNX files are at most
        that large).

    Examples
    --------
    >>> import pytest
    >>> _ = pytest.importorskip("onnx")
    >>> from maxmargin import SVC
    >>> from maxmargin.persistence import to_onnx
    >>> model = to_onnx(SVC().fit([[0.0], [1.0], [2.0]], ["a", "b", "b"]))
    >>> [output.name for output in model.graph.output]
    ['label', 'decision_function']
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}.")
    estimator = chosen(estimator)
    named = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    steps: list[Any] = [step for _, step in named if step not in (None, "passthrough")]
    encoder = steps.pop(0) if steps and isinstance(steps[0], ColumnTransformer) else None
    for step in steps[:-1]:
        check_class(step, BEFORE)
    last = steps[-1] if steps else estimator
    check_class(last, tuple(ESTIMATORS))
    own = isinstance(last.kernel, KernelFunction) and (last.kernel.own or isinstance(last.kernel, Constant))
    if last.kernel == "precomputed" or opaque(last.kernel) or own:
        kernel = "'precomputed'" if last.kernel == "precomputed" else "a function"
        raise ValueError(
            f"A model whose kernel is {kernel} cannot be exported: ONNX has no operator for it. Use "
            "one of the kernels linear, poly, rbf, sigmoid, laplacian, or sums and products of them."
        )
    graph = Graph(dtype, int(steps[0].n_features_in_), prefix="" if encoder is None else "/")
    X = "X" if encoder is None else features(graph, encoder)
    for step in steps[:-1]:
        X = of_numbers(graph, step, X)
    _TRANSLATE[type(last).__name__](graph, last, X)
    model = graph.finish()
    if file is not None:
        with writing(file) as stream:
            stream.write(model.SerializeToString())
    return model


# -- kernels -----------------------------------------------------------------------------------------


def _kernel(graph: Graph, model: KernelModel, X: str) -> str:
    """K(X, support vectors)."""
    vectors = np.asarray(model.vectors.toarray() if model.sparse else model.vectors, np.float64)
    name = model.kernel.name
    if isinstance(name, KernelFunction):
        return _joined(graph, name, vectors, X)
    return _named(graph, model.kernel, vectors, X)


def _joined(graph: Graph, kernel: KernelFunction, vectors: Floats, X: str) -> str:
    """Values of a kernel that has parts."""
    if isinstance(kernel, Constant):  # added to and multiplied by matrices
        return graph.real(kernel.value)
    if isinstance(kernel, Named):
        gamma, scale = kernel.gamma, None
        if isinstance(gamma, tuple):
            scale = np.array(gamma) if kernel.name == "laplacian" else np.sqrt(gamma)
            X, vectors, gamma = graph.add("Mul", X, graph.real(scale)), vectors * scale, 1.0
        plain = Kernel(kernel.name, gamma=gamma, degree=kernel.degree, coef0=kernel.coef0)
        return _named(graph, plain, vectors, X)
    operator = "Add" if isinstance(kernel, Sum) else "Mul"
    return reduce(
        lambda a, b: graph.add(operator, a, b), [_joined(graph, part, vectors, X) for part in kernel.parts]
    )


def _named(graph: Graph, kernel: Kernel, vectors: Floats, X: str) -> str:
    """Values of a named kernel."""
    gamma = float(kernel.gamma)
    if kernel.translation_invariant:
        # Neither sees a translation, but rounding does.
        centre = vectors.mean(axis=0) if len(vectors) else np.zeros(vectors.shape[1])
        X, vectors = graph.add("Sub", X, graph.real(centre)), vectors - centre
    if kernel.name == "laplacian":
        apart = graph.add("Sub", graph.add("Unsqueeze", X, np.array([1])), graph.real(vectors))
        distance = graph.add("ReduceSum", graph.add("Abs", apart), np.array([2]), keepdims=0)
        return graph.add("Exp", graph.add("Mul", distance, graph.real(-gamma)))
    # Not a product by gamma afterwards: onnxruntime would join the two and round gamma to float32.
    slope = gamma if kernel.name in ("poly", "sigmoid") else 1.0
    product = graph.add("MatMul", X, graph.real(slope * vectors.T))
    if kernel.name == "rbf":
        square = graph.add("ReduceSum", graph.add("Mul", X, X), np.array([1]), keepdims=1)
        norms = np.einsum("ij,ij->i", vectors, vectors)
        total = graph.add("Add", square, graph.real(norms))
        distance = graph.add("Sub", total, graph.add("Mul", product, graph.real(2.0)))
        distance = graph.add("Max", distance, graph.real(0.0))
        return graph.add("Exp", graph.add("Mul", distance, graph.real(-gamma)))
    if kernel.name == "linear":  # as a part
        return product
    inner = graph.add("Add", product, graph.real(float(kernel.coef0)))
    if kernel.name == "sigmoid":
        return graph.add("Tanh", inner)
    return graph.add("Pow", inner, graph.real(float(kernel.degree)))


def _check_size(model: KernelModel, n_functions: int) -> None:
    """Refuse a model that is small only because it is sparse, before memory is allocated."""
    linear = model.kernel.name == "linear"
    n, d = n_functions if linear else model.vectors.shape[0], model.vectors.shape[1]
    if 8 * n * d > _LARGEST:
        what = "weight vectors" if linear else "support vectors"
        raise ValueError(
            f"The model cannot be exported: its {n:,} {what} of {d:,} features are dense in an ONNX graph "
            f"and take {8 * n * d / 2**30:,.1f} GiB, more than {_LARGEST / 2**30:g} GiB. Remove features "
            "that do not occur, or use another format."
        )


def _values(graph: Graph, model: KernelModel, X: str, weights: Floats, constants: Floats) -> str:
    """``K @ weights.T + constants``; the linear kernel multiplies by the weights of the features."""
    _check_size(model, len(weights))
    if model.kernel.name == "linear":
        coef = model.vectors.T @ weights.T
        product = graph.add("MatMul", X, graph.real(np.asarray(coef)))
    else:
        product = graph.add("MatMul", _kernel(graph, model, X), graph.real(weights.T))
    return graph.add("Add", product, graph.real(constants))


# -- estimators --------------------------------------------------------------------------------------


def _flat(graph: Graph, values: str) -> str:
    return graph.add("Reshape", values, np.array([-1]))


def _pick(graph: Graph, estimator: Any, index: str) -> None:
    """The label at an index per sample."""
    classes = estimator.classes_
    label = graph.add("Gather", graph.constant(classes, exact=True), index)
    graph.emit("label", label, classes.dtype, ["n_samples"])


def _two_classes(graph: Graph, estimator: Any, values: str, *, zero_is_second: bool = True) -> None:
    values = _flat(graph, values)
    operator = "GreaterOrEqual" if zero_is_second else "Greater"
    second = graph.add(operator, values, graph.real(0.0))
    _pick(graph, estimator, graph.add("Cast", second, to=graph.onnx.TensorProto.INT64))
    graph.emit("decision_function", values, graph.dtype, ["n_samples"])


def _pairs(graph: Graph, estimator: Any, X: str) -> None:
    """One decision function per pair of classes, and their votes."""
    model, k = estimator.get_model(), len(estimator.classes_)
    order = np.arange(k) if model.vote_order is None else model.vote_order
    if k == 2:
        values = _values(graph, model, X, model.coef, estimator.intercept_)
        _two_classes(graph, estimator, values, zero_is_second=bool(order[0] == 0))
        _probabilities(graph, estimator, values, None, None)
        return
    pairs = list(combinations(range(k), 2))
    at = np.concatenate([[0], np.cumsum(model.n_support)])
    where = [slice(a, b) for a, b in pairwise(at)]
    weights = np.zeros((len(pairs), at[-1]))
    for p, (a, b) in enumerate(pairs):
        weights[p, where[a]] = model.coef[b - 1, where[a]]
        weights[p, where[b]] = model.coef[a, where[b]]
    values = _values(graph, model, X, weights, estimator.intercept_)
    by_class = of_classes = _by_class(graph, values, k)
    shape: list[Any] = ["n_samples", k]
    if estimator.decision_function_shape == "ovo":
        by_class, shape = values, ["n_samples", len(pairs)]
    if estimator.break_ties:
        index = graph.add("ArgMax", by_class, axis=1, keepdims=0)
    else:
        index = _winner(graph, values, order)
    _pick(graph, estimator, index)
    graph.emit("decision_function", by_class, graph.dtype, shape)
    _probabilities(graph, estimator, values, of_classes, model.vote_order)


def _probabilities(graph: Graph, estimator: Any, values: str, by_class: str | None, order: Any) -> None:
    """The output of a classifier that has probabilities."""
    if not hasattr(estimator, "predict_proba"):
        return
    calibrator = estimator.get_calibrator()
    if calibrator is not None:
        found = probabilities(graph, calibrator, values, by_class, order)
        graph.emit("probabilities", found, graph.dtype, ["n_samples", len(estimator.classes_)])


def _winner(graph: Graph, values: str, order: NDArray[Any]) -> str:
    """The class with the most votes, of several the first in the order; zero votes for a pair's second."""
    k = len(order)
    rank = np.argsort(order)
    pairs = list(combinations(range(k), 2))
    signs = np.array([1.0 if rank[a] < rank[b] else -1.0 for a, b in pairs])
    gains, base = np.zeros((len(pairs), k)), np.zeros(k)
    for p, (a, b) in enumerate(pairs):
        first, second = sorted((rank[a], rank[b]))
        gains[p, first], gains[p, second] = 1.0, -1.0
        base[second] += 1.0
    won = graph.add("Greater", graph.add("Mul", values, graph.real(signs)), graph.real(0.0))
    won = graph.add("Cast", won, to=graph.onnx.helper.np_dtype_to_tensor_dtype(graph.dtype))
    votes = graph.add("Add", graph.add("MatMul", won, graph.real(gains)), graph.real(base))
    place = graph.add("ArgMax", votes, axis=1, keepdims=0)
    return graph.add("Gather", order.astype(np.int64), place)


def _by_class(graph: Graph, values: str, k: int) -> str:
    """scikit-learn's value of each class: votes, plus the sum of its values squeezed into (-1/3, 1/3)."""
    pairs = list(combinations(range(k), 2))
    sums, base = np.zeros((len(pairs), k)), np.zeros(k)
    for p, (a, b) in enumerate(pairs):
        sums[p, a], sums[p, b] = 1.0, -1.0
        base[a] += 1.0
    lost = graph.add("Less", values, graph.real(0.0))
    lost = graph.add("Cast", lost, to=graph.onnx.helper.np_dtype_to_tensor_dtype(graph.dtype))
    votes = graph.add("Add", graph.add("MatMul", lost, graph.real(-sums)), graph.real(base))
    total = graph.add("MatMul", values, graph.real(sums))
    size = graph.add("Mul", graph.add("Add", graph.add("Abs", total), graph.real(1.0)), graph.real(3.0))
    return graph.add("Add", votes, graph.add("Div", total, size))


def _one_class(graph: Graph, estimator: Any, X: str) -> None:
    model = estimator.get_model()
    values = _flat(graph, _values(graph, model, X, model.coef, -estimator.offset_))
    inside = graph.add("Greater", values, graph.real(0.0))
    label = graph.add("Where", inside, np.array(1, np.int64), np.array(-1, np.int64))
    graph.emit("label", label, np.dtype(np.int64), ["n_samples"])
    graph.emit("decision_function", values, graph.dtype, ["n_samples"])


def _regression(graph: Graph, estimator: Any, X: str) -> None:
    model = estimator.get_model()
    values = _values(graph, model, X, model.coef, estimator.intercept_)
    if len(model.coef) == 1:
        graph.emit("variable", _flat(graph, values), graph.dtype, ["n_samples"])
    else:
        graph.emit("variable", values, graph.dtype, ["n_samples", len(model.coef)])


def _quantiles(graph: Graph, estimator: Any, X: str) -> None:
    """As a regression; several quantiles are in order."""
    k = len(estimator.quantiles_)
    if k == 1 and estimator.quantiles is None:
        _regression(graph, estimator, X)
        return
    model = estimator.get_model()
    values = _values(graph, model, X, model.coef, estimator.intercept_)
    if k > 1:
        values = graph.add("TopK", values, np.array([k]), axis=1, largest=0, sorted=1, unused=["places"])
    graph.emit("variable", values, graph.dtype, ["n_samples", k])


def _largest_value(graph: Graph, estimator: Any, values: str) -> None:
    """One value per class, of which the largest wins."""
    k = len(estimator.classes_)
    _pick(graph, estimator, graph.add("ArgMax", values, axis=1, keepdims=0))
    if k > 2:
        graph.emit("decision_function", values, graph.dtype, ["n_samples", k])
        return
    difference = graph.add("MatMul", values, graph.real([[-1.0], [1.0]]))
    graph.emit("decision_function", _flat(graph, difference), graph.dtype, ["n_samples"])


def _all_distances(graph: Graph, estimator: Any, X: str) -> None:
    model, k = estimator.get_model(), len(estimator.classes_)
    at = np.concatenate([[0], np.cumsum(model.n_support)])
    weights = np.zeros((k, at[-1]))
    for c, (a, b) in enumerate(pairwise(at)):
        weights[c, a:b] = model.coef[0, a:b]
    values = _values(graph, model, X, weights - weights.mean(axis=0), estimator.intercept_)
    _largest_value(graph, estimator, values)


def _crammer_singer(graph: Graph, estimator: Any, X: str) -> None:
    model = estimator.get_model()
    values = _values(graph, model, X, model.coef, np.zeros(len(estimator.classes_)))
    _largest_value(graph, estimator, values)


def _incremental(graph: Graph, estimator: Any, X: str) -> None:
    if len(estimator.classes_) < 2 or not len(estimator.support_):
        raise ValueError("The model has seen one class only: learn rows of another before it is exported.")
    _pairs(graph, estimator, X)


_TRANSLATE = {
    "SVC": _pairs,
    "NuSVC": _pairs,
    "OneClassSVM": _one_class,
    "L2OneClassSVM": _one_class,
    "SVR": _regression,
    "NuSVR": _regression,
    "QuantileSVR": _quantiles,
    "AllDistancesSVC": _all_distances,
    "CrammerSingerSVC": _crammer_singer,
    "IncrementalSVC": _incremental,
    "IncrementalSVR": _regression,
}
