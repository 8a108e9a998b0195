"""
How several solvers converge on the same problem
================================================

The trace of a run has few records where the run is short; `Watched` is a wrapper that records it more often.
All solvers stop at the same KKT violation; on the right is what is certain about the objective meanwhile.
"""

import argparse

import matplotlib.pyplot as plt
from sklearn.datasets import make_circles

from maxmargin import SVC
from maxmargin.inspection import TraceDisplay, Watched

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_solvers.png", help="file of the picture")
out = parser.parse_args().out

# Rings that overlap, a wide kernel and a large C: a solver that moves weight between two samples at a time
# zigzags. Accelerated MDM steps along the cycles of the zigzag, and needs far fewer kernel values than MDM.
X, y = make_circles(300, noise=0.15, factor=0.5, random_state=0)
models = {}
for solver in ("smo", "mdm", "mdm-accelerated", "npa", "rosen-conjugate"):
    model = SVC(C=1e4, gamma=0.05, loss="squared_hinge", solver=Watched(solver), max_time=5)
    models[solver] = model.fit(X, y)
    gap = model.relative_gap_[0]
    print(f"{solver:16} {model.n_iter_[0]:7,} iterations, relative gap {gap:.1e}, {model.status_}")

figure, axes = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
TraceDisplay.from_estimator(models, x="kernel_calls", ax=axes[0], legend=False)
axes[0].set_title("The largest KKT violation")
TraceDisplay.from_estimator(models, x="kernel_calls", y="relative_gap", ax=axes[1])
axes[1].set_title("What is certain about the objective")
figure.savefig(out)
print(f"The picture is in {out}.")
