"""
A solver of one's own behind `SVC`
==================================

A solver improves ``state.u`` between two checkpoints; stopping, budgets, Ctrl-C, records and the certificate
of the result come from its base class. This one moves the pair of variables that violates optimality most.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin import SVC, solvers
from maxmargin.dual.problem import Dual
from maxmargin.solvers import Solver, State


class WorstPair(Solver[None]):
    """Moves the most violating pair."""

    name = "worst-pair"
    about = "Keerthi et al. 2001: the most violating pair, in plain NumPy"

    def accepts(self, problem: Dual) -> bool:
        return problem.n_groups == 1

    def advance(self, state: State, work: None) -> None:
        problem, u, g = state.problem, state.u, state.g
        for _ in range(min(state.left, 1000)):
            # The gradient falls where u may rise, and rises where it may fall.
            i = int(np.argmin(np.where(u < problem.hi, g, np.inf)))
            j = int(np.argmax(np.where(u > problem.lo, g, -np.inf)))
            if g[j] - g[i] <= state.target:
                return
            pair = np.array([i, j])
            Q = problem.block(pair, pair, state.gram)
            curvature = max(float(Q[0, 0] + Q[1, 1] - 2 * Q[0, 1]), 1e-12)
            step = min((g[j] - g[i]) / curvature, problem.hi[i] - u[i], u[j] - problem.lo[j])
            u[i] += step
            u[j] -= step
            problem.update(g, pair, np.array([step, -step]), state.gram)
            state.n_iter += 1


solvers.register("worst-pair", WorstPair)

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
for solver in ("worst-pair", "auto"):
    model = SVC(solver=solver).fit(X, y)
    print(f"{solver:10}  {model.status_}, {model.n_iter_[0]:,} iterations, relative gap "
          f"{model.relative_gap_[0]:.1e}, {len(model.support_)} support vectors")  # fmt: skip
