"""
A regression with its tube and support vectors
==============================================

Residuals within the tube cost nothing, so the samples inside are no support vectors. `SVR` takes the width of
the tube; `NuSVR` takes the share of samples outside and finds the width. The squared loss bounds no
coefficient: outliers pull harder.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR, NuSVR
from maxmargin.inspection import BoundaryDisplay

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_regression.png", help="file of the picture")
out = parser.parse_args().out

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 60))[:, None]
y = np.sin(x[:, 0]) + rng.normal(0, 0.15, 60)
y[::12] += 1.0  # outliers

models = {
    "SVR, squared loss": SVR(C=10.0, epsilon=0.2, loss="squared_epsilon_insensitive"),
    "SVR, epsilon=0.2": SVR(C=10.0, epsilon=0.2),
    "NuSVR, nu=0.3": NuSVR(C=10.0, nu=0.3),
}
figure, axes = plt.subplots(1, len(models), figsize=(15, 4), sharey=True, layout="constrained")
for (title, model), ax in zip(models.items(), axes, strict=True):
    model.fit(x, y)
    display = BoundaryDisplay.from_estimator(model, x, y, ax=ax, legend=ax is axes[-1])
    error = np.abs(model.predict(x) - np.sin(x[:, 0])).mean()
    width = getattr(model, "epsilon_", 0.2)
    ax.set_title(f"{title}: tube ±{width:.2f}")
    print(f"{title:18} tube ±{width:.2f}, {len(model.support_):2} support vectors, mean error {error:.3f}")
if display.legend_ is not None:
    display.legend_.get_texts()[1].set_text("tube")  # its width is in the titles
figure.savefig(out)
print(f"The picture is in {out}.")
