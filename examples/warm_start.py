"""
Training again from the last solution
=====================================

A model with ``warm_start=True`` begins where its last fit ended, as long as the data have the same shape.
Here the parameter changes in small steps, and the solver has less to do in each.
"""

import numpy as np
from sklearn.datasets import load_digits

from maxmargin import NuSVC

X, y = load_digits(return_X_y=True)
odd = y % 2
values = np.linspace(0.3, 0.1, 9)

warm = NuSVC(gamma=1e-3, solver="smo", warm_start=True)
total = {"cold": 0, "warm": 0}
print("   nu    cold    warm  (iterations)")
for nu in values:
    cold = NuSVC(nu=nu, gamma=1e-3, solver="smo").fit(X, odd)
    warm.set_params(nu=nu).fit(X, odd)
    steps = {"cold": int(cold.n_iter_[0]), "warm": int(warm.n_iter_[0])}
    print(f"{nu:.3f}  {steps['cold']:6,}  {steps['warm']:6,}")
    for how, count in steps.items():
        total[how] += count
print(f"in all {total['cold']:6,}  {total['warm']:6,}")
