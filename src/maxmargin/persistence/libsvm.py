"""LIBSVM's model files, the text of its `svm_save_model`.

Three things differ from scikit-learn's attributes. LIBSVM's labels stand in the order of their first
appearance, not ascending. The value of the pair (i, j) is positive for i also where there are just two
classes. And rho is the intercept with the other sign.

Paper: C.-C. Chang, C.-J. Lin, "LIBSVM: A Library for Support Vector Machines", 2011.

Files of regressions have the layout of one-class files; the prediction is the value itself.
"""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._files import writing
from maxmargin._types import Floats, Index
from maxmargin.persistence.files import File
from maxmargin.persistence.libsvm_text import KERNELS, Text, parse
from maxmargin.persistence.store import check_storable, chosen

# svm_type of LIBSVM -> class; the first of a kind is the one that a file becomes.
PAIRS = {"c_svc": ("SVC", "IncrementalSVC"), "nu_svc": ("NuSVC",)}
SINGLE = {
    "one_class": ("OneClassSVM", "L2OneClassSVM"),
    "epsilon_svr": ("SVR",),
    "nu_svr": ("NuSVR",),
}
WRITABLE = tuple(name for types in (PAIRS, SINGLE) for names in types.values() for name in names)


def load_libsvm(file: File, *, n_features: int | None = None) -> Any:
    """Read a model that LIBSVM, or `save_libsvm`, wrote.

    Parameters
    ----------
    file : path or binary file object
        Where from.
    n_features : int, default=None
        Number of features of the training data; for a precomputed kernel the number of training samples.
        The file does not tell: by default the largest index in it.

    Returns
    -------
    estimator : SVC, NuSVC, OneClassSVM, SVR or NuSVR
        Predicts what LIBSVM predicts. Support vectors are sparse; samples may be sparse or dense.

    Raises
    ------
    ModelFileError
        If there is anything wrong with the file; the message has the number of the line.

    Notes
    -----
    The file does not tell C, nu, epsilon, tol or the like: these parameters have their defaults. `support_`
    counts the support vectors of the file, `status_` is "unknown"; `dual_gap_` and `relative_gap_` are
    NaN, as is `epsilon_` of `NuSVR`. `classes_` are ascending; where classes have equally many votes, the one
    that comes first in the file wins, as in LIBSVM. Probability estimates (probA, probB, prob_density_marks)
    are read over.

    Examples
    --------
    >>> import io
    >>> from maxmargin.persistence import load_libsvm
    >>> text = b'''svm_type c_svc
    ... kernel_type linear
    ... nr_class 2
    ... total_sv 2
    ... rho -1
    ... label 1 -1
    ... nr_sv 1 1
    ... SV
    ... 0.5 1:2
    ... -0.5 2:1
    ... '''
    >>> load_libsvm(io.BytesIO(text)).decision_function([[1.0, 1.0]])
    array([1.5])
    """
    text = parse(file, n_features, (*PAIRS, *SINGLE))
    estimator = _pairs(text) if text.svm_type in PAIRS else _single(text)
    estimator.n_features_in_ = text.n_features
    estimator.support_ = text.support[text.order].astype(np.int32)
    estimator.shape_fit_ = (text.n_samples, text.n_features)
    return _common(estimator, text)


def _common(estimator: Any, text: Text) -> Any:
    """What every machine has."""
    from maxmargin.estimators.base import _align

    precomputed = estimator.kernel == "precomputed"
    estimator._sparse = not precomputed
    estimator._gamma = 0.0 if precomputed else float(text.gamma)
    estimator.support_vectors_ = np.empty((0, 0)) if precomputed else _align(text.vectors[text.order])
    coef = estimator._dense_coef
    estimator.dual_coef_ = coef if precomputed else _align(sp.csr_array(coef))
    estimator.n_kernel_evals_ = estimator.n_kernel_calls_ = 0
    estimator.status_, estimator.fit_status_ = "unknown", 0
    estimator._prepared = {}
    estimator._solved = None
    return estimator


def _made(name: str, text: Text) -> Any:
    import maxmargin

    parameters: dict[str, Any] = {"kernel": text.kernel}
    for key, kernels in (("degree", ("poly",)), ("coef0", ("poly", "sigmoid"))):
        if text.kernel in kernels:
            parameters[key] = getattr(text, key)
    if text.kernel in ("poly", "rbf", "sigmoid"):
        parameters["gamma"] = text.gamma
    return getattr(maxmargin, name)(**parameters)


def _pairs(text: Text) -> Any:
    estimator = _made(PAIRS[text.svm_type][0], text)
    order = np.argsort(text.labels, kind="stable")
    k = len(order)
    coef, values, rows = permuted(text.coef, -text.rho, text.n_support, order)
    sign = -1.0 if k == 2 else 1.0
    text.order = rows
    estimator.classes_ = text.labels[order]
    estimator.class_weight_ = np.ones(k)
    estimator._n_support = text.n_support[order].astype(np.int32)
    estimator._dense_coef = sign * coef
    estimator.intercept_ = sign * values
    estimator.n_iter_ = np.zeros(len(values), np.int32)
    estimator.dual_gap_ = np.full(len(values), np.nan)
    estimator.relative_gap_ = estimator.dual_gap_.copy()
    if (order != np.arange(k)).any():
        estimator._vote_order = np.argsort(order)
    return estimator


def _single(text: Text) -> Any:
    estimator = _made(SINGLE[text.svm_type][0], text)
    estimator._n_support = np.array([text.coef.shape[1]], np.int32)
    estimator._dense_coef = text.coef
    estimator.intercept_ = -text.rho
    if text.svm_type == "one_class":
        estimator.offset_ = text.rho
    elif text.svm_type == "nu_svr":
        estimator.epsilon_ = float("nan")
    estimator.n_iter_ = 0
    estimator.dual_gap_ = estimator.relative_gap_ = float("nan")
    return estimator


def permuted(coef: Floats, values: Floats, sizes: Index, order: Index) -> tuple[Floats, Floats, Index]:
    """The coefficients and constants of ``classes[order]`` from those of the classes; positive for the first.

    Parameters
    ----------
    coef : ndarray of shape (n_classes - 1, n_SV)
        In LIBSVM's layout: the machine of classes a < b has row b - 1 for class a and row a for class b.
    values : ndarray of shape (n_pairs,)
        Constants of the machines.
    sizes, order : ndarray of shape (n_classes,)
        Support vectors of each class, and the wanted order.

    Returns
    -------
    coef, values, rows : ndarray
        In the new order; `rows` tells which support vectors come one after the other.
    """
    k = len(order)
    at = np.concatenate([[0], np.cumsum(sizes)])
    parts = [np.arange(at[c], at[c + 1]) for c in order]
    ends = np.concatenate([[0], np.cumsum([len(p) for p in parts])])
    where = [slice(a, b) for a, b in pairwise(ends)]
    place = {pair: p for p, pair in enumerate(combinations(range(k), 2))}
    out, constants = np.zeros_like(coef), np.empty_like(values)
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        i, j = int(order[a]), int(order[b])
        sign = 1.0 if i < j else -1.0
        # Of the old machine (i, j) or (j, i): the row of a class is named after the other one.
        out[b - 1, where[a]] = sign * coef[j - (i < j), parts[a]]
        out[a, where[b]] = sign * coef[i - (j < i), parts[b]]
        constants[p] = sign * values[place[min(i, j), max(i, j)]]
    return out, constants, np.concatenate(parts)


# -- writing -----------------------------------------------------------------------------------------


def save_libsvm(estimator: Any, file: File) -> None:
    r"""Write a model that LIBSVM's programs and `load_libsvm` can read.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, OneClassSVM, L2OneClassSVM, IncrementalSVC or SVMSearchCV
        Fitted, with a kernel that LIBSVM has and labels that are integers. `L2OneClassSVM` becomes a
        one_class model, `IncrementalSVC` a c_svc model and `SVR` with either loss an epsilon_svr model: as
        LIBSVM predicts there is no difference.
    file : path or binary file object
        Where to.

    Raises
    ------
    TypeError, ValueError
        If LIBSVM has no such model.

    Examples
    --------
    >>> import io
    >>> from maxmargin import SVC
    >>> from maxmargin.persistence import save_libsvm
    >>> file = io.BytesIO()
    >>> save_libsvm(SVC(kernel="linear").fit([[0.0], [2.0]], [3, 4]), file)
    >>> file.getvalue().split(b"\n")[:3]
    [b'svm_type c_svc', b'kernel_type linear', b'nr_class 2']
    """
    estimator = chosen(estimator)
    check_storable(estimator, WRITABLE)
    name = type(estimator).__name__
    svm_type = next(t for t, names in {**PAIRS, **SINGLE}.items() if name in names)
    if estimator.kernel not in KERNELS.values():
        shown = "a function" if callable(estimator.kernel) else repr(estimator.kernel)
        raise ValueError(
            f"LIBSVM has no kernel that is {shown}: its kernels are {', '.join(KERNELS.values())}."
        )
    head, coef, rows = _pair_part(estimator) if svm_type in PAIRS else _single_part(estimator)
    lines = [f"svm_type {svm_type}", *_kernel_part(estimator), *head, "SV"]
    with writing(file) as stream:
        stream.write(("\n".join(lines) + "\n").encode())
        _write_rows(stream, estimator, coef, rows)


def _kernel_part(estimator: Any) -> list[str]:
    kernel = estimator.kernel
    names = {ours: theirs for theirs, ours in KERNELS.items()}
    out = [f"kernel_type {names[kernel]}"]
    if kernel == "poly":
        out.append(f"degree {int(estimator.degree)}")
    if kernel in ("poly", "rbf", "sigmoid"):
        gamma = estimator._gamma if hasattr(estimator, "_gamma") else estimator.gamma_
        out.append(f"gamma {gamma:.17g}")
    if kernel in ("poly", "sigmoid"):
        out.append(f"coef0 {float(estimator.coef0):.17g}")
    return out


def _pair_part(estimator: Any) -> tuple[list[str], Floats, Index]:
    labels = _integers(estimator.classes_)
    k = len(labels)
    if k < 2:
        raise ValueError("The model has seen one class only: LIBSVM has no such model.")
    if hasattr(estimator, "_dense_coef"):
        coef, by_class = estimator._dense_coef, np.arange(len(estimator.support_))
    else:  # IncrementalSVC has its support vectors in the order of their arrival
        by_class = np.argsort(estimator._coef > 0, kind="stable")
        coef = estimator._coef[None, by_class]
    sign = -1.0 if k == 2 else 1.0
    order = getattr(estimator, "_vote_order", np.arange(k))
    sizes = estimator.n_support_
    coef, values, rows = permuted(sign * coef, sign * estimator.intercept_, sizes, order)
    rho = " ".join(f"{v:.17g}" for v in 0.0 - values)
    head = [f"nr_class {k}", f"total_sv {len(rows)}", f"rho {rho}"]
    head.append("label " + " ".join(str(v) for v in labels[order]))
    head.append("nr_sv " + " ".join(str(v) for v in sizes[order]))
    return head, coef, by_class[rows]


def _single_part(estimator: Any) -> tuple[list[str], Floats, Index]:
    n = len(estimator.support_)
    head = ["nr_class 2", f"total_sv {n}", f"rho {0.0 - estimator.intercept_[0]:.17g}"]
    return head, estimator._dense_coef, np.arange(n)


def _integers(labels: NDArray[Any]) -> NDArray[np.int64]:
    whole = labels.dtype.kind in "iu" or (labels.dtype.kind == "f" and (labels == np.rint(labels)).all())
    if not whole or np.abs(labels.astype(np.float64)).max() >= 2**31:
        raise ValueError(
            f"LIBSVM's labels are integers of 32 bits, and the model's are {labels[:3].tolist()}...: train "
            "with y encoded by sklearn.preprocessing.LabelEncoder, or use maxmargin.persistence.save."
        )
    return labels.astype(np.int64)


def _write_rows(stream: Any, estimator: Any, coef: Floats, rows: Index) -> None:
    """One line per support vector: its coefficients, then index:value of what is not zero."""
    if estimator.kernel == "precomputed":
        for r, row in enumerate(rows):
            numbers = "".join(f"{v:.17g} " for v in coef[:, r])
            stream.write(f"{numbers}0:{int(estimator.support_[row]) + 1} \n".encode())
        return
    vectors = sp.csr_array(estimator.support_vectors_)
    vectors.sum_duplicates()
    for r, row in enumerate(rows):
        part = slice(vectors.indptr[row], vectors.indptr[row + 1])
        numbers = "".join(f"{v:.17g} " for v in coef[:, r])
        pairs = zip(vectors.indices[part].tolist(), vectors.data[part].tolist(), strict=True)
        values = "".join(f"{i + 1}:{v:.17g} " for i, v in pairs if v)
        stream.write(f"{numbers}{values}\n".encode())
