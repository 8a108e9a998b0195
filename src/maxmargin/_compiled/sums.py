"""Weighted sums of rows, and entries gathered from tables."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import REORDER, compiled

f64 = np.float64


@compiled(fastmath=REORDER)
def add_tile(acc, flat, starts, coef, width):
    """``acc[t] = sum_k coef[k] * flat[starts[k] + t]`` for t < width, summed in float64."""
    for t in range(width):
        acc[t] = 0.0
    n = len(starts)
    k = 0
    while k + 8 <= n:
        d0, d1, d2, d3 = coef[k], coef[k + 1], coef[k + 2], coef[k + 3]
        d4, d5, d6, d7 = coef[k + 4], coef[k + 5], coef[k + 6], coef[k + 7]
        r0, r1 = flat[starts[k] :], flat[starts[k + 1] :]
        r2, r3 = flat[starts[k + 2] :], flat[starts[k + 3] :]
        r4, r5 = flat[starts[k + 4] :], flat[starts[k + 5] :]
        r6, r7 = flat[starts[k + 6] :], flat[starts[k + 7] :]
        for t in range(width):
            acc[t] += ((d0 * f64(r0[t]) + d1 * f64(r1[t])) + (d2 * f64(r2[t]) + d3 * f64(r3[t]))) + (
                (d4 * f64(r4[t]) + d5 * f64(r5[t])) + (d6 * f64(r6[t]) + d7 * f64(r7[t]))
            )
        k += 8
    while k < n:
        d0 = coef[k]
        r0 = flat[starts[k] :]
        for t in range(width):
            acc[t] += d0 * f64(r0[t])
        k += 1


@compiled(fastmath=REORDER)
def add_rows(out, table, slots, coef, c0, c1):
    """``out[t] += sum_k coef[k] * table[slots[k], c0 + t]`` for t < c1 - c0, summed in float64."""
    size = 1024  # the sums of this many columns fit in the first-level cache
    acc = np.empty(size, f64)
    starts = slots * table.shape[1]
    flat = table.reshape(-1)
    for s in range(c0, c1, size):
        e = min(c1, s + size)
        add_tile(acc, flat, starts + s, coef, e - s)
        target = out[s - c0 : e - c0]
        for t in range(e - s):
            target[t] += acc[t]


@compiled()
def gather(table, slots, columns, shift, out):
    """``out = table[slots][:, columns] + shift``, in the precision of `out`."""
    for r in range(len(slots)):
        row, line = table[slots[r]], out[r]
        for c in range(len(columns)):
            line[c] = row[columns[c]] + shift
