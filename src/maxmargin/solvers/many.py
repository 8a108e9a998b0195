"""Several dual problems over one Gram matrix, solved one after another or side by side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from maxmargin._compiled.limits import Limit
from maxmargin._compiled.threads import Threads, effective_n_jobs
from maxmargin._types import Floats, Index, Rows
from maxmargin.dual import Dual
from maxmargin.solvers.costs import WORTH_A_TEAM
from maxmargin.solvers.solution import Solution


@dataclass(frozen=True)
class Subproblem:
    """One dual problem of an estimator, over some rows of a Gram matrix."""

    #: For progress reports.
    name: str
    problem: Dual
    #: Rows of the Gram matrix, one per variable; paired variables have the same rows.
    samples: Index
    #: The segments (classes) that these rows are, in this order; named twice for paired variables.
    segments: Index
    warm: Floats | None = None

    @property
    def rows(self) -> Index:
        """The rows of the Gram matrix that the problem numbers from 0 on; each once."""
        return self.samples[: len(self.samples) // 2] if self.problem.paired else self.samples


class ClassPairs(NamedTuple):
    """Problems of two classes each that are alike but for their samples; the classes are segments of rows."""

    #: The classes of each problem.
    first: Index
    second: Index
    #: The label of the first class.
    sign: float
    #: For each sample, the bound of its multiplier and its ridge, see `maxmargin.dual.Dual`.
    upper: Floats
    ridge: Floats
    #: The fold of each sample, from 0 on, and the one that each problem leaves out: bounds are zero there.
    fold_of: Index
    fold: Index
    #: Where the problems start, one after the other, and points nearby with their gradients; or all empty.
    start: Floats
    near: Floats
    gradient: Floats

    @staticmethod
    def whole(first: Index, second: Index, sign: float, upper: Floats, ridge: Floats) -> ClassPairs:
        """Problems that leave nothing out and start at zero."""
        fold_of, fold = np.zeros(len(upper), np.intp), np.full(len(first), -1, np.intp)
        return ClassPairs(
            first, second, sign, upper, ridge, fold_of, fold, np.empty(0), np.empty(0), np.empty(0)
        )


class Subproblems(Sequence[Subproblem]):
    """The dual problems of an estimator, made on first access: many classes have very many pairs.

    Parameters
    ----------
    bounds : ndarray of int
        Segments of the Gram matrix: segment s is the rows ``bounds[s]:bounds[s + 1]``.
    sizes : ndarray of int
        Variables of each problem.
    make : callable
        The problem with a given index.
    heaviest : int
        The problem with the largest bounds; all others are of the same kind.
    pairs : ClassPairs, optional
        All problems as arrays, where they are simple enough.
    """

    def __init__(
        self,
        bounds: Index,
        sizes: Index,
        make: Callable[[int], Subproblem],
        heaviest: int = 0,
        pairs: ClassPairs | None = None,
    ) -> None:
        self.bounds, self.sizes, self._make, self.pairs = bounds, sizes, make, pairs
        self._made: dict[int, Subproblem] = {}
        #: Whether each problem is about all rows, in their order.
        self.whole = len(bounds) == 2 or len(sizes) == 1
        largest = int(np.argmax(sizes))
        #: Problems that all others can be judged by.
        self.typical = [self[k] for k in sorted({largest, heaviest})]

    @staticmethod
    def one(problem: Dual, n: int, warm: Floats | None = None) -> Subproblems:
        """A single problem over all n rows."""
        return Subproblems.alike({"all": problem}, n, [warm])

    @staticmethod
    def alike(
        problems: Mapping[str, Dual], n: int, warm: Sequence[Floats | None] | None = None
    ) -> Subproblems:
        """Problems of one kind, by name, each over all n rows."""
        starts = [None] * len(problems) if warm is None else warm
        made = []
        for (name, problem), start in zip(problems.items(), starts, strict=True):
            parts = 2 if problem.paired else 1
            samples = np.concatenate([np.arange(n)] * parts)
            made.append(Subproblem(name, problem, samples, np.zeros(parts, np.intp), start))
        sizes = np.array([sub.problem.m for sub in made])
        return Subproblems(np.array([0, n]), sizes, lambda k: made[k])

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < len(self.sizes):
            raise IndexError(k)  # by which iteration ends
        if k not in self._made:
            self._made[k] = self._make(k)
        return self._made[k]


def solve_each(
    solve: Callable[[int, int], Solution],
    problems: Subproblems,
    gram: Rows,
    work: float,
    n_jobs: int | None,
    interrupt: Limit,
    solved: Collection[int] = (),
    *,
    in_order: bool = False,
) -> dict[int, Solution]:
    """Solve the problems side by side if their `work` is worth it, otherwise one after another.

    Parameters
    ----------
    solve : callable
        ``solve(k, team)`` solves problem k while `team` problems run at once.
    problems : Subproblems
        The problems.
    gram : Rows
        Their kernel rows.
    work : float
        Multiplications of the largest, or of all, as far as they run without the interpreter.
    n_jobs : int, optional
        Threads.
    interrupt : Limit
        Problems that have not begun when it is over are left out.
    solved : collection of int
        Problems to leave out.
    in_order : bool
        Whether problems over all rows are solved one after another in any case: they share one row cache.

    Returns
    -------
    dict
        Solutions by index.
    """
    found: dict[int, Solution] = {}
    apart = len(problems) > 1 and not (problems.whole and in_order)
    side_by_side = apart and gram.releases_gil and work > WORTH_A_TEAM
    if side_by_side:
        gram.use_one_thread()
    team = effective_n_jobs(n_jobs) if side_by_side else 1

    # The largest first, so that the last ones to run are short.
    order = np.argsort(-problems.sizes, kind="stable") if side_by_side else np.arange(len(problems))
    queue = iter([k for k in order.tolist() if k not in solved])

    def run() -> None:
        for k in queue:
            if interrupt.late:  # and so it is for all others
                return
            found[k] = solve(k, team)

    with gram.threads:
        if not side_by_side:
            run()
        else:
            with Threads(n_jobs) as workers:
                workers.run(run, [()] * min(team, len(problems)))
    return found
