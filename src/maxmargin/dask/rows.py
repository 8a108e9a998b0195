"""Kernel rows whose samples live on the workers of a cluster: the third implementation of `Rows`."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index, Mask, Rows, Tally
from maxmargin.dask.chunk import About
from maxmargin.dask.frame import Frame, stacked
from maxmargin.dask.gradient import ClusterGradient
from maxmargin.dask.session import Session
from maxmargin.dask.store import Store
from maxmargin.dual import Dual
from maxmargin.gram.on_demand import OnDemand
from maxmargin.kernels import _accurate
from maxmargin.kernels.rounding import Rounding

Array = NDArray[Any]
# Share of distant rows up to which float32 is used, as in `maxmargin.kernels.kernel`, and the largest
# diagonal.
_FEW_DISTANT, _LARGEST_FLOAT32 = 1 / 16, 1e12


class Samples:
    """All samples of a data set on a cluster, and those of them that the client has.

    Parameters
    ----------
    session : Session
        The chunks.
    chunk, place : ndarray of int of shape (n,)
        Chunk of each sample, and its place there; places ascend with the samples.
    n_jobs : int, optional
        Threads of the client.
    """

    def __init__(
        self, session: Session, chunk: NDArray[np.int32], place: NDArray[np.int32], n_jobs: int | None
    ) -> None:
        self.session, self.frame = session, session.frame
        self.chunk, self.place, self.n = chunk, place, len(chunk)
        self.store = Store(self.n)
        self.lock = threading.RLock()  # problems that run side by side share the store
        self.threads = Threads(n_jobs)
        about: list[About] = session.call("about", [()] * len(session.chunks))
        where = [np.flatnonzero(chunk == i) for i in range(len(about))]

        def joined(parts: list[Floats]) -> Floats:
            out = np.empty(self.n)
            for at, part in zip(where, parts, strict=True):
                out[at] = part
            return out

        self.diag = joined([a.diag for a in about])
        distance = self.frame.kernel.translation_invariant
        self.roundings = [
            Rounding(max(a.units[k] for a in about), joined([a.sizes[k] for a in about]), distance)
            for k in (0, 1)
        ]
        self.cost = max(a.cost for a in about)
        self.distant = sum(a.distant for a in about)
        large = not np.abs(self.diag).max(initial=0.0) <= _LARGEST_FLOAT32
        if large and not np.isfinite(self.diag).all():
            raise ValueError(
                "Kernel values of these data are too large for float64: scale the features, for example with "
                "StandardScaler, or use a smaller gamma or degree."
            )
        self.float32 = not large and self.distant <= _FEW_DISTANT * self.n

    def get(self, numbers: Index, *, limited: bool = True) -> Any:
        """Samples, as `Frame.stored` has them; those that are not here are fetched.

        `limited` says whether the limit in force may end the wait for them.
        """
        with self.lock:
            missing = self.store.take_offered(self.store.missing(numbers))
            if len(missing):
                self._fetch(missing, limited)
            return self.store.get(numbers)

    def _fetch(self, numbers: Index, limited: bool) -> None:
        k = len(self.session.chunks)
        parts = [numbers[self.chunk[numbers] == i] for i in range(k)]
        messages = [(self.place[part],) if len(part) else None for part in parts]
        answers = self.session.call("take", messages, limited=limited)
        self.store.put(
            np.concatenate([part for part in parts if len(part)]),
            stacked([a for a in answers if a is not None]),
        )


class ClusterRows:
    """Some rows and columns of the kernel matrix of `Samples`; see `maxmargin._types.Rows`."""

    resident = holds_all = in_place = given = False
    releases_gil = True
    cache_bytes = capacity = 0
    on_demand = exact_data = features = by_frequency = borrower = None

    def __init__(self, samples: Samples, numbers: Index, dtype: DTypeLike) -> None:
        self.samples, self.numbers = samples, numbers
        self.dtype = np.dtype(dtype if samples.float32 else np.float64)
        self.n, self.cost, self.threads = len(numbers), samples.cost, samples.threads
        self.diag: Floats = samples.diag[numbers]
        self.columns: Index = np.arange(self.n)
        self.n_evals = self.n_calls = 0
        self.slot: Index = np.full(self.n, -1)
        self.table = np.empty((0, self.n), self.dtype)
        self._lock = threading.Lock()
        chunk, place = samples.chunk[numbers], samples.place[numbers]
        #: For each chunk, the rows that it has, and the runs of its own places that these are.
        self.where: list[Index] = []
        self.runs: list[tuple[tuple[int, int], ...]] = []
        for i in range(len(samples.session.chunks)):
            at = np.flatnonzero(chunk == i)
            self.where.append(at)
            self.runs.append(_runs(place[at]))

    @property
    def frame(self) -> Frame:
        """Kernel and layout."""
        return self.samples.frame

    # -- facts -------------------------------------------------------------------------------------

    @property
    def panelled(self) -> bool:
        """Whether rows between members of a working set are computed one by one, from panels."""
        frame, narrow = self.frame, costs.PANEL_COLUMNS if self.frame.sparse else costs.NARROW
        return frame.kernel.name == "rbf" and not self.samples.distant and frame.d <= narrow

    @property
    def by_distance(self) -> bool:
        """Whether `nearest` needs no kernel values: it is not available."""
        return False

    def use_one_thread(self) -> None:
        """Nothing to do: rows are computed by workers."""

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """See `Gram.count`."""
        with self._lock:
            self.n_evals += int(evals)
            self.n_calls += int(calls)

    def remote_gradient(self, problem: Dual) -> ClusterGradient | None:
        """The gradient of `problem` on the workers; None where variables and rows do not correspond."""
        corresponding = problem.paired or np.array_equal(problem.row, np.arange(self.n))
        if not corresponding or problem.shift or problem.signs is None:
            return None
        return ClusterGradient(self, problem)

    # -- values ------------------------------------------------------------------------------------

    def take(self, rows: Index) -> Any:
        """Samples of some rows, as `Frame.stored` has them."""
        return self.samples.get(self.numbers[rows])

    def gather(self, rows: Index) -> OnDemand:
        """See `Gram.gather`."""
        return OnDemand.of_points(
            self.frame.prepare(self.take(rows), self.dtype), self.frame.kernel, self.dtype
        )

    def block(self, rows: ArrayLike, columns: ArrayLike) -> Array:
        """See `Gram.block`; computed by the client."""
        rows, columns = np.asarray(rows, dtype=np.intp), np.asarray(columns, dtype=np.intp)
        kernel = self.frame.kernel
        B = self.frame.prepare(self.take(columns), self.dtype)
        A = kernel.prepare(self.take(rows), self.dtype, like=B)
        B = kernel.lay_out(B) if B.sparse else B
        out = np.empty((len(rows), len(columns)), self.dtype)
        slots = np.arange(len(rows))
        smallest = int(costs.WORTH_A_THREAD / max(1.0, self.cost * len(rows))) + 1
        parts = self.threads.split(len(columns), max(smallest, costs.SLICE_COLUMNS))
        if kernel.opaque:
            parts = [(0, len(columns))]
        self.threads.run(lambda a, b: kernel.fill(A, B, a, b, out, slots), parts)
        self.count(evals=out.size, calls=out.size)
        return out

    def add(
        self,
        out: Array,
        idx: ArrayLike,
        coef: ArrayLike,
        *,
        keep: Mask | None = None,
        tally: Tally | None = None,
    ) -> None:
        """See `Gram.add`."""
        rows, weights = np.asarray(idx, dtype=np.intp), np.asarray(coef, dtype=np.float64)
        for s in range(0, len(rows), costs.FOREIGN_ROWS):
            some, w = rows[s : s + costs.FOREIGN_ROWS], weights[s : s + costs.FOREIGN_ROWS]
            samples = self.take(some)
            messages = [(w, runs, str(self.dtype)) if runs else None for runs in self.runs]
            answers = self.samples.session.call("sums", messages, shared=samples)
            for at, answer in zip(self.where, answers, strict=True):
                if answer is not None:
                    out[at] += answer
            (tally or self).count(evals=len(some) * self.n, calls=len(some) * self.n)

    def rows(self, idx: ArrayLike) -> Array:
        """Return rows; they are fetched one by one, as few solvers for clusters need them."""
        idx = np.asarray(idx, dtype=np.intp)
        out = np.zeros((len(idx), self.n))
        for k, row in enumerate(idx):
            self.add(out[k], [row], [1.0])
        return out.astype(self.dtype)

    def ensure(self, rows: ArrayLike) -> None:
        """Not available: there is no cache."""
        raise NotImplementedError("Rows on a cluster have no cache: use solver='auto'.")

    def complete(self, row: int) -> None:
        """See `ensure`."""
        self.ensure([row])

    def held(self, rows: Index) -> Mask:
        """No row is cached."""
        return np.zeros(len(rows), np.bool_)

    def nearest(self, rows: Index, others: Index) -> tuple[Index, Floats]:
        """For each of `rows` the nearest of `others`, from kernel values."""
        distances = self.diag[rows][:, None] + self.diag[others] - 2.0 * self.block(rows, others)
        found = np.argmin(distances, axis=1)
        return found, distances[np.arange(len(rows)), found]

    # -- values for the certificate ------------------------------------------------------------------

    def exact(self, rows: Index, columns: Index, coef: Array) -> Floats:
        """See `Gram.exact`: each chunk sums over the columns that it has, the samples travel."""
        out = np.zeros(len(rows))
        chunk, place = self.samples.chunk[self.numbers[columns]], self.samples.place[self.numbers[columns]]
        own = [np.flatnonzero(chunk == i) for i in range(len(self.where))]
        for s in range(0, len(rows), costs.FOREIGN_ROWS):
            some = slice(s, s + costs.FOREIGN_ROWS)
            samples = self.take(rows[some])
            messages = [(samples, place[at].astype(np.intp), coef[at]) if len(at) else None for at in own]
            for answer in self.samples.session.call("exact", messages):
                if answer is not None:
                    out[some] += answer
        return out

    def sum_cost(self, rows: int, columns: int) -> float:
        """See `Gram.sum_cost`."""
        return float(rows * columns)

    def accurate(self, rows: Index, columns: Index, coef: Array, factor: Array) -> Floats:
        """See `Gram.accurate`; computed by the client, of samples that it has or fetches."""
        kernel = self.frame.kernel
        numbers, at = np.unique(np.concatenate([rows, columns]), return_inverse=True)
        X = self.take(numbers)
        if callable(kernel.name):
            B = self.frame.prepare(self.take(columns), np.float64)
            A = kernel.prepare(self.take(rows), np.float64, like=B)
            values = np.empty((len(rows), len(columns)))
            kernel.fill(A, B, 0, len(columns), values, np.arange(len(rows)))
            return _accurate.weighted_sums(values, coef, factor)
        X = X if sp.issparse(X) else np.asarray(X)
        return _accurate.sums(kernel, X, at[: len(rows)], at[len(rows) :], coef, factor)

    def bound(self, rows: Index, columns: Index, coef: Array, double: bool = False) -> Floats:
        """See `Gram.bound`."""
        return self._rounding(double).of_sum(self.numbers[rows], self.numbers[columns], coef)

    def largest_bound(self, double: bool = False) -> float:
        """See `Gram.largest_bound`."""
        return self._rounding(double).of_any_sum(self.n)

    def _rounding(self, double: bool) -> Rounding:
        return self.samples.roundings[1 if double or self.dtype == np.float64 else 0]

    def accurate_bound(self, error: Floats, size: float) -> Floats:
        """See `Gram.accurate_bound`."""
        if self.frame.kernel.translation_invariant:
            return np.full(len(error), 2.0**-48 * size)
        return (1.0 if callable(self.frame.kernel.name) else 2.0**-45) * error

    # -- relatives -----------------------------------------------------------------------------------

    def double(self, cache_bytes: int | None = None) -> ClusterRows:
        """See `Gram.double`."""
        if self.dtype == np.float64:
            return self
        precise = ClusterRows(self.samples, self.numbers, np.float64)
        precise.count(self.n_evals, self.n_calls)
        return precise

    def view(self, index: ArrayLike, cache_bytes: int | None = None) -> Rows:
        """See `Gram.view`; all views share the chunks."""
        return ClusterRows(self.samples, self.numbers[np.asarray(index, dtype=np.intp)], self.dtype)

    def part(self, index: Index) -> None:
        """None: gradients of active variables alone would save little, see docs/guide/cluster.md."""

    def lend(self, borrower: Any = None) -> None:
        """Nothing to lend."""

    def reopen(self) -> None:
        """Nothing was lent."""


def _runs(places: NDArray[np.int32]) -> tuple[tuple[int, int], ...]:
    """Ascending places as runs ``(start, stop)``."""
    if not len(places):
        return ()
    cuts = np.flatnonzero(np.diff(places) != 1) + 1
    starts, stops = np.concatenate([[0], cuts]), np.concatenate([cuts, [len(places)]])
    return tuple((int(places[a]), int(places[b - 1]) + 1) for a, b in zip(starts, stops, strict=True))
