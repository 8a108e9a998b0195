"""How solvers converge.

Six solvers of the library on one dual problem, the point of least norm of a hull. Every point of a curve is a
run with a budget of steps: its certified gap against the kernel values that it used.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from maxmargin import dual
from maxmargin.gram import Gram
from maxmargin.solvers import MDM, NPA, SMO, Gilbert, MaxMinOver, Stop

X, y = load_breast_cancer(return_X_y=True)
X, sign = StandardScaler().fit_transform(X), np.where(y == 1, 1.0, -1.0)
gram = Gram(X, kernel="rbf", gamma=0.003, dtype="float64")
problem = dual.minimum_norm(sign, ridge=0.01)
solvers = {
    "MaxMinOver": MaxMinOver(),
    "Gilbert": Gilbert(),
    "NPA": NPA(),
    "MDM": MDM(),
    "MDM, cycles": MDM(accelerate=True),
    "SMO, second order": SMO(),
}
figure, ax = plt.subplots(figsize=(7, 4.5))
for (name, solver), style in zip(solvers.items(), ["-", "--", "-.", ":", "-", "--"], strict=True):
    calls, gaps = [], []
    for steps in np.geomspace(10, 20_000, 14).astype(int):
        solution = solver.solve(problem, gram, stop=Stop(tol=1e-4, max_iter=int(steps)))
        calls.append(solution.n_kernel_calls)
        gaps.append(solution.gap)
        if solution.status == "solved":
            break
    ax.loglog(calls, gaps, style, label=name)
    print(f"{name:18} {solution.n_iter:6} steps, gap {solution.gap:.1e}, {solution.status}")
ax.set(xlabel="kernel values used", ylabel="certified gap")
ax.legend()
plt.show()
