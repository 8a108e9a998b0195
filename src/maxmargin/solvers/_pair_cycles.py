r"""Cycles of pair steps: one step along the sum of the last steps, when the same variable rises again.

Paper: Á. Barbero, J. López, J. R. Dorronsoro, "An Accelerated MDM Algorithm for SVM Training", which
conjectures that SMO gains as MDM does. `maxmargin.solvers.papers._cycles` has the formulas, and the rules
that a cycle closes when the same variable rises again and that the pair step which closes it joins the step
along it. Here kernel rows are those of a block, which the cycle has just used, so that two rules differ:

- **Price.** The decrease G of the last k steps and the slope :math:`s = -\langle\nabla f, d\rangle` at their
  end give :math:`d^\top Q d = 2 (G - s)`, and with it what a step along d gains, before a row is read. It is
  taken if pair steps of the same duration would gain less, at the average of the cycle
  (`maxmargin.solvers.costs.CYCLE_ROW`).
- **Length.** Rows in float32 make that difference inaccurate, so that the length is taken from the product of
  Q and d, which the step computes anyway.

The gradient must be linear in u: there are no such steps where there is a kink.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.jit import REORDER, compiled
from maxmargin._compiled.memory import aligned
from maxmargin._types import Floats, Index
from maxmargin.solvers import costs
from maxmargin.solvers._pair_rows import begin

#: Steps that are remembered, a power of two.
RING = costs.CYCLE
_LAST = RING - 1
# Relative to the decrease of a cycle, what the difference in the formula for d'Qd can be trusted to.
_TRUST = 1e-5


class Cycles(NamedTuple):
    """The last steps of a pair loop in a ring, step t at place ``t % RING``, and buffers."""

    #: What rose and what fell; the length of the step and the decrease of the objective.
    pairs: Index
    sizes: Floats
    #: The last step in which a variable rose.
    latest: Index
    #: The sum of the steps of a cycle: variables and their parts. Where a variable is among them, or -1.
    members: Index
    parts: Floats
    where: Index
    #: Product of Q and that sum.
    product: NDArray[Any]

    @staticmethod
    def of(size: int, dtype: np.dtype[Any]) -> Cycles:
        """For a loop over `size` places whose rows have this precision."""
        return Cycles(
            pairs=np.zeros((RING, 2), np.int64), sizes=np.zeros((RING, 2)), latest=np.full(size, -1),
            members=np.zeros(2 * RING + 3, np.int64), parts=np.zeros(2 * RING + 3), where=np.full(size, -1),
            product=aligned(size, dtype),
        )  # fmt: skip


@compiled()
def go_along(cycles, k, now, rows, places, u, lo, hi, big, tau):
    """Go along the cycle of the last k steps up to step `now`, if that pays; returns whether it did.

    Step `now` has been made in u, but not yet in the gradients: they may be changed in any order.
    """
    size, total = _sum_steps(cycles, k, now)
    slope, room = _slope_and_room(cycles, size, now, rows, places, u, lo, hi, big)
    if not (slope > 0.0 and room > 0.0):
        return False
    curvature = max(2.0 * (total - slope), _TRUST * total)
    along = min(slope / curvature, room)
    if along * (slope - 0.5 * along * curvature) * k <= costs.CYCLE_ROW * size * total:
        return False
    _multiply(cycles, size, rows, len(places.up))
    squares = norm = 0.0
    for h in range(size):
        part = cycles.parts[h]
        squares += part * np.float64(cycles.product[cycles.members[h]])
        norm += part * part
    # A pair has the norm 2, and at least the curvature tau.
    along = min(slope / max(squares, 0.5 * np.float64(tau) * norm), room)
    _move(cycles, size, along, places, u, lo, hi, big)
    return True


@compiled()
def _sum_steps(cycles, k, now):
    """Fill `members` and `parts` with the sum of the steps; returns their number, and the decrease."""
    members, parts, where = cycles.members, cycles.parts, cycles.where
    size, total = 0, 0.0
    for t in range(now - k + 1, now + 1):
        at = t & _LAST
        total += cycles.sizes[at, 1]
        for side in range(2):
            i = cycles.pairs[at, side]
            h = where[i]
            if h < 0:
                h = where[i] = size
                members[h], parts[h] = i, 0.0
                size += 1
            parts[h] += cycles.sizes[at, 0] if side == 0 else -cycles.sizes[at, 0]
    kept = 0
    for h in range(size):
        where[members[h]] = -1
        if parts[h] != 0.0:
            members[kept], parts[kept] = members[h], parts[h]
            kept += 1
    return kept, total


@compiled()
def _slope_and_room(cycles, size, now, rows, places, u, lo, hi, big):
    """The slope along the cycle once step `now` is in the gradient, and the longest step within the box."""
    flat, up, down = rows.flat, places.up, places.down
    last = now & _LAST
    step = cycles.sizes[last, 0]
    at_i, at_j = begin(rows, cycles.pairs[last, 0]), begin(rows, cycles.pairs[last, 1])
    slope, room = 0.0, np.inf
    for h in range(size):
        t, part = cycles.members[h], cycles.parts[h]
        g = np.float64(up[t] if up[t] < big else down[t])
        slope -= part * (g + step * (np.float64(flat[at_i + t]) - np.float64(flat[at_j + t])))
        room = min(room, ((hi[t] if part > 0.0 else lo[t]) - u[t]) / part)
    return slope, room


@compiled(fastmath=REORDER)
def _multiply(cycles, size, rows, n):
    """Fill `product`: rows in fours, so that it is written less often."""
    flat, product, members, parts = rows.flat, cycles.product, cycles.members, cycles.parts
    real = flat.dtype.type
    for h in range(size, size + 3):  # rows that count nothing
        members[h], parts[h] = members[0], 0.0
    product[:] = real(0.0)
    for h in range(0, size, 4):
        a, b, c, d = real(parts[h]), real(parts[h + 1]), real(parts[h + 2]), real(parts[h + 3])
        at_a, at_b = begin(rows, members[h]), begin(rows, members[h + 1])
        at_c, at_d = begin(rows, members[h + 2]), begin(rows, members[h + 3])
        row_a, row_b = flat[at_a : at_a + n], flat[at_b : at_b + n]
        row_c, row_d = flat[at_c : at_c + n], flat[at_d : at_d + n]
        for t in range(n):
            product[t] += (a * row_a[t] + b * row_b[t]) + (c * row_c[t] + d * row_d[t])


@compiled()
def _move(cycles, size, along, places, u, lo, hi, big):
    """Take the step in u, exactly onto the bounds that it meets, and in the gradients."""
    up, down, product = places.up, places.down, cycles.product
    for h in range(size):
        t = cycles.members[h]
        g = up[t] if up[t] < big else down[t]
        change = along * cycles.parts[h]
        after = min(max(u[t] + change, lo[t]), hi[t])
        # Less than rounding away from a bound: at it.
        if after - lo[t] <= 1e-15 * abs(change):
            after = lo[t]
        elif hi[t] - after <= 1e-15 * abs(change):
            after = hi[t]
        u[t] = after
        up[t] = g if after < hi[t] else big
        down[t] = g if after > lo[t] else -big
    scale = up.dtype.type(along)
    for t in range(len(up)):
        x = scale * product[t]
        up[t] += x
        down[t] += x
