"""The classes of some folds over one kernel matrix, trained along C pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats, Index
from maxmargin.model_selection.counts import JobCounts
from maxmargin.model_selection.starts import Start
from maxmargin.model_selection.work import ClassRows

# Pair steps that the C of a fold may take.
_MOST_STEPS = 10_000_000


class PairValues(NamedTuple):
    """Values (n_pairs, n_C, n_rows) of some rows, and which C of which fold were solved (n_folds, n_C)."""

    values: Floats
    solved: NDArray[np.bool_]


class FoldLabels:
    """Classes and factors of C of the training rows of some folds with the same classes.

    Parameters
    ----------
    parts : sequence of ClassRows
        The training rows of each fold.
    n : int
        Rows of the kernel matrix.

    Attributes
    ----------
    n_classes : int
        Number of classes.
    pairs : list of tuple of int
        All pairs of them.
    masks : ndarray of shape (n_folds, n) of bool
        The training rows of each fold.
    number : ndarray of shape (n,)
        The class of each row, which is the same in all folds that it is in; -1 for rows that train nothing.
    same : bool
        Whether a row has the same factor in all folds; "balanced" weights may differ.
    weight : ndarray of shape (n,) or (n_folds, n)
        The factors, one for all folds if they are the same.
    """

    def __init__(self, parts: Sequence[ClassRows], n: int) -> None:
        self.n_classes = len(parts[0].classes)
        self.pairs = list(combinations(range(self.n_classes), 2))
        label, factors = np.full((len(parts), n), -1), np.ones((len(parts), n))
        for f, part in enumerate(parts):
            label[f, part.rows], factors[f, part.rows] = part.label, part.factors
        self.masks = label >= 0
        self.number = label.max(axis=0)
        largest = factors.max(axis=0, where=self.masks, initial=0.0)
        self.same = bool(np.all(~self.masks | (factors == largest)))
        self.weight = np.where(largest > 0, largest, 1.0) if self.same else factors


class ClassPairs:
    """The problems of all class pairs, folds and C.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    labels : FoldLabels
        The classes of its rows, and the folds.
    Cs : ndarray
        Ascending values of C.
    tol : float
        Tolerance of each problem.
    counts : JobCounts
        Counts the nodes that are solved.
    start : Start, optional
        Solutions of all pairs for another C, as in `last`.
    keep : bool
        Whether the solutions for the largest C are kept.

    Attributes
    ----------
    last : list of ndarray
        If they are kept, the solutions for the largest C: one array of shape (n_folds, n_variables), with the
        variables of one pair after the other.
    """

    def __init__(
        self,
        K: Any,
        labels: FoldLabels,
        Cs: Floats,
        tol: float,
        counts: JobCounts,
        start: Start | None = None,
        keep: bool = False,
    ) -> None:
        self._start, self._keep, self._tol = start, keep, tol
        self.last: list[Floats] = []
        self.K, self.labels, self.Cs = K, labels, Cs
        # A node is finished when all its pairs are.
        self._follow = partial(counts.follow, weight=1.0 / len(labels.pairs))

    def values(self, scored: Index, ends: Index) -> PairValues:
        """Train all pairs; values of the rows scored[ends[f] : ends[f + 1]] of K on each fold f."""
        return self._many(scored, ends) if self.labels.n_classes > 2 else self._two(scored, ends)

    def _two(self, scored: Index, ends: Index) -> PairValues:
        """Two classes, of which scikit-learn makes the second positive.

        The solver has the values of all rows of the matrix.
        """
        from maxmargin.solvers.c_path.path import solve_folds  # compiled: not at import
        from maxmargin.solvers.c_path.starts import carried

        # 0 for rows of no fold: added to values and taken away again, 1 would cost digits of small ones.
        number, masks, weight = self.labels.number, self.labels.masks, self.labels.weight
        y, warm = np.where(number == 1, 1.0, np.where(number == 0, -1.0, 0.0)), None
        if self._start is not None:
            warm = carried(self._start.u[0], self._start.C, float(self.Cs[0]), weight)
        options: dict[str, Any] = {"tol": self._tol, "monitor": self._follow}
        if self.labels.same:
            found = solve_folds(self.K, y, masks, self.Cs, weight=weight, warm=warm, **options)
        else:
            found = [
                solve_folds(
                    self.K, y, mask[None], self.Cs, weight=weight[f], warm=None if warm is None else warm[f],
                    **options,
                )[0]
                for f, mask in enumerate(masks)
            ]  # fmt: skip
        if self._keep:
            self.last = [np.stack([path.u[-1] for path in found])]
        values = [p.decision[:, scored[a:b]] for p, a, b in zip(found, ends, ends[1:], strict=False)]
        return PairValues(np.concatenate(values, axis=1)[None], np.stack([path.solved for path in found]))

    def _many(self, scored: Index, ends: Index) -> PairValues:
        """Three classes or more: of each pair the first is positive."""
        from maxmargin.solvers import costs
        from maxmargin.solvers.c_path.class_pairs import PairProblems, PairSolutions, solve_pairs
        from maxmargin.solvers.c_path.held_out import held_out_values

        labels = self.labels
        n_folds, n_C = len(labels.masks), len(self.Cs)
        values = np.empty((len(labels.pairs), n_C, len(scored)))
        solved, unsigned = np.ones((n_folds, n_C), np.bool_), scored.astype(np.uint64)
        of_class = [np.flatnonzero(labels.number == a) for a in range(labels.n_classes)]
        counts = np.array([len(rows) for rows in of_class])
        classes = np.array(labels.pairs)
        sizes = counts[classes].sum(axis=1)
        places = np.append(0, np.cumsum(sizes))
        factors = np.ascontiguousarray(np.broadcast_to(labels.weight, labels.masks.shape))
        start = np.empty((0, places[-1])) if self._start is None else self._start.u[0]
        last = []
        # As many pairs at a time as there is memory for their solutions.
        for first, after in _runs(places[1:] * n_folds * n_C // costs.PATH_PAIR_VALUES):
            rows = np.concatenate([of_class[k] for pair in labels.pairs[first:after] for k in pair])
            begins = places[first : after + 1] - places[first]
            problems = PairProblems(
                rows.astype(np.uint64), begins, counts[classes[first:after, 0]], labels.masks,
                factors, labels.same, self.Cs, float(self._tol), _MOST_STEPS,
                np.ascontiguousarray(start[:, places[first] : places[after]]),
                1.0 if self._start is None else self._start.C,
            )  # fmt: skip
            found = PairSolutions.empty(problems)
            self._follow(found.steps)
            solve_pairs(self.K, problems, found)
            solved &= found.solved.all(axis=0)
            held_out_values(
                self.K, rows, begins, found.u, found.offset, unsigned, ends, costs.PATH_HELD_OUT,
                values[first:after],
            )  # fmt: skip
            last.append(found.u[:, -1])
        if self._keep:
            self.last = [np.concatenate(last, axis=1)]
        return PairValues(values, solved)


def _runs(numbers: Index) -> list[tuple[int, int]]:
    """Beginnings and ends of the runs of equal numbers."""
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1), len(numbers)]
    return list(zip(edges, edges[1:], strict=False))
