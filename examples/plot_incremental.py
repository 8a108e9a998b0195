"""
A drifting stream: the boundary before and after old rows are forgotten
=======================================================================

The two classes turn around each other while rows arrive, so the boundary of all rows fits none of them well.
Forgetting the oldest rows leaves the model that training on the others alone would give. Leave-one-out
values, which are exact, show which of the two models to keep.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVC, IncrementalSVC
from maxmargin.inspection import BoundaryDisplay

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_incremental.png", help="file of the picture")
out = parser.parse_args().out

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 240)
angle = np.linspace(0.0, 0.8 * np.pi, 240) + np.pi * y
X = np.column_stack([np.cos(angle), np.sin(angle)]) + rng.normal(0, 0.5, (240, 2))

model = IncrementalSVC(C=1.0, gamma=0.3, loss="hinge")
for start in range(0, 240, 40):
    model.partial_fit(X[start : start + 40], y[start : start + 40])

figure, axes = plt.subplots(1, 2, figsize=(14, 5), sharey=True, layout="constrained")
for ax, oldest in zip(axes, (0, 160), strict=True):
    if oldest:
        model.forget(np.arange(oldest))
    wrong = oldest + np.flatnonzero(model.leave_one_out_predict() != y[oldest:])
    right = 80 - np.count_nonzero(wrong >= 160)
    display = BoundaryDisplay.from_estimator(model, X, y, support=False, ax=ax, legend=False)
    for label, points in enumerate(display.points_):
        points.set_alpha(np.where(np.flatnonzero(y == label) < oldest, 0.15, 1.0))  # forgotten rows are faint
    ax.scatter(*X[wrong].T, marker="x", s=90, color="black", label="wrong when left out")
    ax.set_title(f"{model.n_held_} rows held; {right} of the latest 80 are right when left out")
    print(f"{model.n_held_} rows held: leave-one-out accuracy of the latest 80 is {right / 80:.4f}")
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right upper")

again = SVC(C=1.0, gamma=0.3, tol=1e-9).fit(X[160:], y[160:])
difference = np.abs(again.decision_function(X) - model.decision_function(X)).max()
print(f"difference from a training of the latest rows alone: {difference:.1e}")
figure.savefig(out)
print(f"The picture is in {out}.")
