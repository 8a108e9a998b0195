"""What makes the machines of maxmargin: the attributes that prediction uses, and how they hang together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.persistence.schema import ArrayField, Entry, Fields, NumberField, Sizes, Stored
from maxmargin.persistence.values import Refused

# Samples and features that a model may have: indices of 32 bits.
LARGEST = 2**31 - 1
_STATUS = ("solved", "max_iter", "max_time", "stalled", "infeasible", "interrupted", "unknown")

_MACHINE: Fields = {
    "shape_fit_0": NumberField(int, low=1),
    "_sparse": NumberField(bool),
    "_gamma": NumberField(float, low=0.0),
    "status_": NumberField(str, choices=_STATUS),
    "n_kernel_evals_": NumberField(int, low=0),
    "n_kernel_calls_": NumberField(int, low=0),
    "support_": ArrayField(("support",), ("i4",), low=0, below="samples"),
    "_n_support": ArrayField(("groups",), ("i4",), low=0),
    "_dense_coef": ArrayField(("rows", "support")),
    "support_vectors_": ArrayField(("vectors", "columns"), ("f4", "f8"), sparse=True),
}
_PAIRS: Fields = {
    **_MACHINE,
    "intercept_": ArrayField(("pairs",)),
    "class_weight_": ArrayField(("classes",), low=0.0),
    "n_iter_": ArrayField(("pairs",), ("i4",), low=0),
    "dual_gap_": ArrayField(("pairs",), finite=False),
    "relative_gap_": ArrayField(("pairs",), finite=False, missing=np.nan),
    "_vote_order": ArrayField(("classes",), ("i4", "i8"), low=0, below="classes", optional=True),
}
_ONE: Fields = {
    **_MACHINE,
    "n_iter_": NumberField(int, low=0),
    "dual_gap_": NumberField(float, finite=False),
    "relative_gap_": NumberField(float, finite=False, missing=np.nan),
}


def _begin_machine(estimator: Any) -> dict[str, Any]:
    return {"shape_fit_0": estimator.shape_fit_[0], "_vote_order": getattr(estimator, "_vote_order", None)}


def _machine_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    """Sizes of what every machine has."""
    support = arrays.get("support_", np.empty(0))
    sizes["support"] = len(support) if support.ndim == 1 else 0
    precomputed = estimator.kernel == "precomputed"
    sizes["vectors"], sizes["columns"] = (0, 0) if precomputed else (sizes["support"], sizes["features"])
    sizes["samples"] = LARGEST if not precomputed else sizes["features"]


def _classes(rows: Callable[[int], int]) -> Callable[[Any, Sizes, Stored], None]:
    """Sizes of a classifier whose coefficients have so many rows."""

    def sizes_of(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
        k = sizes["classes"]
        if k < 2:
            raise Refused("fewer than two classes")
        sizes.update(groups=k, rows=rows(k), pairs=k * (k - 1) // 2)
        _machine_sizes(estimator, sizes, arrays)

    return sizes_of


def _single_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    sizes.update(groups=1, rows=1)
    _machine_sizes(estimator, sizes, arrays)


def _finish_machine(estimator: Any, sizes: Sizes) -> None:
    from maxmargin._compiled.threads import effective_n_jobs
    from maxmargin.estimators.base import _align

    effective_n_jobs(estimator.n_jobs)
    n = estimator.__dict__.pop("shape_fit_0")
    precomputed = estimator.kernel == "precomputed"
    if n > LARGEST or (precomputed and n != sizes["features"]):
        raise Refused(f"a model of {n} training samples, which cannot be")
    estimator.shape_fit_ = (n, sizes["features"])
    if (estimator.support_ >= n).any():
        raise Refused("a support vector that is none of the training samples")
    if int(estimator._n_support.sum(dtype=np.int64)) != sizes["support"]:
        raise Refused("numbers of support vectors that do not add up")
    sparse = sp.issparse(estimator.support_vectors_)
    if sparse != estimator._sparse or (sparse and precomputed):
        raise Refused("support vectors that are sparse where they should not be, or the other way round")
    estimator.support_vectors_ = _align(estimator.support_vectors_)
    coef = estimator._dense_coef
    estimator.dual_coef_ = _align(sp.csr_array(coef)) if sparse else coef
    estimator.fit_status_ = int(estimator.status_ not in ("solved", "unknown"))
    estimator._prepared = {}
    estimator._solved = None


def _finish_pairs(estimator: Any, sizes: Sizes) -> None:
    _finish_machine(estimator, sizes)
    order = estimator.__dict__["_vote_order"]
    if order is None:
        del estimator._vote_order
    elif len(np.unique(order)) != len(order):
        raise Refused("an order of votes that names a class twice")


def _finish_one_class(estimator: Any, sizes: Sizes) -> None:
    _finish_machine(estimator, sizes)
    estimator.intercept_ = -estimator.offset_


def _finish_all_distances(estimator: Any, sizes: Sizes) -> None:
    _finish_machine(estimator, sizes)
    estimator._products = None


# -- rows that come and go ---------------------------------------------------------------------------


def _begin_incremental(estimator: Any) -> dict[str, Any]:
    X, y, ridge, u = estimator._machine.rows()
    return {"_X": X, "_y": y, "_ridge": ridge, "_u": u}


def _incremental_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    if not 1 <= sizes["classes"] <= 2:
        raise Refused("more than two classes")
    rows = arrays.get("_y", np.empty(0))
    sizes["held"] = len(rows) if rows.ndim == 1 else 0
    if not sizes["held"]:
        raise Refused("no rows")


def _finish_incremental(estimator: Any, sizes: Sizes) -> None:
    from maxmargin._compiled.threads import effective_n_jobs
    from maxmargin.kernels.kernel import Kernel
    from maxmargin.solvers.incremental import ExactMachine

    effective_n_jobs(estimator.n_jobs)
    X, y, ridge, u = (estimator.__dict__.pop(name) for name in ("_X", "_y", "_ridge", "_u"))
    if (np.abs(y) != 1).any() or (sizes["classes"] == 1 and (y > 0).any()) or (u * y < 0).any():
        raise Refused("sides of rows other than -1 and 1, or multipliers of the other sign")
    if sp.issparse(X) != estimator._sparse:
        raise Refused("rows that are sparse where they should not be, or the other way round")
    kernel = Kernel(estimator.kernel, gamma=estimator.gamma_, degree=estimator.degree, coef0=estimator.coef0)
    try:
        most, factor = int(estimator.cache_size * 1e6), int(estimator.max_factor * 1e6)
    except (OverflowError, ValueError):
        raise Refused("a budget of memory that is no number") from None
    estimator._machine = ExactMachine(kernel, most_bytes=most, factor_bytes=factor, n_jobs=estimator.n_jobs)
    estimator._machine.restore(X, y, ridge, u)
    estimator.classes_ = np.sort(estimator._sides)
    used = np.flatnonzero(u)
    level = -estimator._sign() * float(estimator.intercept_[0])
    estimator._show(len(y), used, X[used], y[used], u[used], level)


_REGRESSION: Fields = {**_ONE, "intercept_": ArrayField((1,))}

MACHINES: dict[str, Entry] = {
    "SVC": Entry("maxmargin", _PAIRS, _classes(lambda k: k - 1), _finish_pairs, "classes_", _begin_machine),
    "NuSVC": Entry("maxmargin", _PAIRS, _classes(lambda k: k - 1), _finish_pairs, "classes_", _begin_machine),
    "OneClassSVM": Entry(
        "maxmargin",
        {**_ONE, "offset_": ArrayField((1,))},
        _single_sizes,
        _finish_one_class,
        begin=_begin_machine,
    ),
    "L2OneClassSVM": Entry(
        "maxmargin",
        {**_ONE, "offset_": ArrayField((1,))},
        _single_sizes,
        _finish_one_class,
        begin=_begin_machine,
    ),
    "SVR": Entry("maxmargin", _REGRESSION, _single_sizes, _finish_machine, begin=_begin_machine),
    "NuSVR": Entry(
        "maxmargin",
        # NaN where the model came from a LIBSVM file, which does not tell the width of the tube.
        {**_REGRESSION, "epsilon_": NumberField(float, finite=False)},
        _single_sizes,
        _finish_machine,
        begin=_begin_machine,
    ),
    "AllDistancesSVC": Entry(
        "maxmargin",
        {**_ONE, "intercept_": ArrayField(("classes",)), "mu_": NumberField(float, low=0.0)},
        _classes(lambda k: 1),
        _finish_all_distances,
        "classes_",
        _begin_machine,
    ),
    "CrammerSingerSVC": Entry(
        "maxmargin", _ONE, _classes(lambda k: k), _finish_machine, "classes_", _begin_machine
    ),
    "IncrementalSVC": Entry(
        "maxmargin",
        {
            "_sparse": NumberField(bool),
            "gamma_": NumberField(float, low=0.0),
            "intercept_": ArrayField((1,)),
            "_X": ArrayField(("held", "features"), ("f4", "f8"), sparse=True),
            "_y": ArrayField(("held",)),
            "_ridge": ArrayField(("held",), positive=True),
            "_u": ArrayField(("held",)),
        },
        _incremental_sizes,
        _finish_incremental,
        "_sides",
        _begin_incremental,
    ),
}
