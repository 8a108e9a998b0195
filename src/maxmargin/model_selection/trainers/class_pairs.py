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
    start : Start, optional
        Solutions of all pairs for another C.
    keep : bool
        Whether the solutions for the largest C are kept.

    Attributes
    ----------
    last : list of ndarray
        The solutions of each pair for the largest C, of shape (n_folds, n_rows), if they are kept.
    """

    def __init__(
        self,
        K: Any,
        parts: Sequence[ClassRows],
        Cs: Floats,
        tol: float,
        counts: JobCounts,
        start: Start | None = None,
        keep: bool = False,
    ) -> None:
        n = len(K)
        self._start, self._keep, self._number = start, keep, 0
        self.last: list[Floats] = []
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
        """The paths of all folds for one pair; pairs come in their order."""
        from maxmargin.solvers.c_path.path import carried, solve_folds  # compiled: not at import

        masks, warm = self._masks[:, rows], None
        weight = self._largest[rows] if self._same else self._factors[:, rows]
        if self._start is not None:
            warm = carried(self._start.u[self._number], self._start.C, float(self.Cs[0]), weight)
        if self._same:
            found = solve_folds(K, y, masks, self.Cs, weight=weight, warm=warm, **self._options)
        else:
            found = [
                solve_folds(
                    K, y, mask[None], self.Cs, weight=weight[f], warm=None if warm is None else warm[f],
                    **self._options,
                )[0]
                for f, mask in enumerate(masks)
            ]  # fmt: skip
        self._number += 1
        if self._keep:
            self.last.append(np.stack([path.u[-1] for path in found]))
        return found

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

        n_folds, n_C = len(self._masks), len(self.Cs)
        values = np.empty((len(self._pairs), n_C, len(scored)))
        solved, unsigned = np.ones((n_folds, n_C), np.bool_), scored.astype(np.uint64)
        of_class = [np.flatnonzero(self._class == a) for a in range(self.n_classes)]
        sizes = [len(of_class[a]) + len(of_class[b]) for a, b in self._pairs]
        # As many pairs at a time as there is memory for their solutions.
        group = np.cumsum(sizes) * n_folds * n_C // costs.PATH_PAIR_VALUES
        for first, after in _runs(group):
            pairs = self._pairs[first:after]
            rows = np.concatenate([of_class[k] for pair in pairs for k in pair])
            begins = np.cumsum([0, *sizes[first:after]])
            numbers = rows.astype(np.uint64)
            u, offset = np.empty((n_folds, n_C, len(rows))), np.empty((n_folds, n_C, len(pairs)))
            for p, (a, b) in enumerate(pairs):
                part = slice(begins[p], begins[p + 1])
                y = np.repeat([1.0, -1.0], [len(of_class[a]), len(of_class[b])])
                for f, path in enumerate(self._solve(matrix_of_rows(self.K, numbers[part]), y, rows[part])):
                    u[f, :, part], offset[f, :, p] = path.u, path.offset
                    solved[f] &= path.solved
            out = values[first:after]
            held_out_values(self.K, rows, begins, u, offset, unsigned, ends, costs.PATH_HELD_OUT, out)
        return PairValues(values, solved)


def _runs(numbers: Index) -> list[tuple[int, int]]:
    """Beginnings and ends of the runs of equal numbers."""
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1), len(numbers)]
    return list(zip(edges, edges[1:], strict=False))
