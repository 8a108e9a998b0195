r"""Paths of solutions along C: the engine of a search over C, the kernel's width and folds.

With :math:`u_i = y_i\alpha_i` the dual of the hinge-loss SVM with bias is

.. math:: \min_u \tfrac12 u^\top K u - y^\top u,\qquad e^\top u = 0,\quad lo \le u \le hi,

with :math:`hi_i = C w_i` for :math:`y_i = 1`, :math:`lo_i = -C w_i` for :math:`y_i = -1`, zero otherwise.
Rows held out have :math:`lo_i = hi_i = 0`: they are never selected, and the gradient :math:`g = K u - y`,
which is kept for all rows, gives their decision values :math:`g + y - offset`.

A node of the grid, which is one C of one fold, starts from the solution of a neighbour (`sweep`). From there
two kinds of steps follow (`node`), until the largest violation of the optimality conditions is small enough:
pair steps (second-order SMO, `steps`) on a gathered `block` of K, and Newton steps (`newton`) on the free
variables and the violators that are likely to become free, in which variables beyond their bounds are put on
them.

**Regression** is the same problem with targets y, :math:`|u_i| \le C w_i` and :math:`\varepsilon\sum_i|u_i|`
added to the objective: a kink at zero, where the gradient of rising and that of falling differ by
:math:`2\varepsilon`. Steps end at the kink as at a bound. With :math:`u = \alpha - \alpha^*` these are the
pair steps on the paired variables of `maxmargin.dual.epsilon_svr`, with half as many variables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import call, current
from maxmargin._types import Floats
from maxmargin.solvers.c_path.node import solve_one
from maxmargin.solvers.c_path.state import Point
from maxmargin.solvers.c_path.sweep import Grid, solve_all, verify


class PathResult(NamedTuple):
    """Solutions along a path of C.

    Attributes
    ----------
    decision : ndarray of shape (n_C, n)
        Decision values of all rows, held-out ones too.
    u : ndarray of shape (n_C, n)
        y * alpha, zero on held-out rows.
    offset : ndarray of shape (n_C,)
        Offset: the decision values are K u - offset.
    violation : ndarray of shape (n_C,)
        Largest violation of the optimality conditions, as LIBSVM defines it; infinite if u is not feasible.
    steps : ndarray of shape (n_C,)
        Pair steps taken.
    solved : ndarray of shape (n_C,) of bool
        Whether the violation is at most the tolerance, u within its bounds and its sum zero.
    """

    decision: Floats
    u: Floats
    offset: Floats
    violation: Floats
    steps: NDArray[np.int64]
    solved: NDArray[np.bool_]


def solve_regression(
    K: NDArray[Any],
    y: Floats,
    start: Floats,
    lo: Floats,
    hi: Floats,
    epsilon: float,
    tol: float,
    max_steps: int,
) -> tuple[Floats, Floats, int]:
    """Solve a single regression over all rows of K, whose rows may be padded, from a feasible `start`.

    Returns u, its gradient K u - y and the number of pair steps.
    """
    n = len(y)
    g = np.zeros(K.shape[1])  # the padding of rows is added to that of g
    point = Point(start.copy(), g, lo, hi, float(epsilon))
    diag = np.ascontiguousarray(np.diagonal(K)[:n])
    work = 3.0 * max_steps * n + 10.0 * n**3
    steps = call(solve_one, K, diag, y, point, float(tol), int(max_steps), current().flag, work=work)
    return point.u, g[:n].copy(), int(steps)


def solve_folds(
    K: NDArray[Any],
    y: Floats,
    trains: NDArray[np.bool_],
    Cs: Sequence[float] | Floats,
    *,
    tol: float = 1e-3,
    weight: Floats | None = None,
    warm: Floats | None = None,
    max_steps: int = 10_000_000,
    epsilon: float | None = None,
    monitor: Callable[[NDArray[np.int64]], None] | None = None,
) -> list[PathResult]:
    """Solve a path of C for each of several folds, which start from each other's solutions.

    The parameters are those of `solve_c_path`, except `trains`, whose rows are the masks of the folds, and
    `max_steps`, which applies to each fold. `warm` is the start of the first fold, or of shape (n_folds, n)
    of all; see `maxmargin.solvers.c_path.starts`. With `epsilon` the problems are regressions and y their
    targets. `monitor` gets an array of shape (n_folds, n_C), whose entries become the steps of a node when it
    is solved, and are negative before; another thread can read it meanwhile.
    """
    if K.dtype not in (np.float32, np.float64) or not K.flags.c_contiguous or K.shape != (len(y), len(y)):
        raise ValueError("K must be a square matrix of float32 or float64 in C order, one row per label")
    path = np.ascontiguousarray(Cs, dtype=np.float64)
    if not (np.all(path > 0) and np.all(np.diff(path) > 0)):
        raise ValueError("Cs must be positive and ascending")
    n = len(y)
    start = np.zeros((1, n)) if warm is None else np.atleast_2d(warm)
    masks = np.ascontiguousarray(np.atleast_2d(trains), dtype=np.bool_)
    shape = (len(masks), len(path))
    found = PathResult(
        decision=np.empty((*shape, n)),
        u=np.empty((*shape, n)),
        offset=np.empty(shape),
        violation=np.empty(shape),
        steps=np.full(shape, -1, np.int64),
        solved=np.empty(shape, np.bool_),
    )
    grid = Grid(
        y=np.ascontiguousarray(y, dtype=np.float64),
        epsilon=-1.0 if epsilon is None else float(epsilon),
        trains=masks,
        Cs=path,
        weight=np.ones(n) if weight is None else np.ascontiguousarray(weight, dtype=np.float64),
        start=np.ascontiguousarray(start, dtype=np.float64),
        tol=float(tol),
        max_steps=int(max_steps),
    )
    if monitor is not None:
        monitor(found.steps)
    solve_all(K, K.diagonal().copy(), grid, found, current().flag)
    verify(grid, found)
    return [PathResult(*of_fold) for of_fold in zip(*found, strict=True)]


def solve_c_path(
    K: NDArray[Any],
    y: Floats,
    train: NDArray[np.bool_],
    Cs: Sequence[float] | Floats,
    *,
    tol: float = 1e-3,
    weight: Floats | None = None,
    warm: Floats | None = None,
    max_steps: int = 10_000_000,
) -> PathResult:
    r"""Solve the problem of some rows for each of several C.

    K counts as exact: `violation` is that of the problem with the given values, in float64 arithmetic.
    Those of a float32 matrix are rounded, which shifts a gradient by up to 6e-8 times the sum of \|u\|.
    Several threads may solve paths on the same K; BLAS should then be limited to one thread each.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel values of all rows, symmetric, float32 or float64, in C order.
    y : ndarray of shape (n,)
        Labels, -1 or +1.
    train : ndarray of shape (n,) of bool
        Rows to train on. The others get decision values only.
    Cs : sequence of float
        Ascending values of C.
    tol : float
        Largest violation of the optimality conditions allowed, as LIBSVM defines it.
    weight : ndarray of shape (n,), optional
        Factors of C.
    warm : ndarray of shape (n,), optional
        Where to start at the least C, y * alpha of a similar problem; it is made feasible.
    max_steps : int
        Pair steps that the path may take.

    Returns
    -------
    PathResult
        The solutions, whether or not they are within the tolerance.
    """
    masks = np.asarray(train)[None]
    return solve_folds(K, y, masks, Cs, tol=tol, weight=weight, warm=warm, max_steps=max_steps)[0]
