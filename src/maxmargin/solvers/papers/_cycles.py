r"""Cycles of pair updates, collapsed into one step.

Paper: Á. Barbero, J. López, J. R. Dorronsoro, "An Accelerated MDM Algorithm for SVM Training", section 3.

Pair methods zigzag: the same few updates :math:`D_t = e_L - e_U` come again and again, each time shorter.
When an update closes a cycle of K updates, their sum

.. math:: V = \sum_j \lambda_j D_j = \sum_h \mu_h e_{i_h},\qquad i_h \in \mathcal I,\; M = |\mathcal I|,

is where the next rounds would go, and one exact line search along V takes many rounds at once. This part
knows nothing of the method that it serves: it is fed updates (L, U, lambda) and what each of them gained,
says when a cycle has closed and gives mu over the index set with the limit that the box sets.

Three things go beyond the paper:

- **When does a cycle pay?** The function is quadratic and V leads from where the cycle began to where it
  ended: with the decrease G of those K updates and the slope :math:`s = -\langle\nabla f, V\rangle` at its
  end

  .. math:: G = s + \tfrac12 V^\top Q V \quad\Longrightarrow\quad V^\top Q V = 2\,(G - s).

  So the length and the gain of the step are known before a single kernel row is read for it. The step is
  taken if the rows that it reads would earn less in plain steps at the average gain of the cycle
  (`length`).
- **The last update joins the step**: its two rows belong to the M rows that the step reads anyway, so the two
  together cost M rows, not M + 2.
- **A cycle closes when the same vector enters again** (``by_pair=False``), whichever one leaves; the paper
  waits for the same pair. Such cycles are shorter, close more often and lead as well.

The step as published is here too (`look_published`). An update that closes a cycle is not made; the step goes
along the sum of the K updates before it, with :math:`V^\top Q V` summed from kernel values of the M rows, and
is taken wherever it descends. Two rules are ours, as the paper has none: where V does not descend or the box
leaves no room, the update is made as usual; after a step along a cycle all remembered updates are stale.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled
from maxmargin._types import Floats
from maxmargin.solvers import costs
from maxmargin.solvers.papers._fetch import CALLS, ITERATIONS, NEEDED

Index = NDArray[np.int64]

_NOW, _BEGIN, _WAIT = range(3)
# Relative to the decrease of a cycle, what the difference in the formula for V'QV can be trusted to.
_TRUST = 1e-5


class Cycles(NamedTuple):
    """The last updates in a ring, and the index set of the last cycle that was collapsed.

    Update t stands at place ``t % len(entering)``; `latest[i]` is the last update in which i entered,
    `earlier` the one before that. `clock` holds the number of updates so far, the first that counts, and
    the one before which no cycle is looked at. `place[i]` is i's place in `members`, or -1.
    """

    entering: Index
    leaving: Index
    step: Floats
    gain: Floats
    earlier: Index
    latest: Index
    clock: Index
    members: Index
    mu: Floats
    place: Index
    by_pair: bool
    published: bool

    @staticmethod
    def of(m: int, memory: int = costs.CYCLE, by_pair: bool = False, published: bool = False) -> Cycles:
        """For m variables; longer cycles than `memory` are not seen. The published form closes by pair."""
        ring = np.zeros(memory, np.int64)
        return Cycles(
            entering=ring, leaving=ring.copy(), step=np.zeros(memory), gain=np.zeros(memory),
            earlier=ring.copy(), latest=np.full(m, -1), clock=np.zeros(3, np.int64),
            members=np.zeros(2 * memory, np.int64), mu=np.zeros(2 * memory), place=np.full(m, -1),
            by_pair=by_pair or published, published=published,
        )  # fmt: skip


@compiled()
def remember(cycles, lower, upper, step, gain):
    """Take note of an update that was made: `step` moved from `upper` to `lower`, f fell by `gain`."""
    now = cycles.clock[_NOW]
    at = now % len(cycles.entering)
    cycles.entering[at] = lower
    cycles.leaving[at] = upper
    cycles.step[at] = step
    cycles.gain[at] = gain
    cycles.earlier[at] = cycles.latest[lower]
    cycles.latest[lower] = now
    cycles.clock[_NOW] = now + 1


@compiled()
def forget(cycles):
    """Start afresh: after a cycle step the remembered updates are stale."""
    cycles.clock[_BEGIN] = cycles.clock[_NOW]


@compiled()
def dismiss(cycles, k):
    """A cycle of k updates did not pay: look at none before another such round is over."""
    cycles.clock[_WAIT] = cycles.clock[_NOW] + k


@compiled()
def closed(cycles, lower, upper):
    """The updates of the cycle that an update of this pair would close, itself included; 0 if none."""
    now = cycles.clock[_NOW]
    if now < cycles.clock[_WAIT]:
        return 0
    oldest = max(cycles.clock[_BEGIN], now - len(cycles.entering) + 1)
    t = cycles.latest[lower]
    if cycles.by_pair:
        while t >= oldest and cycles.leaving[t % len(cycles.entering)] != upper:
            t = cycles.earlier[t % len(cycles.entering)]
    if t < oldest or now - t < 2:
        return 0
    return now - t


@compiled()
def _join(cycles, size, i, amount):
    h = cycles.place[i]
    if h < 0:
        h = size
        cycles.place[i] = h
        cycles.members[h] = i
        cycles.mu[h] = 0.0
        size += 1
    cycles.mu[h] += amount
    return size


@compiled()
def collapse(cycles, k, lower, upper, step):
    """V of the last k - 1 updates and the one given: fills `members` and `mu`, returns M.

    The given pair stands first. What cancels out is left out.
    """
    size = _join(cycles, _join(cycles, 0, lower, step), upper, -step)
    now, ring = cycles.clock[_NOW], len(cycles.entering)
    for t in range(now - k + 1, now):
        at = t % ring
        size = _join(cycles, size, cycles.entering[at], cycles.step[at])
        size = _join(cycles, size, cycles.leaving[at], -cycles.step[at])
    largest = 0.0
    for h in range(size):
        cycles.place[cycles.members[h]] = -1
        largest = max(largest, abs(cycles.mu[h]))
    kept = 0
    for h in range(size):
        if h < 2 or abs(cycles.mu[h]) > 1e-14 * largest:
            cycles.members[kept] = cycles.members[h]
            cycles.mu[kept] = cycles.mu[h]
            kept += 1
    return kept


@compiled()
def decrease(cycles, k, gain):
    """G: what the last k - 1 updates and one with the given gain took off f."""
    now, ring = cycles.clock[_NOW], len(cycles.entering)
    total = gain
    for t in range(now - k + 1, now):
        total += cycles.gain[t % ring]
    return total


@compiled()
def room(cycles, size, u, lo, hi):
    """The longest step along V that keeps u in its box."""
    limit = np.inf
    for h in range(size):
        i, mu = cycles.members[h], cycles.mu[h]
        if mu > 0.0:
            limit = min(limit, (hi[i] - u[i]) / mu)
        elif mu < 0.0:
            limit = min(limit, (lo[i] - u[i]) / mu)
    return max(limit, 0.0)


@compiled()
def length(k, size, slope, total, limit):
    """How far to go along V, or 0 if that does not descend or does not pay; and what it gains.

    The step reads ``size`` rows where the last update alone reads two: the others must earn at least what
    as many plain steps would, at the average gain of the cycle.
    """
    if not slope > 0.0:
        return 0.0, 0.0
    curvature = max(2.0 * (total - slope), _TRUST * total)
    step = min(slope / curvature, limit)
    gain = step * (slope - 0.5 * step * curvature)
    if gain <= 0.5 * (size - 2) * total / k:
        return 0.0, 0.0
    return step, gain


@compiled()
def plan(cycles, k, size, slope, gain, u, lo, hi, there, most, need):
    """How far to go along the collapsed cycle, what that gains, and how many rows must be fetched first.

    A step that does not pay, or of more than `most` rows, is dismissed. Where a row is missing (`there`), all
    that the step reads are put into `need`, so that none is driven out for another.
    """
    limit = room(cycles, size, u, lo, hi)
    along, more = length(k, size, slope, decrease(cycles, k, gain), limit)
    if along == 0.0 or size > min(most, len(need)):
        dismiss(cycles, k)
        return 0.0, 0.0, 0
    for h in range(size):
        if not there[cycles.members[h]]:
            need[:size] = cycles.members[:size]
            return along, more, size
    return along, more, 0


def value(rows: Any, i: int, j: int) -> float:
    """Q_ij for i != j, from the row of i; each kind of rows brings its own, see `solvers._pair_rows`."""
    raise NotImplementedError


@compiled()
def look(rows, cycles, i, j, step, gain, u, g, lo, hi, most, turn):
    """The step along the cycle that an update closes: its number of rows, length and gain.

    The update has been made in u, not yet in g. The length is 0 where there is no such step; where its rows
    are missing they are in ``turn.need``. It may read `most` rows, and counts as two iterations.
    """
    budget, need, report = turn.budget, turn.need, turn.report
    k = closed(cycles, i, j)
    if k == 0 or report[ITERATIONS] + 2 > budget:
        return 0, 0.0, 0.0
    size = collapse(cycles, k, i, j, step)
    slope = 0.0
    for h in range(size):
        t = cycles.members[h]
        to_i = rows.diag[t] if h == 0 else value(rows, i, t)
        to_j = rows.diag[t] if h == 1 else value(rows, j, t)
        slope -= cycles.mu[h] * (g[t] + step * (to_i - to_j))
    report[CALLS] += 2 * size
    along, more, report[NEEDED] = plan(cycles, k, size, slope, gain, u, lo, hi, rows.there, most, need)
    return size, along, more


@compiled()
def look_published(rows, cycles, i, j, u, g, lo, hi, most, turn):
    """The published step along the cycle that an update of this pair would close: its rows, length and gain.

    Nothing has been moved, and the step takes the place of the update. Otherwise as `look`.
    """
    need, report = turn.need, turn.report
    k = closed(cycles, i, j)
    if k == 0:
        return 0, 0.0, 0.0
    # The cycle began with the same pair, k updates ago.
    size = collapse(cycles, k, i, j, cycles.step[(cycles.clock[_NOW] - k) % len(cycles.step)])
    slope = 0.0
    for h in range(size):
        slope -= cycles.mu[h] * g[cycles.members[h]]
    limit = room(cycles, size, u, lo, hi)
    if not slope > 0.0 or limit == 0.0 or size > min(most, len(need)):
        return 0, 0.0, 0.0
    for h in range(size):
        if not rows.there[cycles.members[h]]:
            need[:size] = cycles.members[:size]
            report[NEEDED] = size
            return 0, 0.0, 0.0
    square = 0.0
    for h in range(size):
        s, mu = cycles.members[h], cycles.mu[h]
        square += mu * mu * rows.diag[s]
        for r in range(h):
            square += 2.0 * mu * cycles.mu[r] * value(rows, s, cycles.members[r])
    # The members exchange weight, so that the box ends every direction.
    along = min(slope / square, limit) if square > 0.0 else limit
    return size, along, along * (slope - 0.5 * along * square)


@compiled()
def move(cycles, size, step, u, lo, hi):
    """Take the step in u; what reaches a bound is put there exactly, the sum stays what it is."""
    error = 0.0
    spare = -1
    for h in range(size):
        i = cycles.members[h]
        before = u[i]
        change = step * cycles.mu[h]
        after = min(max(before + change, lo[i]), hi[i])
        # Less than rounding away from a bound: at it.
        if after - lo[i] <= 1e-15 * abs(change):
            after = lo[i]
        elif hi[i] - after <= 1e-15 * abs(change):
            after = hi[i]
        cycles.mu[h] = after - before
        u[i] = after
        error += cycles.mu[h]
        if lo[i] < after < hi[i]:
            spare = h
    if spare >= 0:
        i = cycles.members[spare]
        corrected = u[i] - error
        if lo[i] < corrected < hi[i]:
            cycles.mu[spare] -= error
            u[i] = corrected
