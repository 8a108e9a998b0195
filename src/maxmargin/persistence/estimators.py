"""The contents of model files of maxmargin's estimators: the parts of their models and other attributes.

Names that begin with an underscore are names in files only; format 1 has them for historical reasons.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._compiled.threads import effective_n_jobs
from maxmargin.estimators.calibration import CALIBRATORS
from maxmargin.estimators.held_rows import HeldRows
from maxmargin.estimators.model import KernelModel, configured
from maxmargin.kernels.kernel import Kernel
from maxmargin.persistence.schema import (
    ArrayField,
    Entry,
    Fields,
    NumberField,
    PerRowField,
    Sizes,
    Stored,
    Values,
)
from maxmargin.persistence.values import Refused
from maxmargin.solvers.arrival import pairs_of

# Samples and features that a model may have: indices of 32 bits.
LARGEST = 2**31 - 1
_STATUS = ("solved", "max_iter", "max_time", "stalled", "infeasible", "interrupted", "unknown")

_COMMON: Fields = {
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
    **_COMMON,
    "intercept_": ArrayField(("pairs",)),
    "class_weight_": ArrayField(("classes",), low=0.0),
    "n_iter_": ArrayField(("pairs",), ("i4",), low=0),
    "dual_gap_": ArrayField(("pairs",), finite=False),
    "relative_gap_": ArrayField(("pairs",), finite=False, missing=np.nan),
    "_vote_order": ArrayField(("classes",), ("i4", "i8"), low=0, below="classes", optional=True),
    # Of the calibrator: slopes and constants of sigmoids, knots of increasing functions, or a temperature.
    "_prob_a": ArrayField(("pairs",), optional=True),
    "_prob_b": ArrayField(("pairs",), optional=True),
    "_knots_x": ArrayField(("knots",), optional=True),
    "_knots_y": ArrayField(("knots",), low=0.0, optional=True),
    "_knots_ends": ArrayField(("pairs + 1",), ("i8",), low=0, optional=True),
    "_beta": ArrayField((1,), positive=True, optional=True),
}
_N_ITER, _GAP = NumberField(int, low=0), NumberField(float, finite=False)
_RELATIVE_GAP = NumberField(float, finite=False, missing=np.nan)
_ONE: Fields = {**_COMMON, "n_iter_": _N_ITER, "dual_gap_": _GAP, "relative_gap_": _RELATIVE_GAP}


def _begin_svm(estimator: Any) -> Values:
    """The parts of the model under their names in a file."""
    model = estimator.get_model()
    return {
        "shape_fit_0": model.shape[0],
        "_sparse": model.sparse,
        "_gamma": model.kernel.gamma,
        "support_": model.support,
        "_n_support": model.n_support,
        "_dense_coef": model.coef,
        "support_vectors_": model.support_vectors,
        "_vote_order": model.vote_order,
    }


# Names in a file of the fields of each kind of calibrator.
_CALIBRATION: dict[str, dict[str, str]] = {
    "sigmoid": {"A": "_prob_a", "B": "_prob_b"},
    "isotonic": {"x": "_knots_x", "y": "_knots_y", "ends": "_knots_ends"},
    "temperature": {"beta": "_beta"},
}


def _begin_pairs(estimator: Any) -> Values:
    values = _begin_svm(estimator)
    values.update({name: None for names in _CALIBRATION.values() for name in names.values()})
    calibrator = estimator.get_calibrator()
    if calibrator is not None and hasattr(estimator, "predict_proba"):
        names = _CALIBRATION[calibrator.name]
        values.update({names[key]: array for key, array in calibrator.arrays().items()})
    return values


def _common_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    """Sizes of the parts that every estimator has."""
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
        sizes["pairs + 1"], sizes["knots"] = sizes["pairs"] + 1, arrays.get("_knots_x", np.empty(0)).size
        _common_sizes(estimator, sizes, arrays)

    return sizes_of


def _single_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    sizes.update(groups=1, rows=1)
    _common_sizes(estimator, sizes, arrays)


def _target_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    """Sizes of a regression, which has a row of coefficients for each target."""
    coef = arrays.get("_dense_coef", np.empty((1, 0)))
    if coef.ndim != 2 or not len(coef):
        raise Refused("no rows of coefficients")
    sizes.update(groups=1, rows=len(coef))
    _common_sizes(estimator, sizes, arrays)


def _quantile_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    _target_sizes(estimator, sizes, arrays)
    several = estimator.quantiles is not None
    if several and np.ndim(estimator.quantiles) != 1:
        raise Refused("quantiles that are not a list of numbers")
    sizes["quantiles"] = len(estimator.quantiles) if several else 1
    if several and sizes["rows"] != sizes["quantiles"]:
        raise Refused("quantiles without coefficients, or the other way round")


def _finish_quantiles(estimator: Any, found: Values, sizes: Sizes) -> None:
    levels = found["quantiles_"]
    if (levels >= 1).any() or (np.diff(levels) <= 0).any():
        raise Refused("quantiles that are not between 0 and 1, or not in order")
    _finish_svm(estimator, found, sizes)


def _finish_svm(estimator: Any, found: Values, sizes: Sizes) -> None:
    """Make the model of an estimator with or without intercepts."""
    effective_n_jobs(estimator.n_jobs)
    n, vectors, sparse = found.pop("shape_fit_0"), found.pop("support_vectors_"), found.pop("_sparse")
    precomputed = estimator.kernel == "precomputed"
    if n > LARGEST or (precomputed and n != sizes["features"]):
        raise Refused(f"a number of training samples, {n}, that is too large or not the size of the kernel")
    if sp.issparse(vectors) != sparse:
        raise Refused("support vectors that are sparse where they should not be, or the other way round")
    gamma = found.pop("_gamma")
    kernel = Kernel(estimator.kernel, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0)
    if not kernel.n_features <= {sizes["features"]}:
        raise Refused("a gamma for each of another number of features")
    model = KernelModel(
        kernel,
        None if precomputed else configured(vectors),
        found.pop("support_"),
        found.pop("_n_support"),
        found.pop("_dense_coef"),
        found.pop("intercept_", np.zeros(sizes["rows"])),
        (n, sizes["features"]),
        sparse,
        found.pop("_vote_order", None),
    )
    found["fit_status_"] = int(found["status_"] not in ("solved", "unknown"))
    try:
        estimator.set_model(model, **found)
    except ValueError as error:
        raise Refused(f"an inconsistent model: {error}") from None


def _finish_pairs(estimator: Any, found: Values, sizes: Sizes) -> None:
    kinds = []
    for kind, names in _CALIBRATION.items():
        arrays = {key: found.pop(name) for key, name in names.items()}
        there = [array is not None for array in arrays.values()]
        if any(there) and not all(there):
            raise Refused("a part of what makes probabilities")
        if all(there):
            kinds.append((kind, arrays))
    if len(kinds) > 1:
        raise Refused("probabilities of two kinds")
    found["_calibrator"], found["_calibrator_given"] = None, bool(kinds)
    for kind, arrays in kinds:
        if kind == "isotonic":
            _check_knots(**arrays)
        found["_calibrator"] = CALIBRATORS[kind].from_arrays(sizes["classes"], arrays)
    _finish_svm(estimator, found, sizes)


def _check_knots(x: Any, y: Any, ends: Any) -> None:
    """Whether every pair has knots, in ascending order, whose values are probabilities."""
    if ends[0] != 0 or ends[-1] != len(x) or (np.diff(ends) < 1).any() or (y > 1).any():
        raise Refused("knots of probabilities that do not belong to the pairs, or are no probabilities")
    inner = np.ones(len(x), np.bool_)
    inner[ends[:-1]] = False  # the first of each pair follows none
    if (np.diff(x, prepend=x[0])[inner] < 0).any() or (np.diff(y, prepend=y[0])[inner] < 0).any():
        raise Refused("knots of probabilities that are not in order")


def _finish_one_class(estimator: Any, found: Values, sizes: Sizes) -> None:
    found["intercept_"] = -found.pop("offset_")
    _finish_svm(estimator, found, sizes)


# -- rows that come and go ---------------------------------------------------------------------------


def _begin_incremental(estimator: Any) -> Values:
    rows, k = estimator.get_rows(), len(getattr(estimator, "classes_", ()))
    # Up to two classes have sides and one multiplier per row, even if there is no problem yet.
    y = 2.0 * rows.y - 1.0 if 1 <= k <= 2 else rows.y
    u = rows.u.ravel() if len(rows.u) else np.zeros(len(y))
    held = {"_X": rows.X, "_y": y, "_ridge": rows.ridge, "_u": u, "_sides": rows.labels}
    return {"_sparse": sp.issparse(rows.X), **held}


def _incremental_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    k = sizes.get("classes", 2)
    rows = arrays.get("_y", np.empty(0))
    sizes["held"] = len(rows) if rows.ndim == 1 else 0
    sizes["pairs"] = max(1, k * (k - 1) // 2)
    sizes["multipliers"] = sizes["pairs"] * sizes["held"]
    if not sizes["held"] or not k:
        raise Refused("no rows, or no classes")


def _finish_incremental(estimator: Any, found: Values, sizes: Sizes) -> None:
    effective_n_jobs(estimator.n_jobs)
    X, y, ridge = (found[name] for name in ("_X", "_y", "_ridge"))
    k = sizes.get("classes", 0)
    u = found["_u"].reshape(sizes["pairs"], -1)
    if k:
        y = _codes(y, k, u)
    if sp.issparse(X) != found["_sparse"]:
        raise Refused("rows that are sparse where they should not be, or the other way round")
    if not np.isfinite([1e6 * estimator.cache_size, 1e6 * estimator.max_factor]).all():
        raise Refused("a memory budget that is not a finite number")
    labels, intercept = found.get("_sides", np.zeros(0)), found["intercept_"]
    if k > 1:
        intercept = estimator.in_order_of_arrival(intercept, labels)
    u, intercept = (u, intercept) if k != 1 else (u[:0], intercept[:0])
    estimator.set_rows(HeldRows(X, y, ridge, u, labels, found["gamma_"], intercept))


def _codes(y: Any, k: int, u: Any) -> Any:
    """Codes of classes from what is stored: the sides of up to two classes, or codes."""
    if k <= 2:
        if (np.abs(y) != 1).any() or (k == 1 and (y > 0).any()):
            raise Refused("sides of rows other than -1 and 1")
        y = 0.5 * (y + 1.0)
    elif not np.isin(y, np.arange(k)).all():
        raise Refused("codes of classes that there are not")
    for (a, b), row in zip(pairs_of(max(k, 2)), u, strict=True):
        if (row * np.where(y == a, -1.0, np.where(y == b, 1.0, 0.0)) < 0).any() or row[
            (y != a) & (y != b)
        ].any():
            raise Refused("multipliers of the other sign, or of another class")
    return y


_HELD = Entry(
    "maxmargin",
    {
        "_sparse": NumberField(bool),
        "gamma_": NumberField(float, low=0.0),
        "intercept_": ArrayField(("pairs",)),
        "_X": ArrayField(("held", "features"), ("f4", "f8"), sparse=True),
        "_y": ArrayField(("held",)),
        "_ridge": ArrayField(("held",), positive=True),
        "_u": ArrayField(("multipliers",)),
    },
    _incremental_sizes,
    _finish_incremental,
    "_sides",
    _begin_incremental,
)
_REGRESSION: Fields = {
    **_COMMON,
    "n_iter_": PerRowField(_N_ITER, ArrayField(("rows",), ("i4",), low=0)),
    "dual_gap_": PerRowField(_GAP, ArrayField(("rows",), finite=False)),
    "relative_gap_": PerRowField(_RELATIVE_GAP, ArrayField(("rows",), finite=False, missing=np.nan)),
    "intercept_": ArrayField(("rows",)),
}
_ONE_VS_ONE = Entry("maxmargin", _PAIRS, _classes(lambda k: k - 1), _finish_pairs, "classes_", _begin_pairs)
_OUTLIERS = Entry(
    "maxmargin",
    {**_ONE, "offset_": ArrayField((1,))},
    _single_sizes,
    _finish_one_class,
    begin=_begin_svm,
)

ESTIMATORS: dict[str, Entry] = {
    "SVC": _ONE_VS_ONE,
    "NuSVC": _ONE_VS_ONE,
    "OneClassSVM": _OUTLIERS,
    "L2OneClassSVM": replace(_OUTLIERS, earlier={"contamination": "margin"}),
    "SVR": Entry("maxmargin", _REGRESSION, _target_sizes, _finish_svm, begin=_begin_svm),
    "NuSVR": Entry(
        "maxmargin",
        # NaN where the model came from a LIBSVM file, which does not have the width of the tube.
        {
            **_REGRESSION,
            "epsilon_": PerRowField(NumberField(float, finite=False), ArrayField(("rows",), finite=False)),
        },
        _target_sizes,
        _finish_svm,
        begin=_begin_svm,
    ),
    "QuantileSVR": Entry(
        "maxmargin",
        {**_REGRESSION, "quantiles_": ArrayField(("quantiles",), positive=True)},
        _quantile_sizes,
        _finish_quantiles,
        begin=_begin_svm,
    ),
    "AllDistancesSVC": Entry(
        "maxmargin",
        {**_ONE, "intercept_": ArrayField(("classes",)), "mu_": NumberField(float, low=0.0)},
        _classes(lambda k: 1),
        _finish_svm,
        "classes_",
        _begin_svm,
    ),
    "CrammerSingerSVC": Entry("maxmargin", _ONE, _classes(lambda k: k), _finish_svm, "classes_", _begin_svm),
    "IncrementalSVC": _HELD,
    "IncrementalSVR": replace(_HELD, labels=None),
}
