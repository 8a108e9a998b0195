"""
Two outlier detectors side by side
==================================

`OneClassSVM` bounds the share of training outliers by nu. `L2OneClassSVM` has squared slacks: its training
outliers are just its support vectors, and a larger C leaves fewer of them.
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

dense, _ = make_blobs(90, centers=[[-2, 0], [2, 0]], cluster_std=0.6, random_state=0)
X = np.vstack([dense, np.random.default_rng(0).uniform(-5, 5, (10, 2))])

figure, axes = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
models: list[OneClassSVM | L2OneClassSVM] = [
    OneClassSVM(nu=0.1, gamma=0.3),
    L2OneClassSVM(C=100.0, gamma=0.3),
]
for ax, model in zip(axes, models, strict=True):
    outliers = model.fit(X).predict(X) < 0
    print(f"{model!r}: {outliers.sum()} outliers of {len(X)}, {len(model.support_)} support vectors")
    BoundaryDisplay.from_estimator(model, X, ax=ax)
    ax.set_title(type(model).__name__)
figure.savefig(out)
print(f"The picture is in {out}.")
