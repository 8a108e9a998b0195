"""Kernel functions, evaluated in tiles.

A kernel turns data into `Points` once (`prepare`) and then fills blocks of kernel values between two
sets of points (`fill`): one matrix product, dense or sparse, and one vectorised transform per tile,
small enough to stay in the cache of the processor. It does not depend on row caches, labels or solvers.

======================  ==========================================
``linear``              <x, z>
``poly``                (gamma <x, z> + coef0) ** degree
``rbf``                 exp(-gamma ||x - z||_2^2)
``laplacian``           exp(-gamma ||x - z||_1)
``sigmoid``             tanh(gamma <x, z> + coef0)
``precomputed``         the given matrix itself
callable                ``kernel(X, Z)`` -> array (len(X), len(Z))
`KernelFunction`        sums, products and functions that are compiled
======================  ==========================================

The last are in `maxmargin.kernels.parts`; `maxmargin.kernels.composed` prepares data and computes values
for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.limits import check, slices
from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin.kernels import composed
from maxmargin.kernels.centre import column_means, robust_centre
from maxmargin.kernels.composed import panel_width
from maxmargin.kernels.functions import opaque
from maxmargin.kernels.layout import absolute_sums, laid_out, prefers_sparse, squared_norms, without
from maxmargin.kernels.parts import KernelFunction, Named
from maxmargin.kernels.points import Distant, Points, numbered
from maxmargin.kernels.rounding import Rounding
from maxmargin.kernels.streamed import Streamed

Array = NDArray[Any]

NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian", "precomputed")
_LOG2E = 1.4426950408889634
# Above it all distinct rows have a kernel value of 0.
_LARGEST_GAMMA = 1e290
# Scaled squared norms (the exponent of 2 at the centre) from which on rows are distant: an exponent computed
# from such norms has an error of about 1e-4 in float32, 1e-9 in float64. Beyond the second number products
# are not used at all: every row within the first is at a distance of at least 34, and the value is below
# 2 ** -1100.
_DISTANT = {np.dtype(t): (outer, (outer**0.5 + 34.0) ** 2) for t, outer in (("f4", 256.0), ("f8", 9.3e5))}
# Largest share of distant rows, and largest 1-norm (as an exponent of 2), for which float32 is used.
_FEW_DISTANT, _LARGEST_1_NORM = 1 / 16, 256.0
# The norm of a row that is left out.
_NOWHERE = 1e4


@dataclass(frozen=True)
class Kernel:
    """One kernel function with its parameters.

    Parameters
    ----------
    name : str or callable
        A name of the table above or a function of two data sets.
    gamma, coef0 : float
        Coefficients; `gamma` is a number here, see `resolve_gamma`.
    degree : int
        Degree of the polynomial kernel.

    Examples
    --------
    >>> from maxmargin.kernels import Kernel
    >>> Kernel("rbf", gamma=0.5).block([[0.0], [1.0]], [[0.0]]).round(4)
    array([[1.    ],
           [0.6065]])
    """

    name: str | Callable[..., Any]
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        leaf = self.name
        if isinstance(leaf, Named) and leaf.n_features is None:  # has faster loops under its name
            for field in ("gamma", "degree", "coef0", "name"):
                object.__setattr__(self, field, getattr(leaf, field))
        if not callable(self.name) and self.name not in NAMES:
            raise ValueError(f"Unknown kernel {self.name!r}: use one of {', '.join(NAMES)} or a callable.")
        if self.degree != int(self.degree):
            raise ValueError(f"degree must be an integer, got {self.degree!r}.")
        if self.translation_invariant and self.gamma > _LARGEST_GAMMA:
            object.__setattr__(self, "gamma", _LARGEST_GAMMA)  # same values, without overflow

    @property
    def opaque(self) -> bool:
        """Whether the kernel is a function of two data sets of any kind."""
        return opaque(self.name)

    @property
    def composed(self) -> bool:
        """Whether the kernel is an object with parts."""
        return isinstance(self.name, KernelFunction)

    @property
    def n_features(self) -> set[int]:
        """Numbers of features that parts of the kernel have parameters for; empty if none has."""
        leaves = self.name.leaves() if isinstance(self.name, KernelFunction) else ()
        return {leaf.n_features for leaf in leaves if leaf.n_features is not None}

    @property
    def needs_dense(self) -> bool:
        """Whether rows must be dense."""
        return isinstance(self.name, KernelFunction) and self.name.reads_rows

    @property
    def translation_invariant(self) -> bool:
        """Whether the kernel depends on x - z only; its diagonal is then 1."""
        return self.name in ("rbf", "laplacian")

    def prepare(
        self,
        X: Any,
        dtype: DTypeLike = np.float64,
        *,
        index: Array | None = None,
        like: Points | None = None,
        stream: bool = False,
    ) -> Points:
        """Convert the rows `index` of `X` for this kernel, with the layout and centre of `like`.

        If `stream`, no copy is made: rows are converted when they are asked for.
        """
        if isinstance(self.name, KernelFunction):
            return composed.prepare(self.name, X, dtype, index, like)
        if callable(self.name):
            X = X if index is None else safe_indexing(X, index)
            return Points(X, num_samples(X))
        dtype = np.dtype(dtype)
        if self.name == "precomputed":
            from maxmargin.kernels.given import Given, as_floats

            K = Given.of_training(X, index) if like is None else Given(as_floats(X), index)
            return Points(K, K.shape[0])
        sparse = prefers_sparse(X) if like is None else like.sparse
        if self.name == "rbf":
            return self._prepare_rbf(X, dtype, index, like, sparse, stream)
        given, centre = X, None
        if not sparse and self.translation_invariant:
            centre = column_means(X) if like is None else like.centre
        lay = Streamed if stream else laid_out
        X = lay(X, dtype, index, centre, sparse)
        if centre is not None and like is None:
            robust = robust_centre(given, centre, absolute_sums(X))
            if robust is not centre:
                centre, X = robust, lay(given, dtype, index, robust, sparse)
        norm = None
        if self.name == "laplacian" and sparse:
            norm = _one_norms(X).astype(dtype)
        X, columns = numbered(X, like, sparse)
        return Points(X, X.shape[0], norm, centre, columns=columns)

    def _prepare_rbf(
        self,
        given: Any,
        dtype: np.dtype[Any],
        index: Array | None,
        like: Points | None,
        sparse: bool,
        stream: bool,
    ) -> Points:
        """Centred rows with their norms; rows too distant for norms are kept unchanged."""
        centre, lay = None, Streamed if stream else laid_out
        if not sparse:
            centre = column_means(given) if like is None else like.centre
        with np.errstate(over="ignore", invalid="ignore"):  # distant rows are treated below
            X = lay(given, dtype, index, centre, sparse)
            norm = self._norms(X)
            if centre is not None and like is None:
                robust = robust_centre(given, centre, norm)
                if robust is not centre:
                    centre, X = robust, lay(given, dtype, index, robust, sparse)
                    norm = self._norms(X)
        outer, far_out = _DISTANT[dtype]
        distant = None
        if not (norm <= outer).all():
            far = np.flatnonzero(~(norm <= outer))
            at = np.full(len(norm), -1)
            at[far] = np.arange(len(far))
            rows = far if index is None else index[far]
            distant = Distant(given[rows].astype(np.float64), at)
            beyond = ~(norm <= far_out)  # too far from all rows within `outer` for a value above 0
            X = X.without(beyond) if stream else without(X, beyond)
            norm[beyond] = _NOWHERE
        X, columns = numbered(X, like, sparse)
        return Points(X, X.shape[0], norm.astype(dtype), centre, distant=distant, columns=columns)

    def _norms(self, X: Any) -> Array:
        return self.gamma * _LOG2E * squared_norms(X)

    def lay_out(self, points: Points) -> Points:
        """Add `Panels` or an `InvertedIndex` to the points where products with them are fastest."""
        if self.name != "rbf" or points.norm is None or points.distant is not None:
            return points
        from maxmargin.kernels.inverted import InvertedIndex
        from maxmargin.kernels.panels import Lines, Panels, padded

        d = points.X.shape[1]
        if points.streamed:
            from maxmargin.kernels.streamed_panels import StreamedIndex, StreamedPanels

            if d <= (costs.PANEL_COLUMNS if points.sparse else costs.NARROW):
                return replace(points, panels=StreamedPanels(points.X, points.norm, self.slope))
            if points.sparse:
                return replace(points, panels=StreamedIndex(points.X, points.norm, self.slope))
            return points
        small = padded(points.n, points.norm.dtype) * d * points.norm.itemsize <= costs.PANELS_BYTES
        if points.sparse and not (small and d <= costs.PANEL_COLUMNS):
            return replace(points, panels=InvertedIndex(Lines.of(points.X), d, points.norm, self.slope))
        if not small or not (points.sparse or d <= costs.NARROW):
            return points
        panels = Panels(Lines.of(points.X), d, points.norm, self.slope, np.arange(points.n))
        return replace(points, panels=panels)

    def float32_suffices(self, points: Points) -> bool:
        """Whether float32 values of these points, prepared in float32, are accurate to several digits.

        The error of an exponent grows with the distance from the centre, and matters between close rows
        there: a few such rows are treated separately (`Distant`), many require float64.
        """
        if isinstance(self.name, KernelFunction):
            return composed.float32_suffices(self.name, points)
        if points.distant is not None:
            return bool((points.distant.at >= 0).mean() <= _FEW_DISTANT)
        if self.name == "laplacian" and points.n:
            with np.errstate(over="ignore"):
                largest = absolute_sums(points.X).max(initial=0.0)
                return bool(self.gamma * _LOG2E * largest <= _LARGEST_1_NORM)
        return True

    def diag(self, points: Points) -> Array:
        """k(x, x) of each point in float64."""
        if isinstance(self.name, KernelFunction):
            return composed.diag(self.name, points)
        if self.translation_invariant:
            return np.ones(points.n)
        if self.name == "precomputed":
            return np.asarray(points.X.diagonal())
        if callable(self.name):
            one = np.arange(points.n)[:, None]
            return np.array([self._own(points.take(i)) for i in one])
        with np.errstate(over="ignore", invalid="ignore"):  # `Gram` checks the result
            square = squared_norms(points.X)
            if self.name == "linear":
                return square
            inner = self.gamma * square + self.coef0
            return np.asarray(inner**self.degree if self.name == "poly" else np.tanh(inner))

    def _own(self, point: Points) -> float:
        check()
        return float(self._call(point, point)[0, 0])

    def block(self, X: Any, Z: Any) -> Array:
        """The matrix k(X, Z) in float64."""
        if not self.opaque:
            X, Z = (x if sp.issparse(x) else np.asarray(x, dtype=np.float64) for x in (X, Z))
        B = self.prepare(Z)
        A = self.prepare(X, like=B)
        out = np.empty((A.n, B.n))
        self.fill(A, B, 0, B.n, out, np.arange(A.n))
        return out

    def fill(self, A: Points, B: Points, c0: int, c1: int, out: Array, slots: Array, first: int = 0) -> None:
        """``out[slots, c0 - first : c1 - first] = k(A, B[c0:c1])``, tile by tile."""
        if isinstance(self.name, KernelFunction):
            composed.fill(self.name, A, B, c0, c1, out, slots, first)
            return
        if callable(self.name):
            columns = B if c0 == 0 and c1 == B.n else B.take(np.arange(c0, c1))
            for s, e in slices(A.n, columns.n * self.cost(B)):
                rows = A if e - s == A.n else A.take(np.arange(s, e))
                out[slots[s:e], c0 - first : c1 - first] = self._call(rows, columns)
            return
        if self.name == "precomputed":
            A.X.fill(B.X, c0, c1, out, slots, c0 - first)
            return
        if B.streamed and B.panels is None:
            for s in range(c0, c1, costs.STREAMED_COLUMNS):
                e = min(c1, s + costs.STREAMED_COLUMNS)
                self.fill(A, B.take(np.arange(s, e)), 0, e - s, out, slots, first - s)
            return
        if self.name == "rbf":
            self._fill_rbf(A, B, c0, c1, out, slots, first)
            if A.distant is not None and B.distant is not None:
                self._fill_distant(A.distant, B.distant, c0, c1, out, slots, first)
            return
        from maxmargin.kernels._form import KINDS
        from maxmargin.kernels._tiles import transform

        kind, dtype = KINDS[self.name], B.X.dtype.type
        panels = B.sparse or self.name == "laplacian"
        # Rows of dense products are multiplied by gamma, which takes less than multiplying the products.
        slope = dtype(self._exponent if self.name == "laplacian" else self.slope if panels else 1.0)
        shift = dtype(0.0 if self.name in ("linear", "laplacian") else self.coef0)
        for r, c, tile in (self._panel_tiles if panels else self._dense_tiles)(A, B, c0, c1):
            own = slots[r : r + len(tile)]
            transform(kind, tile, slope, shift, int(self.degree), out, own, c - first)

    def _fill_rbf(self, A: Points, B: Points, c0: int, c1: int, out: Array, slots: Array, first: int) -> None:
        """The rbf kernel, product and exponential in one compiled loop."""
        from maxmargin.kernels._loops import rbf_rows
        from maxmargin.kernels.inverted import InvertedIndex
        from maxmargin.kernels.panels import Lines

        if B.panels is not None:
            B.panels.fill(Lines.of(A.X), A.norm, c0, c1, out, slots, first)
            return
        if not B.sparse:
            slope = B.X.dtype.type(self.slope)
            rbf_rows(A.X * slope, B.X, A.norm, B.norm, c0, c1, out, slots, first)
            return
        assert A.norm is not None and B.norm is not None
        lines = Lines.of(A.X)
        for s, e in slices(c1 - c0, A.n * self.cost(B), costs.INDEX_TILE):
            s, e = c0 + s, c0 + e
            index = InvertedIndex(Lines.of(B.X[s:e]), B.X.shape[1], B.norm[s:e], self.slope)
            index.fill(lines, A.norm, 0, e - s, out, slots, first - s)

    def _fill_distant(
        self, A: Distant, B: Distant, c0: int, c1: int, out: Array, slots: Array, first: int
    ) -> None:
        """Values between distant rows, from differences."""
        from maxmargin.kernels._accurate import squared_distances

        rows, columns = np.flatnonzero(A.at >= 0), c0 + np.flatnonzero(B.at[c0:c1] >= 0)
        if len(rows) and len(columns):
            with np.errstate(over="ignore"):
                D = squared_distances(A.X[A.at[rows]], B.X[B.at[columns]])
                out[np.ix_(slots[rows], columns - first)] = np.exp(-self.gamma * D)

    def cost(self, points: Points) -> float:
        """Approximate cost of one kernel value, in units of one multiplication and addition."""
        if self.name == "precomputed":
            return 1.0
        if isinstance(self.name, KernelFunction):
            return composed.cost(self.name, points)
        if callable(self.name):
            return 100.0
        width = points.X.shape[1]
        if points.sparse:
            indexed = self.name == "rbf" and width > costs.PANEL_COLUMNS
            width = points.X.nnz / max(1, points.n) * (1 if indexed else 4)
        return 10.0 + float(width) * (8 if self.name == "laplacian" else 1)

    def rounding(self, points: Points, dtype: DTypeLike, diag: Array) -> Rounding:
        """Bounds of the rounding errors of values in `dtype`."""
        if isinstance(self.name, KernelFunction):
            return composed.rounding(self.name, points, dtype)
        if callable(self.name) or self.name == "precomputed":
            size = np.sqrt(np.abs(diag) + 1e-12 * np.max(np.abs(diag), initial=0.0))
            return Rounding.products(size, dtype, 16.0 if callable(self.name) else 0.0)
        terms = points.X.shape[1]
        if points.sparse:
            longest = points.X.longest if points.streamed else np.max(np.diff(points.X.indptr), initial=0)
            terms = int(longest)
        if self.name == "rbf":
            assert points.norm is not None
            return Rounding.distances(np.asarray(points.norm, dtype=np.float64), dtype, terms)
        if self.name == "laplacian":
            size = _one_norms(points.X).astype(np.float64)
            return Rounding.distances(self.gamma * _LOG2E * size, dtype, terms)
        if self.name == "linear":
            return Rounding.products(np.sqrt(diag), dtype, terms)
        square = squared_norms(points.X)
        inner = self.gamma * square + abs(self.coef0)
        if self.name == "sigmoid":
            return Rounding.products(np.sqrt(inner + 1.0), dtype, terms)
        with np.errstate(over="ignore"):
            return Rounding.products(inner ** (0.5 * self.degree), dtype, terms, max(1, self.degree))

    def _call(self, A: Points, B: Points) -> Array:
        assert callable(self.name)
        K = self.name(A.X, B.X)
        K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=np.float64)
        if K.shape != (A.n, B.n):
            raise ValueError(
                f"The kernel function returned an array of shape {K.shape} for {A.n} and {B.n} "
                f"samples: it must return one of shape {(A.n, B.n)}."
            )
        if not np.isfinite(K).all():
            raise ValueError("The kernel function returned NaN or infinity.")
        return K

    def _dense_tiles(self, A: Points, B: Points, c0: int, c1: int) -> Any:
        """Products <a, b>, scaled, by BLAS: yields (row, column, tile)."""
        height, width = min(A.n, costs.TILE_ROWS), min(c1 - c0, costs.TILE_COLUMNS)
        buffer = np.empty(height * width, B.X.dtype)
        for r in range(0, A.n, costs.TILE_ROWS):
            rows = A.X[r : r + costs.TILE_ROWS]
            rows = rows * rows.dtype.type(self.slope)
            for c in range(c0, c1, costs.TILE_COLUMNS):
                columns = B.X[c : min(c1, c + costs.TILE_COLUMNS)]
                tile = buffer[: len(rows) * len(columns)].reshape(len(rows), len(columns))
                yield r, c, np.matmul(rows, columns.T, out=tile)

    def _panel_tiles(self, A: Points, B: Points, c0: int, c1: int) -> Any:
        """Products or 1-norm distances of rows with a transposed dense panel of columns."""
        from maxmargin.kernels._loops import csr_dots, csr_l1, dense_l1, scatter_panel

        d, dtype = B.X.shape[1], B.X.dtype
        step = panel_width(d)
        panel = np.empty((d, step), dtype)
        for c in range(c0, c1, step):
            if c > c0:
                check()
            e = min(c1, c + step)
            P = panel if e - c == step else np.empty((d, e - c), dtype)
            if B.sparse:
                scatter_panel(B.X.indptr, B.X.indices, B.X.data, c, e, P)
            else:
                P[:] = B.X[c:e].T
            tile = np.empty((min(A.n, costs.TILE_ROWS), e - c), dtype)
            for r in range(0, A.n, costs.TILE_ROWS):
                T = tile[: min(costs.TILE_ROWS, A.n - r)]
                if not B.sparse:
                    dense_l1(A.X[r : r + costs.TILE_ROWS], P, T)
                elif self.name == "laplacian":
                    assert B.norm is not None
                    indptr = A.X.indptr[r : r + len(T) + 1]
                    csr_l1(indptr, A.X.indices, A.X.data, P, B.norm[c:e], T)
                else:
                    indptr = A.X.indptr[r : r + len(T) + 1]
                    csr_dots(indptr, A.X.indices, A.X.data, P, T)
                yield r, c, T

    @property
    def slope(self) -> float:
        """Factor of the products before the transform; rbf uses powers of 2."""
        if self.name == "rbf":
            return 2.0 * self.gamma * _LOG2E
        return self.gamma if self.name in ("poly", "sigmoid") else 1.0

    @property
    def _exponent(self) -> float:
        """Factor of the 1-norm distances in the exponent of 2."""
        return -self.gamma * _LOG2E


def _one_norms(X: Any) -> Array:
    """1-norms of the rows, in their precision."""
    if isinstance(X, Streamed):
        return np.concatenate([_one_norms(part) for _, _, part in X.parts()])
    return np.asarray(abs(X).sum(axis=1)).ravel()
