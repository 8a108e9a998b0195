r"""Paths of solutions along C: the engine of a search over C, the kernel's width and folds.

With :math:`u_i = y_i\alpha_i` the dual of the hinge-loss machine with bias is

.. math:: \min_u \tfrac12 u^\top K u - y^\top u,\qquad e^\top u = 0,\quad lo \le u \le hi,

with :math:`hi_i = C w_i` for :math:`y_i = 1`, :math:`lo_i = -C w_i` for :math:`y_i = -1`, zero otherwise.
Rows held out have :math:`lo_i = hi_i = 0`: nothing ever chooses them, and the gradient :math:`g = K u - y`,
which is kept for all rows, holds their decision values :math:`g + y - offset`.

Where a node of the grid starts:

* from the solution at the smaller C of the same fold, with all multipliers scaled by the ratio of the two;
  as it is where few are at their bound; and with nothing at the bound it is the solution for every larger C;
* from the fold before, at the same C: rows in both folds keep their multipliers, rows that come in are at the
  bound if the other fold's machine puts them inside the margin. With most support vectors at the bound, far
  fewer rows change their state this way than from one C to the next.

From there two kinds of steps, until the largest violation of the optimality conditions is small enough:
pair steps (second-order SMO) on a gathered block of K, and Newton steps on the free variables with the
violators that are to become free, in which variables beyond their bounds are put there.

**Regression** is the same problem with targets y, :math:`|u_i| \le C w_i` and :math:`\varepsilon\sum_i|u_i|`
added to the objective: a kink at zero, where the gradient of rising and that of falling differ by
:math:`2\varepsilon`. Steps end at the kink as at a bound. With :math:`u = \alpha - \alpha^*` these are the
pair steps on the twin variables of `maxmargin.dual.epsilon_svr`, on half the places.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import raised
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.limits import call, current
from maxmargin._compiled.sums import add_rows
from maxmargin._types import Floats
from maxmargin.solvers.c_path.newton import newton
from maxmargin.solvers.c_path.state import (
    AT_BOUND,
    balance,
    is_feasible,
    make_feasible,
    offset_of,
    snap,
    survey,
)
from maxmargin.solvers.c_path.steps import gather, pair_steps, select

# Largest block that pair steps gather.
_BLOCK = 2048
# Largest number of variables of a Newton step; up to how many free ones it takes place among many violators.
_NEWTON, _SMALL = 3000, 1000
# Fewest pair steps that a round may take.
_FEWEST_STEPS = 300
# Variables at a bound per free one below which the multipliers are kept when C grows, and above which the
# fold before is the better start.
_KEEP, _FROM_FOLD = 0.1, 30.0
# Rounds per node, and how often one with a wrong sum is repaired and trained further.
_ROUNDS, _REPAIRS = 1000, 2


class PathResult(NamedTuple):
    """Solutions along a path of C.

    Attributes
    ----------
    decision : ndarray of shape (n_C, n)
        Decision values of all rows, held-out ones too.
    u : ndarray of shape (n_C, n)
        y * alpha, zero on held-out rows.
    offset : ndarray of shape (n_C,)
        What is subtracted from K u.
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


@compiled(fastmath=REORDER)
def _apply(K, g, change, slots, coef):  # type: ignore[no-untyped-def]
    """``g += K change``, for a change with many zeros."""
    moved = 0
    for t in range(len(change)):
        if change[t] != 0:
            slots[moved], coef[moved] = t, change[t]
            moved += 1
    if moved:
        add_rows(g, K, slots[:moved], coef[:moved], 0, K.shape[1])


@compiled()
def _repair(K, y, u, g, lo, hi, rows, coef):  # type: ignore[no-untyped-def]
    """Make (u, g) feasible again, with the gradient computed from u."""
    middle, _ = offset_of(u, g, lo, hi, 0.0)
    make_feasible(u, g, lo, hi, middle)
    for t in range(len(u)):
        g[t] = -y[t]
    _apply(K, g, u, rows, coef)


@compiled()
def _newton_cost(free, n):  # type: ignore[no-untyped-def]
    """Nominal microseconds of a Newton step; those of a pair step are in `_step_cost`."""
    return free**3 / 3e4 + free**2 * 5e-3 + 0.1 * n


@compiled()
def _step_cost(size):  # type: ignore[no-untyped-def]
    return 0.4e-3 * size + 0.1


@compiled()
def _movable(u, g, lo, hi, kink, middle, slack, free, members):  # type: ignore[no-untyped-def]
    """The free variables and a few violators that a Newton step is to make free; 0 where it is too early.

    Where it is still open for many variables whether they are free, a large matrix is not worth its while;
    a small one is, with the worst of the violators.
    """
    most = int(1.2 * free) + 10
    for _ in range(12 if free < _SMALL else 1):
        size = 0
        for t in range(len(u)):
            rises, falls = u[t] < hi[t], u[t] > lo[t]
            up = g[t] + (kink if u[t] >= 0 else -kink)
            down = g[t] + (kink if u[t] > 0 else -kink)
            free_one = rises and falls and (kink == 0 or u[t] != 0)
            if free_one or (rises and up < middle - slack) or (falls and down > middle + slack):
                members[size] = t
                size += 1
        if size <= most:
            return size if 2 <= size <= _NEWTON else 0
        slack *= 2.0
    return 0


@compiled()
def _solve_node(  # type: ignore[no-untyped-def]
    K, diag, scale, y, u, g, lo, hi, kink, tol, budget, block, valid, place, slots, held, ridge, flag
):
    """Bring (u, g) to a violation of at most tol; returns offset, violation and the number of pair steps.

    held[0] is the size of the block, ridge[0] the last ridge with which a factor was found. It ends early,
    with the gradient of what it has, when the flag is raised.
    """
    n = len(u)
    members = np.empty(n, np.int64)
    x, x0, lo_w, hi_w = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    g_w, diag_w = np.empty(n, K.dtype), np.empty(n, K.dtype)
    up, down = np.empty(n, K.dtype), np.empty(n, K.dtype)
    change, moved = np.empty(n), np.empty(n, np.int64)
    always = np.ones(n, np.bool_)
    tau = K.dtype.type((1e-6 if K.itemsize == 4 else 1e-12) * scale)
    steps, spent, stalled = 0, 0.0, 0
    want_newton, exact = False, False
    last = np.inf
    repairs = 0
    snap(u, lo, hi, AT_BOUND)
    if not is_feasible(u, lo, hi):
        _repair(K, y, u, g, lo, hi, moved, change)
    for _ in range(_ROUNDS):
        low, high, total, free = survey(u, g, lo, hi, kink)
        if steps >= budget or stalled > 3 or raised(flag):
            break
        if high - low <= tol:
            # Pair steps and Newton steps keep the sum, so that nothing but this would notice a wrong one.
            if repairs < _REPAIRS and not is_feasible(u, lo, hi):
                _repair(K, y, u, g, lo, hi, moved, change)
                repairs += 1
                continue
            rounding = 0.0
            for t in range(n):
                rounding += 1e-14 * scale * abs(u[t])
            if exact or rounding < 0.1 * tol:
                break
            # What the updates have lost might matter: the gradient from scratch.
            for t in range(n):
                g[t] = -y[t]
            _apply(K, g, u, moved, change)
            exact = True
            continue
        exact = False
        middle = total / free if free > 0 else 0.5 * (low + high)
        if want_newton:
            want_newton = False
            size = _movable(u, g, lo, hi, kink, middle, 0.25 * tol, free, members)
            if size > 0:
                done, ridge[0] = newton(K, u, g, lo, hi, kink, middle, members[:size], scale, ridge[0], flag)
                spent = 0.0
                if done:
                    want_newton = high - low < 0.7 * last
                    last = high - low
                    continue
        last = high - low
        wanted = select(u, g, lo, hi, kink, low, high, len(slots), members) if free < 0.9 * _BLOCK else n
        direct = wanted > 0.65 * n
        size = n if direct else gather(K, block, valid, place, slots, held[0], members, wanted)
        if not direct:
            held[0] = size
        for i in range(size):  # most rows matter: on the matrix itself; else on the block
            t = i if direct else slots[i]
            x[i], x0[i], lo_w[i], hi_w[i] = u[t], u[t], lo[t], hi[t]
            g_w[i], diag_w[i] = g[t] - middle, diag[t]  # float32 has no digits to spare for the offset
        # As many pair steps as two Newton steps would cost
        most = max(2.0 * _newton_cost(free, n) / _step_cost(size), _FEWEST_STEPS)
        most = int(min(most, 4.0 * size, budget - steps))
        inner = K.dtype.type(max(0.5 * tol, 0.1 * (high - low)))
        taken = pair_steps(
            K,
            slots,
            K if direct else block,
            always if direct else valid,
            diag_w,
            size,
            x,
            lo_w,
            hi_w,
            g_w,
            K.dtype.type(kink),
            inner,
            most,
            up,
            down,
            tau,
            flag,
        )
        steps += taken
        spent += taken * _step_cost(size)
        count, free = 0, 0
        for i in range(size):
            t = i if direct else slots[i]
            if x[i] != x0[i]:
                change[count], moved[count] = x[i] - x0[i], t
                count += 1
                u[t] = x[i]
            free += x[i] > lo_w[i] and x[i] < hi_w[i] and (kink == 0 or x[i] != 0)
        add_rows(g, K, moved[:count], change[:count], 0, n)
        stalled = stalled + 1 if count == 0 else 0
        want_newton = count == 0 or spent > 0.3 * _newton_cost(free, n)
    snap(u, lo, hi, AT_BOUND)
    offset, violation = offset_of(u, g, lo, hi, kink)
    return offset, violation if is_feasible(u, lo, hi) else np.inf, steps


@compiled()
def _count(u, C, weight):  # type: ignore[no-untyped-def]
    """Numbers of variables at their bound C * weight and of free ones."""
    bounded, free = 0, 0
    for t in range(len(u)):
        if u[t] != 0:
            full = abs(u[t]) == C * weight[t]
            bounded += full
            free += not full
    return bounded, free


@compiled()
def _start_from(  # type: ignore[no-untyped-def]
    K, y, u, g, lo, hi, epsilon, train, before, train_before, scores, level, change, rows, coef
):
    """Start (u, g) from another fold's solution `before` at the same C, with its decision values `scores`."""
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
    if balance(u, g, lo, hi, level, change):
        _apply(K, g, change, rows, coef)
    else:
        for t in range(len(u)):
            u[t], g[t] = 0.0, -y[t]


@compiled()
def _bounds(y, epsilon, train, C, weight, lo, hi):  # type: ignore[no-untyped-def]
    """Fill lo and hi with the bounds of a machine."""
    for t in range(len(y)):
        hi[t] = C * weight[t] if train[t] and (y[t] > 0 or epsilon >= 0) else 0.0
        lo[t] = -C * weight[t] if train[t] and (y[t] < 0 or epsilon >= 0) else 0.0


@compiled()
def _paths(  # type: ignore[no-untyped-def]
    K, diag, y, epsilon, trains, Cs, weight, tol, max_steps, start,
    decision, us, offset, violation, steps, solved, flag,
):  # fmt: skip
    """All C of all folds, one after the other. `start` is that of the first fold at the least C.

    A negative `epsilon` stands for classification.
    """
    n = len(y)
    kink = max(epsilon, 0.0)
    limit = min(n, _BLOCK)
    block, valid = np.empty((limit, limit), K.dtype), np.zeros(limit, np.bool_)
    place, slots = np.full(n, -1), np.full(limit, -1)
    held, ridge = np.zeros(1, np.int64), np.full(1, 1e-7 if K.itemsize == 4 else 1e-15)
    u, g, lo, hi = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n)
    change, coef, rows = np.zeros(n), np.empty(n), np.empty(n, np.int64)
    at_hi, at_lo = np.empty(n, np.bool_), np.empty(n, np.bool_)
    scale = 0.0
    for t in range(n):
        scale += abs(diag[t]) / n
    scale = max(scale, 1e-30)
    for f in range(len(trains)):
        train = trains[f]
        budget = max_steps
        for c in range(len(Cs)):
            C = Cs[c]
            bounded, free = _count(u, Cs[c - 1], weight) if c > 0 else (0, 0)
            same = c > 0 and bounded == 0 and solved[f, c - 1]
            from_fold = f > 0 and c == 0
            if f > 0 and not same:
                bounded_there, free_there = _count(us[f - 1, c], C, weight)
                from_fold |= bounded_there > _FROM_FOLD * free_there
            scaled = c > 0 and not from_fold and bounded >= _KEEP * free and bounded > 0
            ratio = C / Cs[c - 1] if c > 0 else 1.0
            for t in range(n):
                at_hi[t], at_lo[t] = u[t] == hi[t], u[t] == lo[t]
            _bounds(y, epsilon, train, C, weight, lo, hi)
            if scaled:
                for t in range(n):
                    g[t] = ratio * (g[t] + y[t]) - y[t]
                    u[t] = hi[t] if at_hi[t] else (lo[t] if at_lo[t] else ratio * u[t])
            if from_fold:
                _start_from(
                    K,
                    y,
                    u,
                    g,
                    lo,
                    hi,
                    epsilon,
                    train,
                    us[f - 1, c],
                    trains[f - 1],
                    decision[f - 1, c],
                    offset[f - 1, c],
                    change,
                    rows,
                    coef,
                )
            elif c == 0:
                for t in range(n):
                    u[t] = min(max(start[t], lo[t]), hi[t])
                    g[t] = -y[t]
                if not balance(u, g, lo, hi, 0.0, change):
                    for t in range(n):
                        u[t] = 0.0
                _apply(K, g, u, rows, coef)
            if same:
                offset[f, c], violation[f, c], steps[f, c] = offset[f, c - 1], violation[f, c - 1], 0
            else:
                offset[f, c], violation[f, c], steps[f, c] = _solve_node(
                    K, diag, scale, y, u, g, lo, hi, kink, tol, budget, block, valid, place, slots, held,
                    ridge, flag,
                )  # fmt: skip
                budget -= steps[f, c]
            solved[f, c] = violation[f, c] <= tol
            level = offset[f, c]
            out_u, out = us[f, c], decision[f, c]
            for t in range(n):
                out_u[t] = u[t]
                out[t] = g[t] + y[t] - level


@compiled()
def _verify(y, epsilon, trains, Cs, weight, us, violation, solved):  # type: ignore[no-untyped-def]
    """Whatever is reported is checked once more: a machine with a wrong sum or box is not solved."""
    lo, hi = np.empty(len(y)), np.empty(len(y))
    for f in range(len(trains)):
        for c in range(len(Cs)):
            _bounds(y, epsilon, trains[f], Cs[c], weight, lo, hi)
            if not is_feasible(us[f, c], lo, hi):
                violation[f, c], solved[f, c] = np.inf, False


@compiled()
def _machine(K, diag, y, u, g, lo, hi, kink, tol, max_steps, flag):  # type: ignore[no-untyped-def]
    """One node: u, feasible, is changed, and g filled with its gradient; returns the pair steps."""
    n = len(u)
    limit = min(n, _BLOCK)
    block, valid = np.empty((limit, limit), K.dtype), np.zeros(limit, np.bool_)
    place, slots = np.full(n, -1), np.full(limit, -1)
    # A ridge with which a singular matrix does not blow up rounding errors: a fit is to be repeatable.
    held, ridge = np.zeros(1, np.int64), np.full(1, 1e-6 if K.itemsize == 4 else 1e-8)
    scale = 0.0
    for t in range(n):
        g[t] = -y[t]
        scale += abs(diag[t]) / n
    scale = max(scale, 1e-30)
    _apply(K, g, u, np.empty(n, np.int64), np.empty(n))
    _, _, steps = _solve_node(
        K, diag, scale, y, u, g, lo, hi, kink, tol, max_steps, block, valid, place, slots, held, ridge,
        flag,
    )  # fmt: skip
    return steps


def solve_machine(
    K: NDArray[Any],
    y: Floats,
    start: Floats,
    lo: Floats,
    hi: Floats,
    epsilon: float,
    tol: float,
    max_steps: int,
) -> tuple[Floats, Floats, int]:
    """A single regressor over all rows of K, whose rows may be padded: u, its gradient K u - y, pair steps.

    `start` must be feasible.
    """
    n = len(y)
    u, g = start.copy(), np.zeros(K.shape[1])  # the padding of rows is added to that of g
    diag = np.ascontiguousarray(np.diagonal(K)[:n])
    steps = call(
        _machine, K, diag, y, u, g, lo, hi, float(epsilon), float(tol), int(max_steps), current().flag,
        work=3.0 * max_steps * n + 10.0 * n**3,
    )  # fmt: skip
    return u, g[:n].copy(), int(steps)


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
) -> list[PathResult]:
    """Solve a path of C for each of several folds, each with what the one before has found.

    The parameters are those of `solve_c_path`, but for `trains`, whose rows are the masks of the folds, and
    `max_steps`, which holds for each fold. `warm` is the start of the first. With `epsilon` the machines are
    regressors and y their targets.
    """
    if K.dtype not in (np.float32, np.float64) or not K.flags.c_contiguous or K.shape != (len(y), len(y)):
        raise ValueError("K must be a square matrix of float32 or float64 in C order, one row per label")
    path = np.ascontiguousarray(Cs, dtype=np.float64)
    if not (np.all(path > 0) and np.all(np.diff(path) > 0)):
        raise ValueError("Cs must be positive and ascending")
    n = len(y)
    masks = np.ascontiguousarray(np.atleast_2d(trains), dtype=np.bool_)
    shape = (len(masks), len(path))
    decision, us = np.empty((*shape, n)), np.empty((*shape, n))
    offset, violation = np.empty(shape), np.empty(shape)
    steps, solved = np.empty(shape, np.int64), np.empty(shape, np.bool_)
    factors = np.ones(n) if weight is None else np.ascontiguousarray(weight, dtype=np.float64)
    start = np.zeros(n) if warm is None else np.ascontiguousarray(warm, dtype=np.float64)
    labels = np.ascontiguousarray(y, dtype=np.float64)
    kind = -1.0 if epsilon is None else float(epsilon)
    _paths(
        K, K.diagonal().copy(), labels, kind, masks, path, factors, float(tol), max_steps, start, decision,
        us, offset, violation, steps, solved,
        current().flag,
    )  # fmt: skip
    _verify(labels, kind, masks, path, factors, us, violation, solved)
    return [PathResult(*one) for one in zip(decision, us, offset, violation, steps, solved, strict=True)]


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
    r"""Solve the machine of some rows for each of several C.

    K counts as exact: `violation` is that of the problem with the values given, in float64 arithmetic.
    Those of a float32 matrix are rounded, which shifts a gradient by up to 6e-8 times the sum of \|u\|.
    Threads may solve at once, on one K; BLAS should then be limited to one thread each.

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
