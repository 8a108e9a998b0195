"""
Boundaries, margins and support vectors of four models
======================================================

Two classes behind a scaler, three classes, an outlier detector, and a regression with its tube. (The display
takes scikit-learn's own estimators too.)
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, OneClassSVM
from maxmargin.inspection import BoundaryDisplay

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_boundary.png", help="file of the picture")
out = parser.parse_args().out

figure, axes = plt.subplots(2, 2, figsize=(13, 8), layout="constrained")

X, y = make_moons(100, noise=0.2, random_state=1)
model = make_pipeline(StandardScaler(), SVC(gamma=1.0)).fit(X, y)
BoundaryDisplay.from_estimator(model, X, y, ax=axes[0, 0])
axes[0, 0].set_title("two classes")

iris = load_iris(as_frame=True)
petals, kinds = iris.data[["petal length (cm)", "petal width (cm)"]], iris.target_names[iris.target]
BoundaryDisplay.from_estimator(SVC(C=10.0).fit(petals, kinds), petals, kinds, ax=axes[0, 1])
axes[0, 1].set_title("three classes")

BoundaryDisplay.from_estimator(OneClassSVM(nu=0.1, gamma=2.0).fit(X), X, ax=axes[1, 0])
axes[1, 0].set_title("one class")

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 60))[:, None]
target = np.sin(x[:, 0]) + rng.normal(0, 0.15, 60)
BoundaryDisplay.from_estimator(SVR(epsilon=0.2).fit(x, target), x, target, ax=axes[1, 1])
axes[1, 1].set_title("regression")

figure.savefig(out)
print(f"The picture is in {out}.")
