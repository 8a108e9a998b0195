"""Base of the estimators: their dual problems are solved over one Gram matrix."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import solvers
from maxmargin._compiled.limits import Limit, Stopped
from maxmargin._compiled.threads import Threads, effective_n_jobs
from maxmargin._sklearn import CallbackSupportMixin, Interval, StrOptions, callbacks_of, num_samples
from maxmargin._types import Floats, Index
from maxmargin.dual import Dual
from maxmargin.estimators._outcome import ADVICE
from maxmargin.estimators._predictor import KernelPredictor
from maxmargin.estimators._warm_start import Start, WarmStart
from maxmargin.estimators.model import KernelModel
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import NAMES, Kernel
from maxmargin.solvers.base import Solver
from maxmargin.solvers.interrupt import watch_interrupt
from maxmargin.solvers.solution import Record, Solution, Status, not_begun
from maxmargin.solvers.state import Stop

# Samples of a machine up to which kernel values are float64: always, and where float32 could be too rough.
_SMALL, _STILL_SMALL = 512, 2048
# Multiplications of a machine's whole matrix from which on machines run side by side.
_WORTH_A_TEAM = 30_000_000
# What a variable of a small machine costs, in kernel values.
_SMALL_STEPS = 100


@dataclass(frozen=True)
class Machine:
    """One dual problem of an estimator.

    A name, the problem, its samples (positions in the Gram matrix), the segments that these are, a start.
    Twin variables have the same samples, and the segment is named twice.
    """

    name: str
    problem: Dual
    samples: Index
    segments: Index
    warm: Floats | None = None


class Machines(Sequence[Machine]):
    """The machines of an estimator, made when they are first asked for: of many classes there are very many.

    Parameters
    ----------
    sizes : ndarray of int
        Variables of each machine.
    make : callable
        The machine with a given index.
    heaviest : int
        The machine with the largest bounds; all others are of the same kind.
    """

    def __init__(self, sizes: Index, make: Callable[[int], Machine], heaviest: int = 0) -> None:
        self.sizes, self._make = sizes, make
        self._made: dict[int, Machine] = {}
        largest = int(np.argmax(sizes))
        #: Machines that all others can be judged by.
        self.typical = [self[k] for k in sorted({largest, heaviest})]

    @staticmethod
    def one(machine: Machine) -> Machines:
        """A single machine."""
        return Machines(np.array([machine.problem.m]), lambda k: machine)

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, k: Any) -> Any:
        if not 0 <= k < len(self.sizes):
            raise IndexError(k)  # by which iteration ends
        if k not in self._made:
            self._made[k] = self._make(k)
        return self._made[k]


class BaseSVM(CallbackSupportMixin, KernelPredictor, metaclass=ABCMeta):
    """Base of the support vector machines: training."""

    _advice: ClassVar[dict[Status, str]] = ADVICE
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(set(NAMES)), callable],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "shrinking": ["boolean"],
        "cache_size": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["verbose"],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "solver": [str, Solver],
        "max_time": [Interval(Real, 0, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "warm_start": ["boolean"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.input_tags.sparse = self.kernel != "precomputed"
        return tags

    # -- training ----------------------------------------------------------------------------

    def _kernel_for(self, X: Any, kept: Index) -> Kernel:
        """The kernel with its numbers; gamma is estimated from the rows `kept`, which have a weight."""
        plain = callable(self.kernel) or self.kernel == "precomputed"
        if self.gamma == "scale" and not plain and len(kept) < X.shape[0]:
            X = X[kept]
        gamma = 0.0 if plain else resolve_gamma(self.gamma, X)
        # For `_model_of`, after the solver has run. It stays: threads may fit the same estimator.
        self._kernel = Kernel(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0)
        return self._kernel

    def _solve(
        self,
        X: Any,
        kernel: Kernel,
        order: Index,
        segments: Index,
        machines: Machines,
        limit: Limit,
        *,
        double: bool,
    ) -> list[Solution]:
        """Solve the machines over one Gram matrix of the rows `order` of X.

        The solution of a machine that was not begun when the time was up has no variables.
        """
        found: dict[int, Solution] = {}
        with watch_interrupt(limit), limit, suppress(Stopped):  # before there was a Gram matrix
            self._solve_all(X, kernel, order, segments, machines, limit, found, double=double)
        nothing = not_begun(np.zeros(0), np.zeros(0), limit)
        return [found.get(k, nothing) for k in range(len(machines))]

    def _solve_one(self, X: Any, order: Index, problem: Dual, warm: Floats | None, limit: Limit) -> Solution:
        """The solution of the only machine of an estimator, over the rows `order` of X."""
        own, parts = np.arange(len(order)), 2 if problem.twins else 1
        machine = Machine("all", problem, np.tile(own, parts), np.zeros(parts, np.intp), warm)
        kernel, segments = self._kernel_for(X, np.sort(order)), np.array([0, len(order)])
        solution = self._solve(X, kernel, order, segments, Machines.one(machine), limit, double=False)[0]
        if not len(solution.u):
            u = problem.start()
            solution = not_begun(u, problem.ridge * u - problem.p, limit, problem.n_groups)
        return solution

    def _solve_all(
        self,
        X: Any,
        kernel: Kernel,
        order: Index,
        segments: Index,
        machines: Machines,
        limit: Limit,
        found: dict[int, Solution],
        *,
        double: bool,
    ) -> None:
        from maxmargin.gram.gram import Gram  # compiled loops: not at import

        solver = solvers.get(self.solver)
        many = len(machines) > 1
        problems = [machine.problem for machine in machines.typical]
        # Where checking float32 values would cost more than computing float64 ones.
        largest = max(len(m.samples) // (2 if m.problem.twins else 1) for m in machines.typical)
        rounding = max(map(_float32_rounding, problems))
        small = largest <= _SMALL or (
            largest <= _STILL_SMALL and (self.tol < 1e-4 or rounding > 10 * self.tol)
        )
        context = self._callback_context(len(machines))
        gram = Gram(
            X,
            kernel,
            cache_bytes=int(self.cache_size * (1 << 20)),
            dtype=np.float64 if double or small else np.float32,
            index=None if np.array_equal(order, np.arange(num_samples(X))) else order,
            segments=segments if many else None,
            n_jobs=self.n_jobs,
        )
        # Two hulls that are right to tol each make a machine that is right to twice that.
        tol = 0.5 * self.tol if problems[0].name == "nearest_points" else self.tol
        stop = Stop(tol=tol, max_iter=None if self.max_iter == -1 else self.max_iter, max_time=None)
        watched = context is not None or self.verbose
        quick = None if watched else solver.small_machines(gram, segments, problems, stop, many)
        sizes = machines.sizes
        # Without `quick`, small machines spend their time in the interpreter, where threads only wait.
        work = float(sizes.sum() * _SMALL_STEPS if quick is not None else sizes.max() ** 2) * gram.cost
        side_by_side = many and context is None and not callable(self.kernel) and work > _WORTH_A_TEAM
        if side_by_side:
            gram.threads = Threads(1)
        team_size = effective_n_jobs(self.n_jobs) if side_by_side else 1
        with ExitStack() as stack:
            stack.enter_context(gram.threads)
            table = self._live_table(stack)

            def run(k: int) -> None:
                if limit.late:
                    return
                machine = machines[k]
                warm = machine.warm
                budget = gram.cache_bytes
                if quick is not None and not limit.over:
                    try:
                        done = quick.solve(machine.problem, machine.samples, machine.segments, warm)
                    except Stopped:
                        done = warm
                    if isinstance(done, Solution):
                        found[k] = done
                        return
                    warm = done
                    budget = max(0, budget - quick.bytes_used)
                rows: Any = gram
                if many:
                    rows = gram.view(machine.samples, cache_bytes=budget // team_size)
                elif quick is not None:
                    rows = gram.view(gram.columns, cache_bytes=budget)
                found[k] = solver.solve(
                    machine.problem,
                    rows,
                    warm=warm,
                    stop=stop,
                    callback=self._callback(machine.name, table, context),
                    interrupt=limit,
                )
                if table is not None:
                    table.end(machine.name, found[k])

            # The largest machines first, so that the last ones to run are short.
            largest_first = np.argsort(-sizes, kind="stable")
            if side_by_side:
                team = stack.enter_context(Threads(self.n_jobs))
                team.run(run, [(int(k),) for k in largest_first])
            else:
                for k in range(len(machines)):
                    run(k)
        if context is not None:
            context.call_on_fit_task_end(estimator=self)

    def _live_table(self, stack: ExitStack) -> Any:
        if not self.verbose:
            return None
        from maxmargin.estimators._report import LiveTable

        return stack.enter_context(LiveTable(f"{type(self).__name__}, solver {self.solver}"))

    def _callback_context(self, n_machines: int) -> Any:
        """scikit-learn's callbacks: one task per machine, one sub-task per checkpoint."""
        if callbacks_of(self) is None:
            return None
        context = self._init_callback_context(max_subtasks=n_machines)
        context.call_on_fit_task_begin(estimator=self)
        return context

    def _callback(self, name: str, table: Any, context: Any) -> Callable[[Record], bool] | None:
        if table is None and context is None:
            return None
        machine = None
        if context is not None:
            machine = context.subcontext(task_name=f"machine {name}", max_subtasks=None)
            machine.call_on_fit_task_begin(estimator=self)

        def show(record: Record) -> bool:
            if table is not None:
                table.update(name, record)
            if machine is None:
                return False
            step = machine.subcontext(task_name="checkpoint")
            step.call_on_fit_task_begin(estimator=self)
            return bool(step.call_on_fit_task_end(estimator=self))

        return show

    def _start(self, name: str, rows: Index, *width: int, box: float = np.inf) -> Floats | None:
        """The last solution of a problem for the samples `rows`, where `warm_start` asks for it and it fits.

        `width` is the number of variables of a sample, if it is not one; `box` that of the problem.
        """
        kept: WarmStart | None = getattr(self, "_solutions", None) if self.warm_start else None
        found = None if kept is None else kept.find(name, self.shape_fit_, rows, width, box)
        return None if found is None else found.ravel()

    def _keep_starts(self, starts: Iterable[tuple[str, Start]]) -> None:
        """Keep solutions, by name, for the next fit, where `warm_start` asks for it."""
        self._solutions = WarmStart(self.shape_fit_, dict(starts)) if self.warm_start else None

    def _model_of(
        self, X: Any, support: Index, *, n_support: Any, coef: Floats, intercept: Floats
    ) -> KernelModel:
        """The model of the kernel that was trained with."""
        return KernelModel.from_training(
            self._kernel,
            X,
            support,
            n_support=n_support,
            coef=coef,
            intercept=intercept,
            shape=self.shape_fit_,
        )


def _float32_rounding(problem: Dual) -> float:
    """The largest error of a gradient from float32 kernel values of about 1; 0 if it is not known."""
    size = float(np.sum(problem.hi - problem.lo))
    return 2.0**-24 * problem.scale * size if np.isfinite(size) else 0.0
