"""The outputs of a support vector machine as kernel expansions: one row of coefficients per output."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor

from maxmargin._sklearn import fitted_gamma
from maxmargin._types import Floats
from maxmargin.estimators.all_distances import AllDistancesSVC
from maxmargin.estimators.crammer_singer import CrammerSingerSVC
from maxmargin.kernels.kernel import Kernel


@dataclass(frozen=True)
class Outputs:
    """``value_o(x) = sum over the support vectors v of coef[o, v] k(x, v) + intercept[o]``.

    Attributes
    ----------
    kernel : Kernel
    vectors : ndarray or CSR matrix of shape (n_SV, n_features)
        The support vectors.
    coef : ndarray of shape (n_outputs, n_SV)
    intercept : ndarray of shape (n_outputs,)
    names : tuple of str
        What the outputs are.
    """

    kernel: Kernel
    vectors: Any
    coef: Floats
    intercept: Floats
    names: tuple[str, ...]

    @classmethod
    def of(cls, svm: Any) -> Outputs:
        """Describe a fitted support vector machine of this library or of scikit-learn.

        Raises
        ------
        TypeError
            If it has no support vectors.
        """
        if not all(hasattr(svm, name) for name in ("support_", "dual_coef_", "kernel")):
            raise TypeError(
                "A fitted support vector machine such as SVC, SVR or OneClassSVM is needed, or a pipeline or "
                f"search that ends with one; got {type(svm).__name__}."
            )
        if hasattr(svm, "get_model"):
            model = svm.get_model()
            kernel, coef, intercept, counts = model.kernel, model.coef, model.intercept, model.n_support
        else:
            kernel = Kernel(svm.kernel, gamma=fitted_gamma(svm))
            coef, intercept, counts = svm.dual_coef_, svm.intercept_, svm.n_support_
        coef = np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
        intercept = np.asarray(intercept, dtype=np.float64)
        if isinstance(svm, AllDistancesSVC):
            names, coef = _names(svm), _centred(coef[0], counts)
        elif isinstance(svm, CrammerSingerSVC):
            names, intercept = _names(svm), np.zeros(len(coef))
        elif is_regressor(svm):
            names = _functions(svm, len(coef))
        elif not is_classifier(svm):
            names, intercept = ("decision value",), -np.atleast_1d(np.asarray(svm.offset_, dtype=np.float64))
        elif len(svm.classes_) > 2:
            names = tuple(f"{a} against {b}" for a, b in combinations(_names(svm), 2))
            coef = _of_pairs(coef, counts)
        else:
            names = _names(svm)[-1:]
        if (
            is_classifier(svm) and len(names) == 2
        ):  # a value for each class: `decision_function` is their difference
            names, coef, intercept = names[1:], coef[1:] - coef[:1], intercept[1:] - intercept[:1]
        return cls(kernel, svm.support_vectors_, coef, intercept, names)


def _names(svm: Any) -> tuple[str, ...]:
    return tuple(map(str, svm.classes_))


def _functions(svm: Any, count: int) -> tuple[str, ...]:
    """The names of the functions of a regression: of one, of quantiles, or of targets."""
    if count == 1:
        return ("prediction",)
    if getattr(svm, "quantiles", None) is not None:
        return tuple(f"quantile {q:g}" for q in svm.quantiles_)
    return tuple(f"target {k}" for k in range(count))


def _centred(coef: Floats, counts: Any) -> Floats:
    """Weight vectors that are the point of each class less the mean of the points (all-distances)."""
    k = len(counts)
    own = np.repeat(np.arange(k), counts) == np.arange(k)[:, None]
    return np.asarray(coef * (own - 1.0 / k))


def _of_pairs(coef: Floats, counts: Any) -> Floats:
    """One row per pair of classes a < b, which has row b - 1 for class a and row a for class b."""
    pairs = list(combinations(range(len(counts)), 2))
    ends = np.concatenate([[0], np.cumsum(counts)])
    out = np.zeros((len(pairs), coef.shape[1]))
    for to, (a, b) in zip(out, pairs, strict=True):
        to[ends[a] : ends[a + 1]] = coef[b - 1, ends[a] : ends[a + 1]]
        to[ends[b] : ends[b + 1]] = coef[a, ends[b] : ends[b + 1]]
    return out
