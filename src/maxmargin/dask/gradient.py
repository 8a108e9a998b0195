"""The gradient of a dual problem on the workers of a cluster: steps, answers, and recovery.

The client keeps one earlier point with its whole gradient, and the steps since. A chunk that has lost its
part starts from that point and repeats the steps: the sums are the same ones in the same order, so that its
gradient, and with it the solution, has the same bits as without the loss.
"""

from __future__ import annotations

import itertools
import time
import uuid
import weakref
from typing import Any, NamedTuple, Protocol

import numpy as np

from maxmargin._types import Floats, Index, RemoteReply
from maxmargin.dask import waiting
from maxmargin.dask.chunk import Answer, Behind, Setting, Step
from maxmargin.dask.session import Session
from maxmargin.dual import Dual

# Violators that a chunk proposes, relative to its share of those that are wanted, and besides.
_SHARE, _BESIDES = 1.25, 16
# How far beyond the extremes of the last step violators are looked for, in units of their distance.
_PAD = 0.5
# Steps after which the client fetches the gradient: as many has a chunk to repeat at most.
STEPS_KEPT = 16
# Times that lost parts are made again for one call.
_ATTEMPTS = 20


class ChunkedRows(Protocol):
    """The part of `maxmargin.dask.rows.ClusterRows` that is used here."""

    n: int
    dtype: np.dtype[Any]
    #: The session, the store of samples, and its lock; numbers of the rows there.
    samples: Any
    numbers: Index
    #: For each chunk, the rows that it has, and the runs of its own places that these are.
    where: list[Index]
    runs: list[tuple[tuple[int, int], ...]]

    def take(self, rows: Index) -> Any:
        """Samples of some rows."""

    def count(self, evals: int = 0, calls: int = 0) -> None:
        """Count kernel values."""


class _Point(NamedTuple):
    """A point with its whole gradient."""

    version: int
    u: Floats
    g: Floats


class _Moves(NamedTuple):
    """A step, as far as it changes the gradient."""

    base: int
    version: int
    idx: Index
    #: New values of the variables `idx`, and their changes.
    values: Floats
    delta: Floats


class ClusterGradient:
    """See `maxmargin._types.RemoteGradient`.

    Parameters
    ----------
    rows : ChunkedRows
        The rows of the problem.
    problem : Dual
        Variable i uses row i, or variables i and n + i do.
    """

    def __init__(self, rows: ChunkedRows, problem: Dual) -> None:
        self.rows, self.problem = rows, problem
        self._session = rows.samples.session
        self._id = uuid.uuid4().hex
        self._versions = itertools.count(1)
        self._version = self._kept = 0
        self._anchor: _Point | None = None
        #: The next one, once it is kept.
        self._coming: _Point | None = None
        self._since: list[_Moves] = []
        n = rows.n
        self._paired = problem.paired and problem.m == 2 * n
        self._used = [i for i, at in enumerate(rows.where) if len(at)]
        #: Variables of each chunk; chunk of each row, and its place among the rows there.
        self._variables = {i: self._of_rows(rows.where[i]) for i in self._used}
        self._chunk, self._rank = np.empty(n, np.int32), np.empty(n, np.int32)
        for i in self._used:
            self._chunk[rows.where[i]] = i
            self._rank[rows.where[i]] = np.arange(len(rows.where[i]), dtype=np.int32)
        self._low, self._high = np.zeros(problem.n_groups), np.zeros(problem.n_groups)
        weakref.finalize(self, _finish, self._session, self._used, self._id).atexit = False

    def _of_rows(self, at: Index) -> Index:
        return np.concatenate([at, self.rows.n + at]) if self._paired else at

    def _setting(self, i: int) -> Setting:
        problem, own = self.problem, self._variables[i]
        signs = problem.signs
        assert signs is not None
        one = bool((signs == 1).all())
        return Setting(
            self.rows.runs[i],
            problem.p[own],
            problem.lo[own],
            problem.hi[own],
            problem.ridge[own],
            problem.group[own].astype(np.int8),
            None if one else signs[own],
            problem.n_groups,
            str(self.rows.dtype),
        )

    def _call(
        self,
        method: str,
        messages: dict[int, tuple[Any, ...]],
        *,
        shared: Any = None,
        limited: bool = True,
        until: float | None = None,
        name: str | None = None,
    ) -> dict[int, Any]:
        sent = [messages.get(i) for i in range(len(self.rows.where))]
        answers = self._session.call(method, sent, shared=shared, limited=limited, until=until, name=name)
        return {i: answers[i] for i in messages}

    # -- points ------------------------------------------------------------------------------------

    def put(self, u: Floats, g: Floats) -> None:
        """Go to a point with a known gradient, and remember it."""
        self._version = self._kept = next(self._versions)
        self._anchor, self._coming, self._since = _Point(self._version, u.copy(), g.copy()), None, []
        self._look_between(*self.problem.extremes(u, g))
        self._begin(self._used, limited=True)

    def _begin(self, chunks: list[int], limited: bool, until: float | None = None) -> None:
        """Send chunks their part of the last point of which all is known."""
        assert self._anchor is not None
        version, u, g = self._anchor
        messages = {}
        for i in chunks:
            own, finished = self._variables[i], self._session.finished
            solved, finished[i] = tuple(finished[i]), set()
            messages[i] = (self._id, self._setting(i), version, u[own], g[own], solved)
        self._call("begin", messages, limited=limited, until=until)

    def keep(self) -> None:
        """Remember the present point."""
        self._kept = self._version
        if self._coming is not None and self._coming.version == self._kept:
            self._anchor, self._coming, self._since = self._coming, None, []

    def undo(self, u: Floats) -> tuple[Floats, Floats]:
        """Return to the point u that was remembered, or to an earlier one if workers do not answer."""
        self._version, self._coming = self._kept, None
        self._since = [moves for moves in self._since if moves.version <= self._kept]
        try:
            return u, self._entries(time.monotonic() + waiting.LAST)
        except (TimeoutError, waiting.ClusterError):  # such as those of a terminal where Ctrl-C was pressed
            assert self._anchor is not None
            return self._anchor.u.copy(), self._anchor.g.copy()

    def entries(self, u: Floats) -> Floats:
        """All entries, at the present point u."""
        return self._entries()

    def _entries(self, until: float | None = None) -> Floats:
        messages = dict.fromkeys(self._used, (self._id, self._version))
        return self._joined(self._recovered("entries", messages, limited=False, until=until))

    def _joined(self, parts: dict[int, Floats]) -> Floats:
        """Values for all variables from those of each chunk."""
        out = np.empty(self.problem.m)
        for i, part in parts.items():
            out[self._variables[i]] = part
        return out

    def step(self, u: Floats, idx: Index, delta: Floats, members: Index, wanted: int) -> RemoteReply:
        """Move the variables `idx` by `delta`, to the point u."""
        moves = _Moves(self._version, next(self._versions), idx, u[idx], delta)
        whole = len(self._since) + 1 >= STEPS_KEPT
        own_members = self._by_chunk(members)
        messages, samples = self._messages(moves, self._used, own_members, wanted, whole)
        name = None if len(idx) else "select"
        answers: dict[int, Answer] = self._recovered("step", messages, shared=samples, name=name)
        self._version = moves.version
        self._since.append(moves)
        if whole:
            g = self._joined({i: a.gradient for i, a in answers.items() if a.gradient is not None})
            self._coming = _Point(moves.version, u.copy(), g)
        self.rows.count(evals=len(idx) * self.rows.n, calls=len(idx) * self.rows.n)
        return self._reply(answers, members, own_members)

    def _messages(
        self,
        moves: _Moves,
        chunks: list[int],
        own_members: dict[int, tuple[Index, Index]] | None = None,
        wanted: int = 0,
        whole: bool = False,
    ) -> tuple[dict[int, tuple[Step]], Any]:
        """A step for chunks, and the samples of its rows; to repeat it, without violators."""
        rows, coef = self._combined(moves.idx, moves.delta)
        samples = self.rows.take(rows) if len(rows) else None
        own, messages = self._by_chunk(moves.idx), {}
        for i in chunks:
            at, local = own[i]
            share = len(self.rows.where[i]) / max(1, self.rows.n)
            members = np.empty(0, np.intp) if own_members is None else own_members[i][1]
            messages[i] = (
                Step(
                    self._id, moves.base, moves.version, coef, local, moves.values[at], moves.delta[at],
                    members, self._low, self._high,
                    int(_SHARE * wanted * share) + _BESIDES if wanted else 0, whole,
                ),
            )  # fmt: skip
        return messages, samples

    def _reply(
        self, answers: dict[int, Answer], members: Index, own_members: dict[int, tuple[Index, Index]]
    ) -> RemoteReply:
        least = np.min([a.least for a in answers.values()], axis=0)
        most = np.max([a.most for a in answers.values()], axis=0)
        self._look_between(least, most)
        outside = [self._variables[i][a.outside] for i, a in answers.items()]
        values = [a.outside_values for a in answers.values()]
        inside = [members[own_members[i][0]] for i in answers]
        values += [a.member_values for a in answers.values()]
        found = np.concatenate(outside)
        self._offer(found, [a.samples for a in answers.values() if len(a.outside)])
        return RemoteReply(
            least,
            most,
            float(sum(a.product for a in answers.values())),
            np.concatenate([found, *inside]),
            np.concatenate(values),
            len(found),
        )

    def _offer(self, variables: Index, samples: list[Any]) -> None:
        """Pass the samples of violators on to the store, which takes those that enter the working set."""
        from maxmargin.dask.frame import stacked

        if samples:
            with self.rows.samples.lock:
                self.rows.samples.store.offer(self.rows.numbers[variables % self.rows.n], stacked(samples))

    def _look_between(self, least: Floats, most: Floats) -> None:
        """Where violators of the next step are looked for."""
        with np.errstate(invalid="ignore"):
            pad = _PAD * np.abs(most - least)
            low, high = np.minimum(least, most) - pad, np.maximum(least, most) + pad
        self._low = np.where(np.isfinite(low), low, -1e300)
        self._high = np.where(np.isfinite(high), high, 1e300)

    def _combined(self, idx: Index, delta: Floats) -> tuple[Index, Floats]:
        """Rows that are added, once each, with their coefficients."""
        signs = self.problem.signs
        assert signs is not None
        coef = signs[idx] * delta
        if not self._paired:
            return idx, np.asarray(coef)
        rows, at = np.unique(idx % self.rows.n, return_inverse=True)
        return rows, np.bincount(at, coef, len(rows)).astype(np.float64, copy=False)

    def _by_chunk(self, variables: Index) -> dict[int, tuple[Index, Index]]:
        """For each chunk, which of `variables` it has, and their numbers there."""
        n = self.rows.n
        row = variables % n
        chunk, local = self._chunk[row], self._rank[row].astype(np.intp)
        out = {}
        for i in self._used:
            at = np.flatnonzero(chunk == i)
            out[i] = at, local[at] + np.where(variables[at] >= n, len(self.rows.where[i]), 0)
        return out

    # -- recovery ----------------------------------------------------------------------------------

    def _recovered(
        self,
        method: str,
        messages: dict[int, tuple[Any, ...]],
        *,
        shared: Any = None,
        limited: bool = True,
        until: float | None = None,
        name: str | None = None,
    ) -> dict[int, Any]:
        """Call chunks; those that have lost their part get it again, and are called again."""
        answers: dict[int, Any] = {}
        for _ in range(_ATTEMPTS):
            asked = {i: message for i, message in messages.items() if i not in answers}
            answers |= self._call(method, asked, shared=shared, limited=limited, until=until, name=name)
            lost = [i for i, answer in answers.items() if isinstance(answer, Behind)]
            if not lost:
                return {i: answers[i] for i in messages}
            for i in lost:
                del answers[i]
                self._session.unite(i)
            self._repeat_steps(lost, limited, until)
        raise waiting.ClusterError(
            "Workers lose their part of the gradient as fast as it is made again: look at their logs."
        )

    def _repeat_steps(self, chunks: list[int], limited: bool, until: float | None) -> None:
        """Bring chunks from the last point of which all is known to the present one.

        Values that are computed again are not counted: decisions of the solver depend on the counts.
        """
        self._session.traffic.rebuilt += len(chunks)
        self._begin(chunks, limited, until)
        for moves in self._since:
            messages, samples = self._messages(moves, chunks)
            answers = self._call(
                "step", messages, shared=samples, limited=limited, until=until, name="repeat-update"
            )
            if any(isinstance(answer, Behind) for answer in answers.values()):
                return  # lost again: the caller notices


def _finish(session: Session, chunks: list[int], problem: str) -> None:
    """Let chunks forget a problem when they get the next one."""
    for i in chunks:
        session.finished[i].add(problem)
