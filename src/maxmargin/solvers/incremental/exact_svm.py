"""The interface: rows are learnt and forgotten, all or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._types import Floats, Index, Mask
from maxmargin.kernels.kernel import Kernel
from maxmargin.solvers import costs
from maxmargin.solvers.incremental.checked import CheckedMargins
from maxmargin.solvers.incremental.exactness import InexactError
from maxmargin.solvers.incremental.leave_one_out import leave_one_out


class ExactSVM(CheckedMargins):
    """A binary SVM over rows that can be added and removed.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with all coefficients given.
    most_bytes : int
        Memory for the kernel matrix of all rows, and for T. If it is not enough, kernel values are computed
        when they are needed, and leave-one-out values one after the other.
    factor_bytes : int
        Memory for the factor of the support vectors; more is an error.
    n_jobs : int, optional
        Threads.
    """

    def __init__(self, kernel: Kernel, *, most_bytes: int, factor_bytes: int, n_jobs: int | None) -> None:
        super().__init__(kernel, most_bytes=most_bytes, factor_bytes=factor_bytes, n_jobs=n_jobs)
        # Rows of `restore`, until they are needed.
        self._waiting: tuple[Any, Floats, Floats, Floats] | None = None

    @property
    def held(self) -> Index:
        """Places of the rows that are held, in the order of arrival."""
        self._load_waiting()
        return super().held

    def add(self, X: Any, y: Floats, ridge: Floats) -> None:
        """Learn rows with the sides y = -1, +1; all of them or, with a `ValueError`, none."""
        self._begin_change()
        with self._all_or_nothing("learnt"):
            new = self.append(X, y, ridge)
            support = np.flatnonzero(self.u[: self.n])
            self.g[new] += self.product(support, self.u[support], new)
            self.make_exact()

    def forget(self, rows: Index) -> None:
        """Unlearn rows; all of them or, with a `ValueError`, none."""
        self._begin_change()
        with self._all_or_nothing("forgotten"):
            if np.count_nonzero(self.u[rows]) > costs.EXACT_FEW:  # a solver is faster, and restores the sum
                self.u[rows] = 0.0
                self.active.size = 0
                self.recompute_gradient()
            for k in map(int, rows):
                self.unlearn(k)
            self.make_exact()
        if self.n > costs.EXACT_PLACES and np.count_nonzero(self.alive) < self.n // 2:
            self.compact()

    def leave_one_out(self) -> Floats:
        """The decision value of each held row by a model trained without it."""
        return leave_one_out(self)

    # -- storing and restoring -------------------------------------------------------------------------

    def rows(self) -> tuple[Any, Floats, Floats, Floats]:
        """The held rows, their sides, ridges and multipliers, from which `restore` rebuilds the model."""
        if self._waiting is not None:
            return self._waiting
        if not self.sound:
            raise ValueError("Learning was interrupted: fit again first.")
        held = self.held
        return self.X[held], self.y[held], self.ridge[held], self.u[held]

    def restore(self, X: Any, y: Floats, ridge: Floats, u: Floats) -> None:
        """Take the result of `rows`. Kernel values are computed at the first change, not now."""
        self._waiting = (X, y, ridge, u)

    def _load_waiting(self) -> None:
        if self._waiting is None:
            return
        X, y, ridge, u = self._waiting
        loaded = ExactSVM(
            self.kernel, most_bytes=self.most_bytes, factor_bytes=self.active.most_bytes, n_jobs=self.n_jobs
        )
        new = loaded.append(X, y, ridge)
        loaded.u[new] = u
        loaded.recompute_gradient()
        loaded.make_exact()
        self.__dict__.update(loaded.__dict__)  # all or nothing: an interrupt leaves the rows waiting

    # -- all or nothing --------------------------------------------------------------------------------

    def _begin_change(self) -> None:
        """Solve again after an interrupt, and mark the model as changing."""
        self._load_waiting()
        if not self.sound:
            self.active.size = 0
            self.recompute_gradient()
            self.make_exact()
        self.sound = False

    @contextmanager
    def _all_or_nothing(self, what: str) -> Iterator[None]:
        """Undo the changes if they end with an error."""
        n, u, alive, level = self.n, self.u.copy(), self.alive.copy(), self.level
        try:
            yield
        except Exception as error:
            largest = float(np.max(np.abs(self.diag[: self.n]), initial=0.0))
            self._undo(n, u, alive, level)
            if isinstance(error, InexactError | np.linalg.LinAlgError):
                raise InexactError(
                    f"The rows cannot be {what}, and nothing was changed: with kernel values up to "
                    f"{largest:.2g} and this C the margins cannot be made exact in double precision"
                ) from error
            raise

    def _undo(self, n: int, u: Floats, alive: Mask, level: float) -> None:
        """Return to the model with n places, the multipliers u and this level."""
        if sp.issparse(self.X):
            self.X = self.X[:n]
        self.n = n
        self.u[:] = 0.0
        self.u[:n] = u[:n]
        self.alive[:] = False
        self.alive[:n] = alive[:n]
        held, positive = self.alive[:n], self.y[:n] > 0
        self.lo[:n] = np.where(held & ~positive, -np.inf, 0.0)
        self.hi[:n] = np.where(held & positive, np.inf, 0.0)
        self.recompute_gradient()
        self.active.size = 0
        S = np.flatnonzero(self.u[:n])
        try:
            if len(S):
                self.load(S)
        except np.linalg.LinAlgError:
            self.active.size = 0  # the next change begins by retraining
        self.active.level = level
        self.sound = True
