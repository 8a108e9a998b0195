"""Training of an ordinary estimator on samples that live on the workers of a cluster."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from maxmargin import _costs as costs
from maxmargin._types import Index
from maxmargin.dask.chunk import Chunk, Setting, Step
from maxmargin.dask.data import TrainingData
from maxmargin.dask.frame import Frame
from maxmargin.dask.rows import ClusterRows, Samples
from maxmargin.dask.session import Session, Traffic
from maxmargin.dask.waiting import gather, threads_of
from maxmargin.estimators._elsewhere import SamplesElsewhere
from maxmargin.estimators._scales import UnscaledDataWarning
from maxmargin.estimators._validation import UNSCALED
from maxmargin.kernels.functions import opaque
from maxmargin.kernels.kernel import Kernel
from maxmargin.solvers.batch import Batch

# Rows of a chunk at most: what is sent to one stays below the 10 MB at which dask warns about large graphs.
_LARGEST_CHUNK = 200_000
# Rows of a chunk at least: with fewer, a task takes less time than its way to the worker and back.
_SMALLEST_CHUNK = 2_000


def chunk_count(n: int, threads: int) -> int:
    """The number of chunks of n rows: as many for each thread, as a round waits for the one that has most.

    Examples
    --------
    >>> from maxmargin.dask.training import chunk_count
    >>> chunk_count(5_000, threads=8), chunk_count(100_000, threads=8), chunk_count(500_000, threads=2)
    (2, 8, 4)
    """
    each = max(1, -(-n // (_LARGEST_CHUNK * threads)))
    return max(1, min(n // _SMALLEST_CHUNK, threads * each))


class ClusterSamples(SamplesElsewhere):
    """The samples of `TrainingData`, for the `fit` of an ordinary estimator.

    Parameters
    ----------
    data : TrainingData
        Checked partitions on the workers.
    """

    def __init__(self, data: TrainingData) -> None:
        self.data, self.shape, self.dtype = data, data.shape, data.dtype
        self.traffic: Traffic | None = None
        self._samples: Samples | None = None

    def gamma(self, gamma: str | float) -> float:
        """See `resolve_gamma`; from pooled statistics of the chunks."""
        return self.data.summary.gamma(gamma)

    def gram(self, kernel: Kernel, order: Index, dtype: DTypeLike, n_jobs: int | None) -> ClusterRows:
        """The kernel rows; chunks are made here."""
        self.close()
        client, n = self.data.client, self.shape[0]
        threads = max(1, sum(client.nthreads().values()))
        count = chunk_count(n, threads)
        pieces = self.data.pieces(count)
        ends = np.cumsum([0] + [sum(b - a for _, a, b in piece) for piece in pieces])
        chunk_of = np.searchsorted(ends, order, side="right").astype(np.int32) - 1
        place = np.empty(len(order), np.int32)
        orders = []
        for i in range(count):
            at = np.flatnonzero(chunk_of == i)
            place[at] = np.arange(len(at), dtype=np.int32)
            orders.append(order[at] - ends[i])
        session = Session(client, self.frame(kernel), pieces, orders)
        self.traffic = session.traffic
        self._samples = Samples(session, chunk_of, place, n_jobs)
        self._number = np.full(n, -1, np.int32)
        self._number[order] = np.arange(len(order), dtype=np.int32)
        return ClusterRows(self._samples, np.arange(len(order)), dtype)

    def frame(self, kernel: Kernel) -> Frame:
        """The layout of the samples, for a kernel."""
        data, d = self.data, self.shape[1]
        if kernel.opaque:
            return Frame(kernel, d, data.sparse)
        few = data.summary.nonzero < costs.SPARSE_BELOW * data.summary.rows * d
        sparse = few and (data.sparse or d >= costs.SPARSE_FEATURES) and not kernel.needs_dense
        centre = (
            data.summary.sums / max(1, data.summary.rows)
            if kernel.translation_invariant and not sparse
            else None
        )
        if centre is not None and not np.isfinite(centre).all():
            centre = np.zeros(d)
        return Frame(kernel, d, sparse, centre)

    def __getitem__(self, rows: Index) -> Any:
        """Samples, as they were given: dense, or CSR."""
        if not len(rows):
            nothing = np.empty((0, self.shape[1]), self.dtype)
            return sp.csr_array(nothing) if self.data.sparse else nothing
        assert self._samples is not None
        found = self._samples.get(self._number[rows].astype(np.intp), limited=False)  # of the model
        if self.data.sparse:
            return sp.csr_array(found)
        return found.toarray() if sp.issparse(found) else found

    def close(self) -> None:
        """Release the chunks."""
        if self._samples is not None:
            self._samples.session.close()


@contextmanager
def on_cluster(data: TrainingData) -> Iterator[ClusterSamples]:
    """The samples, whose chunks are released at the end."""
    samples = ClusterSamples(data)
    try:
        yield samples
    finally:
        samples.close()


def fit_distributed(
    estimator: Any, data: TrainingData, report: Callable[[str], None] | None = None
) -> Traffic:
    """Fit an ordinary estimator, in place, on samples that live on workers.

    Parameters
    ----------
    estimator : estimator
        `maxmargin.SVC`, `NuSVC`, `SVR`, `NuSVR` or `OneClassSVM`, with its default solver.
    data : TrainingData
        Checked partitions, targets and weights.
    report : callable, optional
        Called with a line of text about chunks and traffic at the end.

    Returns
    -------
    Traffic
        Counts of calls, bytes and seconds.
    """
    if estimator.solver not in ("auto", "batch") and not isinstance(estimator.solver, Batch):
        raise ValueError(
            f"The solver {estimator.solver!r} cannot train on a cluster: use solver='auto', or "
            "distribute=False."
        )
    if data.summary.unscaled:
        warnings.warn(UNSCALED, UnscaledDataWarning, stacklevel=4)
    verbose = estimator.verbose
    # A bar where somebody sees it: a fit on a cluster takes long.
    estimator.verbose = bool(verbose) or sys.stdout.isatty()
    try:
        with on_cluster(data) as samples:
            _warm_up(samples, estimator)
            arguments = (samples,) if data.y is None else (samples, data.y)
            estimator.fit(*arguments, sample_weight=data.weight)
            traffic = samples.traffic
            assert traffic is not None
    finally:
        estimator.verbose = verbose
    if data.feature_names is not None:
        estimator.feature_names_in_ = data.feature_names
    if report is not None:
        report(
            f"{traffic.calls} rounds, {traffic.bytes_sent / 1e6:.0f} MB sent, "
            f"{traffic.bytes_received / 1e6:.0f} MB received, {traffic.rebuilt} chunks rebuilt"
        )
    return traffic


def _warm_up(samples: ClusterSamples, estimator: Any) -> None:
    """Load compiled code on all workers, before the clock of ``max_time`` runs."""
    if opaque(estimator.kernel):
        return  # it is the user's to decide when that is called
    data, names = samples.data, ("degree", "coef0")
    rest = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    frame = samples.frame(Kernel(estimator.kernel, **rest))
    token, workers = uuid4().hex[:12], list(threads_of(data.client))
    few = data.client.submit(first_rows, data.parts[0], key=f"first-rows-{token}", pure=False)

    def submit(i: int) -> Any:
        key = f"warm-up-{uuid4().hex[:12]}0"
        options = {"workers": [workers[i]], "allow_other_workers": True, "key": key, "pure": False}
        return data.client.submit(load_code, frame, few, **options)

    gather(data.client, [submit(i) for i in range(len(workers))], what="starting workers", resubmit=submit)


def first_rows(part: Any) -> Any:
    """A few rows; runs on a worker."""
    return part[:4]


def load_code(frame: Frame, part: Any) -> None:
    """Run every compiled loop of a chunk once; runs on a worker."""
    n = part.shape[0]
    chunk = Chunk(frame, np.arange(n), [part])
    chunk.about()
    zeros, ones, some = np.zeros(n), np.ones(n), np.arange(1)
    samples, ends = chunk.take(some), np.ones(1)
    chunk.exact(samples, some, ends)
    for dtype in ("float32", "float64"):
        setting = Setting(((0, n),), ones, zeros, ones, zeros, np.zeros(n, np.int8), None, 1, dtype)
        chunk.begin(dtype, setting, 0, zeros, -ones, ())
        chunk.step(Step(dtype, 0, 1, ends, some, ends, ends, some, -2 * ends, 2 * ends, 1, False), samples)
