"""Solutions of several problems by index.

With hundreds of classes there are tens of thousands of pairs, most of them solved in one compiled call. An
object for each would take as long as solving it, so they stay arrays; a `Solution` is made when it is asked
for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np

from maxmargin._types import Floats, Index
from maxmargin.dual import relative_to_value
from maxmargin.solvers.solution import Record, Solution, Status


@dataclass(frozen=True, eq=False)
class SolvedTogether:
    """Solved problems as arrays with an entry for each; the names are those of `Solution` and `Record`."""

    #: The number of each problem, in ascending order.
    index: Index
    #: The variables of problem t are ``u[starts[t] : ends[t]]``.
    starts: Index
    ends: Index
    u: Floats
    gradient: Floats
    offset: Floats
    gap: Floats
    #: The largest violation in spite of rounding, and as it was measured.
    violation: Floats
    measured_violation: Floats
    objective: Floats
    noise: Floats
    n_iter: Index
    n_support: Index
    n_kernel_calls: Index
    n_kernel_evals: Index
    #: Of one problem, on average.
    seconds: float

    def __len__(self) -> int:
        return len(self.index)

    @property
    def relative_gap(self) -> Floats:
        """See `Solution`."""
        both = zip(self.gap.tolist(), self.objective.tolist(), strict=True)
        return np.array([relative_to_value(gap, objective) for gap, objective in both])

    def records(self) -> Floats:
        """The numbers of the only `Record` of each problem, its end, as rows."""
        seconds = np.full(len(self.index), self.seconds)
        return np.column_stack(
            [self.n_iter, seconds, self.measured_violation, self.objective, self.n_support,
             self.n_kernel_evals, self.n_kernel_calls]
        )  # fmt: skip

    def solution(self, t: int) -> Solution:
        """Entry t as an object."""
        part = slice(self.starts[t], self.ends[t])
        last = _record(self.n_iter[t], self.seconds, self.measured_violation[t], self.objective[t],
                       self.n_support[t], self.n_kernel_evals[t], self.n_kernel_calls[t])  # fmt: skip
        return Solution.in_one_call(
            self.u[part], self.gradient[part], self.offset[t : t + 1].copy(), float(self.gap[t]),
            float(self.violation[t]), float(self.noise[t]), last,
        )  # fmt: skip


def _record(*numbers: float) -> Record:
    return Record(*(kind(number) for kind, number in zip(_KINDS, numbers, strict=True)))


# The types of the numbers of a record.
_KINDS = (int, float, float, float, int, int, int)


class Traces(Sequence[tuple[Record, ...]]):
    """The records of several problems, of which those in `records` have one each, made on access.

    Parameters
    ----------
    n : int
        Number of problems.
    apart : mapping of int to tuple of Record
        The records of some problems.
    index, records : ndarray
        Other problems, and the numbers of the record of each.
    """

    def __init__(
        self, n: int, apart: Mapping[int, tuple[Record, ...]], index: Index, records: Floats
    ) -> None:
        # Without records: -1; row t of the numbers: t; number t of the others: -2 - t.
        self._place = np.full(n, -1)
        self._place[index] = np.arange(len(index))
        self._place[list(apart)] = -2 - np.arange(len(apart))
        self._apart, self._records = list(apart.values()), records

    def __len__(self) -> int:
        return len(self._place)

    @overload
    def __getitem__(self, k: int) -> tuple[Record, ...]: ...
    @overload
    def __getitem__(self, k: slice) -> list[tuple[Record, ...]]: ...
    def __getitem__(self, k: Any) -> Any:
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        place = self._place[k]
        if place == -1:
            return ()
        return (_record(*self._records[place]),) if place >= 0 else self._apart[-2 - place]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"<records of {len(self)} problems>"


class Solutions(Mapping[int, Solution]):
    """Solutions by the number of their problem, in ascending order.

    Parameters
    ----------
    apart : mapping of int to Solution
        Those of problems that were solved one by one.
    together : SolvedTogether, optional
        The others.

    Examples
    --------
    >>> from maxmargin.solvers.solutions import Solutions
    >>> len(Solutions({}))
    0
    """

    def __init__(self, apart: Mapping[int, Solution], together: SolvedTogether | None = None) -> None:
        self.apart, self.together = dict(sorted(apart.items())), together
        own = np.fromiter(self.apart, np.intp, len(self.apart))
        #: The numbers of the problems that have a solution.
        self.index: Index = own if together is None else np.sort(np.concatenate([own, together.index]))
        self._made: dict[int, Solution] = {}

    def __len__(self) -> int:
        return len(self.index)

    def __iter__(self) -> Iterator[int]:
        return iter(self.index.tolist())

    def __getitem__(self, k: int) -> Solution:
        found = self.apart.get(k, self._made.get(k))
        if found is None:
            t = self._entry(k)
            assert self.together is not None
            found = self._made[k] = self.together.solution(t)
        return found

    def __contains__(self, k: object) -> bool:
        try:
            return k in self.apart or self._entry(k) >= 0
        except KeyError:
            return False

    def _entry(self, k: object) -> int:
        """The place of problem k among those that were solved together."""
        if self.together is not None and isinstance(k, int):
            t = int(np.searchsorted(self.together.index, k))
            if t < len(self.together.index) and self.together.index[t] == k:
                return t
        raise KeyError(k)

    def joined(self, index: Index) -> tuple[Floats, Floats, Floats, Index]:
        """Variables, gradients and offsets of problems with one group, one after the other; their starts."""
        u, gradient, offset = [], [], np.empty(len(index))
        for e, k in enumerate(index.tolist()):
            if k in self.apart:
                own = self.apart[k]
                found = own.u, own.gradient, own.offset[0]
            else:
                t = self._entry(k)
                assert self.together is not None
                part = slice(self.together.starts[t], self.together.ends[t])
                found = self.together.u[part], self.together.gradient[part], self.together.offset[t]
            u.append(found[0])
            gradient.append(found[1])
            offset[e] = found[2]
        return np.concatenate(u), np.concatenate(gradient), offset, np.cumsum([0, *map(len, u)])

    def column(self, name: str) -> Floats:
        """A number of every solution, in the order of `index`; see `Solution` for the names."""
        own = np.array([getattr(solution, name) for solution in self.apart.values()], dtype=np.float64)
        return own if self.together is None else self._joined(own, getattr(self.together, name))

    def _joined(self, own: Floats, others: Floats) -> Floats:
        assert self.together is not None
        if not len(own):
            return np.asarray(others, dtype=np.float64)
        out = np.empty(len(self.index))
        out[np.searchsorted(self.index, list(self.apart))] = own
        out[np.searchsorted(self.index, self.together.index)] = others
        return out

    def traces(self, n: int) -> Sequence[tuple[Record, ...]]:
        """The records of n problems; none of those without a solution."""
        own = {k: solution.trace for k, solution in self.apart.items()}
        if self.together is None:
            return [own.get(k, ()) for k in range(n)]
        return Traces(n, own, self.together.index, self.together.records())

    def statuses(self) -> Counter[Status]:
        """How many solutions ended how."""
        found = Counter(solution.status for solution in self.apart.values())
        if self.together is not None and len(self.together.index):
            found[Status.SOLVED] += len(self.together.index)
        return found
