"""Second-order SMO in two vectorised passes per step: the loop that every fast engine runs.

i is the variable of least gradient that may rise, j the one with which the objective falls most,
:math:`(g_j - g_i)^2 / (Q_{ii} + Q_{jj} - 2 Q_{ij})`. The first pass over the places finds j, the second
updates the gradient and finds the next i; the index of a maximum rides in the low mantissa bits of its value,
which makes an argmax a plain reduction.

Engines differ in where the row of a variable is: in the block of a working set
(`maxmargin.solvers.batch.block.BlockRows`), or gathered from a matrix
(`maxmargin.solvers.c_path.steps.MatrixRows`). Three small functions (`maxmargin.solvers._pair_rows`) hide
that, inlined into the loop. Rows that class pairs share have a loop of their own
(`maxmargin.solvers.batch.whole_steps`, which says why).

Variables are cut into ranges of at most ``2**INDEX_BITS``, each within a group.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.intrinsics import INDEX_BITS, fmax, index_in, raised, with_index
from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._types import Index
from maxmargin.solvers._pair_cycles import RING, go_along
from maxmargin.solvers._pair_rows import begin, fetch, has

#: The longest range of places.
LONGEST = 1 << INDEX_BITS


@compiled(inline="always")
def move_pair(u, i, j, step, top, bottom):
    """Raise ``u[i]`` and lower ``u[j]`` by `step`, or less: onto `top` or `bottom` exactly.

    Returns the step taken, and whether it moved anything in this precision.
    """
    room_i, room_j = top - u[i], u[j] - bottom
    d = min(step, min(room_i, room_j))
    before_i, before_j = u[i], u[j]
    u[i] = top if d == room_i else u[i] + d
    u[j] = bottom if d == room_j else u[j] - d
    return d, u[i] != before_i or u[j] != before_j


class Places(NamedTuple):
    """The variables of a pair loop: groups, and buffers for their gradients."""

    #: Range r is the variables ``ranges[r]:ranges[r + 1]``; those of group k are ``groups[k]:groups[k + 1]``.
    ranges: Index
    groups: Index
    #: Diagonal of Q with the ridge.
    diag: NDArray[Any]
    #: Buffers: the gradient, or +-big where the variable cannot rise or fall.
    up: NDArray[Any]
    down: NDArray[Any]


@compiled(fastmath=REORDER)
def pair_steps(rows, places, cycles, u, lo, hi, g, kink, tol, max_steps, big, tau, flag):
    """Up to `max_steps` pair steps, changing u; returns their number.

    Parameters
    ----------
    rows : BlockRows or MatrixRows
        Where the rows of Q are.
    places : Places
        Groups and buffers.
    cycles : Cycles or None
        The memory with which it takes steps along cycles too; None to take pair steps only, as it must with a
        kink. A step along a cycle is part of the pair step that closes the cycle.
    u, lo, hi : ndarray of float64
        The variables and their bounds.
    g : ndarray
        The gradient in the precision of the rows; only differences within a group matter.
    kink : float
        Adds ``kink * |u|`` to the objective: `up` and `down` differ by twice that at u = 0, and no step goes
        past it.
    tol : float
        The violation at which it ends.
    big, tau : float
        A gradient that nothing exceeds, and the least curvature.
    flag : ndarray
        Ends the loop when it is raised.
    """
    flat, up, down, diag = rows.flat, places.up, places.down, places.diag
    ranges, groups = places.ranges, places.groups
    zero, two = flat.dtype.type(0.0), flat.dtype.type(2.0)
    n_groups = len(groups) - 1
    least, most = np.empty(n_groups, flat.dtype), np.empty(n_groups, flat.dtype)
    first = np.zeros(n_groups, np.int64)
    for k in range(n_groups):
        low, high = big, -big
        for t in range(ranges[groups[k]], ranges[groups[k + 1]]):
            up[t] = g[t] + (kink if u[t] >= 0 else -kink) if u[t] < hi[t] else big
            down[t] = g[t] + (kink if u[t] > 0 else -kink) if u[t] > lo[t] else -big
            high = max(high, down[t])
            if up[t] < low:
                low = up[t]
                first[k] = t
        least[k], most[k] = low, high
    steps = since = wait = 0
    if cycles is not None:
        pairs, sizes, latest = cycles.pairs, cycles.sizes, cycles.latest
        latest[:] = -1
    while steps < max_steps and not raised(flag):
        worst = 0
        for k in range(1, n_groups):
            if most[k] - least[k] > most[worst] - least[worst]:
                worst = k
        low = least[worst]
        if not most[worst] - low >= tol:
            break
        i = first[worst]
        if not has(rows, i):  # asked here: a call costs as much as a quarter of a step
            fetch(rows, i)
        at_i = begin(rows, i)
        # j: the largest decrease. Loops run over slices from 0: an index that might be negative would not
        # vectorise.
        diag_i = diag[i]
        best, j = -big, np.int64(0)
        for r in range(groups[worst], groups[worst + 1]):
            start, size = ranges[r], ranges[r + 1] - ranges[r]
            row = flat[at_i + start : at_i + start + size]
            some_down = down[start : start + size]
            some_diag = diag[start : start + size]
            part = zero
            for t in range(size):
                b = fmax(some_down[t] - low, zero)
                gain = b * b / fmax(diag_i + some_diag[t] - two * row[t], tau)
                part = fmax(part, with_index(gain, t))
            if part > best:
                best, j = part, start + index_in(part)
        if not has(rows, j):
            fetch(rows, j)
        at_j = begin(rows, j)
        curvature = np.float64(diag_i) + np.float64(diag[j]) - 2.0 * np.float64(flat[at_i + j])
        curvature = max(curvature, np.float64(tau))
        top = hi[i] if kink == zero or u[i] >= 0 else 0.0
        bottom = lo[j] if kink == zero or u[j] <= 0 else 0.0
        before_i, before_j, g_j = u[i], u[j], down[j]
        b_j = np.float64(g_j - low)
        d, moved = move_pair(u, i, j, b_j / curvature, top, bottom)
        if i == j or not moved:
            break
        steps += 1
        step = flat.dtype.type(d)
        g_i = low - (kink if before_i >= 0 else -kink)
        g_j -= kink if before_j > 0 else -kink
        up[i] = g_i + (kink if u[i] >= 0 else -kink) if u[i] < hi[i] else big
        down[i] = g_i + (kink if u[i] > 0 else -kink) if u[i] > lo[i] else -big
        up[j] = g_j + (kink if u[j] >= 0 else -kink) if u[j] < hi[j] else big
        down[j] = g_j + (kink if u[j] > 0 else -kink) if u[j] > lo[j] else -big
        if cycles is not None:  # arrays unpacked: a function of `cycles` would cost 40 ns in reference counts
            at = steps & (RING - 1)
            pairs[at, 0], pairs[at, 1] = i, j
            sizes[at, 0], sizes[at, 1] = d, d * (b_j - 0.5 * d * curvature)
            before = latest[i]
            latest[i] = steps
            if before >= since and steps >= wait and before < steps - 1 and before > steps - RING:
                if go_along(cycles, steps - before, steps, rows, places, u, lo, hi, big, tau):
                    since = steps + 1
                else:
                    wait = 2 * steps - before  # another round
        # Update, and find the next i and the extremes of every group.
        for k in range(n_groups):
            ref, high, low = most[k], -big, big
            for r in range(groups[k], groups[k + 1]):
                start, size = ranges[r], ranges[r + 1] - ranges[r]
                row_i = flat[at_i + start : at_i + start + size]
                row_j = flat[at_j + start : at_j + start + size]
                some_up, some_down = up[start : start + size], down[start : start + size]
                largest, part = -big, zero
                for t in range(size):
                    x = step * (row_i[t] - row_j[t])
                    a = some_up[t] + x
                    b = some_down[t] + x
                    some_up[t] = a
                    some_down[t] = b
                    largest = fmax(largest, b)
                    part = fmax(part, with_index(fmax(ref - a, zero), t))
                high = max(high, largest)
                t = index_in(part)
                if t < size and some_up[t] < ref and some_up[t] < low:
                    low = some_up[t]
                    first[k] = start + t
            if low >= ref:  # nothing below ref: scan exactly
                for t in range(ranges[groups[k]], ranges[groups[k + 1]]):
                    if up[t] < low:
                        low = up[t]
                        first[k] = t
            least[k], most[k] = low, high
    return steps
