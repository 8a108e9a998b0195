r"""Rosen's gradient projection: whole faces of the box at a time.

Paper: J. López, J. R. Dorronsoro, "Rosen's Projection Method for SVM Training".

With the free variables J (those strictly inside their bounds) the projection of the negative gradient on
the face that the others span is known in closed form: each group's mean over its free variables is
subtracted,

.. math:: d_i = -g_i + \frac{1}{|J_k|}\sum_{j \in J_k} g_j,\quad i \in J_k,\qquad d_i = 0 \text{ otherwise}.

An exact line search goes along d, at most to the first bound, where that variable leaves J. Where d = 0 the
face is optimal, and the same mean gives the multipliers of the bounds: the variable with the most negative
one is released, with the direction for :math:`J \cup \{p\}`. A group without free variables has no mean:
its most violating pair is released.

**What is kept.** A step on a face needs the gradient on that face only: a block of the matrix, which
changes by a row and a column when the face does. The other entries of the gradient are brought up to date
when the face is optimal, one kernel row per variable that has moved; the paper's form reads N |J| kernel
values in every step. This is Platt's alternation (the paper's suggestion): the free variables until nothing
moves, then all.

**Conjugate directions** (the paper's further work): on one face steps are conjugate (Polak-Ribière) and end
after at most |J| of them; a step that would pass several bounds is bent onto all of them where that lowers
the objective more than stopping at the first; and many variables are released at once, the worst violators
first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats, Index
from maxmargin.dual import Dual, middles, widest
from maxmargin.solvers import costs
from maxmargin.solvers._face import Block, on_face
from maxmargin.solvers.base import Solver
from maxmargin.solvers.state import State

# Ten times the gradient with which a face counts as optimal, in LIBSVM's scaling.
_FLAT = 1e-6


@dataclass
class Faces:
    """The kernel values of the present face, and how the next one is chosen."""

    block: Block
    #: Violators at a bound that are released at once, on each side.
    release: int = costs.FACE_FIRST
    #: Whether the present face has been brought to its end.
    finished: bool = True


class Rosen(Solver[Faces]):
    """Gradient projection on faces; ends at any tolerance that the precision allows.

    Parameters
    ----------
    directions : {"steepest", "conjugate"}
        "steepest" is the paper's algorithm; "conjugate" needs far fewer steps.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import Rosen
    >>> gram = Gram([[0.0], [1.0], [3.0]], kernel="linear", dtype="float64")
    >>> solution = Rosen().solve(dual.c_svc([-1, -1, 1], C=10.0), gram)
    >>> solution.status, solution.u.round(3)
    (<Status.SOLVED: 'solved'>, array([ 0. , -0.5,  0.5]))
    """

    name = "rosen"
    about = "López, Dorronsoro 2009: gradient projection in closed form"

    def __init__(self, directions: str = "steepest") -> None:
        if directions not in ("steepest", "conjugate"):
            raise ValueError(f"directions must be 'steepest' or 'conjugate', got {directions!r}.")
        self.directions = directions

    def __repr__(self) -> str:
        return f"Rosen(directions={self.directions!r})"

    def begin(self, state: State) -> Faces:
        """No block is known, and few variables are released at first."""
        return Faces(Block(state.problem, state.gram))

    def advance(self, state: State, work: Faces) -> None:
        """The steps on one face, or as many as a slice of the budget allows; then the whole gradient."""
        problem, u, g = state.problem, state.u, state.g
        conjugate = self.directions == "conjugate"
        own = self._several(state, work) if conjugate else self._one(state, work)
        if not len(own):  # no violator in these gradients: more precise ones may show some
            state.stuck = True
            return
        worst = widest(state.least, state.most)
        # The paper's face is optimal where its gradient vanishes, whatever the tolerance of the whole.
        flat = _FLAT / problem.tolerance_scale(u, g) if np.isfinite(problem.tolerance_scale(u, g)) else 0.0
        whole = len(own) == problem.m
        rough = 0.0 if whole else 0.1 * worst
        flat = 0.1 * (max(state.target, rough) if conjugate else min(state.target, flat))
        Q = work.block.of(own)
        budget = min(state.left, costs.FACE_STEPS)
        if conjugate:
            budget = min(budget, max(costs.FACE_FEWEST_STEPS, costs.LOOK // len(own) ** 2))
        reads = np.zeros(1, np.int64)
        new, gradient, steps, finished = on_face(state, own, Q, conjugate, flat, budget, reads)
        state.gram.count(calls=int(reads[0]))
        change = new - u[own]
        moved = np.flatnonzero(change)
        u[own] = new
        if whole:
            g[own] = gradient
        else:
            problem.update(g, own[moved], change[moved], state.gram)
        work.finished = bool(finished)
        work.release = min(2 * work.release, costs.FACE_MOST)
        state.n_iter += max(steps, 1)
        state.stuck = not len(moved)

    @staticmethod
    def _one(state: State, work: Faces) -> Index:
        """The free variables and that with the most negative multiplier, or a pair where none is free."""
        problem, u, g = state.problem, state.u, state.g
        rises, falls = u < problem.hi, u > problem.lo
        chosen = rises & falls
        if work.finished:
            level = _means(problem, g, chosen)
            paired = np.isnan(level)
            low = np.where(paired, state.most, level) - state.least
            high = state.most - np.where(paired, state.least, level)
            k = int(np.argmax(np.maximum(low, high)))
            of = problem.group == k
            if paired[k] or low[k] >= high[k]:
                chosen[np.argmax(of & rises & (g == state.least[k]))] = True
            if paired[k] or high[k] > low[k]:
                chosen[np.argmax(of & falls & (g == state.most[k]))] = True
        return _at_most(costs.FACE_MOST, np.flatnonzero(chosen), state)

    @staticmethod
    def _several(state: State, work: Faces) -> Index:
        """The free variables and, of each group and on each side, the worst violators; or all."""
        problem, u, g = state.problem, state.u, state.g
        if problem.m <= costs.FACE_WHOLE:
            return np.arange(problem.m)
        rises, falls = u < problem.hi, u > problem.lo
        chosen = rises & falls
        level = _means(problem, g, chosen)
        level = np.where(np.isnan(level), middles(state.least, state.most), level)[problem.group]
        for side, excess in ((rises & ~falls, level - g), (falls & ~rises, g - level)):
            wrong = np.flatnonzero(side & (excess > 0))
            wrong = wrong[np.lexsort((-excess[wrong], problem.group[wrong]))]
            chosen[wrong[_rank(problem.group[wrong]) < work.release]] = True
        return _at_most(costs.FACE_MOST, np.flatnonzero(chosen), state)


def _means(problem: Dual, g: Floats, free: NDArray[np.bool_]) -> Floats:
    """Each group's mean gradient over its free variables, NaN where there are none."""
    count = np.bincount(problem.group[free], minlength=problem.n_groups)
    total = np.bincount(problem.group[free], weights=g[free], minlength=problem.n_groups)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _rank(group: Index) -> Index:
    """The place of each entry among those of its group; groups stand together."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    return np.asarray(np.arange(len(group)) - np.repeat(starts, np.diff(np.append(starts, len(group)))))


def _at_most(most: int, chosen: Index, state: State) -> Index:
    """As many of the chosen as a block may hold: the worst groups', from both ends of their gradients."""
    if len(chosen) <= most:
        return chosen
    group, g = state.problem.group[chosen], state.g[chosen]
    upwards, downwards = np.lexsort((g, group)), np.lexsort((-g, group))
    rank = np.empty(len(chosen), np.intp)
    rank[upwards] = _rank(group[upwards])
    other = np.empty_like(rank)
    other[downwards] = _rank(group[downwards])
    order = np.lexsort((np.minimum(rank, other), -(state.most - state.least)[group]))
    return np.sort(chosen[order[:most]])
