"""
Exact Shapley values of a support vector machine: one row, and all rows
=======================================================================

What each feature of breast cancer data adds to the decision value: at the top for one row, from the mean over
the background to the value of the row, at the bottom for all rows that the model was not trained on.
"""

import argparse

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC
from maxmargin.inspection import BeeswarmDisplay, WaterfallDisplay, shapley

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_explanations.png", help="file of the picture")
out = parser.parse_args().out

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
kinds = y.map({0: "malignant", 1: "benign"})
X_train, X_test, y_train, _ = train_test_split(X, kinds, random_state=0)
model = make_pipeline(StandardScaler(), SVC()).fit(X_train, y_train)
found = shapley(model, X_test, X_train[:100])
error = abs(found.predicted - model.decision_function(X_test)).max()
print(f"{found.values.shape[0]} rows, {found.values.shape[1]} features, largest error of a sum {error:.0e}")

figure = plt.figure(figsize=(9, 8), layout="constrained")
top, bottom = figure.subfigures(2, 1)
WaterfallDisplay.from_values(found, row=1, max_features=8, ax=top.subplots())
BeeswarmDisplay.from_values(found, max_features=8, ax=bottom.subplots())
figure.savefig(out, dpi=110)
print(f"The picture is in {out}.")
