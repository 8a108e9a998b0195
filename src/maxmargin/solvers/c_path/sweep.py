"""All C of all folds: where each node starts, and the solutions one after the other.

A node starts

* from the solution at the smaller C of the same fold, with all multipliers scaled by the ratio of the two; as
  it is where few are at their bound; with nothing at the bound it is the solution for every larger C;
* or from the fold before, at the same C: rows in both folds keep their multipliers, rows that are new are at
  the bound if the other fold's solution puts them inside the margin. With most support vectors at the bound
  far fewer rows change their state this way than from one C to the next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats, Mask
from maxmargin.solvers import costs
from maxmargin.solvers.c_path.block import empty_block
from maxmargin.solvers.c_path.node import solve_node
from maxmargin.solvers.c_path.state import Point, add_product, balance, is_feasible, matrix_of


class Grid(NamedTuple):
    """The problems of all folds and all C."""

    y: Floats  # (n,) labels -1 and +1, or targets
    epsilon: float  # half the width of the tube of a regression; negative for classification
    trains: Mask  # (n_folds, n) rows to train on
    Cs: Floats  # (n_C,) ascending
    weight: Floats  # (n,) factors of C
    # Variables to start from at the least C: (n_folds, n), or (1, n) for the first fold only.
    start: Floats
    tol: float  # largest violation
    max_steps: int  # pair steps of each fold


@compiled()
def _count(u, C, weight):
    """Numbers of variables at their bound C * weight and of free ones."""
    bounded, free = 0, 0
    for t in range(len(u)):
        if u[t] != 0:
            full = abs(u[t]) == C * weight[t]
            bounded += full
            free += not full
    return bounded, free


@compiled()
def _bounds(grid, f, c, lo, hi):
    """Fill lo and hi with the bounds of a node."""
    y, epsilon, weight = grid.y, grid.epsilon, grid.weight
    train, C = grid.trains[f], grid.Cs[c]
    for t in range(len(y)):
        hi[t] = C * weight[t] if train[t] and (y[t] > 0 or epsilon >= 0) else 0.0
        lo[t] = -C * weight[t] if train[t] and (y[t] < 0 or epsilon >= 0) else 0.0


@compiled()
def _start_from_fold(K, grid, point, found, f, c, change, rows, coef):
    """Start a node from the solution of the fold before at the same C."""
    u, g, lo, hi, _ = point
    y, epsilon = grid.y, grid.epsilon
    train, train_before = grid.trains[f], grid.trains[f - 1]
    before, scores, level = found.u[f - 1, c], found.decision[f - 1, c], found.offset[f - 1, c]
    for t in range(len(u)):
        g[t] = scores[t] + level - y[t]
        u[t] = before[t]
        if train[t] != train_before[t]:
            if epsilon >= 0:
                residual = y[t] - scores[t]
                u[t] = hi[t] if residual > epsilon else (lo[t] if residual < -epsilon else 0.0)
            else:
                inside = train[t] and y[t] * scores[t] < 1
                u[t] = lo[t] + hi[t] if inside else 0.0  # one of the two is zero
        change[t] = u[t] - before[t]
    if balance(point, level, change):
        add_product(K, g, change, rows, coef)
    else:
        for t in range(len(u)):
            u[t], g[t] = 0.0, -y[t]


@compiled()
def solve_all(K, diag, grid, found, flag):
    """Solve all C of all folds, one after the other; fills `found`, a `PathResult` with an axis for folds."""
    y, Cs, weight = grid.y, grid.Cs, grid.weight
    n = len(y)
    matrix, block = matrix_of(K, diag), empty_block(K, n)
    ridge = np.full(1, 1e-7 if K.itemsize == 4 else 1e-15)
    u, g, lo, hi = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    point = Point(u, g, lo, hi, max(grid.epsilon, 0.0))
    change, coef, rows = np.zeros(n), np.empty(n), np.empty(n, np.int64)
    at_hi, at_lo = np.empty(n, np.bool_), np.empty(n, np.bool_)
    offset, violation, steps, solved = found.offset, found.violation, found.steps, found.solved
    for f in range(len(grid.trains)):
        budget = grid.max_steps
        for c in range(len(Cs)):
            C = Cs[c]
            bounded, free = _count(u, Cs[c - 1], weight) if c > 0 else (0, 0)
            same = c > 0 and bounded == 0 and solved[f, c - 1]
            from_fold = f >= len(grid.start) and c == 0
            if f > 0 and not same and (c > 0 or from_fold):
                bounded_there, free_there = _count(found.u[f - 1, c], C, weight)
                from_fold |= bounded_there > costs.PATH_FROM_FOLD * free_there
            scaled = c > 0 and not from_fold and bounded >= costs.PATH_KEEP * free and bounded > 0
            ratio = C / Cs[c - 1] if c > 0 else 1.0
            for t in range(n):
                at_hi[t], at_lo[t] = u[t] == hi[t], u[t] == lo[t]
            _bounds(grid, f, c, lo, hi)
            if scaled:
                for t in range(n):
                    g[t] = ratio * (g[t] + y[t]) - y[t]
                    u[t] = hi[t] if at_hi[t] else (lo[t] if at_lo[t] else ratio * u[t])
            if from_fold:
                _start_from_fold(K, grid, point, found, f, c, change, rows, coef)
            elif c == 0:
                for t in range(n):
                    u[t] = min(max(grid.start[f, t], lo[t]), hi[t])
                    g[t] = -y[t]
                if not balance(point, 0.0, change):
                    for t in range(n):
                        u[t] = 0.0
                add_product(K, g, u, rows, coef)
            if same:
                offset[f, c], violation[f, c], steps[f, c] = offset[f, c - 1], violation[f, c - 1], 0
            else:
                offset[f, c], violation[f, c], steps[f, c] = solve_node(
                    matrix, y, point, block, ridge, grid.tol, budget, flag
                )
                budget -= steps[f, c]
            solved[f, c] = violation[f, c] <= grid.tol
            level = offset[f, c]
            out_u, out = found.u[f, c], found.decision[f, c]
            for t in range(n):
                out_u[t] = u[t]
                out[t] = g[t] + y[t] - level


@compiled()
def verify(grid, found):
    """Check all solutions once more: one with a wrong sum, or outside its box, is not solved."""
    lo, hi = np.empty(len(grid.y)), np.empty(len(grid.y))
    for f in range(len(grid.trains)):
        for c in range(len(grid.Cs)):
            _bounds(grid, f, c, lo, hi)
            if not is_feasible(found.u[f, c], lo, hi):
                found.violation[f, c], found.solved[f, c] = np.inf, False
