"""Products with the matrix of the problem, from kernel rows: gradients, blocks and the diagonal."""

from __future__ import annotations

from collections.abc import Iterator
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._compiled.limits import check
from maxmargin._types import Floats, Index, Mask, Rows
from maxmargin.dual.description import Description

Array = NDArray[Any]

_EPS = 2.0**-52


def _places(label: Index, k: int) -> list[Index]:
    """The places of each of the labels 0 to k - 1, ascending."""
    if k == 1:
        return [np.arange(len(label))]
    return np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label, minlength=k))[:-1])


class Matrix(Description):
    """The matrix A∘(K + c) + diag(ridge)."""

    def gradient(self, u: Floats, gram: Rows) -> Floats:
        """(A∘(K+c) + diag(ridge)) u - p."""
        g = -self.p.copy()
        self.update(g, np.flatnonzero(u), u[u != 0], gram)
        return g

    def update(self, g: Floats, idx: Index, delta: Floats, gram: Rows, keep: Mask | None = None) -> None:
        """Change the gradient in place for a change `delta` of the variables `idx`.

        `keep` marks those whose kernel rows will be needed again, see `maxmargin.gram.Gram.add`.
        """
        if not len(idx):
            return
        if self.plain and len(g) == gram.n:
            gram.add(g, idx, delta, keep=keep)
            if self.shift:
                g += self.shift * delta.sum()
        elif self.paired and 2 * gram.n == self.m:
            self._add_pairs(g, idx, delta, gram, keep)
        elif self.signs is not None:
            g += self.signs * self._product(self.row[idx], self.signs[idx] * delta, gram)[self.row]
        else:
            for of, linked, factor in self._by_class(self.label[idx]):
                check()
                z = self._product(self.row[idx[of]], delta[of], gram)
                g[linked] += factor * z[self.row[linked]]
        g[idx] += self.ridge[idx] * delta

    def _add_pairs(self, g: Floats, idx: Index, delta: Floats, gram: Rows, keep: Mask | None) -> None:
        """Add one product with the kernel to both halves; changes of paired variables are summed first."""
        n = gram.n
        rows = np.where(idx < n, idx, idx - n)
        order = np.argsort(rows, kind="stable")
        first = np.flatnonzero(np.diff(rows[order], prepend=-1))
        if len(first) < len(rows):
            delta = np.add.reduceat(delta[order], first)
            keep = None if keep is None else np.logical_or.reduceat(keep[order], first)
            rows = rows[order[first]]
            if not delta.all():  # changes that cancel each other
                keep = None if keep is None else keep[delta != 0]
                rows, delta = rows[delta != 0], delta[delta != 0]
        z = np.zeros(n)
        gram.add(z, rows, delta, keep=keep)
        g[:n] += z
        g[n:] += z

    def _product(self, rows: Index, coef: Floats, gram: Rows) -> Floats:
        """K + c times a vector, for all samples."""
        z = np.zeros(gram.n)
        gram.add(z, rows, coef)
        if self.shift:
            z += self.shift * coef.sum()
        return z

    def _by_class(self, label: Index, some: Index | None = None) -> Iterator[tuple[Index, Any, Floats]]:
        """For each class of variables with these labels: their places, those coupled with it, the factors.

        The latter are places in `some`, by default all variables. With K classes that are coupled with
        themselves only, each variable appears once and not K times.
        """
        others = self.label if some is None else self.label[some]
        places = None if self.coupling.all() else _places(others, len(self.coupling))
        for c, of in enumerate(_places(label, len(self.coupling))):
            if not len(of):
                continue
            linked: Any = slice(None)
            if places is not None:
                coupled = np.flatnonzero(self.coupling[:, c])
                if not len(coupled):
                    continue
                linked = np.concatenate([places[d] for d in coupled])
            yield of, linked, self.coupling[others[linked], c]

    def exact_gradient(self, u: Floats, some: Index, gram: Rows) -> Floats:
        """The gradient of the variables `some`, from float64 kernel values."""
        support = np.flatnonzero(u)
        g = self.ridge[some] * u[some] - self.p[some]
        row = self.row[some]
        for count, (at, linked, factor) in enumerate(self._by_class(self.label[support], some)):
            if count:
                check()
            of = support[at]
            z = gram.exact(row[linked], self.row[of], u[of]) + self.shift * u[of].sum()
            g[linked] += factor * z
        return g

    def accurate_gradient(self, u: Floats, some: Index, gram: Rows) -> Floats:
        """The same with twice the digits: slower, for sums that cancel in float64.

        All classes are in one sum, because the terms of hulls far from the origin cancel.
        """
        support = np.flatnonzero(u)
        g = self.ridge[some] * u[some] - self.p[some]
        for c in np.unique(self.label[some]):
            of = np.flatnonzero(self.label[some] == c)
            factor = self.coupling[c, self.label[support]]
            z = gram.accurate(self.row[some[of]], self.row[support], u[support], factor)
            g[of] += z + self.shift * fsum(u[support] * factor)
        return g

    def rounding(self, u: Floats, some: Index | None, gram: Rows, double: bool = False) -> Floats:
        """Bound the rounding errors of the gradient of the variables `some`; None for all.

        The gradient is computed from the rows or, if `double`, by `exact_gradient`.
        """
        support = np.flatnonzero(u)
        of_some: Any = slice(None) if some is None else some
        error = _EPS * (np.abs(self.ridge[of_some] * u[of_some]) + np.abs(self.p[of_some]))
        row = self.row[of_some]
        for at, linked, factor in self._by_class(self.label[support], some):
            of = support[at]
            z = gram.bound(row[linked], self.row[of], u[of], double)
            z = z + _EPS * abs(self.shift) * float(np.abs(u[of]).sum())
            error[linked] += np.abs(factor) * z
        return error

    def block(self, idx: Index, others: Index, gram: Rows, cached: bool = False) -> Array:
        """The block of A∘(K+c) + diag(ridge) for two sets of variables, in the rows' precision.

        If `cached` it is taken from whole rows, which stay in the cache; otherwise it is computed directly.
        """
        if cached:
            Q = np.ascontiguousarray(gram.rows(self.row[idx])[:, self.row[others]])
            gram.count(calls=len(idx) * (len(others) - gram.n))  # used: only these columns
        else:
            Q = gram.block(self.row[idx], self.row[others])
        if self.shift:
            Q += Q.dtype.type(self.shift)
        if self.signs is None:
            Q *= self.coupling[np.ix_(self.label[idx], self.label[others])].astype(Q.dtype)
        elif self.coupling.shape != (1, 1):
            Q *= self.signs[idx, None].astype(Q.dtype)
            Q *= self.signs[others].astype(Q.dtype)
        # The exact diagonal: the curvature of a pair of equal points must be zero in spite of rounding.
        if idx is others:
            np.fill_diagonal(Q, self.diag(gram, idx))
            return Q
        if not len(others):
            return Q
        order = np.argsort(others, kind="stable")
        at = np.minimum(np.searchsorted(others, idx, sorter=order), len(others) - 1)
        at = order[at]
        same = others[at] == idx
        Q[np.flatnonzero(same), at[same]] = self.diag(gram, idx[same])
        return Q

    def diag(self, gram: Rows, idx: Any = slice(None)) -> Floats:
        """Diagonal of A∘(K+c) + diag(ridge), of the variables `idx`."""
        label = self.label[idx]
        same = self.coupling[label, label]
        return np.asarray(same * (gram.diag[self.row[idx]] + self.shift) + self.ridge[idx])
