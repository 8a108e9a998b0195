"""One-vs-one classification: a dual problem for each pair of classes, over shared kernel rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import compute_class_weight, deprecated
from sklearn.utils.metaestimators import available_if

from maxmargin._compiled.limits import Limit
from maxmargin._sklearn import Hidden, StrOptions, fit_context, with_callbacks
from maxmargin._types import Floats, Index, Mask
from maxmargin.dual import Dual
from maxmargin.dual.penalised import of_samples, with_bias
from maxmargin.estimators._cross_fit import CrossFit, hyperplane
from maxmargin.estimators._outcome import report, report_folds
from maxmargin.estimators._plain import class_labels
from maxmargin.estimators._validation import check_training_data, check_weights
from maxmargin.estimators._warm_start import Start, box
from maxmargin.estimators.base import BaseSVM
from maxmargin.estimators.calibration import Calibrator, SigmoidCalibrator
from maxmargin.estimators.decisions import decision_values, voted_classes
from maxmargin.estimators.model import KernelModel, configured
from maxmargin.solvers.many import ClassPairs, Subproblem, Subproblems
from maxmargin.solvers.solution import Record, Solution
from maxmargin.solvers.solutions import Solutions

# scikit-learn's message.
_REMOVED = (
    "Attribute `{}` was deprecated in version 1.9 and will be removed in 1.11 as the `probability=True` "
    "option for SVC and NuSVC was deprecated and will be removed in 1.11."
)
#: A problem and its solution.
Reported: TypeAlias = tuple[Dual, Solution]


class BaseSVC(ClassifierMixin, BaseSVM):
    """One-vs-one classification; a subclass supplies the dual problem of a pair."""

    # In the message about `probability`, for subclasses too.
    _deprecated_name: ClassVar[str] = "SVC"
    # How the message begins that is given where weights leave a single class, as in scikit-learn.
    _one_class_left: ClassVar[str] = "Invalid input"
    # What makes probabilities: of the last fit, if it was to have some, or given by `set_calibrator`.
    _calibrator: Calibrator | None = None
    _calibrator_given: bool = False
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
        X, y = check_training_data(self, X, y)
        if self.probability != "deprecated":
            name = self._deprecated_name
            warnings.warn(
                "The `probability` parameter was deprecated in 1.9 and will be removed in version 1.11. Use "
                f"`CalibratedClassifierCV({name}(), ensemble=False)` instead of `{name}(probability=True)`",
                FutureWarning,
                stacklevel=4,  # past the wrappers of fit
            )
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
        cross_fit, after = None, None
        if self._with_probabilities:
            cross_fit = CrossFit(self, subproblems, weight, self.random_state)
            after = cross_fit.run
        # Pairs that were not begun keep coefficients of zero. There may be very many of them, and no time.
        begun, lengths = self._solve(X, kernel, order, subproblems, limit, double=double, after=after)
        # Pairs that were solved together are in the units that are reported.
        apart = {
            k: self._as_reported(subproblems[k].problem, solution, lengths[subproblems[k].samples])
            for k, solution in begun.apart.items()
        }
        solved = Solutions({k: solution for k, (_, solution) in apart.items()}, begun.together)
        self._assemble(X, order, segments, solved, {k: hyperplane(*each) for k, each in apart.items()})
        self._keep_starts(
            (
                _start_name(m.segments, m.problem),
                Start(order[m.samples], of_samples(m.problem, s.u), box(m.problem)),
            )
            for m, s in ((subproblems[k], s) for k, s in begun.items())
        )
        self._calibrator = None if cross_fit is None else cross_fit.calibrator()
        self._calibrator_given = False
        report(self, solved, len(subproblems) - len(solved), limit)
        if cross_fit is not None:
            report_folds(self, cross_fit, limit)
        self._check_solutions(list(apart.values()))
        return self

    def _as_reported(self, problem: Dual, solution: Solution, lengths: Floats) -> Reported:
        """The problem and solution that coefficients, intercept and gap are reported for.

        A subclass overrides it if a pair is solved in other units. `lengths` are those of the samples in
        feature space.
        """
        return problem, solution

    def _fold_problem(self, problem: Dual, held: Mask) -> Dual:
        """The problem of a pair without the variables `held`, which stay at zero."""
        lo, hi, at = problem.lo.copy(), problem.hi.copy(), np.flatnonzero(held)
        lo[at] = hi[at] = 0.0
        return replace(problem, lo=lo, hi=hi)

    def _boxes(self, weight: Floats) -> tuple[Floats, Floats] | None:
        """The bound of each sample's multiplier and its ridge, where pairs are C-SVCs; None for others."""
        return None

    def _check_solutions(self, solved: list[Reported]) -> None:
        """Warn where a solution of a pair that was solved on its own cannot be used; nothing by default."""

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
            None if boxes is None else ClassPairs.whole(a, b, 1.0, *boxes),
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
            start = None if start is None else with_bias(problem, start)
        return Subproblem(name, problem, samples, np.array(pair), start)

    # -- from solutions to scikit-learn's attributes -------------------------------------------

    def _assemble(
        self,
        X: Any,
        order: Index,
        segments: Index,
        solved: Solutions,
        planes: dict[int, tuple[Floats, float]],
    ) -> None:
        """Fitted attributes from the pairs that were begun; `planes` are those of pairs solved one by one."""
        from maxmargin.estimators._votes import spread_pairs  # compiled: not at import

        first, second = _pairs_of(len(self.classes_))
        begun, n_pairs = solved.index, len(first)
        coef, used = np.zeros((len(self.classes_) - 1, len(order))), np.zeros(len(order), np.bool_)
        intercept = np.zeros(n_pairs)
        if planes:
            own = np.fromiter(planes, np.intp, len(planes))
            weights, starts = _joined([plane for plane, _ in planes.values()])
            spread_pairs(weights, starts, first[own], second[own], segments, coef, used)
            intercept[own] = [constant for _, constant in planes.values()]
        if solved.together is not None:
            own = solved.together.index
            spread_pairs(
                solved.together.u, solved.together.starts, first[own], second[own], segments, coef, used
            )
            intercept[own] = -solved.together.offset
        n_support = np.add.reduceat(used, segments[:-1], dtype=np.intp)
        vectors = np.flatnonzero(used)
        coef = coef.take(vectors, axis=1)
        model = self._model_of(X, order[vectors], n_support=n_support, coef=coef, intercept=intercept)
        self._publish(model)
        self.n_iter_ = np.ones(n_pairs, np.int32)
        self.dual_gap_ = np.full(n_pairs, np.inf)
        self.relative_gap_ = np.full(n_pairs, np.inf)
        self.trace_: Sequence[tuple[Record, ...]] = solved.traces(n_pairs)
        self.n_iter_[begun] = np.maximum(1, solved.column("n_iter"))
        self.dual_gap_[begun] = solved.column("gap")
        self.relative_gap_[begun] = solved.column("relative_gap")

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

    # -- probabilities -------------------------------------------------------------------------

    @property
    def _with_probabilities(self) -> bool:
        return self.probability != "deprecated" and bool(self.probability)

    def _check_proba(self) -> bool:
        if not (self._with_probabilities or self._calibrator_given):
            raise AttributeError("predict_proba is not available when probability=False")
        return True

    @available_if(_check_proba)
    def predict_proba(self, X: Any) -> Floats:
        """Compute probabilities of the classes, with ``probability=True`` or a calibrator that was given.

        Platt's sigmoids of the class pairs, fitted to held-out values of five folds, joined by pairwise
        coupling; or what `set_calibrator` was given. The class with the largest probability need not be that
        of `predict`, see `SVC`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`.
        """
        values = self._pair_values(X)
        if self._calibrator is None:
            raise NotFittedError("predict_proba is not available when fitted with probability=False")
        order = self.get_model().vote_order
        if order is None or len(order) == 2 or not isinstance(self._calibrator, SigmoidCalibrator):
            return self._calibrator.predict_proba(values)
        # Coupling ends when it is accurate enough, in LIBSVM too: where exactly depends on the order.
        from maxmargin.estimators._votes import reordered  # compiled: not at import

        out = np.empty((len(values), len(order)))
        out[:, order] = self._calibrator.in_order(order).predict_proba(reordered(values, order))
        return out

    @available_if(_check_proba)
    def predict_log_proba(self, X: Any) -> Floats:
        """Compute the logarithms of the probabilities, see `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples; for ``kernel="precomputed"`` of shape (n_samples, n_samples_train).

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of the probabilities in the order of `classes_`.
        """
        return np.log(self.predict_proba(X))

    def get_calibrator(self) -> Calibrator | None:
        """Return what `predict_proba` makes probabilities of pair values with.

        Returns
        -------
        maxmargin.estimators.calibration.Calibrator or None
            The sigmoids of the class pairs, or what `set_calibrator` was given; None if there are no
            probabilities.
        """
        self._check_fitted()
        return self._calibrator

    def set_calibrator(self, calibrator: Calibrator) -> Any:
        """Make probabilities with a calibrator that was fitted elsewhere, until the next fit.

        Searches and tuners do so: they have the values of held-out rows for which it is fitted.

        Parameters
        ----------
        calibrator : maxmargin.estimators.calibration.Calibrator
            Fitted to values of the same class pairs.

        Returns
        -------
        self : object
            The fitted estimator, which has `predict_proba`.
        """
        self._check_fitted()
        if calibrator.n_classes != len(self.classes_):
            raise ValueError(
                f"The calibrator has {calibrator.n_classes} classes, and the model {len(self.classes_)}."
            )
        self._calibrator, self._calibrator_given = calibrator, True
        return self

    @deprecated(_REMOVED.format("probA_"))  # type: ignore[prop-decorator]
    @property
    def probA_(self) -> Floats:
        """Slopes of the sigmoids of class pairs in LIBSVM's layout; empty without probabilities."""
        fitted = self.get_calibrator()
        return fitted.A if isinstance(fitted, SigmoidCalibrator) else np.empty(0)

    @deprecated(_REMOVED.format("probB_"))  # type: ignore[prop-decorator]
    @property
    def probB_(self) -> Floats:
        """Constants of the sigmoids of class pairs in LIBSVM's layout; empty without probabilities."""
        fitted = self.get_calibrator()
        return fitted.B if isinstance(fitted, SigmoidCalibrator) else np.empty(0)


def _pairs_of(n_classes: int) -> tuple[Index, Index]:
    """The first and the second class of each pair."""
    if n_classes == 2:  # saves 40 microseconds
        return np.array([0]), np.array([1])
    return np.triu_indices(n_classes, 1)


def _joined(parts: list[Floats]) -> tuple[Floats, Index]:
    """Arrays one after the other, and where each starts."""
    return np.concatenate(parts), np.cumsum([0, *map(len, parts[:-1])])


def _start_name(pair: Index, problem: Dual) -> str:
    """The name of a pair's solution; problems of another kind do not start from it."""
    return f"{problem.name} {tuple(pair.tolist())}"


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
