"""
Two outlier detectors, and where they draw the line
===================================================

`OneClassSVM` bounds the share of training outliers by nu. `L2OneClassSVM` has squared slacks and ranks the
rows; `contamination` draws the line: three standard deviations below the mean score ("auto"), at a share of
the training rows, or at the margin, where the outliers among the training rows are just the support vectors.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from maxmargin import L2OneClassSVM, OneClassSVM
from maxmargin.inspection import BoundaryDisplay

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="one_class.png", help="file of the picture")
out = parser.parse_args().out

dense, _ = make_blobs(194, centers=[[-2, 0], [2, 0]], cluster_std=0.5, random_state=0)
X = np.vstack([dense, np.random.default_rng(0).uniform(-5, 5, (6, 2))])

figure, axes = plt.subplots(2, 2, figsize=(14, 8), sharex=True, sharey=True, layout="constrained")
models: dict[str, OneClassSVM | L2OneClassSVM] = {
    "OneClassSVM, nu=0.1": OneClassSVM(nu=0.1, gamma=0.3),
    'L2OneClassSVM, contamination="auto"': L2OneClassSVM(gamma=0.3, tol=1e-6),
    "L2OneClassSVM, contamination=0.1": L2OneClassSVM(gamma=0.3, tol=1e-6, contamination=0.1),
    'L2OneClassSVM, contamination="margin"': L2OneClassSVM(gamma=0.3, tol=1e-6, contamination="margin"),
}
for ax, (title, model) in zip(axes.flat, models.items(), strict=True):
    outliers = model.fit(X).predict(X) < 0
    print(f"{title:38} {outliers.sum():2} outliers of {len(X)}, {len(model.support_)} support vectors")
    BoundaryDisplay.from_estimator(model, X, ax=ax, legend=ax is axes[0, 1])
    ax.set_title(f"{title}: {outliers.sum()} outliers of {len(X)}")
figure.savefig(out)
print(f"The picture is in {out}.")
