"""Small fits that together use every compiled function with every kind of arguments it is called with.

Which functions a fit needs depends on its estimator, solver and kernel, on the number of rows (kernel values
are float64 up to 512 rows; up to 4,096 a problem is solved in one call), on the input (dense, sparse, dense
with many zeros, float32), and on whether the data are so large that they are not copied.
`tests/_warmup/test_coverage.py` checks that nothing is missing.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from maxmargin import _costs, dual, solvers
from maxmargin._compiled.threads import Threads
from maxmargin.estimators.all_distances import AllDistancesSVC
from maxmargin.estimators.crammer_singer import CrammerSingerSVC
from maxmargin.estimators.incremental import IncrementalSVC
from maxmargin.estimators.incremental_svr import IncrementalSVR
from maxmargin.estimators.nu_svc import NuSVC
from maxmargin.estimators.one_class import OneClassSVM
from maxmargin.estimators.one_class_l2 import L2OneClassSVM
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svr import SVR, NuSVR
from maxmargin.gram.foreign import add_samples
from maxmargin.gram.gram import Gram
from maxmargin.kernels.attribution import attribute
from maxmargin.kernels.functions import laplacian, linear, poly, rbf, sigmoid
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.layout import laid_out
from maxmargin.kernels.streamed import Streamed
from maxmargin.model_selection import SVMSearchCV
from maxmargin.model_selection.tuning.svc_cv import SVCCV
from maxmargin.model_selection.tuning.svr_cv import SVRCV
from maxmargin.solvers.papers.smo import SMO
from maxmargin.solvers.violators import extreme_ends

Workload = Callable[[], Any]
Workloads = Iterator[tuple[str, Workload]]
# Below and just above the limits of float64 kernel values and of problems solved in one call.
SIZES = SMALL, MEDIUM, LARGE = 200, 600, 4400
# Kernels with all parts that are compiled before they are used.
_SUMS = {"sum": rbf(0.1) + linear(), "product": sigmoid(0.1) * laplacian(0.1) + poly(3, 0.1)}
# Iterations of the papers' solvers.
MOST_STEPS = 30


def _labelled(n: int, d: int, classes: int = 2) -> tuple[Any, Any]:
    rng = np.random.default_rng(n + d + classes)
    X, y = rng.normal(size=(n, d)), rng.permutation(np.arange(n) % classes)
    X[:, 0] += 1.5 * y
    return X, y


def _numbers(n: int, d: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(n + d)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + 0.3 * rng.normal(size=n)


def _zeros(X: Any) -> Any:
    return np.where(np.random.default_rng(0).random(X.shape) < 0.1, X, 0.0)


def _inputs(X: Any) -> dict[str, Any]:
    """One table in the forms that are stored differently."""
    wide = _zeros(np.hstack([X, X, X, X]))
    single = X.astype(np.float32)
    return {"dense": X, "zeros": wide, "sparse": sp.csr_array(wide), "float32": single}


def _use(model: Any, X: Any, y: Any = None) -> Any:
    """Fit and predict."""
    if X.shape[0] == LARGE and model.max_iter < 0:
        model.set_params(max_iter=30)  # all steps of the loop have been taken by then
    model.fit(X, y)
    some = X[:50]
    model.predict(some)
    model.predict(X)
    if hasattr(model, "decision_function"):
        model.decision_function(some)
    if hasattr(model, "predict_proba"):
        model.predict_proba(some)
    return model


def workloads() -> dict[str, Workload]:
    """All fits, by name, so that processes can share them; those that use the same functions together."""
    parts = (
        _classification, _one_class, _kernels, _regression, _in_place, _searches, partial(_papers, MEDIUM),
        partial(_papers, SMALL), _explanations,
    )  # fmt: skip
    return dict(item for part in parts for item in part())


def run(names: list[str] | None = None, report: Callable[[str], Any] | None = None) -> None:
    """Run some workloads, or all, and report each when it is done."""
    todo = workloads()
    for name in todo if names is None else names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            todo[name]()
        if report is not None:
            report(name)


def _classification() -> Workloads:
    for n in SIZES:
        X, y = _labelled(n, 8)
        for form, data in _inputs(X).items():
            yield f"SVC, {n} rows, {form}", partial(_use, SVC(C=10.0), data, y)
            yield f"NuSVC, {n} rows, {form}", partial(_use, NuSVC(nu=0.3), data, y)
        text = sp.random_array((n, 1100), density=0.02, format="csr", random_state=0)
        yield f"SVC, {n} rows, wide and sparse", partial(_use, SVC(C=10.0), text, y)
        small_cache = SVC(C=10.0, cache_size=1.0)
        yield f"SVC, {n} rows, wide and sparse, small cache", partial(_use, small_cache, text, y)
        yield f"SVC, {n} rows, squared hinge", partial(_use, SVC(loss="squared_hinge"), X, y)
        for loss in ("hinge", "squared_hinge"):
            penalised = SVC(loss=loss, bias="penalised")
            for form, data in (("dense", X), ("wide and sparse", text)):
                yield f"SVC, {n} rows, penalised bias, {loss}, {form}", partial(_use, penalised, data, y)
        yield f"SVC, {n} rows, tight", partial(_use, SVC(C=100.0, tol=1e-7), X, y)
        yield f"NuSVC, {n} rows, tight", partial(_use, NuSVC(nu=0.3, tol=1e-7), X, y)
        yield f"NuSVC, {n} rows, limited", partial(_use, NuSVC(nu=0.3, max_iter=1000), X, y)
    for n in (240, 1800):
        X, y = _labelled(n, 8, 3)
        for shape in ("ovr", "ovo"):
            model = SVC(decision_function_shape=shape)
            yield f"SVC, three classes, {n} rows, {shape}", partial(_use, model, X, y)
        yield f"NuSVC, three classes, {n} rows", partial(_use, NuSVC(nu=0.3), X, y)
    X, y = _labelled(SMALL, 8)
    yield "SVC, hard margin", partial(_use, SVC(C=np.inf), X, y)
    for n in (240, 900):
        for classes in (2, 3):
            X, y = _labelled(n, 8, classes)
            name = f"{classes} classes, {n} rows, probabilities"
            for form, data in _inputs(X).items():
                yield f"SVC, {name}, {form}", partial(_use, SVC(probability=True), data, y)
            yield f"NuSVC, {name}", partial(_use, NuSVC(nu=0.3, probability=True), X, y)
            table = SVC(kernel="laplacian", probability=True)
            yield f"SVC, {name}, laplacian", partial(_use, table, X, y)
    for n in (SMALL, MEDIUM):
        X, y = _labelled(n, 6, 4)
        # At a wide kernel and a large C, so that it comes to faces.
        for model in (AllDistancesSVC(), CrammerSingerSVC(C=30.0, gamma=0.01)):
            yield f"{type(model).__name__}, {n} rows", partial(_use, model, X, y)
        squared = AllDistancesSVC(loss="squared_hinge")
        yield f"AllDistancesSVC, {n} rows, squared", partial(_use, squared, X, y)
        printed = AllDistancesSVC(solver=SMO("paper"), max_iter=MOST_STEPS)
        yield f"AllDistancesSVC, {n} rows, paper", partial(_use, printed, X, y)


def _regression() -> Workloads:
    for n in SIZES:
        X, t = _numbers(n, 8)
        for form, data in _inputs(X).items():
            yield f"SVR, {n} rows, {form}", partial(_use, SVR(), data, t)
        squared = SVR(loss="squared_epsilon_insensitive")
        yield f"SVR, {n} rows, squared loss", partial(_use, squared, X, t)
        yield f"SVR, {n} rows, tight", partial(_use, SVR(tol=1e-7), X, t)
        yield f"NuSVR, {n} rows", partial(_use, NuSVR(), X, t)


def _one_class() -> Workloads:
    for n in SIZES:
        X, _ = _labelled(n, 8)
        for form, data in _inputs(X).items():
            yield f"OneClassSVM, {n} rows, {form}", partial(_use, OneClassSVM(nu=0.2), data)
        yield f"L2OneClassSVM, {n} rows", partial(_use, L2OneClassSVM(), X)


def _kernels() -> Workloads:
    for n in SIZES:
        X, y = _labelled(n, 8)
        for kernel in ("linear", "poly", "sigmoid", "laplacian"):
            for form, data in _inputs(X).items():
                model = SVC(kernel=kernel, gamma=0.1, max_iter=20_000)
                yield f"SVC, {kernel}, {n} rows, {form}", partial(_use, model, data, y)
        for name, own in _SUMS.items():
            for form, data in _inputs(X).items():
                yield (
                    f"SVC, {name}, {n} rows, {form}",
                    partial(_use, SVC(kernel=own, max_iter=20_000), data, y),
                )
        yield f"SVC, callable, {n} rows", partial(_use, SVC(kernel=_inner), X[:2000], y[:2000])
        for dtype in ("float64", "float32"):
            part = partial(_use_precomputed, X[:2200], y[:2200], dtype)
            yield f"SVC, precomputed, {n} rows, {dtype}", part
        # Columns of very different sizes, whose kernel values are computed with more digits.
        uneven = X * np.where(np.arange(8) == 3, 1e9, 1.0)
        yield f"SVC, uneven columns, {n} rows", partial(_use, SVC(gamma=0.1, max_iter=200), uneven, y)
        for kernel in ("linear", "laplacian"):
            model = SVC(kernel=kernel, gamma=1.0, max_iter=200)
            yield f"SVC, {kernel}, uneven columns, {n} rows", partial(_use, model, uneven[:300], y[:300])
    # Few of many columns, as in texts.
    X, y = _labelled(1500, 8)
    texts = sp.csr_array(sp.hstack([sp.csr_array(X), sp.random(1500, 4000, 0.002, rng=0)]))
    yield "SVC, linear, texts", partial(_use, SVC(kernel="linear"), texts, y)
    yield "NuSVR, linear, texts", partial(_use, NuSVR(kernel="linear", max_iter=200), texts, X[:, 0])

    yield "sparse rows in both precisions", _copy_rows
    yield "accurate sums of sums and products", _accurate_sums


def _accurate_sums() -> None:
    X, some = np.eye(4), np.arange(4)
    for own in _SUMS.values():
        for data in (X, sp.csr_array(X)):
            for dtype in (np.float32, np.float64):
                Gram(data, own, dtype=dtype).accurate(some, some, np.ones(4), np.ones(4))


def _copy_rows() -> None:
    """Copies of sparse rows, and sparse copies of dense ones, from each precision to each."""
    for given in (np.float32, np.float64):
        X = np.eye(3, dtype=given)
        for wanted in (np.float32, np.float64):
            for data in (X, sp.csr_array(X)):
                laid_out(data, np.dtype(wanted), np.arange(3), None, True)


def _in_place() -> Workloads:
    """Data so large that their rows are prepared when they are asked for, and rows on a cluster."""
    for n in SIZES:
        X, y = _labelled(n, 8)
        inputs = _inputs(X)
        text = sp.random_array((n, 1100), density=0.02, format="csr", random_state=0)
        wide = {"wide": np.tile(X, 10), "wide and sparse": text}
        for form, data in {**inputs, **wide}.items():
            yield f"SVC, {n} rows, {form}, in place", partial(_use_in_place, SVC(C=10.0), data, y)
        for kernel in ("poly", "sigmoid", "laplacian"):
            for form in ("dense", "sparse"):
                model = SVC(kernel=kernel, gamma=0.1, max_iter=20_000)
                yield (
                    f"SVC, {kernel}, {n} rows, {form}, in place",
                    partial(_use_in_place, model, inputs[form], y),
                )
        yield f"SVR, {n} rows, in place", partial(_use_in_place, SVR(), X, X[:, 0])
        yield f"SVC, {n} rows, tight, in place", partial(_use_in_place, SVC(tol=1e-7), X, y)
    yield "rows in place in both precisions", _stream_rows
    yield "a chunk of a cluster", _use_chunk


def _use_in_place(model: Any, X: Any, y: Any) -> None:
    """Fit and predict as if the data were large."""
    limit, _costs.STREAMED_BYTES = _costs.STREAMED_BYTES, 0
    try:
        _use(model, X, y)
    finally:
        _costs.STREAMED_BYTES = limit


def _stream_rows() -> None:
    """Rows of data in each precision and with each type of indices, prepared in each precision."""
    for given in (np.float32, np.float64):
        X = np.eye(3, dtype=given)
        short = sp.csr_array(X)
        short.indices, short.indptr = short.indices.astype(np.int32), short.indptr.astype(np.int32)
        long = sp.csr_array(X)
        long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
        for wanted in (np.dtype(np.float32), np.dtype(np.float64)):
            for data in (X, short, long):
                for sparse, centre in ((True, None), (False, None), (False, np.ones(3))):
                    rows = Streamed(data, wanted, np.arange(3), centre, sparse)
                    _ = rows[:2], rows.nnz
                    rows.scatter(0, 3, np.empty(48, wanted), 16, wanted.type(1.0))


def _use_chunk() -> None:
    """Sums with samples of other workers and violators among the own rows, as a worker computes them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    for name in ("rbf", "poly", "sigmoid", "laplacian"):
        kernel = Kernel(name, gamma=0.1)
        for data in _inputs(X).values():
            for dtype in (np.float32, np.float64):
                columns = kernel.prepare(data, dtype)
                samples = kernel.prepare(data[:20], dtype, like=columns)
                add_samples(kernel, samples, kernel.lay_out(columns), np.ones(20), 10, 300, np.zeros(290))
    g, group, inside = rng.normal(size=300), np.zeros(300, np.intp), np.zeros(300, np.bool_)
    out = np.empty(20, np.int64)
    extreme_ends(g, g, g - 1.0, g + 1.0, group, inside, 0, 10, np.float64(-np.inf), np.float64(np.inf), out)


def _inner(A: Any, B: Any) -> Any:
    return A @ B.T


def _use_precomputed(X: Any, y: Any, dtype: str) -> None:
    K = (X @ X.T).astype(dtype)
    _use(SVC(kernel="precomputed"), K, y)
    _use(SVC(kernel="precomputed"), K[:900, :900], np.arange(len(K))[:900] % 3)


def _papers(n: int) -> Workloads:
    X, y = _labelled(n, 6)
    many, labels = _labelled(n, 6, 4)
    numbers, t = _numbers(n, 6)
    kinds: dict[str, tuple[Any, ...]] = {
        "svc": (SVC(), X, y),
        "squared hinge": (SVC(loss="squared_hinge"), X, y),
        "penalised bias": (SVC(loss="squared_hinge", bias="penalised"), X, y),
        "nu-svc": (NuSVC(nu=0.3), X, y),
        "one-class": (OneClassSVM(nu=0.2), X, None),
        "one-class, squared": (L2OneClassSVM(), X, None),
        "all-distances": (AllDistancesSVC(), many, labels),
        "all-distances, squared": (AllDistancesSVC(loss="squared_hinge"), many, labels),
        "crammer-singer": (CrammerSingerSVC(), many, labels),
        "svr": (SVR(), numbers, t),
    }
    for solver in solvers.names():
        for kind, (model, data, target) in kinds.items():
            if solver not in ("auto", "batch") and solvers.get(solver).accepts(_problem(kind)):
                one = clone(model).set_params(solver=solver, max_iter=MOST_STEPS)
                yield f"{solver}, {kind}, {n} rows", partial(_use, one, data, target)
    # To the end, as its coarse run takes Newton steps.
    yield f"simple-block, {n} rows, solved", partial(_use, SVC(solver="simple-block"), X, y)
    for loss in ("squared_hinge", "hinge"):
        yield f"IncrementalSVC, {n} rows, {loss}", partial(_learn, IncrementalSVC(gamma=0.2, loss=loss), X, y)
    yield f"IncrementalSVR, {n} rows", partial(_learn, IncrementalSVR(gamma=0.2), numbers, t)


def _problem(kind: str) -> Any:
    """A small dual problem of the kind that an estimator poses."""
    y = np.array([1.0, 1.0, -1.0, -1.0])
    return {
        "svc": lambda: dual.c_svc(y),
        "squared hinge": lambda: dual.squared_c_svc(y, 0.5),
        "penalised bias": lambda: dual.penalised_bias(dual.squared_c_svc(y, 0.5)),
        "nu-svc": lambda: dual.reduced_hulls(y, 1.0),
        "one-class": lambda: dual.one_class(4),
        "one-class, squared": lambda: dual.one_class_l2(4, 0.5),
        "all-distances": lambda: dual.all_distances(y, 1.0),
        "all-distances, squared": lambda: dual.squared_all_distances([0, 0, 1, 2], 0.5),
        "crammer-singer": lambda: dual.crammer_singer(y, 1.0),
        "svr": lambda: dual.epsilon_svr(y, 0.1),
    }[kind]()


def _learn(model: Any, X: Any, y: Any) -> None:
    model.fit(X[:150], y[:150])
    model.partial_fit(X[150:160], y[150:160])
    model.forget([3, 5])
    model.leave_one_out()
    model.predict(X)


def _explanations() -> Workloads:
    X, _ = _labelled(SMALL, 4)
    for independent in (False, True):
        call = partial(
            attribute, Kernel("rbf"), X[:3], X[3:9], X, np.ones((1, SMALL)), independent=independent,
            threads=Threads(1),
        )  # fmt: skip
        yield f"Shapley values, {'independent' if independent else 'joint'}", call


def _searches() -> Workloads:
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.01, 0.1]}
    for n in (SMALL, MEDIUM):
        X, y = _labelled(n, 8)
        for form, data in _inputs(X).items():
            yield f"search, {n} rows, {form}", partial(_use, SVMSearchCV(SVC(), grid, cv=3), data, y)
        several: dict[str, tuple[Any, Any, Any]] = {
            "three classes": (SVC(), grid, _labelled(n, 8, 3)),
            "three classes, tight": (SVC(tol=1e-7), grid, _labelled(n, 8, 3)),
            "SVR": (SVR(), grid, _numbers(n, 8)),
            "squared hinge": (SVC(loss="squared_hinge"), grid, (X, y)),
            "linear": (SVC(kernel="linear"), {"C": [1.0, 10.0]}, (X, y)),
            "laplacian": (SVC(kernel="laplacian"), grid, (X, y)),
            "NuSVC": (NuSVC(), {"nu": [0.3, 0.4]}, (X, y)),
        }
        yield f"tuner, classes, {n} rows", partial(_use, SVCCV(), *_labelled(n, 8, 3))
        yield f"tuner, numbers, {n} rows", partial(_use, SVRCV(), *_numbers(n, 8))
        for name, (model, values, (data, target)) in several.items():
            yield f"search, {name}, {n} rows", partial(_use, SVMSearchCV(model, values, cv=3), data, target)
