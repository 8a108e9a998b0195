"""The folds of a search: rows, prepared by the steps of a pipeline, and their kernel matrices."""

from __future__ import annotations

import copy
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array

from maxmargin._compiled.memo import Memo
from maxmargin._compiled.memory import Buffers
from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin._types import Index
from maxmargin.estimators.search_axes import kernel_of
from maxmargin.kernels.functions import opaque
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.shared import SharedKernels
from maxmargin.model_selection.refusal import Refused, because
from maxmargin.model_selection.row_wise import is_row_wise

#: Data sets on which the jobs of a search work at the same time, at most: each has matrices of its own.
FOLDS_AT_A_TIME = 2
# Share of all values by which rows may differ that two methods of a transformer return.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Fold:
    """Rows of `X` (all that are needed, after preprocessing): which train, which are held out."""

    X: Any
    train: Index
    test: Index
    kernels: SharedKernels | None

    def kernel_of(self, estimator: Any, weight: Any = None) -> Kernel | Refused:
        """The kernel of an estimator with the numbers that the training rows give."""
        kept = np.arange(len(self.train)) if weight is None else np.flatnonzero(weight > 0)
        needs_data = kind_of(estimator) == "named" and estimator.gamma == "scale"
        rows = safe_indexing(self.X, self.train) if needs_data else self.X
        try:
            return kernel_of(estimator, rows, kept)
        except ValueError as error:  # data without a finite variance
            return Refused(f"the kernel is not defined for the training rows ({because(error)})")

    def matrix(self, kernel: Kernel) -> NDArray[Any] | Refused:
        """The shared kernel matrix of all rows, if it can be used; `kernels` must not be None."""
        assert self.kernels is not None
        if not callable(kernel.name):
            K = self.kernels.matrix(kernel)
        else:
            try:
                K = self.kernels.matrix(kernel)
            except Exception as error:  # of the user's function
                return Refused(f"the kernel function failed for all rows ({because(error)})")
            if len(K) != num_samples(self.X):
                return Refused(f"the kernel function returned {len(K)} rows for {num_samples(self.X)}")
        bounded = kernel.name in ("rbf", "laplacian") and kernel.gamma > 0  # between 0 and 1
        if not bounded and not np.isfinite(K).all():
            return Refused(f"the kernel matrix has values that are not finite in {K.dtype}")
        return K

    def rows(self, pairwise: bool) -> tuple[Any, Any]:
        """Training and held-out rows as `fit` and `predict` get them; of a matrix also their columns."""
        if pairwise:
            return self.X[np.ix_(self.train, self.train)], self.X[np.ix_(self.test, self.train)]
        return safe_indexing(self.X, self.train), safe_indexing(self.X, self.test)


class Folds:
    """Makes folds, each once for all threads of a process that ask for it.

    Without preprocessing, or if it looks at single rows only, all folds share one data set and its kernel
    matrices; otherwise a fold has its own.
    A pickled object does not contain them. A process that receives jobs makes its own, which its jobs hold:
    those that run at the same time share them, and the memory is free when the last one ends.

    Parameters
    ----------
    memory : float
        Bytes that the kernel matrices of a data set may take; larger ones are not made.
    keep : int
        Data sets that are kept, as many as jobs work on at the same time. Before another one is made, the
        least recently used is removed, so that its memory is free.
    scores_training : bool
        Whether training rows are scored too: then `transform` must return them as `fit_transform` does.
    """

    def __init__(self, memory: float, keep: int = 2, scores_training: bool = False) -> None:
        self.memory, self.keep, self.scores_training = memory, keep, scores_training
        self.token = uuid.uuid4().hex
        # By fold and setting the prepared rows, each of them by precision and kind of kernel.
        self._made = Memo(keep, lambda key: self._to_come[key] > 0)
        self._lock = threading.Lock()
        # How often jobs of this process will ask for the rows of a fold and setting.
        self._to_come: Counter[tuple[int | None, int | None]] = Counter()
        self._buffers = Buffers()

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (self.token, self.memory, self.keep, self.scores_training)

    def release(self) -> None:
        """Give back the memory of the folds."""
        self._made.clear()
        self._buffers.release()

    def expect(self, jobs: Iterable[tuple[Iterable[int], int]]) -> None:
        """Keep the rows of a fold until the last of these jobs, given by their folds and setting, has them.

        A job that is late would otherwise prepare them again.
        """
        self._to_come = Counter((k, setting) for folds, setting in jobs for k in folds)

    def get(
        self,
        X: Any,
        y: Any,
        k: int,
        split: tuple[Index, Index],
        before: Any,
        dtype: Any,
        kind: str,
        setting: int = 0,
    ) -> Fold | Refused:
        """Fold number k, prepared by the steps `before`; `kind` is that of the kernel (`kind_of`).

        Calls with the same `setting` have the same steps.
        """
        train, test = split
        if before is not None and kind == "given":
            return Refused("a pipeline changes a precomputed kernel matrix")
        steps = None if before is None else setting
        own = (np.dtype(dtype).name, kind)
        if is_row_wise(before):
            made = self._made.get((None, steps), Memo).get(
                own, lambda: self._with_kernels(self._whole(X, y, before, kind), dtype, self.keep)
            )
            if isinstance(made, Refused):
                return made
            # A shared matrix has every row once.
            if made[1] is None or len(np.unique(train)) == len(train):
                return Fold(made[0], train, test, made[1])
        of_fold = self._made.get((k, steps), Memo)
        with self._lock:
            self._to_come[k, steps] -= 1
        made = of_fold.get(
            own, lambda: self._with_kernels(self._prepared(X, y, split, before, kind), dtype, 1)
        )
        if isinstance(made, Refused):
            return made
        rows = np.arange(len(train) + len(test))
        return Fold(made[0], rows[: len(train)], rows[len(train) :], made[1])

    def _whole(self, X: Any, y: Any, before: Any, kind: str) -> Any:
        """All rows as the last step gets them, by steps that transform each on its own, or Refused."""
        if before is not None:
            found = self._transformed(before, [_copied(X, np.arange(num_samples(X)))], y)
            if isinstance(found, Refused):
                return found
            X = found[0]
        return _checked(X, kind)

    def _prepared(self, X: Any, y: Any, split: tuple[Index, Index], before: Any, kind: str) -> Any:
        """Training rows, then held-out ones, as the last step gets them, or Refused."""
        if kind == "given":
            checked, rows = _checked(X, kind), np.concatenate(split)
            return checked if isinstance(checked, Refused) else checked[np.ix_(rows, rows)]
        parts: Any = [_copied(X, rows) for rows in split]
        if before is not None:
            labels = None if y is None else safe_indexing(y, split[0])
            parts = self._transformed(before, parts, labels)
            if isinstance(parts, Refused):
                return parts
        parts = [_checked(part, kind) for part in parts]
        for part in parts:
            if isinstance(part, Refused):
                return part
        if kind == "function":
            return np.concatenate([np.asarray(part, dtype=object) for part in parts])
        return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.vstack(parts)

    def _transformed(self, before: Any, parts: list[Any], labels: Any) -> list[Any] | Refused:
        """Parts of the rows as the last step gets them; the steps are fitted on the first of them.

        The steps may write into the parts.
        """
        fitted = clone(before)
        try:
            found = [fitted.fit_transform(parts[0], labels), *(fitted.transform(part) for part in parts[1:])]
            if not self.scores_training:
                return found
            # To score its training rows scikit-learn passes those that were fitted on to `transform`. Steps
            # that write into them transform them twice, and would write into what `fit_transform` returned.
            found[0] = copy.deepcopy(found[0])
            again = fitted.transform(parts[0])
        except Exception as error:  # of a step that the user has put there
            return Refused(f"the pipeline before the last step failed ({because(error)})")
        if not _same(found[0], again):
            return Refused("the pipeline transforms training rows in one way to fit, in another to score")
        return found

    def _with_kernels(self, X: Any, dtype: Any, keep: int) -> tuple[Any, SharedKernels | None] | Refused:
        if isinstance(X, Refused):
            return X
        # The distances and the kernels of two widths.
        size = 3 * np.dtype(dtype).itemsize * num_samples(X) ** 2
        return X, SharedKernels(X, dtype, keep, self._buffers) if size <= self.memory else None


_receiving = threading.Lock()
# By search, while a job holds them: jobs in several threads of a process must not take `memory` each.
_held: weakref.WeakValueDictionary[str, Folds] = weakref.WeakValueDictionary()


def _received(token: str, *arguments: Any) -> Folds:
    """The folds of a job that comes from another process: those of the jobs that run here, or new ones."""
    with _receiving:
        folds = _held.get(token)
        if folds is None:
            folds = _held[token] = Folds(*arguments)
        return folds


def kind_of(estimator: Any) -> str:
    """How an estimator's kernel reads X: "given" (X is the matrix), "function" (X is anything) or "named"."""
    if opaque(estimator.kernel):
        return "function"
    return "given" if estimator.kernel == "precomputed" else "named"


def _checked(X: Any, kind: str) -> Any:
    """X as an array or a CSR matrix of finite numbers, or Refused; anything for a function."""
    if kind == "function":
        return X
    sparse = False if kind == "given" else "csr"
    try:
        checked = check_array(X, accept_sparse=sparse, dtype=[np.float64, np.float32], order="C")
    except (TypeError, ValueError) as error:
        return Refused(f"the data cannot be used ({because(error)})")
    if kind == "given" and checked.shape[0] != checked.shape[1]:
        return Refused(f"the precomputed kernel matrix has the shape {checked.shape}")
    return checked


def _copied(X: Any, rows: Index) -> Any:
    """Rows of X in memory of their own: steps of a pipeline may write into them."""
    found = safe_indexing(X, rows)
    # Asked for all rows in their order, pandas returns a table that has the memory of X.
    return found.copy() if hasattr(found, "iloc") else found


def _same(rows: Any, others: Any) -> bool:
    """Whether two sets of rows are the same but for rounding."""
    if sp.issparse(rows) != sp.issparse(others):
        return False
    if not sp.issparse(rows):
        try:
            rows, others = np.asarray(rows), np.asarray(others)
            if rows.dtype.kind not in "biuf" or others.dtype.kind not in "biuf":
                return bool(np.array_equal(rows, others))
        except (TypeError, ValueError):  # rows of different lengths, or without a truth value of their own
            return False
    if rows.shape != others.shape:
        return False
    # Differences of truth values are not defined, and those of unsigned integers are never negative.
    rows, others = rows.astype(np.float64), others.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite values are refused later
        return bool(abs(rows - others).sum() <= _ROUNDING * abs(rows).sum())
