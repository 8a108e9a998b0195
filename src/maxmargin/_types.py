"""Types that every layer shares: arrays, and the interface between kernel rows and solvers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]


class Tally(Protocol):
    """Counters of kernel values."""

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Add to the values computed and to the values used."""


class Workers(Protocol):
    """Threads of one computation (`maxmargin._compiled.threads.Threads`)."""

    @property
    def n(self) -> int:
        """Number of threads."""

    def __enter__(self) -> Any:
        """Begin a computation: BLAS has one thread until it ends."""

    def __exit__(self, *error: object) -> None:
        """End the computation."""

    def run(self, function: Callable[..., Any], calls: Iterable[Sequence[Any]]) -> None:
        """Call ``function(*arguments)`` for each of `calls`."""

    def split(self, n: int, smallest: int) -> list[tuple[int, int]]:
        """Cut ``range(n)`` into at most one range per thread, none shorter than `smallest`."""

    def blas(self) -> Any:
        """Return a context in which a call of BLAS or LAPACK has all threads."""


class RowData(Protocol):
    """Samples in the layout from which compiled loops compute rows (`maxmargin.gram.on_demand.OnDemand`)."""

    @property
    def lines(self) -> Any:
        """The samples (`maxmargin.kernels.panels.Lines`)."""

    @property
    def d(self) -> int:
        """Number of features."""

    @property
    def norm(self) -> NDArray[Any]:
        """Scaled squared norms of the samples, or 0."""

    @property
    def slope(self) -> float:
        """Factor of products."""

    @property
    def form(self) -> Any:
        """How kernel values follow from products (`maxmargin.kernels._form.Form`)."""

    @property
    def definite(self) -> bool:
        """Whether kernel matrices of distinct samples are positive definite whatever the parameters."""


class LinearData(Protocol):
    """The samples X of a linear kernel K = X X' (`maxmargin.kernels.features.Features`)."""

    @property
    def d(self) -> int:
        """Number of features."""

    @property
    def width(self) -> float:
        """Non-zeros of a sample, on average."""

    @property
    def lines(self) -> Any:
        """The samples for compiled loops (`maxmargin.kernels.panels.Lines`)."""

    def weights(self, rows: Index, coef: Floats) -> Floats:
        """Return ``X[rows].T @ coef``."""

    def values(self, w: Floats, rows: Index) -> Floats:
        """Return ``X[rows] @ w``."""

    def normal(self, rows: Index) -> Floats:
        """Return ``X[rows].T @ X[rows]``, of which the lower triangle is filled."""


class RemoteReply(NamedTuple):
    """A gradient that is kept elsewhere, after a step: all that a solver needs for the next one."""

    #: Per group, the least gradient that may rise and the largest that may fall.
    least: Floats
    most: Floats
    #: The product of variables and gradient.
    product: float
    #: Extreme variables outside the working set, each at least once, and the members of the set.
    ids: Index
    #: Their gradients.
    values: Floats
    #: How many of `ids` are outside, and come first.
    outside: int


class RemoteGradient(Protocol):
    """A gradient whose entries are kept next to the rows that they belong to, by other processes.

    Points have versions: a step leads from one to the next, and both can be returned to, so that a step that
    was interrupted half-way does no harm.
    """

    def put(self, u: Floats, g: Floats) -> None:
        """Go to a point with a known gradient, and remember it."""

    def step(self, u: Floats, idx: Index, delta: Floats, members: Index, wanted: int) -> RemoteReply:
        """Move the variables `idx` by `delta`, to the point u; `wanted` outsiders of either side."""

    def keep(self) -> None:
        """Remember the present point."""

    def undo(self, u: Floats) -> tuple[Floats, Floats]:
        """Return to the point u that was remembered, from which at most one step has been taken.

        Returns the point and all entries of its gradient; those of an earlier point if the processes do not
        answer within seconds, as the run is to end.
        """

    def entries(self, u: Floats) -> Floats:
        """All entries, at the present point u."""


class Rows(Tally, Protocol):
    """Rows of a kernel matrix K: everything that a solver may ask of them.

    `maxmargin.gram.Gram` and `maxmargin.gram.view.View` are implementations. Indices refer to the `n` samples
    of this object; the samples, the kernel and labels are not part of the interface.
    """

    # -- facts -------------------------------------------------------------------------------------

    @property
    def n(self) -> int:
        """Number of rows, and of columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Precision of the rows: float32 or float64."""

    @property
    def diag(self) -> Floats:
        """The diagonal of K, float64 of shape (n,)."""

    @property
    def cost(self) -> float:
        """Multiplications, roughly, that one kernel value takes."""

    @property
    def threads(self) -> Workers:
        """Threads that compute the rows, for use by the solver too."""

    @property
    def releases_gil(self) -> bool:
        """Whether rows are computed outside the interpreter, so that problems can run side by side."""

    def use_one_thread(self) -> None:
        """Compute rows in the thread that asks for them, as problems run side by side from now on."""

    @property
    def resident(self) -> bool:
        """Whether the samples are in this process."""

    def remote_gradient(self, problem: Any) -> RemoteGradient | None:
        """A gradient of `problem` that is kept where the rows are; None if that is this process."""

    # -- the cache, as compiled loops read it ------------------------------------------------------

    @property
    def cache_bytes(self) -> int:
        """Budget of the cache in bytes."""

    @property
    def capacity(self) -> int:
        """Number of rows that fit the cache."""

    @property
    def holds_all(self) -> bool:
        """Whether the cache has room for all rows, and its rows have these n columns only."""

    @property
    def in_place(self) -> bool:
        """Whether compiled code can use `table`, once complete, as the matrix: in C order and writeable."""

    @property
    def given(self) -> bool:
        """Whether the values were given, and `ensure` has at most to copy them."""

    @property
    def table(self) -> NDArray[Any]:
        """Cached rows: K[i, j] is ``table[slot[i], columns[j]]`` where row i is cached."""

    @property
    def slot(self) -> Index:
        """Row of `table` for each row of K, or -1."""

    @property
    def columns(self) -> Index:
        """Column of `table` for each column of K."""

    def ensure(self, rows: ArrayLike) -> None:
        """Make sure that `rows` are in `table`, until the next call that may evict."""

    def complete(self, row: int) -> None:
        """Like `ensure` for one row, with values copied from cached rows by symmetry where possible."""

    def held(self, rows: Index) -> Mask:
        """Return which of `rows` are complete in `table`."""

    # -- values ------------------------------------------------------------------------------------

    def rows(self, idx: ArrayLike) -> NDArray[Any]:
        """Return the rows `idx`: a read-only array of shape (len(idx), n)."""

    def block(self, rows: ArrayLike, columns: ArrayLike) -> NDArray[Any]:
        """Return the block ``K[rows][:, columns]``, computed directly."""

    def add(
        self,
        out: NDArray[Any],
        idx: ArrayLike,
        coef: ArrayLike,
        *,
        keep: Mask | None = None,
        tally: Tally | None = None,
    ) -> None:
        """Add ``K[:, idx] @ coef`` to `out`; `keep` marks the rows that will be needed again."""

    @property
    def on_demand(self) -> RowData | None:
        """Data for compiled loops that compute rows themselves; None where they cannot.

        Sample i of these rows is sample ``columns[i]`` of the data.
        """

    def gather(self, rows: Index) -> RowData:
        """Copies of some samples, in this order, as `on_demand` has them all.

        For rows that are `panelled` and whose samples are not in memory, so that `on_demand` is None.
        """

    @property
    def exact_data(self) -> tuple[Any, ...] | None:
        """Data for compiled loops that compute float64 values of these n samples.

        Without samples where they cannot, None where their numbers are others. A named tuple, see
        `maxmargin.gram.on_demand.ExactSamples`.
        """

    @property
    def features(self) -> LinearData | None:
        """The samples of these rows if the kernel is linear, else None."""

    @property
    def by_frequency(self) -> Any:
        """Data for compiled loops that compute rows of wide sparse samples; None for others.

        A named tuple, see `maxmargin.gram.on_demand.ByFrequency`.
        """

    @property
    def panelled(self) -> bool:
        """Whether a single row, computed on demand, costs no more than one of many."""

    @property
    def by_distance(self) -> bool:
        """Whether `nearest` needs no kernel values."""

    def nearest(self, rows: Index, others: Index) -> tuple[Index, Floats]:
        """For each of `rows` the place of the nearest of `others`, and a distance that orders pairs."""

    # -- values for the certificate, which are not counted -----------------------------------------

    def exact(self, rows: Index, columns: Index, coef: NDArray[Any]) -> Floats:
        """Return ``K[rows, columns] @ coef`` in float64 throughout."""

    def sum_cost(self, rows: int, columns: int) -> float:
        """Kernel values that `exact` and `accurate` are worth, for so many rows and columns.

        Their product in general, their sum where the kernel is linear and sums go through weights.
        """

    def accurate(self, rows: Index, columns: Index, coef: NDArray[Any], factor: NDArray[Any]) -> Floats:
        """Return ``K[rows, columns] @ (coef * factor)`` with twice the digits of float64."""

    def bound(self, rows: Index, columns: Index, coef: NDArray[Any], double: bool = False) -> Floats:
        """Bound the rounding errors of ``K[rows, columns] @ coef``; if `double`, of `exact`."""

    def largest_bound(self, double: bool = False) -> float:
        """Bound what `bound` returns for any rows and coefficients, per unit of the sum of ``|coef|``."""

    def accurate_bound(self, error: Floats, size: float) -> Floats:
        """Bound the errors of sums from `accurate` by those from `exact`; `size` is the sum of ``|coef|``."""

    # -- counters ----------------------------------------------------------------------------------

    @property
    def n_evals(self) -> int:
        """Kernel values computed."""

    @property
    def n_calls(self) -> int:
        """Kernel values used, cached or not."""

    # -- relatives ---------------------------------------------------------------------------------

    def double(self, cache_bytes: int | None = None) -> Rows:
        """Return the same matrix with float64 rows, in the budget of this one if none is given."""

    def view(self, index: ArrayLike, cache_bytes: int | None = None) -> Rows:
        """Return rows and columns `index`, from these rows or with a cache of `cache_bytes`."""

    def part(self, index: Index) -> Rows | None:
        """Return rows and columns `index` with a cache of their own, until `reopen`; or None."""

    def lend(self, borrower: Any = None) -> None:
        """Empty the cache and use none until `reopen`, so that its budget is free for other data."""

    @property
    def borrower(self) -> Any:
        """The data that the budget was lent to."""

    def reopen(self) -> None:
        """Take back the budget that was lent, or that `part` may have borrowed."""
