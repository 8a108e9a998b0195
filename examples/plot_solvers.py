"""
How several solvers converge on the same problem
================================================

The trace of a run has few records where the run is short; `Watched` is a wrapper that records it more often.
All solvers stop at the same KKT violation; on the right is what is certain about the objective meanwhile.
"""

import argparse

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from maxmargin import SVC
from maxmargin.inspection import TraceDisplay, Watched

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_solvers.png", help="file of the picture")
out = parser.parse_args().out

X, y = load_digits(return_X_y=True)
odd = y % 2
models = {}
for solver in ("batch", "smo", "mdm", "mdm-accelerated", "rosen-conjugate"):
    model = SVC(C=1000.0, gamma=5e-4, loss="squared_hinge", solver=Watched(solver), max_time=5)
    models[solver] = model.fit(X, odd)
    gap = model.relative_gap_[0]
    print(f"{solver:16} {model.n_iter_[0]:6,} iterations, relative gap {gap:.1e}, {model.status_}")

figure, axes = plt.subplots(1, 2, figsize=(12, 5.5), layout="constrained")
TraceDisplay.from_estimator(models, x="kernel_calls", ax=axes[0])
TraceDisplay.from_estimator(models, x="kernel_calls", y="relative_gap", ax=axes[1])
figure.savefig(out)
print(f"The picture is in {out}.")
