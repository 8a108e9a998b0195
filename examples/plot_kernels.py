"""
Sums of kernels: a trend and a wave, continued beyond the data
==============================================================

Beyond the rows an RBF kernel falls to zero, and the regression to its mean. A sum has the features of all its
terms: with a linear kernel the trend goes on, and with a periodic one, a function of two rows that is
compiled, the wave too.
"""

import argparse
import math

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from maxmargin import SVR
from maxmargin.kernels import linear, of_rows, rbf

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_kernels.png", help="file of the picture")
out = parser.parse_args().out


def periodic(x: NDArray[np.float64], z: NDArray[np.float64]) -> float:
    """Similar at the same time of every period of 2 pi."""
    return math.exp(-2.0 * math.sin(0.5 * (x[0] - z[0])) ** 2)


rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 15, 80))[:, None]
y = 0.2 * x[:, 0] + np.sin(x[:, 0]) + rng.normal(0, 0.2, 80)
new = np.linspace(-3, 25, 400)[:, None]
truth = 0.2 * new[:, 0] + np.sin(new[:, 0])

kernels = {
    "rbf(0.3)": rbf(0.3),
    "rbf(0.3) + 0.1 * linear()": rbf(0.3) + 0.1 * linear(),
    "of_rows(periodic) + 0.1 * linear()": of_rows(periodic) + 0.1 * linear(),
}
figure, axes = plt.subplots(1, len(kernels), figsize=(15, 4), sharey=True, layout="constrained")
for (title, kernel), ax in zip(kernels.items(), axes, strict=True):
    model = SVR(kernel=kernel, C=10.0, epsilon=0.2).fit(x, y)
    ax.plot(new, truth, color="#e69f00", lw=3.0, label="truth")
    ax.plot(new, model.predict(new), color="black", ls="--", label="SVR")
    ax.scatter(
        x, y, s=14, color="white", edgecolors="#0072b2", linewidths=0.9, zorder=3, label="training rows"
    )
    ax.set_title(title)
    ax.set_xlabel("x")
    beyond = new[:, 0] > 15
    error = np.abs(model.predict(new[beyond]) - truth[beyond]).mean()
    print(f"{title:35} mean error beyond the rows {error:.2f}")
axes[0].set_ylabel("y")
axes[0].legend(loc="upper left", frameon=False)

figure.savefig(out)
print(f"The picture is in {out}.")
