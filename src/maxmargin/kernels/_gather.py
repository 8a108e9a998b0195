"""Rows of data as they were given, converted on the fly: see `maxmargin.kernels.streamed`.

Data without offsets of rows (`indptr`) are dense.
"""

from __future__ import annotations

import numpy as np

from maxmargin._compiled.jit import compiled


@compiled()
def lengths(indptr, data, d, rows):
    """Offsets of CSR rows with the entries of `rows`, or the non-zeros of dense ones."""
    starts = np.zeros(len(rows) + 1, np.int64)
    for r in range(len(rows)):
        i = rows[r]
        if len(indptr):
            n = np.int64(indptr[i + 1] - indptr[i])
        else:
            n = np.int64(0)
            x = data[i * d : (i + 1) * d]
            for k in range(d):
                n += x[k] != 0
        starts[r + 1] = starts[r] + n
    return starts


@compiled()
def gather_rows(indptr, columns, data, d, rows, starts, indices, out):
    """The entries themselves, see `lengths`."""
    for r in range(len(rows)):
        i, at = rows[r], starts[r]
        if len(indptr):
            for k in range(indptr[i], indptr[i + 1]):
                indices[at] = columns[k]
                out[at] = data[k]
                at += 1
        else:
            x = data[i * d : (i + 1) * d]
            for k in range(d):
                if x[k] != 0:
                    indices[at] = k
                    out[at] = x[k]
                    at += 1


@compiled()
def gather_dense(indptr, columns, data, rows, centre, out):
    """``out[r] = X[rows[r]] - centre``; without a centre the rows themselves."""
    d = out.shape[1]
    for r in range(len(rows)):
        i, line = rows[r], out[r]
        if len(indptr) == 0:
            x = data[i * d : (i + 1) * d]
            if len(centre):
                for k in range(d):
                    line[k] = x[k] - centre[k]
            else:
                for k in range(d):
                    line[k] = x[k]
        else:
            for k in range(d):
                line[k] = 0.0 - centre[k] if len(centre) else 0.0
            for k in range(indptr[i], indptr[i + 1]):
                c = columns[k]
                line[c] = data[k] - centre[c] if len(centre) else np.float64(data[k])


@compiled()
def scatter(indptr, columns, data, rows, centre, values, width, d, slope):
    """The same in panels (`maxmargin.kernels.panels`), times `slope`; what is not stored is 0."""
    number = values.dtype.type
    if len(indptr) and not len(centre):
        values[: (len(rows) + width - 1) // width * width * d] = 0
    for r in range(len(rows)):
        i = rows[r]
        base = r // width * (width * d) + r % width
        if len(indptr) == 0:
            x = data[i * d : (i + 1) * d]
            if len(centre):
                for k in range(d):
                    values[base + k * width] = slope * number(x[k] - centre[k])
            else:
                for k in range(d):
                    values[base + k * width] = slope * number(x[k])
        else:
            if len(centre):
                for k in range(d):
                    values[base + k * width] = slope * number(0.0 - centre[k])
            for k in range(indptr[i], indptr[i + 1]):
                c = columns[k]
                x = data[k] - centre[c] if len(centre) else np.float64(data[k])
                values[base + c * width] = slope * number(x)
