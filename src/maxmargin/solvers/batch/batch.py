"""The default solver: two-level decomposition, in batches of kernel rows.

Outer iteration: choose the variables that violate the KKT conditions most and bring them into a working
set of up to 2,048 variables (`working_set`), solve the problem on that set alone (`inner`) with the kernel
values between its members (`block`). Then update the gradient of all variables with the kernel rows of those
that moved: rows come in batches, and are used in batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.dual import Dual, widest
from maxmargin.solvers.base import Solver
from maxmargin.solvers.batch.newton import FaceFinish, NewtonFinish
from maxmargin.solvers.batch.shrinking import Focus
from maxmargin.solvers.batch.whole import SmallMachines
from maxmargin.solvers.batch.whole_regression import TubeMachine
from maxmargin.solvers.batch.working_set import CRAWL, LARGEST, WorkingSet
from maxmargin.solvers.state import State, Stop

# A whole problem is finished this often at most, from this size on and at tolerances below this.
_FINISHES, _WORTH_A_FINISH, _TIGHT = 4, 200, 5e-5
# Variables above which rows are float32 unless the problem asks for more.
_USUALLY_FLOAT32 = 512
# Nominal seconds of an iteration, of a byte of a row in a pair step, and of one in a gradient update.
_ITERATION, _STEP, _UPDATE = 3e-4, 1.2e-10, 1e-10


class Batch(Solver):
    """Two-level decomposition for any problem of the core.

    Parameters
    ----------
    working_set : int, optional
        Size of the working set, at most 2,048; by default 1,024, for 10,000 variables and more 2,048.
    finish : {"auto", "newton", "rosen", "conjugate", None}
        What is done once it is nearly known which variables are free, see `maxmargin.solvers.batch.newton`:
        Newton steps when they pay ("auto"), or always; gradient projection along steepest or conjugate
        directions (`maxmargin.solvers.papers.rosen`); or nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import Batch
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    >>> solution = Batch().solve(dual.c_svc(y, C=10.0), Gram(X, gamma=1.0))
    >>> solution.status, bool(solution.violation <= 1e-3)
    (<Status.SOLVED: 'solved'>, True)
    """

    name = "batch"
    about = "two-level decomposition, second-order SMO inside (the default)"

    def __init__(self, working_set: int | None = None, finish: str | None = "auto") -> None:
        if working_set is not None and not 2 <= working_set <= LARGEST:
            raise ValueError(f"working_set must be between 2 and {LARGEST}, got {working_set!r}.")
        if finish not in ("auto", "newton", "rosen", "conjugate", None):
            raise ValueError(
                f"finish must be 'auto', 'newton', 'rosen', 'conjugate' or None, got {finish!r}."
            )
        self.working_set, self.finish = working_set, finish

    def __repr__(self) -> str:
        return f"Batch(working_set={self.working_set}, finish={self.finish!r})"

    def accepts(self, problem: Dual) -> bool:
        """Any problem whose groups find a place in the working set."""
        return problem.n_groups <= LARGEST // 2

    def begin(self, state: State) -> None:
        """An empty working set and its buffers, in the precision of the rows."""
        old = state.memory.get("set")
        new = state.memory["set"] = WorkingSet(state, self.working_set)
        if old is not None and not new.whole:
            new.enter(old.ids[old.ids >= 0], state.g)
        state.memory["progress"] = _Progress()
        if "finish" not in state.memory:
            projected = self.finish in ("rosen", "conjugate")
            state.memory["finish"] = FaceFinish(self.finish == "conjugate") if projected else NewtonFinish()

    def small_machines(
        self, gram: Any, bounds: NDArray[np.intp], problems: Sequence[Dual], stop: Stop, many: bool = False
    ) -> SmallMachines | TubeMachine | None:
        """Small machines, each in one compiled call; a single one that is hard is better finished.

        Hard is one with a tight tolerance, or one large enough for float32 that was given float64 rows.
        """
        many = many or len(problems) > 1
        if not many and self.finish in ("auto", "newton") and self.working_set is None:
            tube = TubeMachine.over(gram, bounds, problems, stop)
            if tube is not None:
                return tube
        alone = not many and _WORTH_A_FINISH <= problems[0].m <= LARGEST
        hard = stop.tol <= _TIGHT or (gram.dtype == np.float64 and gram.n > _USUALLY_FLOAT32)
        if alone and hard and self.finish is not None:
            return None
        return SmallMachines.over(gram, bounds, problems, stop) if self.working_set is None else None

    def advance(self, state: State) -> None:
        """One outer iteration."""
        working: WorkingSet = state.memory["set"]
        fresh = 0
        if self._finish_whole(state) if working.whole else self._finish(state):
            return
        if not working.whole:
            self._refocus(state, working)
            fresh = working.enter(working.candidates(state), state.g)
        steps, moved, delta = working.solve(state, self._stage(state))
        state.memory["crawled"] = steps if working.whole and steps >= CRAWL * len(working.ids) else 0
        focus: Focus | None = state.memory.get("focus")
        working.take_step(state, moved, delta, focus)
        state.n_iter += max(steps, 1)
        columns = state.problem.m if focus is None else len(focus.watched)
        progress: _Progress = state.memory["progress"]
        values = steps * len(working.ids) * _STEP + len(moved) * columns * _UPDATE
        progress.worked(_ITERATION + values * state.gram.dtype.itemsize)
        state.stuck = progress.stuck(state, steps, fresh)

    def _stage(self, state: State) -> float:
        """Where the pair steps on a whole problem give way to a finish; 0 if there is none to come."""
        left = state.memory.setdefault("finishes", 0 if self.finish is None else _FINISHES)
        whole: bool = state.memory["set"].whole
        if not whole or left == 0 or state.problem.m < _WORTH_A_FINISH or state.stop.tol > _TIGHT:
            return 0.0
        scale = state.problem.tolerance_scale(state.u, state.g)
        worst = widest(state.least, state.most)
        # From some thousandths on, then from a tenth of what is there.
        return min(3e-3 / scale, 0.1 * worst) if np.isfinite(scale) else 0.0

    def _finish_whole(self, state: State) -> bool:
        """A finish on a problem that is in the working set as a whole, once pair steps have come near."""
        if self._crawls(state):
            return True
        stage = self._stage(state)
        if stage == 0.0 or state.n_iter == 0 or state.memory.get("finished_at") == state.n_iter:
            return False
        state.memory["finishes"] -= 1
        if not self._finish_step(state):
            return False
        state.memory["finished_at"] = state.n_iter
        return True

    def _crawls(self, state: State) -> bool:
        """Gradient projection for what pair steps did not bring to its end, with as much work as they had."""
        pairs: int = state.memory.pop("crawled", 0)
        if not pairs or self.finish is None:
            return False
        from maxmargin.solvers.papers.rosen import on_face

        problem = state.problem
        free = int(np.count_nonzero((state.u > problem.lo) & (state.u < problem.hi)))
        budget = min(state.left, 10 + 3 * pairs // max(1, free))
        own = np.arange(problem.m)
        Q = problem.block(own, own, state.gram).astype(np.float64, copy=False)
        state.u[:], state.g[:], steps, _ = on_face(state, own, Q, True, 0.1 * state.target, budget)
        state.n_iter += max(1, steps)
        return True

    def _finish(self, state: State) -> bool:
        """A Newton step, if it is time for one."""
        progress: _Progress = state.memory["progress"]
        finish: NewtonFinish = state.memory["finish"]
        if self.finish is None:
            return False
        if not finish.settled(state) or progress.since_finish < 5:
            return False
        expected = progress.left(state.target) * progress.pace
        if self.finish == "auto" and not finish.pays(state, expected, progress.work):
            return False
        progress.since_finish = 0
        return self._finish_step(state)

    @staticmethod
    def _finish_step(state: State) -> bool:
        focus: Focus | None = state.memory.get("focus")

        def product(idx: NDArray[np.intp], d: NDArray[np.float64]) -> NDArray[np.float64]:
            change = np.zeros(state.problem.m)
            if focus is None:
                state.problem.update(change, idx, d, state.gram)
            else:
                focus.update(change, idx, d, state)
            return change

        if state.left < 1 or not state.memory["finish"].step(state, product):
            return False
        state.n_iter += 1
        return True

    def settle(self, state: State) -> bool:
        """Tell the variables that were left behind."""
        focus: Focus | None = state.memory.pop("focus", None)
        if focus is None:
            return False
        Focus.settle(state)
        state.memory["set"].watch(None)
        state.memory["progress"].look_again()
        # Where nothing moved, or those left behind came back, another focus would do no better.
        least, most = state.problem.extremes(state.u, state.g)
        came_back = float(np.max(most - least)) > 0.5 * focus.began
        state.memory["wide"] = state.memory.get("wide", False) or state.stuck or came_back
        return True

    def abandon(self, state: State) -> None:
        """The budget of a cache that was lent to a focus."""
        if state.memory.pop("focus", None) is not None:
            state.gram.reopen()

    def _refocus(self, state: State, working: WorkingSet) -> None:
        focus = state.memory.get("focus")
        if focus is not None:
            if np.max(state.most - state.least) > focus.until:
                return
            self.settle(state)
            state.least, state.most = state.problem.extremes(state.u, state.g)
        if state.memory.get("wide"):
            return
        focus = Focus.on(state, state.memory["progress"].left(state.target))
        if focus is not None:
            state.memory["focus"] = focus
            working.watch(focus.watched)


class _Progress:
    """Notices when outer iterations no longer lead anywhere, and foretells how many are left.

    Work is counted in nominal seconds, so that decisions do not depend on the clock.
    """

    patience = 30

    def __init__(self) -> None:
        self.idle = 0
        self.recent: list[float] = []
        self.since_finish = 0
        self.pace = self.work = 0.0
        self.look_again()

    def look_again(self) -> None:
        """Forget the best so far: the measure has changed."""
        self.violation = self.objective = np.inf
        self.idle = 0

    def worked(self, seconds: float) -> None:
        """Count the work of an iteration."""
        self.pace = seconds if self.pace == 0 else 0.7 * self.pace + 0.3 * seconds
        self.work += seconds
        self.since_finish += 1

    def left(self, target: float) -> float:
        """Iterations to the target, at the best pace of the last four, eight, sixteen and thirty-two."""
        if len(self.recent) < 9 or not target > 0:
            return 0.0
        spans = [k for k in (4, 8, 16, 32) if k < len(self.recent)]
        pace = max(np.log(self.recent[-1 - k] / self.recent[-1]) / k for k in spans)
        return float(np.log(max(1.0, self.recent[-1] / target)) / max(pace, 0.01))

    def stuck(self, state: State, steps: int, fresh: int) -> bool:
        """Whether nothing moved, or nothing improved for many iterations."""
        if steps == 0 and fresh == 0:
            return True
        violation = widest(state.least, state.most)
        if violation > 0:
            self.recent = [*self.recent[-32:], violation]
        objective = state.objective()
        better = objective < self.objective - 1e-13 * abs(self.objective)
        if violation < 0.99 * self.violation or better or not np.isfinite(self.objective):
            self.idle = 0
        else:
            self.idle += 1
        self.violation = min(self.violation, violation)
        self.objective = min(self.objective, objective)
        return self.idle >= self.patience
