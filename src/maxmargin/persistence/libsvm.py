"""LIBSVM's model files, the text of its `svm_save_model`.

Three things differ from scikit-learn's attributes. LIBSVM's labels stand in the order of their first
appearance, not ascending. The value of the pair (i, j) is positive for i also where there are just two
classes. And rho is the intercept with the other sign.

Paper: C.-C. Chang, C.-J. Lin, "LIBSVM: A Library for Support Vector Machines", 2011.

Files of regressions have the layout of one-class files; the prediction is the value itself.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._files import File, writing
from maxmargin._types import Floats, Index
from maxmargin.estimators.calibration import SigmoidCalibrator
from maxmargin.estimators.incremental import IncrementalSVC
from maxmargin.estimators.model import KernelModel, configured
from maxmargin.kernels.functions import opaque
from maxmargin.kernels.kernel import Kernel
from maxmargin.persistence.libsvm_text import KERNELS, Text, parse
from maxmargin.persistence.models import check_class
from maxmargin.persistence.store import chosen

# svm_type of LIBSVM -> class; the first of a kind is the one that a file becomes.
PAIRS = {"c_svc": ("SVC", "IncrementalSVC"), "nu_svc": ("NuSVC",)}
SINGLE = {
    "one_class": ("OneClassSVM", "L2OneClassSVM"),
    "epsilon_svr": ("SVR", "QuantileSVR"),
    "nu_svr": ("NuSVR",),
}
WRITABLE = tuple(name for types in (PAIRS, SINGLE) for names in types.values() for name in names)


def load_libsvm(file: File, *, n_features: int | None = None) -> Any:
    """Read a model that LIBSVM, or `save_libsvm`, wrote.

    Parameters
    ----------
    file : path or binary file object
        The file to read.
    n_features : int, default=None
        Number of features of the training data; for a precomputed kernel the number of training samples.
        It is not in the file: by default the largest index in it.

    Returns
    -------
    estimator : SVC, NuSVC, OneClassSVM, SVR or NuSVR
        Predicts what LIBSVM predicts. Support vectors are sparse; samples may be sparse or dense.

    Raises
    ------
    ModelFileError
        If the file is damaged or malformed; the message has the number of the line.

    Notes
    -----
    C, nu, epsilon, tol and the like are not in the file: these parameters have their defaults. `support_`
    counts the support vectors of the file, `status_` is "unknown"; `dual_gap_` and `relative_gap_` are
    NaN, as is `epsilon_` of `NuSVR`. `classes_` are ascending; where classes have equally many votes, the one
    that comes first in the file wins, as in LIBSVM. The sigmoids of a classifier's probabilities (probA,
    probB) are read, and the parameter `probability` is True; those of regressions and one-class models
    (probA, prob_density_marks) are ignored.

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
    estimator = _made(text)
    if text.svm_type in PAIRS:
        model, attributes = _pairs(estimator, text)
    else:
        model, attributes = _single(estimator, text)
    for name in ("n_kernel_evals_", "n_kernel_calls_", "fit_status_"):
        attributes[name] = 0
    return estimator.set_model(model, status_="unknown", **attributes)


def _made(text: Text) -> Any:
    """An estimator with the parameters that the file has."""
    import maxmargin

    parameters: dict[str, Any] = {"kernel": text.kernel}
    for key, kernels in (("degree", ("poly",)), ("coef0", ("poly", "sigmoid"))):
        if text.kernel in kernels:
            parameters[key] = getattr(text, key)
    if text.kernel in ("poly", "rbf", "sigmoid"):
        parameters["gamma"] = text.gamma
    if text.svm_type in PAIRS and len(text.prob_a):
        parameters["probability"] = True
    return getattr(maxmargin, {**PAIRS, **SINGLE}[text.svm_type][0])(**parameters)


def _model(
    estimator: Any, text: Text, rows: Index, n_support: Index, coef: Floats, intercept: Floats
) -> KernelModel:
    """A model of the file's support vectors in the order `rows`."""
    precomputed = text.kernel == "precomputed"
    gamma = 0.0 if precomputed else float(text.gamma)
    return KernelModel(
        Kernel(estimator.kernel, gamma=gamma, degree=estimator.degree, coef0=estimator.coef0),
        None if precomputed else configured(text.vectors[rows]),
        text.support[rows].astype(np.int32),
        n_support.astype(np.int32),
        coef,
        intercept,
        (text.n_samples, text.n_features),
        sparse=not precomputed,
    )


def _pairs(estimator: Any, text: Text) -> tuple[KernelModel, dict[str, Any]]:
    order = np.argsort(text.labels, kind="stable")
    k = len(order)
    coef, values, rows = permuted(text.coef, -text.rho, text.n_support, order)
    sign = -1.0 if k == 2 else 1.0
    model = _model(estimator, text, rows, text.n_support[order], sign * coef, sign * values)
    if (order != np.arange(k)).any():
        model = replace(model, vote_order=np.argsort(order))
    return model, {
        "classes_": text.labels[order],
        "class_weight_": np.ones(k),
        "n_iter_": np.zeros(len(values), np.int32),
        "dual_gap_": np.full(len(values), np.nan),
        "relative_gap_": np.full(len(values), np.nan),
        "_calibrator": (
            SigmoidCalibrator(k, text.prob_a, text.prob_b).in_order(order) if len(text.prob_a) else None
        ),
    }


def _single(estimator: Any, text: Text) -> tuple[KernelModel, dict[str, Any]]:
    n = text.coef.shape[1]
    model = _model(estimator, text, np.arange(n), np.array([n]), text.coef, -text.rho)
    attributes: dict[str, Any] = {"n_iter_": 0, "dual_gap_": float("nan"), "relative_gap_": float("nan")}
    if text.svm_type == "nu_svr":
        attributes["epsilon_"] = float("nan")
    return model, attributes


def permuted(coef: Floats, values: Floats, sizes: Index, order: Index) -> tuple[Floats, Floats, Index]:
    """The coefficients and constants of ``classes[order]`` from those of the classes; positive for the first.

    Parameters
    ----------
    coef : ndarray of shape (n_classes - 1, n_SV)
        In LIBSVM's layout: the model of classes a < b has row b - 1 for class a and row a for class b.
    values : ndarray of shape (n_pairs,)
        Constants of the decision functions.
    sizes, order : ndarray of shape (n_classes,)
        Support vectors of each class, and the wanted order.

    Returns
    -------
    coef, values, rows : ndarray
        In the new order; `rows` has the old positions of the support vectors in it.
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
        # Of the old pair (i, j) or (j, i): the row of a class is named after the other one.
        out[b - 1, where[a]] = sign * coef[j - (i < j), parts[a]]
        out[a, where[b]] = sign * coef[i - (j < i), parts[b]]
        constants[p] = sign * values[place[min(i, j), max(i, j)]]
    return out, constants, np.concatenate(parts)


# -- writing -----------------------------------------------------------------------------------------


def save_libsvm(estimator: Any, file: File) -> None:
    r"""Write a model that LIBSVM's programs and `load_libsvm` can read.

    Parameters
    ----------
    estimator : SVC, NuSVC, SVR, NuSVR, QuantileSVR, OneClassSVM, L2OneClassSVM, IncrementalSVC or SVMSearchCV
        Fitted, with a kernel that LIBSVM has and labels that are integers. `L2OneClassSVM` becomes a
        one_class model, `IncrementalSVC` a c_svc model, `SVR` with either loss and `QuantileSVR` with one
        quantile an epsilon_svr model: their predictions are computed in the same way.
    file : path or binary file object
        The file to write.

    Raises
    ------
    TypeError, ValueError
        If LIBSVM does not have such a model.

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
    check_class(estimator, WRITABLE)
    name = type(estimator).__name__
    svm_type = next(t for t, names in {**PAIRS, **SINGLE}.items() if name in names)
    if estimator.kernel not in KERNELS.values():
        shown = "a function" if opaque(estimator.kernel) else repr(estimator.kernel)
        raise ValueError(
            f"LIBSVM does not have the kernel of the model, {shown}: its kernels are "
            f"{', '.join(KERNELS.values())}."
        )
    model = estimator.get_model()
    if svm_type in PAIRS:
        head, coef, rows = _pair_part(estimator, model)
    else:
        head, coef, rows = _single_part(estimator, model)
    lines = [f"svm_type {svm_type}", *_kernel_part(model.kernel), *head, "SV"]
    with writing(file) as stream:
        stream.write(("\n".join(lines) + "\n").encode())
        _write_rows(stream, model, coef, rows)


def _kernel_part(kernel: Kernel) -> list[str]:
    names = {ours: theirs for theirs, ours in KERNELS.items()}
    out = [f"kernel_type {names[str(kernel.name)]}"]
    if kernel.name == "poly":
        out.append(f"degree {int(kernel.degree)}")
    if kernel.name in ("poly", "rbf", "sigmoid"):
        out.append(f"gamma {kernel.gamma:.17g}")
    if kernel.name in ("poly", "sigmoid"):
        out.append(f"coef0 {float(kernel.coef0):.17g}")
    return out


def _pair_part(estimator: Any, model: KernelModel) -> tuple[list[str], Floats, Index]:
    labels = _integers(estimator.classes_)
    k = len(labels)
    if k < 2:
        raise ValueError(
            "The model has seen one class only: LIBSVM needs two. Learn rows of another class first."
        )
    by_class = np.arange(len(model.support))
    if (
        isinstance(estimator, IncrementalSVC) and k == 2
    ):  # its support vectors are in the order of their arrival
        by_class = np.argsort(model.coef[0] > 0, kind="stable")
    sign = -1.0 if k == 2 else 1.0
    order = np.arange(k) if model.vote_order is None else model.vote_order
    sizes = model.n_support.astype(np.intp)
    coef = sign * model.coef[:, by_class]
    coef, values, rows = permuted(coef, sign * estimator.intercept_, sizes, order)
    rho = " ".join(f"{v:.17g}" for v in 0.0 - values)
    head = [f"nr_class {k}", f"total_sv {len(rows)}", f"rho {rho}"]
    head.append("label " + " ".join(str(v) for v in labels[order]))
    fitted = None if isinstance(estimator, IncrementalSVC) else estimator.get_calibrator()
    if isinstance(fitted, SigmoidCalibrator):
        sigmoids = fitted.in_order(order)
        head.append("probA " + " ".join(f"{v:.17g}" for v in sigmoids.A))
        head.append("probB " + " ".join(f"{v:.17g}" for v in sigmoids.B))
    head.append("nr_sv " + " ".join(str(v) for v in sizes[order]))
    return head, coef, by_class[rows]


def _single_part(estimator: Any, model: KernelModel) -> tuple[list[str], Floats, Index]:
    n = len(model.support)
    if len(model.coef) > 1:
        raise ValueError(
            f"LIBSVM's models predict one target, and this one predicts {len(model.coef)}: train a model "
            "for each, or use maxmargin.persistence.save."
        )
    head = ["nr_class 2", f"total_sv {n}", f"rho {0.0 - estimator.intercept_[0]:.17g}"]
    return head, model.coef, np.arange(n)


def _integers(labels: NDArray[Any]) -> NDArray[np.int64]:
    whole = labels.dtype.kind in "iu" or (labels.dtype.kind == "f" and (labels == np.rint(labels)).all())
    if not whole or np.abs(labels.astype(np.float64)).max() >= 2**31:
        raise ValueError(
            f"LIBSVM's labels are integers of 32 bits, and the model's are {labels[:3].tolist()}...: train "
            "with y encoded by sklearn.preprocessing.LabelEncoder, or use maxmargin.persistence.save."
        )
    return labels.astype(np.int64)


def _write_rows(stream: Any, model: KernelModel, coef: Floats, rows: Index) -> None:
    """One line per support vector: its coefficients, then index:value of the entries that are not zero."""
    if model.kernel.name == "precomputed":
        for r, row in enumerate(rows):
            numbers = "".join(f"{v:.17g} " for v in coef[:, r])
            stream.write(f"{numbers}0:{int(model.support[row]) + 1} \n".encode())
        return
    vectors = sp.csr_array(model.vectors)
    vectors.sum_duplicates()
    for r, row in enumerate(rows):
        part = slice(vectors.indptr[row], vectors.indptr[row + 1])
        numbers = "".join(f"{v:.17g} " for v in coef[:, r])
        pairs = zip(vectors.indices[part].tolist(), vectors.data[part].tolist(), strict=True)
        values = "".join(f"{i + 1}:{v:.17g} " for i, v in pairs if v)
        stream.write(f"{numbers}{values}\n".encode())
