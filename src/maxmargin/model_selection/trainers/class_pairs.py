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
from maxmargin.model_selection.work import ClassRows


class PairValues(NamedTuple):
    """Values (n_pairs, n_C, n_rows) of some rows, and which C of which fold were solved (n_folds, n_C)."""

    values: Floats
    solved: NDArray[np.bool_]


class ClassPairs:
    """The problems of all class pairs, folds and C.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        The kernel matrix.
    parts : sequence of ClassRows
        The training rows of each fold; all folds have the same classes.
    Cs : ndarray
        Ascending values of C.
    tol : float
        Tolerance of each problem.
    counts : JobCounts
        Counts the nodes that are solved.
    """

    def __init__(self, K: Any, parts: Sequence[ClassRows], Cs: Floats, tol: float, counts: JobCounts) -> None:
        n = len(K)
        self.K, self.Cs, self.n_classes = K, Cs, len(parts[0].classes)
        self._pairs = list(combinations(range(self.n_classes), 2))
        # A node is finished when all its pairs are.
        monitor = partial(counts.follow, weight=1.0 / len(self._pairs))
        self._options: dict[str, Any] = {"tol": tol, "monitor": monitor}
        label, factors = np.full((len(parts), n), -1), np.ones((len(parts), n))
        for f, part in enumerate(parts):
            label[f, part.rows], factors[f, part.rows] = part.label, part.factors
        self._masks, self._factors = label >= 0, factors
        # A row has the same class in all folds that it is in; its factor may differ ("balanced").
        self._class = label.max(axis=0)
        largest = factors.max(axis=0, where=self._masks, initial=0.0)
        self._same = bool(np.all(~self._masks | (factors == largest)))
        self._largest = np.where(largest > 0, largest, 1.0)

    def _solve(self, K: Any, y: Floats, rows: Any) -> list[Any]:
        """The paths of all folds for one pair."""
        from maxmargin.solvers.c_path.path import solve_folds  # compiled: not at import

        masks = self._masks[:, rows]
        if self._same:
            return solve_folds(K, y, masks, self.Cs, weight=self._largest[rows], **self._options)
        each = zip(masks, self._factors[:, rows], strict=True)
        return [solve_folds(K, y, mask[None], self.Cs, weight=w, **self._options)[0] for mask, w in each]

    def two(self, scored: Index, ends: Index) -> PairValues:
        """As `many`, for two classes, of which scikit-learn makes the second positive.

        The solver has the values of all rows of the matrix.
        """
        # 0 for rows of no fold: added to values and taken away again, 1 would cost digits of small ones.
        y = np.where(self._class == 1, 1.0, np.where(self._class == 0, -1.0, 0.0))
        found = self._solve(self.K, y, slice(None))
        values = [p.decision[:, scored[a:b]] for p, a, b in zip(found, ends, ends[1:], strict=False)]
        return PairValues(np.concatenate(values, axis=1)[None], np.stack([path.solved for path in found]))

    def many(self, scored: Index, ends: Index) -> PairValues:
        """Train all pairs; values of the rows scored[ends[f] : ends[f + 1]] of K on each fold f."""
        from maxmargin.solvers import costs
        from maxmargin.solvers.c_path.held_out import held_out_values, matrix_of_rows

        values = np.empty((len(self._pairs), len(self.Cs), len(scored)))
        solved, unsigned = np.ones((len(self._masks), len(self.Cs)), np.bool_), scored.astype(np.uint64)
        of_class = [np.flatnonzero(self._class == a) for a in range(self.n_classes)]
        for of_pair, (a, b) in zip(values, self._pairs, strict=True):
            rows = np.concatenate([of_class[a], of_class[b]])
            y = np.repeat([1.0, -1.0], [len(of_class[a]), len(of_class[b])])
            numbers = rows.astype(np.uint64)
            found = self._solve(matrix_of_rows(self.K, numbers), y, rows)
            u, offset = np.stack([path.u for path in found]), np.stack([path.offset for path in found])
            held_out_values(self.K, numbers, u, offset, unsigned, ends, costs.PATH_HELD_OUT, of_pair)
            solved &= np.stack([path.solved for path in found])
        return PairValues(values, solved)
