"""How the dual problems of a fit are trained: everything that is decided before the first step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import solvers
from maxmargin._sklearn import num_samples
from maxmargin._types import Index, Rows
from maxmargin.dual import Dual
from maxmargin.estimators._elsewhere import SamplesElsewhere
from maxmargin.solvers import costs
from maxmargin.solvers.base import Solver
from maxmargin.solvers.many import Subproblems
from maxmargin.solvers.state import Stop


@dataclass(frozen=True)
class Plan:
    """Solver, tolerance, precision of the rows, budget of their cache and threads of a fit.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin import SVC, dual
    >>> from maxmargin.estimators._plan import Plan
    >>> from maxmargin.solvers.many import Subproblems
    >>> problem = dual.c_svc(np.repeat([-1, 1], 300), C=1.0)
    >>> Plan.of(SVC(), Subproblems.one(problem, 600)).dtype
    dtype('float32')
    """

    solver: Solver[Any]
    stop: Stop
    #: Precision of the kernel rows.
    dtype: np.dtype[Any]
    #: Budget of the row cache.
    cache_bytes: int
    n_jobs: int | None

    @classmethod
    def of(cls, estimator: Any, problems: Subproblems, *, double: bool = False) -> Plan:
        """The plan for the `problems` of an estimator; `double` asks for float64 rows."""
        typical = [sub.problem for sub in problems.typical]
        tol = estimator.tol
        # Checking float32 values would cost more than computing float64 ones.
        largest = max(len(s.samples) // (2 if s.problem.paired else 1) for s in problems.typical)
        rough = tol < costs.ROUGH or max(map(_float32_rounding, typical)) > 10 * tol
        solver = _solver(estimator.solver, typical[0])
        at_once = len(problems) == 1 and typical[0].boxed and solver.name == "batch"
        few = costs.DOUBLE_UP_TO if at_once else costs.DOUBLE_ELSE_UP_TO
        small = largest <= (costs.DOUBLE_IF_ROUGH_UP_TO if rough else few)
        return cls(
            solver=solver,
            stop=Stop(
                tol=tol * typical[0].tolerance_share,
                # Errors of n sums, times C, may leave a gap as large as the value.
                criterion="both" if typical[0].per_sample else "kkt",
                max_iter=None if estimator.max_iter == -1 else estimator.max_iter,
            ),
            dtype=np.dtype(np.float64 if double or small else np.float32),
            cache_bytes=int(estimator.cache_size * (1 << 20)),
            n_jobs=estimator.n_jobs,
        )

    def gram(self, X: Any, kernel: Any, order: Index, problems: Subproblems) -> Rows:
        """The kernel rows ``X[order]``."""
        if isinstance(X, SamplesElsewhere):
            return X.gram(kernel, order, self.dtype, self.n_jobs)
        from maxmargin.gram.gram import Gram  # compiled loops: not at import

        index = None if np.array_equal(order, np.arange(num_samples(X))) else order
        segments = problems.bounds if len(problems) > 1 else None

        def gram(index: Index | None) -> Gram:
            given = kernel.name == "precomputed"  # the values of a row are next to each other
            return Gram(
                X,
                kernel,
                cache_bytes=self.cache_bytes,
                dtype=self.dtype,
                index=index,
                segments=None if given else segments,
                n_jobs=self.n_jobs,
            )

        if index is not None and kernel.name == "precomputed":
            # Rows that many problems read, or one compiled call, are copied in their order if there is room.
            whole = gram(None)
            copied = segments is not None or len(order) <= costs.COPIED_UP_TO
            if whole.given and (not copied or X.shape[0] * len(order) * X.itemsize > self.cache_bytes):
                return whole.view(index)
        return gram(index)


def _solver(name: Any, problem: Dual) -> Solver[Any]:
    """The solver of an estimator.

    "auto" is `Batch`, but for the problem of Crammer and Singer its own solver, and SMO where there are more
    groups than find a place in a working set.
    """
    if name == "auto" and problem.per_sample:
        return solvers.get("crammer-singer")
    solver = solvers.get(name)
    return solvers.get("smo") if name == "auto" and not solver.accepts(problem) else solver


def _float32_rounding(problem: Dual) -> float:
    """An estimate of the largest error of a gradient from float32 kernel values about 1; 0 if unknown."""
    size = float(problem.hi.sum() if problem.per_sample else (problem.hi - problem.lo).sum())
    return 2.0**-24 * problem.scale * size if np.isfinite(size) else 0.0
