"""Loops over the values of two sets of samples, dense and sparse."""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.exp2 import exp2
from maxmargin._compiled.intrinsics import fmin
from maxmargin._compiled.jit import IN_ORDER, REORDER, compiled


@compiled(fastmath=IN_ORDER)
def rbf_rows(A, X, a, b, c0, c1, out, slots, first):
    """``out[slots[r], c - first] = 2 ** min(0, <A[r], X[c]> - a[r] - b[c])`` for c0 <= c < c1.

    Tiles of 256 x 512 products (half a megabyte in float32) go from the matrix product to the exponential
    without leaving the cache.
    """
    height, width = 256, 512
    zero = a.dtype.type(0.0)
    buffer = np.empty(height * width, a.dtype)
    for r0 in range(0, A.shape[0], height):
        rows = min(height, A.shape[0] - r0)
        for s in range(c0, c1, width):
            e = min(c1, s + width)
            tile = buffer[: rows * (e - s)].reshape(rows, e - s)
            np.dot(A[r0 : r0 + rows], X[s:e].T, tile)
            bs = b[s:e]
            for r in range(rows):
                ar = a[r0 + r]
                line = tile[r]
                target = out[slots[r0 + r], s - first : e - first]
                for t in range(e - s):
                    target[t] = exp2(fmin(line[t] - ar - bs[t], zero))


@compiled()
def count_nonzeros(X, rows):
    """Offsets of the rows of a CSR matrix with the non-zeros of some rows of X."""
    indptr = np.zeros(len(rows) + 1, np.int64)
    for r in range(len(rows)):
        n = 0
        x = X[rows[r]]
        for k in range(len(x)):
            n += x[k] != 0
        indptr[r + 1] = indptr[r] + n
    return indptr


@compiled()
def copy_nonzeros(X, rows, indptr, indices, data):
    """The non-zeros themselves, see `count_nonzeros`."""
    for r in range(len(rows)):
        at = indptr[r]
        x = X[rows[r]]
        for k in range(len(x)):
            if x[k] != 0:
                indices[at] = k
                data[at] = x[k]
                at += 1


@compiled()
def copy_rows(indptr, indices, data, rows, starts, out_indices, out):
    """Copy rows of a CSR matrix to the places ``starts[r]:starts[r + 1]``, and convert their values."""
    for r in range(len(rows)):
        at = starts[r] - indptr[rows[r]]
        for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
            out_indices[at + k] = indices[k]
            out[at + k] = data[k]


@compiled()
def row_squares(indptr, data, out):
    """Squared norms of CSR rows, summed in float64."""
    for r in range(len(out)):
        a = 0.0
        for k in range(indptr[r], indptr[r + 1]):
            x = np.float64(data[k])
            a += x * x
        out[r] = a


@compiled()
def scatter_panel(indptr, indices, data, c0, c1, panel):
    """``panel[k, t] = X[c0 + t, k]``: CSR rows laid out as dense columns."""
    panel[:] = 0
    for t in range(c1 - c0):
        for k in range(indptr[c0 + t], indptr[c0 + t + 1]):
            panel[indices[k], t] += data[k]


@compiled(fastmath=REORDER)
def csr_dots(indptr, indices, data, panel, tile):
    """``tile[r, t] = <A[r], panel[:, t]>`` for CSR rows A."""
    width = tile.shape[1]
    for r in range(tile.shape[0]):
        acc = tile[r]
        acc[:] = 0
        k = indptr[r]
        end = indptr[r + 1]
        while k + 4 <= end:
            v0 = data[k]
            v1 = data[k + 1]
            v2 = data[k + 2]
            v3 = data[k + 3]
            p0 = panel[np.uint32(indices[k])]
            p1 = panel[np.uint32(indices[k + 1])]
            p2 = panel[np.uint32(indices[k + 2])]
            p3 = panel[np.uint32(indices[k + 3])]
            for t in range(width):
                acc[t] += (v0 * p0[t] + v1 * p1[t]) + (v2 * p2[t] + v3 * p3[t])
            k += 4
        while k < end:
            v0 = data[k]
            p0 = panel[np.uint32(indices[k])]
            for t in range(width):
                acc[t] += v0 * p0[t]
            k += 1


@compiled(fastmath=REORDER)
def csr_l1(indptr, indices, data, panel, norm, tile):
    """``tile[r, t] = ||A[r] - panel[:, t]||_1`` for CSR rows A; `norm` holds the panel's 1-norms."""
    width = tile.shape[1]
    for r in range(tile.shape[0]):
        acc = tile[r]
        for t in range(width):
            acc[t] = norm[t]
        for k in range(indptr[r], indptr[r + 1]):
            v = data[k]
            p = panel[np.uint32(indices[k])]
            for t in range(width):
                acc[t] += abs(v - p[t]) - abs(p[t])


@compiled(fastmath=REORDER)
def dense_l1(A, panel, tile):
    """``tile[r, t] = ||A[r] - panel[:, t]||_1`` for dense rows A."""
    width, d = tile.shape[1], A.shape[1]
    for r in range(tile.shape[0]):
        acc, row = tile[r], A[r]
        acc[:] = 0
        k = 0
        while k + 4 <= d:  # four features per load and store of the sum
            v0, v1, v2, v3 = row[k], row[k + 1], row[k + 2], row[k + 3]
            p0, p1, p2, p3 = panel[k], panel[k + 1], panel[k + 2], panel[k + 3]
            for t in range(width):
                acc[t] += (abs(v0 - p0[t]) + abs(v1 - p1[t])) + (abs(v2 - p2[t]) + abs(v3 - p3[t]))
            k += 4
        while k < d:
            v0, p0 = row[k], panel[k]
            for t in range(width):
                acc[t] += abs(v0 - p0[t])
            k += 1
