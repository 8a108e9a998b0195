"""
Several targets: a curve in the plane from noisy points
=======================================================

y may have several columns: here the two coordinates of a moving point, predicted from the time. One fit
trains both over the same kernel values.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_targets.png", help="file of the picture")
out = parser.parse_args().out

rng = np.random.default_rng(0)
time = np.sort(rng.uniform(0, 1, 150))[:, None]


def curve(t: np.ndarray) -> np.ndarray:
    """A point that moves on a closed curve."""
    return np.column_stack([np.sin(2 * np.pi * t), np.sin(4 * np.pi * t)])


y = curve(time[:, 0]) + rng.normal(0, 0.12, (150, 2))
model = SVR(C=10.0, epsilon=0.1, gamma=20.0).fit(time, y)
grid = np.linspace(0, 1, 400)[:, None]
predicted = model.predict(grid)

figure, axes = plt.subplots(1, 2, figsize=(14, 4), layout="constrained", width_ratios=[1, 2])
axes[0].plot(*curve(grid[:, 0]).T, color="0.6", label="without noise")
axes[0].plot(*predicted.T, color="black", label="predicted")
points = axes[0].scatter(*y.T, c=time[:, 0], s=16)
axes[0].set(title="the two targets", xlabel="first target", ylabel="second target")
axes[0].set_ylim(top=1.8)
axes[0].legend(loc="upper center", ncols=2, fontsize="small")
figure.colorbar(points, ax=axes[0], label="time")
for column, name in enumerate(("first target", "second target")):
    axes[1].fill_between(
        grid[:, 0], predicted[:, column] - 0.1, predicted[:, column] + 0.1, color=f"C{column}", alpha=0.2
    )
    axes[1].plot(grid, predicted[:, column], color=f"C{column}", label=name)
    axes[1].scatter(time, y[:, column], color=f"C{column}", s=12)
axes[1].set(title="each with its tube ±0.1", xlabel="time")
axes[1].set_ylim(top=1.8)
axes[1].legend(loc="upper center", ncols=2, fontsize="small")

error = np.abs(predicted - curve(grid[:, 0])).mean(axis=0)
print(f"{model.dual_coef_.shape[0]} targets over {len(model.support_)} support vectors")
print(f"mean error of the first {error[0]:.3f}, of the second {error[1]:.3f}; R² {model.score(time, y):.2f}")
figure.savefig(out)
print(f"The picture is in {out}.")
