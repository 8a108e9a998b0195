r"""The common part of the geometric solvers: points of hulls, and the extreme ones among them.

They take the problems whose optimum is a point of least norm: of one hull (`minimum_norm`, `one_class_l2`) or
of the difference of two (`nearest_points`); and the points of K hulls whose squared distances add up to the
least (`squared_all_distances`), where :math:`\|W\|^2` stands for that sum. There the gradient :math:`g_j =
\langle W, z_j\rangle` is the margin of vertex :math:`z_j = y_j(\phi(x_j), 1)` (in the ridged space), and
:math:`\|W\|^2 = \sum u_j g_j`.

Variables are kept hull by hull (`Hulls`): a hull is a range, so that its extremes are found in vectorised
passes.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import fmax, fmin
from maxmargin._compiled.jit import IN_ORDER, REORDER, compiled
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual, widest
from maxmargin.solvers import costs
from maxmargin.solvers._pair_rows import is_kind
from maxmargin.solvers.base import Solver
from maxmargin.solvers.papers import _cycles as cy
from maxmargin.solvers.papers._fetch import (
    CALLS,
    ITERATIONS,
    NEEDED,
    STUCK,
    Turn,
    check_room,
    least_curvature,
    run,
)
from maxmargin.solvers.state import State

__all__ = [
    "BAR", "CALLS", "ITERATIONS", "NEEDED", "STUCK", "HullSolver", "HullWork", "Hulls", "Turn",
    "add_vertices", "barred", "missing", "no_extremes", "product", "select",
]  # fmt: skip

#: Stands for minus infinity: what cannot leave has this added to its margin.
BAR = -1e300


class Hulls(NamedTuple):
    """The vertices in the order hull by hull, and their kernel rows, for compiled code.

    Hull k is the range ``starts[k] : starts[k + 1]``. The row of vertex i, if ``there[i]``, is
    ``table[slot[i]]``; its value for vertex j stands in column ``column[j]``, which is j if `direct`.
    """

    starts: Index
    sign: Floats
    ridge: Floats
    diag: Floats
    shift: float
    table: NDArray[Any]
    slot: Index
    there: NDArray[np.bool_]
    column: Index
    direct: bool
    #: Hull of each vertex, and the factors of products between hulls, on top of the signs.
    hull: Index
    coupling: Floats


@dataclass
class HullWork:
    """The vertices hull by hull, for compiled code."""

    #: Variables in the order hull by hull; hull k is the range ``starts[k] : starts[k + 1]`` of it.
    order: Index
    starts: Index
    #: In this order: signs, ridges, squared norms, and the columns of kernel rows.
    sign: Floats
    ridge: Floats
    diag: Floats
    column: Index
    #: Whether the columns are those of the rows as they are.
    direct: bool
    #: Hull of each vertex, and the factors of products between hulls, on top of the signs.
    hull: Index
    coupling: Floats
    #: The least curvature of a step.
    tau: float

    def vertices(self, state: State, there: NDArray[np.bool_]) -> Hulls:
        """With the kernel rows that the cache holds now; `there` marks the vertices whose rows it has."""
        problem, gram = state.problem, state.gram
        return Hulls(
            self.starts, self.sign, self.ridge, self.diag, problem.shift, gram.table,
            gram.slot[problem.row[self.order]], there, self.column, self.direct, self.hull, self.coupling,
        )  # fmt: skip


H = TypeVar("H", bound=HullWork)


class HullSolver(Solver[H]):
    """Base of the geometric solvers; a subclass supplies the compiled `_steps`."""

    #: Rows of further violators that are computed with a missing one.
    prefetch = costs.PREFETCH

    def accepts(self, problem: Dual) -> bool:
        """Only problems that look for points of hulls."""
        return problem.hull

    def _hulls(self, state: State) -> HullWork:
        """The order hull by hull, the diagonal and the least curvature."""
        problem, gram = state.problem, state.gram
        need = min(self._rows_at_once(problem), len(np.unique(problem.row)))
        check_room(gram, need, type(self).__name__)
        diag = problem.diag(gram)
        order = np.argsort(problem.group, kind="stable")
        column = gram.columns[problem.row][order]
        k, signs = problem.n_groups, problem.signs
        return HullWork(
            order=order,
            starts=np.searchsorted(problem.group[order], np.arange(problem.n_groups + 1)),
            sign=np.ones(problem.m) if signs is None else signs[order],
            ridge=problem.ridge[order],
            diag=diag[order],
            column=column,
            direct=np.array_equal(column, np.arange(len(column))),
            hull=problem.group[order],
            coupling=problem.coupling if signs is None else np.ones((k, k)),
            tau=least_curvature(diag, gram),
        )

    def advance(self, state: State, work: H) -> None:
        """Steps until a row is missing (fetched, then on) or a slice of the budget is used."""
        problem, order = state.problem, work.order
        u, g = state.u[order], state.g[order]
        relative = self._relative(state, float(u @ g))

        def steps(there: Any, turn: Turn) -> None:
            hulls = work.vertices(state, there[order])
            # ||W||^2 is kept current in the loop and refreshed here.
            self._steps(state, work, hulls, u, g, float(u @ g), relative, turn)
            state.u[order], state.g[order] = u, g
            needed = turn.need[: turn.report[NEEDED]]
            needed[:] = order[needed]

        run(state, steps, self._most_needed(problem), self.prefetch)

    @abstractmethod
    def _steps(
        self,
        state: State,
        work: H,
        hulls: Hulls,
        u: Floats,
        g: Floats,
        square: float,
        relative: float,
        turn: Turn,
    ) -> None:
        """Change u and g until the solver's measure is at most `relative` times ||W||^2.

        Ends early when rows are missing: their vertices are put into ``turn.need``.
        """

    def _rows_at_once(self, problem: Dual) -> int:
        """Kernel rows without which no step can be made."""
        return 2

    def _most_needed(self, problem: Dual) -> int:
        return 2 + problem.n_groups

    def _relative(self, state: State, square: float) -> float:
        if state.stop.criterion == "paper":
            return state.stop.tol
        return state.target / square if square > 0 else 0.0

    def paper_rule(self, state: State, work: H) -> float:
        """(d_U - d_L) / ||W||^2 of the hull where it is largest."""
        square = state.problem.square(state.u, state.g)
        return widest(state.least, state.most) / square if square > 0 else np.inf


class Extremes(NamedTuple):
    """Of each hull: the vertex of least margin, that of largest margin among those with weight; the
    margins.
    """

    first: Index
    last: Index
    least: Floats
    most: Floats


@compiled()
def no_extremes(n_hulls):
    """Room for the extremes of so many hulls."""
    first, last = np.zeros(n_hulls, np.int64), np.zeros(n_hulls, np.int64)
    return Extremes(first, last, np.zeros(n_hulls), np.zeros(n_hulls))


@compiled(inline="always")
def product(hulls, i, j):
    """<z_i, z_j> for i != j, from the row of i."""
    kernel = np.float64(hulls.table[hulls.slot[i], hulls.column[j]])
    factor = hulls.coupling[hulls.hull[i], hulls.hull[j]]
    return factor * hulls.sign[i] * hulls.sign[j] * (kernel + hulls.shift)


@overload(cy.value, inline="always")
def _value(rows, i, j):
    if is_kind(rows, Hulls):
        return lambda rows, i, j: product(rows, i, j)
    return None


@compiled(fastmath=IN_ORDER, inline="always")
def _place(g, bar, start, end, k, low_range, high_range, extremes):
    """Where the extremes of hull k are, given the ranges in which they are."""
    # Without a jump out of the loop, which would keep it from being vectorised.
    low = g[low_range : min(end, low_range + costs.HULL_RANGE)]
    high = g[high_range : min(end, high_range + costs.HULL_RANGE)]
    high_bar = bar[high_range : min(end, high_range + costs.HULL_RANGE)]
    first, last = len(low), len(high)
    for t in range(len(low)):
        first = min(first, t if low[t] == extremes.least[k] else costs.HULL_RANGE)
    for t in range(len(high)):
        last = min(last, t if high[t] + high_bar[t] == extremes.most[k] else costs.HULL_RANGE)
    extremes.first[k] = min(low_range + first, end - 1)
    extremes.last[k] = min(high_range + last, end - 1)


@compiled(fastmath=IN_ORDER, inline="always")
def select(hulls, g, bar, extremes):
    """Find the extremes of g, and of g + bar, in every hull."""
    for k in range(len(hulls.starts) - 1):
        start, end = hulls.starts[k], hulls.starts[k + 1]
        least, most = -BAR, 2.0 * BAR
        low_range = high_range = start
        for s in range(start, end, costs.HULL_RANGE):
            size = min(end - s, costs.HULL_RANGE)
            some, barred = g[s : s + size], bar[s : s + size]
            low, high = -BAR, 2.0 * BAR
            for t in range(size):
                low = fmin(low, some[t])
                high = fmax(high, some[t] + barred[t])
            if low < least:
                least = low
                low_range = s
            if high > most:
                most = high
                high_range = s
        extremes.least[k] = least
        extremes.most[k] = most
        _place(g, bar, start, end, k, low_range, high_range, extremes)


@compiled(fastmath=REORDER)
def add_vertices(hulls, g, i, j, a, b):
    """The margins after W has moved by ``a z_i + b z_j``."""
    g[i] += a * hulls.ridge[i]
    g[j] += b * hulls.ridge[j]
    row_i, row_j = hulls.table[hulls.slot[i]], hulls.table[hulls.slot[j]]
    for k in range(len(hulls.starts) - 1):
        start, end = hulls.starts[k], hulls.starts[k + 1]
        c = a * hulls.sign[i] * hulls.coupling[k, hulls.hull[i]]
        d = b * hulls.sign[j] * hulls.coupling[k, hulls.hull[j]]
        constant = hulls.shift * (c + d)
        some, sign = g[start:end], hulls.sign[start:end]
        if hulls.direct:
            line_i, line_j = row_i[start:end], row_j[start:end]
            for t in range(len(some)):
                some[t] += sign[t] * (c * line_i[t] + d * line_j[t] + constant)
        else:
            column = hulls.column[start:end]
            for t in range(len(some)):
                some[t] += sign[t] * (c * row_i[column[t]] + d * row_j[column[t]] + constant)


@compiled(inline="always")
def missing(hulls, i, need, report):
    """Ask for the row of vertex i if it is not there."""
    if not hulls.there[i]:
        need[report[NEEDED]] = i
        report[NEEDED] += 1


@compiled()
def barred(u):
    """Terms to add to margins so that vertices without weight are never the largest."""
    bar = np.empty(len(u))
    for t in range(len(u)):
        bar[t] = 0.0 if u[t] > 0.0 else BAR
    return bar
