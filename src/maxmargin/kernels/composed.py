"""Values of kernels that are objects, tile by tile.

All parts of a sum or product are computed from the same products, while these are in the cache of the
processor. Data are prepared once: rows in working precision with the norms that the parts need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.limits import check
from maxmargin._compiled.memory import writable
from maxmargin._types import Floats
from maxmargin.kernels.centre import column_means, robust_centre
from maxmargin.kernels.layout import absolute_sums, laid_out, prefers_sparse, squared_norms
from maxmargin.kernels.points import Points, numbered
from maxmargin.kernels.rounding import UNIT, Rounding

Array = NDArray[Any]

LOG2E = 1.4426950408889634
# Scaled norms (exponents of 2 at the centre) from which on distances are computed from differences, as those
# from products have an error of about 1e-9; and those from which on float64 is needed.
DISTANT, _DISTANT_FLOAT32 = 9.3e5, 256.0


class Measure(NamedTuple):
    """Products of rows, or their 1-norm distances: values are computed from them."""

    distances: bool
    #: A factor of each feature; None for 1.
    weights: tuple[float, ...] | None


#: Squared norms, or 1-norms, of the points that belong to a measure.
Norms = Callable[[Measure], Floats]


def measures(kernel: Any) -> list[Measure]:
    """The different measures of the parts of a kernel."""
    return list(dict.fromkeys(leaf.measure for leaf in kernel.leaves() if leaf.measure is not None))


def norms_of(kernel: Any, points: Points) -> Norms:
    """The norms of points by measure, in float64."""
    norm = np.empty((points.n, 0)) if points.norm is None else points.norm.astype(np.float64)
    places = {measure: k for k, measure in enumerate(measures(kernel))}
    return lambda measure: norm[:, places[measure]]


# -- data ------------------------------------------------------------------------------------------


def prepare(kernel: Any, X: Any, dtype: DTypeLike, index: Array | None, like: Points | None) -> Points:
    """See `Kernel.prepare`; functions of the user have float64 data."""
    dtype = np.dtype(np.float64 if kernel.own else dtype)
    weighted = _check_features(kernel, X)
    if kernel.reads_rows and sp.issparse(X):
        raise TypeError(
            "Kernels from of_rows need dense rows: pass X.toarray(), or write the kernel with of_products, "
            "which takes sparse matrices."
        )
    sparse = (prefers_sparse(X) and not kernel.reads_rows) if like is None else like.sparse
    given, centre = X, None
    if not sparse and kernel.translation_invariant:
        centre = column_means(X) if like is None else like.centre
    found = measures(kernel)
    with np.errstate(over="ignore", invalid="ignore"):
        X = laid_out(given, dtype, index, centre, sparse)
        if centre is not None and like is None:
            robust = robust_centre(given, centre, squared_norms(X))
            if robust is not centre:
                centre, X = robust, laid_out(given, dtype, index, robust, sparse)
        norm = np.stack([_norms(X, measure) for measure in found] or [np.zeros(X.shape[0])], axis=1)
    if like is None and dtype == np.float64 and not np.isfinite(norm).all():
        raise ValueError(
            "Squared norms of these rows are too large for float64: scale the features, for example with "
            "StandardScaler."
        )
    X = X if sparse else writable(X)  # for compiled code, which only reads it
    # A column that new rows have in addition would need its weight.
    X, columns = (X, None) if weighted else numbered(X, like, sparse)
    with np.errstate(over="ignore"):
        return Points(X, X.shape[0], norm.astype(dtype), centre, columns=columns)


def _check_features(kernel: Any, X: Any) -> bool:
    """Whether there are weights of features; as many as X has."""
    numbers = {leaf.n_features for leaf in kernel.leaves()} - {None}
    for number in numbers:
        if number != X.shape[1]:
            raise ValueError(f"gamma has {number} values, and X has {X.shape[1]} features.")
    return bool(numbers)


def _norms(X: Any, measure: Measure) -> Floats:
    """1-norms or squared norms of the rows."""
    if measure.weights is not None:
        weights = np.asarray(measure.weights)
        X = scaled(X, weights if measure.distances else np.sqrt(weights))
    return absolute_sums(X) if measure.distances else squared_norms(X)


def scaled(X: Any, weights: Floats) -> Any:
    """The columns of X, multiplied by weights."""
    if not sp.issparse(X):
        return X * weights.astype(X.dtype)
    return sp.csr_array(
        (X.data * weights.astype(X.dtype)[X.indices], X.indices, X.indptr), shape=X.shape, copy=False
    )


def float32_suffices(kernel: Any, points: Points) -> bool:
    """See `Kernel.float32_suffices`."""
    norms = norms_of(kernel, points)
    with np.errstate(over="ignore"):
        return all(
            kernel.own or bool((leaf.scale * norms(leaf.measure) <= _DISTANT_FLOAT32).all())
            for leaf in kernel.leaves()
            if leaf.translation_invariant and leaf.measure is not None
        )


def cost(kernel: Any, points: Points) -> float:
    """See `Kernel.cost`."""
    d = points.X.shape[1]
    width = points.X.nnz / max(1, points.n) * 4 if points.sparse else d
    total = sum(width * (8.0 if measure.distances else 1.0) for measure in measures(kernel))
    return total + sum(leaf.operations + (4.0 * d if leaf.reads_rows else 0.0) for leaf in kernel.leaves())


def diag(kernel: Any, points: Points) -> Floats:
    """See `Kernel.diag`."""
    with np.errstate(over="ignore", invalid="ignore"):  # `Gram` checks the result
        return np.asarray(kernel.diag(points, norms_of(kernel, points)), dtype=np.float64)


def rounding(kernel: Any, points: Points, dtype: DTypeLike) -> Rounding:
    r"""See `Kernel.rounding`.

    Errors of all forms become products :math:`\epsilon\, s_i s_j`, whose parts are added and multiplied with
    the Cauchy-Schwarz inequality (`maxmargin.kernels.parts`).
    """
    unit, terms = UNIT[np.dtype(dtype)], points.X.shape[1]
    if points.sparse:
        terms = int(np.max(np.diff(points.X.indptr), initial=0))
    with np.errstate(over="ignore", invalid="ignore"):
        value, error = kernel.size(points, norms_of(kernel, points), unit, terms)
        error = error + unit * value  # of the conversion to `dtype`
        # Any factor is valid. With this one most sizes are those of values, which sums are bounded by, too.
        relative = float(np.median(error[value > 0] / value[value > 0])) if (value > 0).any() else unit
        return Rounding(relative, np.sqrt(np.maximum(value, error / relative)), False)


def has_accurate_sums(kernel: Any) -> bool:
    """Whether `maxmargin.kernels._accurate_joined` has the kernel: named parts with one gamma each."""
    return not kernel.own and all(leaf.n_features is None for leaf in kernel.leaves())


def accurate_error(kernel: Any, points: Points) -> float:
    """Largest error of a value in these sums."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(kernel.size(points, norms_of(kernel, points), 0.0, 0).error.max(initial=0.0))


# -- values ----------------------------------------------------------------------------------------


def block(kernel: Any, X: Any, Z: Any) -> Floats:
    """The matrix k(X, Z) in float64."""
    X, Z = (x if sp.issparse(x) else np.asarray(x, dtype=np.float64) for x in (X, Z))
    for x in (X, Z):
        if x.ndim != 2 or x.shape[1] != X.shape[1]:
            raise ValueError(
                "Two sets of rows with equally many features are needed, got the shapes "
                f"{X.shape} and {Z.shape}."
            )
    B = prepare(kernel, Z, np.float64, None, None)
    A = prepare(kernel, X, np.float64, None, B)
    out = np.empty((A.n, B.n))
    fill(kernel, A, B, 0, B.n, out, np.arange(A.n), 0)
    return out


def fill(kernel: Any, A: Points, B: Points, c0: int, c1: int, out: Array, slots: Array, first: int) -> None:
    """See `Kernel.fill`."""
    d = B.X.shape[1]
    panels = B.sparse or any(measure.distances for measure in measures(kernel))
    width = panel_width(d) if panels else costs.TILE_COLUMNS
    tile = Tile(measures(kernel), A, B)
    for c in range(c0, c1, width):
        if c > c0:
            check()
        e = min(c1, c + width)
        for r in range(0, A.n, costs.TILE_ROWS):
            stop = min(A.n, r + costs.TILE_ROWS)
            tile.move(r, stop, c, e)
            with tile.scratch((stop - r, e - c)) as values:
                kernel.evaluate(tile, values)
                out[slots[r:stop], c - first : e - first] = values


def panel_width(d: int) -> int:
    """Columns of a panel of so many features that stays in the cache."""
    return int(np.clip(costs.PANEL_VALUES // max(1, d) // 16 * 16, 16, costs.TILE_COLUMNS))


class Tile:
    """Rows r0:r1 of A with rows c0:c1 of B, and what kernel values are computed from.

    Parameters
    ----------
    found : list of Measure
        In the order of the columns of the norms.
    A, B : Points
        Both prepared for the kernel.
    """

    def __init__(self, found: list[Measure], A: Points, B: Points) -> None:
        self._places = {measure: k for k, measure in enumerate(found)}
        self.A, self.B, self.dtype = A, B, B.X.dtype
        self._made: dict[Measure, Array] = {}
        self._free: list[Array] = []
        self._panel: tuple[int, int, Array] | None = None
        self._at = 0, 0, 0, 0

    def move(self, r0: int, r1: int, c0: int, c1: int) -> None:
        """Go to another place, where nothing is computed yet."""
        self._at = r0, r1, c0, c1
        for made in self._made.values():
            self._free.append(made)
        self._made = {}

    def _empty(self, shape: tuple[int, int]) -> Array:
        size = shape[0] * shape[1]
        while self._free:
            buffer = self._free.pop()
            if buffer.size >= size:
                break
        else:
            buffer = np.empty(size, self.dtype)
        return buffer

    @contextmanager
    def scratch(self, shape: tuple[int, int]) -> Iterator[Array]:
        """Contiguous memory for a time."""
        buffer = self._empty(shape)
        yield buffer[: shape[0] * shape[1]].reshape(shape)
        self._free.append(buffer)

    def rows(self) -> tuple[Any, Any]:
        """The rows themselves, dense or CSR."""
        r0, r1, c0, c1 = self._at
        return self.A.X[r0:r1], self.B.X[c0:c1]

    def norms(self, measure: Measure) -> tuple[Array, Array]:
        """The norms of both."""
        r0, r1, c0, c1 = self._at
        k = self._places[measure]
        assert self.A.norm is not None and self.B.norm is not None
        return np.ascontiguousarray(self.A.norm[r0:r1, k]), np.ascontiguousarray(self.B.norm[c0:c1, k])

    def values(self, measure: Measure) -> Array:
        """Products or 1-norm distances; computed once."""
        r0, r1, c0, c1 = self._at
        shape = r1 - r0, c1 - c0
        if measure not in self._made:
            buffer = self._empty(shape)
            self._compute(measure, buffer[: shape[0] * shape[1]].reshape(shape))
            self._made[measure] = buffer
        return self._made[measure][: shape[0] * shape[1]].reshape(shape)

    def _compute(self, measure: Measure, out: Array) -> None:
        A, B = self.rows()
        weights = None if measure.weights is None else np.asarray(measure.weights)
        if not measure.distances and not self.B.sparse:
            np.matmul(A if weights is None else scaled(A, weights), B.T, out=out)
            return
        from maxmargin.kernels._loops import csr_dots, csr_l1, dense_l1

        panel = self._laid_out()
        if measure.distances and weights is not None:
            panel = panel * weights.astype(panel.dtype)[:, None]
        if weights is not None:
            A = scaled(A, weights)
        if not self.B.sparse:
            dense_l1(A, panel, out)
        elif measure.distances:
            csr_l1(A.indptr, A.indices, A.data, panel, self.norms(measure)[1], out)
        else:
            csr_dots(A.indptr, A.indices, A.data, panel, out)

    def _laid_out(self) -> Array:
        """The columns of the tile, feature by feature."""
        _, _, c0, c1 = self._at
        if self._panel is None or self._panel[:2] != (c0, c1):
            from maxmargin.kernels._loops import scatter_panel

            X = self.B.X
            panel = np.empty((X.shape[1], c1 - c0), self.dtype)
            if self.B.sparse:
                scatter_panel(X.indptr, X.indices, X.data, c0, c1, panel)
            else:
                panel[:] = X[c0:c1].T
            self._panel = c0, c1, panel
        return self._panel[2]

    def gaussian(self, measure: Measure, gamma: float, out: Array) -> None:
        """Exponentials of squared distances from products, and of distant rows from differences."""
        from maxmargin.kernels._gaussian import from_products

        (a, b), slope = self.norms(measure), gamma * LOG2E
        from_products(self.values(measure), a, b, self.dtype.type(slope), out)
        if self.dtype == np.float32:  # has no such rows
            return
        far_a, far_b = (np.flatnonzero(~(slope * norm <= DISTANT)) for norm in (a, b))
        if len(far_a) and len(far_b):
            from maxmargin.kernels._accurate import squared_distances

            A, B = self.rows()
            A, B = A[far_a], B[far_b]
            if measure.weights is not None:
                root = np.sqrt(np.asarray(measure.weights))
                A, B = scaled(A, root), scaled(B, root)
            with np.errstate(over="ignore", invalid="ignore"):
                out[np.ix_(far_a, far_b)] = np.exp(-gamma * squared_distances(A, B))
