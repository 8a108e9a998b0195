"""The interface: rows are learnt and forgotten, all or nothing, by one problem or one per pair of classes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from maxmargin._types import Floats, Index
from maxmargin.kernels.kernel import Kernel
from maxmargin.solvers import costs
from maxmargin.solvers.arrival import pairs_of
from maxmargin.solvers.incremental.checked import CheckedMargins
from maxmargin.solvers.incremental.exactness import InexactError
from maxmargin.solvers.incremental.leave_one_out import leave_one_out
from maxmargin.solvers.incremental.samples import Samples, longer


class Rows(NamedTuple):
    """Held rows with a solution, from which `ExactSVM.restore` rebuilds the model."""

    X: Any
    #: Codes of classes, or targets.
    y: Floats
    #: 1 / (2C) of each row.
    ridge: Floats
    #: One row of multipliers per problem, with zeros for rows that are not in it.
    u: Floats
    n_classes: int


class ExactSVM:
    """SVMs over rows that can be added and removed: one per pair of classes, or one regression.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with all coefficients given.
    squared : bool
        Whether slacks are squared.
    epsilon : float, optional
        Half the width of the tube of a regression; None for classification.
    most_bytes : int
        Memory for the kernel matrix of all rows, and for T. If it is not enough, kernel values are computed
        when they are needed, and leave-one-out values one after the other.
    factor_bytes : int
        Memory for the factor of the support vectors of a problem; more is an error.
    n_jobs : int, optional
        Threads.
    """

    def __init__(
        self,
        kernel: Kernel,
        *,
        squared: bool = True,
        epsilon: float | None = None,
        most_bytes: int,
        factor_bytes: int,
        n_jobs: int | None,
    ) -> None:
        self.squared, self.epsilon, self.factor_bytes = bool(squared), epsilon, int(factor_bytes)
        self.samples = Samples(kernel, most_bytes=most_bytes, n_jobs=n_jobs)
        self.y, self.ridge, self.alive = np.zeros(0), np.zeros(0), np.zeros(0, np.bool_)
        self.n_classes = 0
        #: In the order of `pairs`; a regression has one.
        self.problems: list[CheckedMargins] = []
        #: False during a change of the rows, and after an interrupt of it.
        self.sound = True
        # Rows of `restore`, until they are needed.
        self._waiting: Rows | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel."""
        return self.samples.kernel

    @property
    def held(self) -> Index:
        """Places of the rows that are held, in the order of arrival."""
        self._load_waiting()
        return np.flatnonzero(self.alive[: self.samples.n])

    def pairs(self) -> list[tuple[int, int]]:
        """The codes of the classes of each problem: a new class has its problems behind those before."""
        return [(0, 0)] if self.epsilon is not None else pairs_of(self.n_classes)

    def add(self, X: Any, y: Floats, ridge: Floats, n_classes: int = 0) -> None:
        """Learn rows; all of them or, with a `ValueError`, none.

        Parameters
        ----------
        X : array or CSR matrix
            The rows.
        y : ndarray
            Codes of their classes, or targets.
        ridge : ndarray
            1 / (2C) of each row.
        n_classes : int
            The number of classes from now on.
        """
        self._begin_change()
        with self._all_or_nothing("learnt"):
            new = self.samples.append(X)
            if len(self.samples.diag) > len(self.y):
                for name in ("y", "ridge", "alive"):
                    setattr(self, name, longer(getattr(self, name)[: new[0]], len(self.samples.diag)))
            self.y[new], self.ridge[new], self.alive[new] = y, ridge, True
            self.n_classes = max(self.n_classes, n_classes)
            self._extend(new)
            for problem in self.problems:
                if not problem.sound:
                    problem.make_exact()
        self.sound = True

    def forget(self, rows: Index) -> None:
        """Unlearn rows; all of them or, with a `ValueError`, none."""
        self._begin_change()
        with self._all_or_nothing("forgotten"):
            for problem in self.problems:
                local = np.flatnonzero(np.isin(problem.at[: problem.n], rows) & problem.alive[: problem.n])
                if len(local):
                    problem.forget(local)
            self.alive[rows] = False
        self.sound = True
        if self.samples.n > costs.EXACT_PLACES and len(self.held) < self.samples.n // 2:
            self._compact()

    def levels(self) -> Floats:
        """The level of each problem, in the order of `pairs`."""
        return np.array([problem.level for problem in self.problems])

    def multipliers(self) -> Floats:
        """One row of multipliers per problem, for the rows that are held."""
        held = self.held
        u = np.zeros((len(self.problems), self.samples.n))
        for row, problem in zip(u, self.problems, strict=True):
            local = problem.held
            row[problem.at[local]] = problem.u[local]
        return u[:, held]

    def certificates(self) -> Floats:
        """A row for each problem: the certified gap, and the same as a fraction of the optimal value."""
        self._load_waiting()
        return np.array([problem.certificate() for problem in self.problems]).reshape(-1, 2)

    def leave_one_out(self) -> Floats:
        """The value of each held row by the problems trained without it: one column per problem."""
        held = self.held
        out = np.empty((self.samples.n, len(self.problems)))
        for column, problem in enumerate(self.problems):
            local = problem.held
            own = problem.at[local]
            others = np.setdiff1d(held, own)
            support = local[problem.u[local] != 0]
            values = self.samples.product(problem.at[support], problem.u[support], others)
            out[others, column] = values - problem.level
            out[own, column] = leave_one_out(problem) if len(own) else 0.0
        return out[held]

    # -- storing and restoring -------------------------------------------------------------------------

    def rows(self) -> Rows:
        """The held rows and the solution, from which `restore` rebuilds the model."""
        if self._waiting is not None:
            return self._waiting
        if not self.sound:
            raise ValueError("Learning was interrupted: fit again first.")
        held = self.held
        return Rows(self.samples.X[held], self.y[held], self.ridge[held], self.multipliers(), self.n_classes)

    def restore(self, rows: Rows) -> None:
        """Take the result of `rows`. Kernel values are computed at the first change, not now."""
        self._waiting = rows

    def _load_waiting(self) -> None:
        if self._waiting is None:
            return
        X, y, ridge, u, n_classes = self._waiting
        loaded = ExactSVM(
            self.kernel,
            squared=self.squared,
            epsilon=self.epsilon,
            most_bytes=self.samples.most_bytes,
            factor_bytes=self.factor_bytes,
            n_jobs=self.samples.n_jobs,
        )
        loaded.samples.append(X)
        loaded.y, loaded.ridge, loaded.alive = y.copy(), ridge.copy(), np.ones(len(y), np.bool_)
        size = len(loaded.samples.diag)
        loaded.y, loaded.ridge, loaded.alive = (
            longer(v, size) for v in (loaded.y, loaded.ridge, loaded.alive)
        )
        loaded.n_classes = n_classes
        loaded._extend(loaded.held)
        for row, problem in zip(u, loaded.problems, strict=True):
            problem.begin_at(row[problem.at[: problem.n]])
            problem.make_exact()
        self.__dict__.update(loaded.__dict__)  # all or nothing: an interrupt leaves the rows waiting

    # -- changes ---------------------------------------------------------------------------------------

    def _extend(self, new: Index) -> None:
        """Add new samples to the problems that they belong to, and all samples to new problems."""
        for at, pair in enumerate(self.pairs()):
            if at == len(self.problems):
                self.problems.append(
                    CheckedMargins(self.samples, factor_bytes=self.factor_bytes, epsilon=self.epsilon)
                )
                self._append(self.problems[at], pair, self.held)
            else:
                self._append(self.problems[at], pair, new)

    def _append(self, problem: CheckedMargins, pair: tuple[int, int], places: Index) -> None:
        """Add those of some samples to a problem that have its classes."""
        y = self.y[places]
        if self.epsilon is None:
            mine = np.isin(y, pair)
            places, y = places[mine], np.where(y[mine] == pair[0], -1.0, 1.0)
        if len(places):
            ridge = self.ridge[places]
            bound = np.full(len(y), np.inf) if self.squared else 0.5 / ridge
            problem.sound = False
            problem.append(places, y, ridge if self.squared else np.zeros(len(y)), bound)

    def _compact(self) -> None:
        """Release the places of samples that are no longer held."""
        kept = self.held
        to = np.full(self.samples.n, -1)
        to[kept] = np.arange(len(kept))
        self.samples.compact(kept)
        self.y, self.ridge, self.alive = self.y[kept], self.ridge[kept], self.alive[kept]
        for problem in self.problems:
            problem.compact()
            problem.at[: problem.n] = to[problem.at[: problem.n]]

    def _begin_change(self) -> None:
        """Begin anew after an interrupt, and mark the model as changing."""
        self._load_waiting()
        if not self.sound:
            self.problems.clear()
            self._extend(self.held)
            for problem in self.problems:
                problem.make_exact()
        self.sound = False

    @contextmanager
    def _all_or_nothing(self, what: str) -> Iterator[None]:
        """Undo the changes if they end with an error."""
        n, n_classes, alive = self.samples.n, self.n_classes, self.alive.copy()
        states = [problem.state() for problem in self.problems]
        try:
            yield
        except Exception as error:
            largest = float(np.max(np.abs(self.samples.diag[: self.samples.n]), initial=0.0))
            self.samples.truncate(n)
            self.n_classes = n_classes
            self.alive[:] = False
            self.alive[:n] = alive[:n]
            del self.problems[len(states) :]
            for problem, state in zip(self.problems, states, strict=True):
                problem.undo(*state)
            self.sound = True
            if isinstance(error, InexactError | np.linalg.LinAlgError):
                raise InexactError(
                    f"The rows cannot be {what}, and nothing was changed: with kernel values up to "
                    f"{largest:.2g} and this C the margins cannot be made exact in double precision"
                ) from error
            raise
