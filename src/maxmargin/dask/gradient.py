"""The gradient of a dual problem on the workers of a cluster: steps, answers, and recovery."""

from __future__ import annotations

import itertools
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from maxmargin import _costs as costs
from maxmargin._types import Floats, Index, RemoteReply
from maxmargin.dask.chunk import Answer, Behind, Rebuilding, Setting, Step
from maxmargin.dual import Dual

if TYPE_CHECKING:
    from maxmargin.dask.rows import ClusterRows

# Violators that a chunk proposes, relative to its share of those that are wanted, and besides.
_SHARE, _BESIDES = 1.25, 16
# How far beyond the extremes of the last step violators are looked for, in units of their distance.
_PAD = 0.5
# Times that a chunk is rebuilt for one call.
_ATTEMPTS = 20


class ClusterGradient:
    """See `maxmargin._types.RemoteGradient`.

    Parameters
    ----------
    rows : ClusterRows
        The rows of the problem.
    problem : Dual
        Variable i uses row i, or variables i and n + i do.
    """

    def __init__(self, rows: ClusterRows, problem: Dual) -> None:
        self.rows, self.problem = rows, problem
        self._session = rows.samples.session
        self._id = uuid.uuid4().hex
        self._versions = itertools.count(1)
        self._version = self._kept = 0
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
        self, method: str, messages: dict[int, tuple[Any, ...]], *, limited: bool = True
    ) -> dict[int, Any]:
        k = len(self.rows.where)
        answers = self._session.call(method, [messages.get(i) for i in range(k)], limited=limited)
        return {i: answers[i] for i in messages}

    # -- points ------------------------------------------------------------------------------------

    def put(self, u: Floats, g: Floats) -> None:
        """Go to a point with a known gradient."""
        self._version = next(self._versions)
        least, most = self.problem.extremes(u, g)
        self._look_between(least, most)
        self._call(
            "begin",
            {
                i: (self._id, self._setting(i), self._version, u[own], g[own])
                for i, own in self._variables.items()
            },
        )

    def keep(self) -> None:
        """Remember the present point."""
        self._kept = self._version

    def undo(self) -> None:
        """Return to the point that was remembered."""
        self._version = self._kept

    def entries(self, u: Floats) -> Floats:
        """All entries, at the present point u."""
        out = np.empty(self.problem.m)
        messages = {i: (self._id, self._version) for i in self._used}
        for i, part in self._recovered("entries", messages, u, self._version, limited=False).items():
            out[self._variables[i]] = part
        return out

    def step(self, u: Floats, idx: Index, delta: Floats, members: Index, wanted: int) -> RemoteReply:
        """Move the variables `idx` by `delta`, to the point u."""
        base, version = self._version, next(self._versions)
        rows, coef = self._combined(idx, delta)
        samples = self.rows.take(rows) if len(rows) else None
        own, own_members = self._by_chunk(idx), self._by_chunk(members)
        messages = {}
        for i in self._used:
            at, local = own[i]
            share = len(self.rows.where[i]) / max(1, self.rows.n)
            messages[i] = (
                Step(
                    self._id, base, version, samples, coef, local, u[idx[at]], delta[at], own_members[i][1],
                    self._low, self._high, int(_SHARE * wanted * share) + _BESIDES,
                ),
            )  # fmt: skip
        answers: dict[int, Answer] = self._recovered("step", messages, u, version)
        self._version = version
        self.rows.count(evals=len(rows) * self.rows.n, calls=len(rows) * self.rows.n)
        return self._reply(answers, members, own_members)

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
            return idx, coef
        rows, at = np.unique(idx % self.rows.n, return_inverse=True)
        return rows, np.bincount(at, coef, len(rows))

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
        u: Floats,
        version: int,
        *,
        limited: bool = True,
    ) -> dict[int, Any]:
        """Call chunks; those that have lost their part are rebuilt at the point u, and called again."""
        answers: dict[int, Any] = {}
        for _ in range(_ATTEMPTS):
            made = list(self._session.made)
            answers |= self._call(
                method, {i: m for i, m in messages.items() if i not in answers}, limited=limited
            )
            lost = [i for i, answer in answers.items() if isinstance(answer, Behind)]
            if not lost:
                return {i: answers[i] for i in messages}
            for i in lost:
                self._session.renew(i, made[i])
            self._rebuild(lost, u, version, limited)
            for i in lost:
                del answers[i]
        raise RuntimeError(
            "Workers lose their part of the gradient as fast as it is rebuilt: look at their logs."
        )

    def _rebuild(self, chunks: list[int], u: Floats, version: int, limited: bool) -> None:
        """Send chunks all support vectors, piece by piece."""
        self._session.traffic.rebuilt += len(chunks)
        support = np.flatnonzero(u)
        rows, coef = self._combined(support, u[support])
        starts = list(range(0, len(rows), costs.FOREIGN_ROWS)) or [0]
        piece = 0
        while piece < len(starts):
            s = starts[piece]
            some = slice(s, s + costs.FOREIGN_ROWS)
            samples = self.rows.take(rows[some]) if len(rows) else None
            first = piece == 0
            messages = {
                i: (
                    self._id,
                    Rebuilding(
                        version,
                        piece,
                        piece == len(starts) - 1,
                        self._setting(i) if first else None,
                        u[self._variables[i]] if first else np.empty(0),
                        samples,
                        coef[some],
                    ),
                )
                for i in chunks
            }
            answers = self._call("rebuild", messages, limited=limited)
            self.rows.count(evals=len(coef[some]) * sum(len(self.rows.where[i]) for i in chunks))
            following = {answer.version for answer in answers.values()}
            piece = piece + 1 if following == {piece + 1} else 0  # one of them was made again meanwhile
