"""Solutions that the next fit of an estimator with ``warm_start=True`` starts from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.dual.penalised import of_samples


def box(problem: Dual) -> float:
    """Return the largest width of the problem's box; it differs where C does."""
    return float(np.max(of_samples(problem, problem.hi - problem.lo), initial=0.0))


@dataclass(frozen=True, eq=False)
class Start:
    """The solution of one dual problem, by training samples.

    Parameters
    ----------
    rows : ndarray of int of shape (n,)
        Training samples that the problem has variables of.
    values : ndarray of shape (n,) or (n, width)
        The variables of each sample.
    box : float
        The `box` of the problem; infinite if the solution should not be rescaled for another one.
    """

    rows: Index
    values: Floats
    box: float = np.inf

    def rescaled(self, values: Floats, box: float) -> Floats:
        """Return the part `values` of the solution, for a problem with another box.

        Most variables are at their bound and move with it, if any are.
        """
        if not (np.isfinite(self.box) and np.isfinite(box)):
            return values
        bounded = np.count_nonzero(np.abs(self.values) >= self.box) > 0.5 * np.count_nonzero(self.values)
        return values * (box / self.box) if bounded or box < self.box else values


@dataclass(frozen=True, eq=False)
class WarmStart:
    """The solutions of one fit.

    Parameters
    ----------
    shape : tuple of int
        Shape of the training data: data of another shape have other samples.
    starts : dict of str to Start
        Solutions by the name of their problem. Names are texts because some file formats (skops) have no
        other keys.
    """

    shape: tuple[int, ...]
    starts: dict[str, Start]

    def find(
        self, name: str, shape: tuple[int, ...], rows: Index, width: tuple[int, ...], box: float
    ) -> Floats | None:
        """Return the values of the samples `rows`, one row each; None if no solution fits.

        Samples that the solution does not have get zeros.
        """
        kept = self.starts.get(name)
        if kept is None or self.shape != shape or kept.values.shape[1:] != width:
            return None
        full = np.zeros((shape[0], *width))
        full[kept.rows] = kept.values
        return kept.rescaled(full[rows], box)
