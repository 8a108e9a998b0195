"""A chunk of the data on a worker, with its part of the gradient of each problem.

A chunk can be made again from its recipe at any time, by any worker: what it keeps of a problem (`Part`) is
the variables of its rows and their gradients, which follow from an earlier point that the client has, and the
steps since. Every task states the version of the point that it starts from. A chunk that does not have it,
because it was made again or moved, says so (`Behind`), and gets that point and those steps again; a task that
runs twice does no harm.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _costs as costs
from maxmargin._compiled.threads import Threads
from maxmargin._types import Floats, Index
from maxmargin.dask.frame import Frame, stacked
from maxmargin.kernels.points import Points


class Behind(NamedTuple):
    """The answer of a chunk that does not have the point from which a step starts."""

    version: int


class About(NamedTuple):
    """A chunk, as the client has to know it."""

    diag: Floats
    #: Bounds of rounding errors in both precisions, see `maxmargin.kernels.rounding.Rounding`.
    units: tuple[float, float]
    sizes: tuple[Floats, Floats]
    #: Multiplications of a kernel value, and samples that are too distant for float32.
    cost: float
    distant: int


class Setting(NamedTuple):
    """The part of a dual problem that belongs to a chunk: everything but the point."""

    #: Runs ``(start, stop)`` of the chunk's rows that the problem has.
    runs: tuple[tuple[int, int], ...]
    #: Linear term, box and ridge of the variables: of these rows, and once more if they are paired.
    p: Floats
    lo: Floats
    hi: Floats
    ridge: Floats
    group: NDArray[np.int8]
    #: Signs of the variables, see `maxmargin.dual.Dual.signs`; None if they are all 1.
    signs: Floats | None
    n_groups: int
    dtype: str


class Step(NamedTuple):
    """A step of the solver: the message to a chunk."""

    problem: str
    #: Versions of the points before and after.
    base: int
    version: int
    #: Coefficients of the samples whose rows are added to the gradient.
    coef: Floats
    #: Variables of this chunk that move, with their new values and the change of their ridge terms.
    own: Index
    values: Floats
    delta: Floats
    #: Variables of this chunk in the working set.
    members: Index
    #: Per group, the extremes of the last step: what lies outside of them need not be looked at.
    low: Floats
    high: Floats
    #: Violators wanted of either side.
    wanted: int
    #: Whether all entries of the gradient are wanted.
    whole: bool


class Answer(NamedTuple):
    """A chunk's part of `maxmargin._types.RemoteReply`, and the samples of the violators."""

    least: Floats
    most: Floats
    product: float
    outside: Index
    outside_values: Floats
    member_values: Floats
    samples: Any
    #: All entries of the gradient, if they were wanted.
    gradient: Floats | None
    #: Seconds of the kernel sums.
    seconds: float


@dataclass
class Part:
    """The variables of one problem in one chunk, and their gradient, at two successive points."""

    setting: Setting
    version: int
    u: Floats
    g: Floats
    earlier: tuple[int, Floats, Floats] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, base: int) -> bool:
        """Go to the point `base`; False if it is not here."""
        if self.version == base:
            return True
        if self.earlier is not None and self.earlier[0] == base:
            (self.version, self.u, self.g), self.earlier = self.earlier, None
            return True
        return False


class Chunk:
    """Rows of the data on a worker, laid out for the kernel.

    Parameters
    ----------
    frame : Frame
        Kernel and layout.
    order : ndarray of int
        The rows that are used, in this order.
    blocks : list
        The rows, in blocks as the user's partitions have them.
    """

    def __init__(self, frame: Frame, order: Index, blocks: list[Any]) -> None:
        self.frame, self.order = frame, order
        self.X = frame.stored(stacked(blocks))
        self._points: dict[str, tuple[Points, Points]] = {}
        self._parts: dict[str, Part] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> Any:
        return Chunk, (self.frame, self.order, [self.X])  # without parts: whoever moves a chunk makes it anew

    def __sizeof__(self) -> int:
        """Bytes, for the scheduler: the rows and their layouts."""
        X = self.X
        size = X.data.nbytes + X.indices.nbytes if sp.issparse(X) else getattr(X, "nbytes", 0)
        return 2 * int(size) + 40 * len(self.order)

    def points(self, dtype: str) -> tuple[Points, Points]:
        """The rows prepared in a precision, and laid out for many rows against them."""
        with self._lock:
            if dtype not in self._points:
                points = self.frame.prepare(self.X, np.dtype(dtype), self.order)
                self._points[dtype] = points, self.frame.kernel.lay_out(points)
            return self._points[dtype]

    def about(self) -> About:
        """Facts for the client; also prepares the rows and loads compiled code before any clock runs."""
        kernel = self.frame.kernel
        points, _ = self.points("float32")
        diag = kernel.diag(points)
        bounds = [kernel.rounding(points, dtype, diag) for dtype in (np.float32, np.float64)]
        few = not kernel.float32_suffices(points)
        distant = 0 if points.distant is None else int((points.distant.at >= 0).sum())
        if len(self.order):
            self.sums(np.ones(1), ((0, len(self.order)),), "float32", self.take(np.zeros(1, np.intp)))
        return About(
            diag,
            (bounds[0].unit, bounds[1].unit),
            (np.asarray(bounds[0].size), np.asarray(bounds[1].size)),
            kernel.cost(points),
            max(distant, len(self.order) if few and distant == 0 else 0),
        )

    def take(self, places: Index) -> Any:
        """Samples, as `Frame.stored` has them."""
        from maxmargin._sklearn import safe_indexing

        rows = self.order[places]
        return self.X[rows] if hasattr(self.X, "dtype") else safe_indexing(self.X, rows)

    def sums(self, coef: Floats, runs: tuple[tuple[int, int], ...], dtype: str, samples: Any) -> Floats:
        """Kernel values of the rows in `runs` with `samples`, times coefficients."""
        from maxmargin.gram.foreign import add_samples

        kernel = self.frame.kernel
        out = np.zeros(sum(stop - start for start, stop in runs))
        if not len(coef):
            return out
        points, columns = self.points(dtype)
        o = 0
        if kernel.name == "linear":
            w = np.asarray(samples.T @ coef, dtype=np.float64).ravel()
            for start, stop in runs:
                out[o : o + stop - start] = np.asarray(self.X[self.order[start:stop]] @ w).ravel()
                o += stop - start
            return out
        for s in range(0, len(coef), costs.FOREIGN_ROWS):
            some = samples[s : s + costs.FOREIGN_ROWS]
            A = kernel.prepare(some, np.dtype(dtype), like=points)
            o = 0
            for start, stop in runs:
                add_samples(
                    kernel,
                    A,
                    columns,
                    coef[s : s + costs.FOREIGN_ROWS],
                    start,
                    stop,
                    out[o : o + stop - start],
                )
                o += stop - start
        return out

    def exact(self, samples: Any, places: Index, coef: Floats) -> Floats:
        """The part of sums over rows of this chunk, in float64: one number for each of the samples."""
        from maxmargin.kernels.expansion import expand

        kernel = self.frame.kernel
        n = samples.shape[0] if hasattr(samples, "shape") else len(samples)
        if not len(places):
            return np.zeros(n)
        vectors = self.frame.prepare(self.take(places), np.float64)
        if vectors.sparse and n > costs.EXPANSION_ROWS:
            vectors = kernel.lay_out(vectors)
        if self.frame.sparse and not vectors.sparse:
            samples = samples.toarray()
        ends = np.array([0, len(places)])
        return expand(kernel, samples, vectors, coef[None], ends, threads=Threads(1))[0, :, 0]

    # -- parts of problems -----------------------------------------------------------------------

    def begin(
        self, problem: str, setting: Setting, version: int, u: Floats, g: Floats, finished: Sequence[str]
    ) -> None:
        """Go to a point with a known gradient, and forget problems that are solved."""
        with self._lock:
            for name in finished:
                self._parts.pop(name, None)
            self._parts[problem] = Part(setting, version, u, g)

    def entries(self, problem: str, version: int) -> Floats | Behind:
        """The gradient at a point."""
        part = self._parts.get(problem)
        if part is None:
            return Behind(-1)
        with part.lock:
            return part.g.copy() if part.at(version) else Behind(part.version)

    def step(self, step: Step, samples: Any = None) -> Answer | Behind:
        """Move variables, update the gradient by the rows of samples, and propose violators."""
        part = self._parts.get(step.problem)
        if part is None:
            return Behind(-1)
        with part.lock:
            began = time.perf_counter()
            if part.version != step.version:  # otherwise the answer to this step was lost on its way
                if not part.at(step.base):
                    return Behind(part.version)
                setting = part.setting
                change = self.sums(step.coef, setting.runs, setting.dtype, samples)
                u, g = part.u.copy(), part.g + self._per_variable(setting, change)
                u[step.own] = step.values
                g[step.own] += setting.ridge[step.own] * step.delta
                part.earlier = part.version, part.u, part.g
                part.version, part.u, part.g = step.version, u, g
            return self._answer(part, step, time.perf_counter() - began)

    @staticmethod
    def _per_variable(setting: Setting, change: Floats) -> Floats:
        """Changes of the gradient from sums for rows."""
        if len(setting.p) == 2 * len(change):
            return np.concatenate([change, change])
        return change if setting.signs is None else setting.signs * change

    def _answer(self, part: Part, step: Step, seconds: float) -> Answer:
        from maxmargin.dual._extremes import extremes
        from maxmargin.solvers.violators import extreme_ends

        s, u, g = part.setting, part.u, part.g
        least, most = np.empty(s.n_groups), np.empty(s.n_groups)
        group = s.group.astype(np.intp)
        extremes(u, g, s.lo, s.hi, group, least, most)
        inside = np.zeros(len(u), np.bool_)
        inside[step.members] = True
        found: list[Index] = []
        out = np.empty(2 * step.wanted, np.int64)
        for k in range(s.n_groups):
            ends = extreme_ends(
                g, u, s.lo, s.hi, group, inside, k, step.wanted, step.low[k], step.high[k], out
            )
            found += [out[: ends[0]].copy(), out[step.wanted : step.wanted + ends[1]].copy()]
        outside = np.unique(np.concatenate(found)).astype(np.intp)
        rows = sum(stop - start for start, stop in s.runs)
        places = np.concatenate([np.arange(a, b) for a, b in s.runs])[outside % rows]
        gradient = g if step.whole else None  # never changed in place, as u
        samples = self.take(places)
        return Answer(
            least, most, float(u @ g), outside, g[outside], g[step.members], samples, gradient, seconds
        )
