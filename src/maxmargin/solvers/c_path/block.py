"""The block of the kernel matrix on which pair steps are taken: which variables, and their values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.jit import compiled
from maxmargin._types import Mask
from maxmargin.solvers import costs


class Block(NamedTuple):
    """A part of the kernel matrix, kept from one round to the next; its values are read when needed."""

    Q: NDArray[Any]  # (limit, limit) values between the variables of the block
    valid: Mask  # (limit,) whether the row of Q has been read
    place: NDArray[np.int64]  # (n,) place of each variable in the block, or -1
    slots: NDArray[np.int64]  # (limit,) variable at each place
    size: NDArray[np.int64]  # (1,) number of places in use


@compiled()
def empty_block(K, n):
    """A block without variables."""
    limit = min(n, costs.PATH_BLOCK)
    return Block(
        np.empty((limit, limit), K.dtype),
        np.zeros(limit, np.bool_),
        np.full(n, -1),
        np.full(limit, -1),
        np.zeros(1, np.int64),
    )


@compiled()
def select(point, low, high, most, members):
    """Fill `members` with the free variables and the worst violators at a bound, about `most`; their number.

    If there are too many violators, a histogram of the violations finds the worst of either side.
    """
    u, g, lo, hi, kink = point
    n, bins = len(u), 128
    counts = np.zeros((2, bins), np.int64)
    scale = bins / (high - low) * 0.999999
    code = np.empty(n, np.int16)  # -1: no, 0: free, else 1 + side * bins + bin
    size = 0
    for t in range(n):
        rises, falls = u[t] < hi[t], u[t] > lo[t]
        up = g[t] + (kink if u[t] >= 0 else -kink)
        down = g[t] + (kink if u[t] > 0 else -kink)
        code[t] = -1
        if rises and falls and (kink == 0 or u[t] != 0):
            code[t] = 0
            if size < most:
                members[size] = t
                size += 1
        elif rises and up < high and (not falls or high - up >= down - low):
            b = min(int((up - low) * scale), bins - 1)
            counts[0, b] += 1
            code[t] = 1 + b
        elif falls and down > low:
            b = min(int((high - down) * scale), bins - 1)
            counts[1, b] += 1
            code[t] = 1 + bins + b
    room = min(most - size, costs.PATH_VIOLATORS + size // 2)
    total, share = np.zeros(2, np.int64), np.empty(2, np.int64)
    for b in range(bins):
        total[0] += counts[0, b]
        total[1] += counts[1, b]
    share[0] = min(total[0], max(room // 2, room - total[1]))
    share[1] = min(total[1], room - share[0])
    last = np.full(2, bins)
    for side in range(2):
        s = 0
        for b in range(bins):
            s += counts[side, b]
            if s > share[side]:
                last[side] = b
                break
        share[side] -= s - counts[side, min(last[side], bins - 1)] if last[side] < bins else s
    for t in range(n):
        if code[t] > 0:
            side = 1 if code[t] > bins else 0
            b = code[t] - 1 - side * bins
            if b == last[side]:  # as many of the last bin as there is room for
                share[side] -= 1
            if b < last[side] or (b == last[side] and share[side] >= 0):
                members[size] = t
                size += 1
    return size


@compiled()
def gather(K, block, members, wanted):
    """Let the block contain members[:wanted]; returns its new size.

    Other variables stay in it, unless they are many or their places are needed: only the rows of new members
    are read.
    """
    Q, valid, place, slots = block.Q, block.valid, block.place, block.slots
    size = block.size[0]
    keep = np.zeros(size, np.bool_)
    kept, n_new = 0, 0
    fresh = np.empty(wanted, np.int64)
    for i in range(wanted):
        s = place[members[i]]
        if s >= 0:
            keep[s] = True
            kept += 1
        else:
            fresh[n_new] = members[i]
            n_new += 1
    if size - kept > costs.PATH_UNUSED * wanted:  # close the gaps
        top = 0
        stay = np.empty(kept, np.int64)
        for s in range(size):
            if keep[s]:
                stay[top] = s
                top += 1
            else:
                place[slots[s]] = -1
        for a in range(top):
            valid[a] = valid[stay[a]]
            if valid[a]:
                source, line = Q[stay[a]], Q[a]
                for b in range(top):
                    line[b] = source[stay[b]]
            slots[a] = slots[stay[a]]
            place[slots[a]] = a
        size = top
        keep = np.ones(size, np.bool_)
    at = np.empty(n_new, np.int64)
    hole = 0
    limit = min(len(Q), len(slots))
    for i in range(n_new):
        if size < limit:
            s = size
            size += 1
        else:
            while keep[hole]:
                hole += 1
            s = hole
            hole += 1
            place[slots[s]] = -1
        slots[s] = fresh[i]
        place[fresh[i]] = s
        at[i] = s
    for i in range(n_new):
        valid[at[i]] = False
    if n_new > 0:
        for b in range(size):
            if valid[b]:
                row, line = K[slots[b]], Q[b]
                for i in range(n_new):
                    line[at[i]] = row[fresh[i]]
    block.size[0] = size
    return size
