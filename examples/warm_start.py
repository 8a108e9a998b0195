"""Warm starts and budgets.

A fit with a budget of a few steps, then the same model again and again with `warm_start=True`: each fit goes
on where the last one ended, and the certificate says how much is left.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC

X, y = make_classification(1500, 10, n_informative=6, flip_y=0.1, random_state=0)
model = SVC(C=10.0, solver="smo", max_iter=200, warm_start=True)
gaps = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    while not gaps or (model.status_ != "solved" and len(gaps) < 100):
        model.fit(X, y)
        gaps.append(float(model.dual_gap_[0]))
print(f"{model.status_} after {len(gaps)} fits of 200 steps, gap {gaps[-1]:.1e}")

figure, ax = plt.subplots(figsize=(6, 3.6))
ax.semilogy(range(1, len(gaps) + 1), gaps, "o-", markersize=3)
ax.set(xlabel="fit", ylabel="certified gap")
plt.show()
