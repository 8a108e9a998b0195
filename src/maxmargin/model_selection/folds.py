"""What a fold of a search works on: the rows, what a pipeline made of them, and their kernel matrices."""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array

from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Index
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.shared import SharedKernels


@dataclass(frozen=True)
class Fold:
    """Rows of `X` (all that are needed, after preprocessing): which train, which are held out."""

    X: Any
    train: Index
    test: Index
    kernels: SharedKernels | None

    def kernel_of(self, estimator: Any, weight: Any = None) -> Kernel:
        """The kernel of an estimator with the numbers that the training rows give."""
        kept = np.arange(len(self.train)) if weight is None else np.flatnonzero(weight > 0)
        # It notes the number on the estimator: on a copy, as folds may differ.
        kernel: Kernel = copy.copy(estimator)._kernel_for(self._training_rows(estimator), kept)
        return kernel

    def rows(self, pairwise: bool) -> tuple[Any, Any]:
        """Training and held-out rows as `fit` and `predict` get them; of a matrix also their columns."""
        if pairwise:
            return self.X[np.ix_(self.train, self.train)], self.X[np.ix_(self.test, self.train)]
        return safe_indexing(self.X, self.train), safe_indexing(self.X, self.test)

    def _training_rows(self, estimator: Any) -> Any:
        needs_data = estimator.kernel != "precomputed" and estimator.gamma == "scale"
        return safe_indexing(self.X, self.train) if needs_data else self.X


def split_pipeline(estimator: Any) -> tuple[Any, Any, str]:
    """What comes before the last step (or None), the last step, and the prefix of its parameters."""
    if not isinstance(estimator, Pipeline):
        return None, estimator, ""
    steps = [
        (name, step) for name, step in estimator.steps[:-1] if step is not None and step != "passthrough"
    ]
    name, last = estimator.steps[-1]
    before = Pipeline(steps, memory=estimator.memory) if steps else None
    return before, last, f"{name}__"


def split_parameters(params: dict[str, Any], prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of what comes before the last step, and those of the last step by their own names."""
    own = {k[len(prefix) :]: v for k, v in params.items() if k.startswith(prefix)}
    return {k: v for k, v in params.items() if not k.startswith(prefix)}, own


class Folds:
    """Makes folds, each once for all threads of a process that ask for it.

    Without preprocessing all folds share one data set and its kernel matrices; with it a fold has its own.
    """

    def __init__(self, memory: float, keep: int = 2) -> None:
        self.memory, self.keep = memory, keep
        self._lock = threading.Lock()
        self._made: OrderedDict[Any, tuple[threading.Lock, list[Any]]] = OrderedDict()

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        with self._lock:
            lock, kept = self._made.setdefault(key, (threading.Lock(), []))
            self._made.move_to_end(key)
            while len(self._made) > self.keep:
                self._made.popitem(last=False)
        with lock:
            if not kept:
                kept.append(make())
            return kept[0]

    def get(
        self,
        X: Any,
        y: Any,
        k: int,
        split: tuple[Index, Index],
        before: Any,
        dtype: Any,
        kind: str,
    ) -> Fold:
        """Fold number k, with what `before` makes of its rows; `kind` is that of the kernel (`kind_of`)."""
        train, test = split
        if before is not None and kind == "given":
            raise NotImplementedError("a pipeline in front of a given kernel matrix")
        own = (np.dtype(dtype).name, kind)
        if before is None:
            data, kernels = self._once(("whole", *own), lambda: self._with_kernels(_checked(X, kind), dtype))
            # A shared matrix has every row once.
            if kernels is None or len(np.unique(train)) == len(train):
                return Fold(data, train, test, kernels)
        data, kernels = self._once(
            (k, repr(before), *own), lambda: self._with_kernels(_prepared(X, y, split, before, kind), dtype)
        )
        rows = np.arange(len(train) + len(test))
        return Fold(data, rows[: len(train)], rows[len(train) :], kernels)

    def _with_kernels(self, X: Any, dtype: Any) -> tuple[Any, SharedKernels | None]:
        # The distances and the kernels of two widths.
        size = 3 * np.dtype(dtype).itemsize * num_samples(X) ** 2
        return X, SharedKernels(X, dtype) if size <= self.memory else None


def kind_of(estimator: Any) -> str:
    """How an estimator's kernel reads X: "given" (X is the matrix), "function" (X is anything) or "named"."""
    if callable(estimator.kernel):
        return "function"
    return "given" if estimator.kernel == "precomputed" else "named"


def _checked(X: Any, kind: str) -> Any:
    if kind == "function":
        return X
    checked = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], order="C")
    if kind == "given" and checked.shape[0] != checked.shape[1]:
        raise ValueError("a kernel matrix that is not square")
    return checked


def _prepared(X: Any, y: Any, split: tuple[Index, Index], before: Any, kind: str) -> Any:
    """Training rows, then held-out ones, as the last step gets them."""
    if kind == "given":
        rows = np.concatenate(split)
        return _checked(X, kind)[np.ix_(rows, rows)]
    train, test = (safe_indexing(X, rows) for rows in split)
    if before is not None:
        fitted = clone(before)
        train = fitted.fit_transform(train, None if y is None else safe_indexing(y, split[0]))
        test = fitted.transform(test)
    train, test = (_checked(part, kind) for part in (train, test))
    if kind == "function":
        return np.concatenate([np.asarray(train, dtype=object), np.asarray(test, dtype=object)])
    stacked = sp.vstack([train, test], format="csr") if sp.issparse(train) else np.vstack([train, test])
    return stacked
