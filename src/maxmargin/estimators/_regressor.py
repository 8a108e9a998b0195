"""The base of support vector regression: two variables per kernel row, one problem for each target."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from maxmargin import solvers
from maxmargin._compiled.limits import Limit
from maxmargin._sklearn import fit_context, with_callbacks
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.estimators._outcome import report
from maxmargin.estimators._validation import check_training_data, check_weights
from maxmargin.estimators._warm_start import Start, box
from maxmargin.estimators.base import BaseSVM
from maxmargin.estimators.targets import has_columns, regression_targets
from maxmargin.solvers.many import Subproblems
from maxmargin.solvers.solution import Solution, Status
from maxmargin.solvers.solutions import Solutions


class BaseSVR(RegressorMixin, BaseSVM):
    """Regression; a subclass supplies its dual problem."""

    _problems_are: ClassVar[str] = "targets"
    _advice: ClassVar[dict[Status, str]] = {
        **BaseSVM._advice,
        Status.INFEASIBLE: "no function of this kernel fits all targets into a tube of this width; use a "
        "finite C, a larger epsilon or another kernel",
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @abstractmethod
    def _problem(self, y: Floats, weight: Floats) -> Dual:
        """The dual problem of one target of the samples that count."""

    def _problems(self, y: Floats, weight: Floats) -> dict[str, Dual]:
        """The dual problems, by the names of their solutions in a warm start."""
        if y.ndim == 1:
            return {"all": self._problem(y, weight)}
        return {f"target {k}": self._problem(column, weight) for k, column in enumerate(y.T)}

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data; for ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets. Each column is a regression of its own; all of them share the kernel rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limit = Limit(self.max_time)
        X, y = check_training_data(self, X, y, multi_output=has_columns(y))
        y = regression_targets(y, multi_output=True)
        weight = check_weights(self, X, sample_weight)
        order = np.flatnonzero(weight > 0)
        problems = self._problems(y[order], weight[order])
        first = next(iter(problems.values()))
        if not solvers.get(self.solver).accepts(first):
            raise ValueError(
                f"The solver {self.solver!r} cannot train {type(self).__name__}: use one of the solvers "
                f"{', '.join(solvers.accepting(first))}."
            )
        starts = [self._warm(name, problem, order) for name, problem in problems.items()]
        found, _ = self._solve_whole(X, order, Subproblems.alike(problems, len(order), starts), limit)
        self._assemble(X, order, found)
        # Both variables of a sample in one row.
        self._keep_starts(
            (name, Start(order, solution.u.reshape(2, -1).T, box(problem)))
            for (name, problem), solution in zip(problems.items(), found, strict=True)
        )
        report(self, Solutions(dict(enumerate(found))))
        return self

    def _warm(self, name: str, problem: Dual, order: Index) -> Floats | None:
        """The previous solution, where `warm_start` asks for it and it fits."""
        start = self._start(name, order, 2, box=box(problem))
        return None if start is None else start.reshape(-1, 2).T.ravel()

    def _assemble(self, X: Any, order: Index, solutions: list[Solution]) -> None:
        """scikit-learn's attributes, with a row or an entry for each of several targets."""
        n = len(order)
        coef = np.stack([solution.u[:n] + solution.u[n:] for solution in solutions])
        used = np.flatnonzero(coef.any(axis=0))
        intercept = np.array([-float(solution.offset.mean()) for solution in solutions])
        coef = np.ascontiguousarray(
            coef[:, used]
        )  # as a loaded model has it: the order decides about last bits
        model = self._model_of(X, order[used], n_support=[len(used)], coef=coef, intercept=intercept)
        self._publish(model)
        self.n_iter_ = _each([max(1, solution.n_iter) for solution in solutions], np.int32)
        self.dual_gap_ = _each([float(solution.gap) for solution in solutions])
        self.relative_gap_ = _each([float(solution.relative_gap) for solution in solutions])
        self.trace_ = [solution.trace for solution in solutions]

    def predict(self, X: Any) -> Floats:
        """Predict targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Targets; of the second shape if y was of several columns.
        """
        values = self._target_values(X)
        return values[:, 0] if values.shape[1] == 1 else values

    def _target_values(self, X: Any) -> Floats:
        """The regression functions, one in each column."""
        self._check_fitted()
        if self.kernel == "linear":
            return self._linear_values(X, self.intercept_)
        return np.asarray(self._expand(X)[0] + self.intercept_)


def _each(values: list[Any], dtype: Any = np.float64) -> Any:
    """The value of a single problem, or an array with those of several."""
    return values[0] if len(values) == 1 else np.array(values, dtype=dtype)
