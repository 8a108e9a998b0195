"""All pairs of classes along C: one compiled call builds and solves the folds of one pair after another.

A pair of small classes takes some ten microseconds a node, and Python code around each pair would take as
long as that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import compiled
from maxmargin._compiled.limits import current
from maxmargin._types import Floats, Index, Mask
from maxmargin.solvers.c_path.held_out import matrix_of_rows
from maxmargin.solvers.c_path.path import PathResult
from maxmargin.solvers.c_path.starts import carry
from maxmargin.solvers.c_path.sweep import Grid, solve_all, verify


class PairProblems(NamedTuple):
    """The problems of some pairs of classes."""

    #: (n,) rows of the kernel matrix, as unsigned numbers, pair after pair; where each pair begins, and how
    #: many rows of its first class, whose label is +1, come first.
    rows: NDArray[np.uint64]
    begins: Index
    n_first: Index
    #: (n_folds, rows of the matrix) those to train on, and their factors of C.
    masks: Mask
    factors: Floats
    #: Whether the factors are the same on all folds: these then start from each other's solutions.
    same: bool
    Cs: Floats
    tol: float
    max_steps: int
    #: (n_folds, n) solutions for another C to start from, or none; that C.
    start: Floats
    start_C: float


class PairSolutions(NamedTuple):
    """Solutions of all folds and all C."""

    u: Floats  # (n_folds, n_C, n)
    offset: Floats  # (n_folds, n_C, n_pairs)
    solved: Mask  # (n_pairs, n_folds, n_C)
    # (n_pairs, n_folds, n_C) pair steps, negative until the node is solved.
    steps: NDArray[np.int64]

    @staticmethod
    def empty(problems: PairProblems) -> PairSolutions:
        """Nothing is solved."""
        n_folds, n_C, n_pairs = len(problems.masks), len(problems.Cs), len(problems.n_first)
        return PairSolutions(
            np.zeros((n_folds, n_C, len(problems.rows))),
            np.zeros((n_folds, n_C, n_pairs)),
            np.zeros((n_pairs, n_folds, n_C), np.bool_),
            np.full((n_pairs, n_folds, n_C), -1, np.int64),
        )


def solve_pairs(K: NDArray[Any], problems: PairProblems, found: PairSolutions) -> None:
    """Solve the problems over a symmetric kernel matrix; fills `found`."""
    _solve_pairs(K, problems, found, current().flag)


@compiled()
def _solve_pairs(K, problems, found, flag):
    begins, Cs, weights = problems.begins, problems.Cs, problems.factors
    n_folds, n_C = len(problems.masks), len(Cs)
    # Folds that are solved together.
    team = n_folds if problems.same else 1
    for p in range(len(problems.n_first)):
        if raised(flag):
            return
        rows = problems.rows[begins[p] : begins[p + 1]]
        m = len(rows)
        part = matrix_of_rows(K, rows)
        diag = np.empty(m, K.dtype)
        y = np.empty(m)
        for i in range(m):
            diag[i] = part[i, i]
            y[i] = 1.0 if i < problems.n_first[p] else -1.0
        for f in range(0, n_folds, team):
            trains, weight = np.empty((team, m), np.bool_), np.empty(m)
            n_starts = team if len(problems.start) else 1
            start = np.zeros((n_starts, m))
            for k in range(team):
                mask = problems.masks[f + k]
                for i in range(m):
                    trains[k, i] = mask[rows[i]]
            for i in range(m):
                weight[i] = weights[f, rows[i]]
            if len(problems.start):
                for k in range(team):
                    before = problems.start[f + k, begins[p] : begins[p + 1]]
                    carry(before, problems.start_C, Cs[0], weight, start[k])
            grid = Grid(y, -1.0, trains, Cs, weight, start, problems.tol, problems.max_steps)
            own = PathResult(
                np.empty((team, n_C, m)),
                np.empty((team, n_C, m)),
                np.empty((team, n_C)),
                np.empty((team, n_C)),
                found.steps[p, f : f + team],
                found.solved[p, f : f + team],
            )
            solve_all(part, diag, grid, own, flag)
            verify(grid, own)
            for k in range(team):
                for c in range(n_C):
                    found.offset[f + k, c, p] = own.offset[k, c]
                    out, u = found.u[f + k, c, begins[p] : begins[p + 1]], own.u[k, c]
                    for i in range(m):
                        out[i] = u[i]
