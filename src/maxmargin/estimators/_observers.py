"""Progress of a fit: the live table behind ``verbose``, and scikit-learn's callbacks."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType
from typing import Any

from maxmargin._sklearn import begin_callbacks, callbacks_of
from maxmargin.solvers.many import Subproblems
from maxmargin.solvers.solution import Record
from maxmargin.solvers.solutions import Solutions


class Observers:
    """Passes checkpoints on, while a fit runs; neither changes how it is trained.

    scikit-learn's callbacks get one task per problem, and one sub-task per checkpoint.
    """

    def __init__(self, estimator: Any, n_problems: int) -> None:
        self._estimator, self._n = estimator, n_problems
        self._table: Any = None
        self._context: Any = None
        self._stack = ExitStack()
        self._lock = threading.Lock()  # problems may run in several threads
        # The task of each thread, which solves one problem at a time.
        self._tasks: dict[int, Any] = {}

    def __enter__(self) -> Observers:
        estimator = self._estimator
        if callbacks_of(estimator) is not None:
            self._context = begin_callbacks(estimator, self._n)
            self._context.call_on_fit_task_begin(estimator=estimator)
        if estimator.verbose:
            from maxmargin.estimators._report import LiveTable

            title = f"{type(estimator).__name__}, solver {estimator.solver}"
            self._table = self._stack.enter_context(LiveTable(title, estimator.tol))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)
        if self._context is not None and kind is None:
            for thread in list(self._tasks):
                self._end_task(thread)
            self._context.call_on_fit_task_end(estimator=self._estimator)

    @property
    def active(self) -> bool:
        """Whether there is anything to pass on to."""
        return self._table is not None or self._context is not None

    def callback(self, name: str) -> Any:
        """The callback of the problem with this name."""
        task = None
        if self._context is not None:
            with self._lock:
                self._end_task(threading.get_ident())
                task = self._context.subcontext(task_name=f"problem {name}", max_subtasks=None)
                task.call_on_fit_task_begin(estimator=self._estimator)
                self._tasks[threading.get_ident()] = task

        def show(record: Record) -> bool:
            if self._table is not None:
                self._table.update(name, record)
            if task is None:
                return False
            with self._lock:
                step = task.subcontext(task_name="checkpoint")
                step.call_on_fit_task_begin(estimator=self._estimator)
                return bool(step.call_on_fit_task_end(estimator=self._estimator))

        return show

    def _end_task(self, thread: int) -> None:
        """End the task of the problem that a thread has solved."""
        task = self._tasks.pop(thread, None)
        if task is not None:
            task.call_on_fit_task_end(estimator=self._estimator)

    def end(self, problems: Subproblems, found: Solutions) -> None:
        """Show the gaps of the solutions."""
        if self._table is not None:
            for k, solution in found.items():
                self._table.end(problems[k].name, solution)
