"""One-vs-one classification: a dual problem for each pair of classes, over shared kernel rows."""

from __future__ import annotations

from abc import abstractmethod
from itertools import combinations
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight

from maxmargin._compiled.limits import Limit
from maxmargin._sklearn import Hidden, StrOptions, fit_context, with_callbacks
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.estimators._outcome import report
from maxmargin.estimators._plain import class_labels
from maxmargin.estimators._validation import check_training_data, check_weights
from maxmargin.estimators._warm_start import Start, box
from maxmargin.estimators.base import BaseSVM
from maxmargin.estimators.decisions import decision_values, voted_classes
from maxmargin.estimators.model import KernelModel, configured
from maxmargin.solvers.many import ClassPairs, Subproblem, Subproblems
from maxmargin.solvers.solution import Record, Solution, Status

#: A solution, and its problem; None stands for one of many C-SVCs.
Reported: TypeAlias = tuple[Dual | None, Solution]


class BaseSVC(ClassifierMixin, BaseSVM):
    """One-vs-one classification; a subclass supplies the dual problem of a pair."""

    # How the message begins that is given where weights leave a single class, as in scikit-learn.
    _one_class_left: ClassVar[str] = "Invalid input"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "probability": ["boolean", Hidden(StrOptions({"deprecated"}))],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def _pair_problem(self, y: Floats, weight: Floats) -> Dual:
        """The dual problem of one pair of classes, labels -1 and +1."""

    @abstractmethod
    def _sample_weight_of_class(self, label: Index) -> Floats:
        """The factor of each sample's weight that `class_weight` gives."""

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data; for ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of C per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limit = Limit(self.max_time)
        if self.probability not in ("deprecated", False):
            raise ValueError(
                "probability=True is not supported: wrap the estimator as "
                f"CalibratedClassifierCV({type(self).__name__}(), ensemble=False) from "
                "sklearn.calibration to get probabilities."
            )
        X, y = check_training_data(self, X, y)
        weight = check_weights(self, X, sample_weight)
        kept = np.flatnonzero(weight > 0)
        label = self._encode(y, kept)
        weight = weight[kept] * self._sample_weight_of_class(label)

        # Class by class, without the rows that weigh nothing: a pair is two contiguous ranges.
        by_class = np.argsort(label, kind="stable")
        order, label, weight = kept[by_class], label[by_class], weight[by_class]
        segments = np.searchsorted(label, np.arange(len(self.classes_) + 1))
        self._check_classes(np.add.reduceat(weight, segments[:-1]))
        kernel = self._kernel_for(X, kept)
        subproblems = self._subproblems(order, segments, weight)
        double = subproblems.typical[0].problem.self_scaled
        # Pairs that were not begun keep coefficients of zero. There may be very many of them, and no time.
        begun, lengths = self._solve(X, kernel, order, subproblems, limit, double=double)
        solved: dict[int, Reported] = {}
        for k, solution in sorted(begun.items()):
            sub = subproblems.made(k)
            # Not made: one of many pairs that were solved in one call, all in the units that are reported.
            solved[k] = (
                (None, solution)
                if sub is None
                else self._as_reported(sub.problem, solution, lengths[sub.samples])
            )
        self._assemble(X, order, segments, solved)
        self._keep_starts(
            (_start_name(m.segments, m.problem), Start(order[m.samples], s.u, box(m.problem)))
            for m, s in ((subproblems[k], s) for k, s in begun.items())
        )
        report(self, [s for _, s in solved.values()], len(subproblems) - len(solved), limit)
        self._check_solutions(list(solved.values()))
        return self

    def _as_reported(self, problem: Dual, solution: Solution, lengths: Floats) -> Reported:
        """The problem and solution that coefficients, intercept and gap are reported for.

        A subclass overrides it if a pair is solved in other units. `lengths` are those of the samples in
        feature space.
        """
        return problem, solution

    def _boxes(self, weight: Floats) -> tuple[Floats, Floats] | None:
        """The bound of each sample's multiplier and its ridge, where pairs are C-SVCs; None for others."""
        return None

    def _check_solutions(self, solved: list[Reported]) -> None:
        """Warn where a solution cannot be used; nothing by default."""

    @abstractmethod
    def _check_classes(self, size: Floats) -> None:
        """Refuse parameters that do not suit every pair of classes with these sums of weights."""

    def _subproblems(self, order: Index, segments: Index, weight: Floats) -> Subproblems:
        """One problem per pair."""
        a, b = _pairs_of(len(self.classes_))
        boxes = self._boxes(weight) if len(a) > 1 and not self.warm_start else None
        counts = np.diff(segments)
        total = np.add.reduceat(weight, segments[:-1])
        return Subproblems(
            segments,
            counts[a] + counts[b],
            lambda k: self._subproblem((int(a[k]), int(b[k])), order, segments, weight),
            int(np.argmax(total[a] + total[b])),
            None if boxes is None else ClassPairs(a, b, 1.0, *boxes),
        )

    def _encode(self, y: Any, kept: Index) -> Index:
        y, self.classes_, label = class_labels(y)
        n_classes = len(self.classes_)
        if len(kept) < len(y):
            y = y[kept]
            self.classes_, label = np.unique(y, return_inverse=True)
        if n_classes < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {n_classes} class")
        if len(self.classes_) < 2:
            raise ValueError(
                self._one_class_left + " - all samples with positive weights belong to the same class."
            )
        if self.class_weight is None:
            self.class_weight_ = np.ones(len(self.classes_))
        else:
            self.class_weight_ = compute_class_weight(self.class_weight, classes=self.classes_, y=y)
        if (self.class_weight_ < 0).any():
            raise ValueError("class_weight must not be negative.")
        return np.asarray(label, dtype=np.intp)

    def _subproblem(self, pair: tuple[int, int], order: Index, segments: Index, weight: Floats) -> Subproblem:
        first, second = pair
        samples = np.concatenate([np.arange(segments[k], segments[k + 1]) for k in pair])
        # scikit-learn's signs: the second class is positive if there are two, else the first.
        sign = -1.0 if len(self.classes_) == 2 else 1.0
        y = np.full(len(samples), sign)
        y[segments[first + 1] - segments[first] :] = -sign
        problem = self._pair_problem(y, weight[samples])
        name = f"{self.classes_[first]} / {self.classes_[second]}"
        start = None
        if self.warm_start:
            start = self._start(_start_name(np.array(pair), problem), order[samples], box=box(problem))
        return Subproblem(name, problem, samples, np.array(pair), start)

    # -- from solutions to scikit-learn's attributes -------------------------------------------

    def _assemble(self, X: Any, order: Index, segments: Index, solved: dict[int, Reported]) -> None:
        """Fitted attributes from the pairs that were begun."""
        planes = {k: _hyperplane(problem, solution) for k, (problem, solution) in solved.items()}
        first, second = (classes.tolist() for classes in _pairs_of(len(self.classes_)))
        n_pairs, ends = len(first), segments.tolist()
        of_class = [slice(*ends[c : c + 2]) for c in range(len(ends) - 1)]
        used = np.zeros(len(order), np.bool_)
        for k, (weights, _) in planes.items():
            a, b = of_class[first[k]], of_class[second[k]]
            used[a] |= weights[: a.stop - a.start] != 0
            used[b] |= weights[a.stop - a.start :] != 0
        # Support vectors of each class: a pair is two contiguous ranges of them too.
        at = np.append(0, np.cumsum(np.add.reduceat(used, segments[:-1], dtype=np.intp)))
        vectors = [slice(*at[c : c + 2].tolist()) for c in range(len(ends) - 1)]
        used_of = [used[of] for of in of_class]
        coef = np.zeros((len(self.classes_) - 1, at[-1]))
        intercept = np.zeros(n_pairs)
        for k, (weights, constant) in planes.items():
            a, b = first[k], second[k]
            n_first = len(used_of[a])
            coef[b - 1, vectors[a]] = weights[:n_first][used_of[a]]
            coef[a, vectors[b]] = weights[n_first:][used_of[b]]
            intercept[k] = constant
        model = self._model_of(X, order[used], n_support=np.diff(at), coef=coef, intercept=intercept)
        self._publish(model)
        self.n_iter_ = np.ones(n_pairs, np.int32)
        self.dual_gap_ = np.full(n_pairs, np.inf)
        self.relative_gap_ = np.full(n_pairs, np.inf)
        self.trace_: list[tuple[Record, ...]] = [()] * n_pairs
        for k, (_, solution) in solved.items():
            self.n_iter_[k] = max(1, solution.n_iter)
            self.dual_gap_[k], self.relative_gap_[k] = solution.gap, solution.relative_gap
            self.trace_[k] = solution.trace

    def _linear_coef(self) -> Any:
        return super()._linear_coef() if len(self.classes_) == 2 else linear_coef(self.get_model())

    # -- prediction ----------------------------------------------------------------------------

    def _pair_values(self, X: Any) -> Floats:
        """One column per pair of classes, positive for the first; two classes: for the second."""
        self._check_fitted()
        if self.kernel == "linear":
            return self._linear_values(X, self.intercept_)
        if len(self.classes_) == 2:
            return self._expand(X)[0] + self.intercept_
        parts = self._expand(X, by_class=True)
        from maxmargin.estimators._votes import pair_values  # compiled: not at import

        return np.asarray(pair_values(parts, self.intercept_))

    def decision_function(self, X: Any) -> Floats:
        """Evaluate the decision function.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            One value for two classes; otherwise one column per class ("ovr") or per pair ("ovo").
        """
        return decision_values(self._pair_values(X), len(self.classes_), self.decision_function_shape)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        self._check_fitted()
        k = len(self.classes_)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        if self.break_ties and k > 2:
            return self.classes_[np.argmax(self.decision_function(X), axis=1)]
        return self.classes_[voted_classes(self._pair_values(X), k, self.get_model().vote_order)]


def _pairs_of(n_classes: int) -> tuple[Index, Index]:
    """The first and the second class of each pair."""
    if n_classes == 2:  # saves 40 microseconds
        return np.array([0]), np.array([1])
    return np.triu_indices(n_classes, 1)


def _start_name(pair: Index, problem: Dual) -> str:
    """The name of a pair's solution; problems of another kind do not start from it."""
    return f"{problem.name} {tuple(pair.tolist())}"


def _hyperplane(problem: Dual | None, solution: Solution) -> tuple[Floats, float]:
    """Coefficients and intercept of the decision function from a solution."""
    u, offset = solution.u, solution.offset
    if problem is None or problem.n_groups == 1:
        return u, -float(offset[0])
    # Two hulls: scaled so that the margin, half the sum of the multipliers, becomes 1.
    margin, shift = 0.5 * (offset[0] + offset[1]), 0.5 * (offset[0] - offset[1])
    if not margin > 0 or solution.status is Status.INFEASIBLE:
        margin = 1.0  # touching hulls: nothing to scale to, but the direction is kept
    signs = np.where(problem.group == 0, 1.0, -1.0)
    return signs * u / margin, -float(shift / margin)


def linear_coef(model: KernelModel) -> Any:
    """Weights of the features for every pair of three or more classes, from scikit-learn's `dual_coef_`."""
    k, coef = len(model.n_support), model.coef
    at = np.concatenate([[0], np.cumsum(model.n_support)])
    of_class = [np.arange(at[a], at[a + 1]) for a in range(k)]
    parts = [
        model.combine(
            np.concatenate([coef[b - 1, of_class[a]], coef[a, of_class[b]]])[None],
            np.concatenate([of_class[a], of_class[b]]),
        )
        for a, b in combinations(range(k), 2)
    ]
    return configured(sp.vstack(parts, format="csr")) if model.sparse else np.vstack(parts)
