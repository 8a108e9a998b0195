"""
Quantiles of noise that grows: a band that holds most samples, and the median
=============================================================================

`QuantileSVR` trains all quantiles over one kernel matrix, and its predictions do not cross. An `SVR` has one
function and a tube of the same width everywhere, whatever the noise.
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import SVR, QuantileSVR
from maxmargin.inspection import BandDisplay, BoundaryDisplay

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_quantiles.png", help="file of the picture")
out = parser.parse_args().out

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 6, 300))[:, None]
y = np.sin(x[:, 0]) + rng.exponential(0.05 + 0.12 * x[:, 0])  # not symmetric, and more of it to the right

levels = [0.05, 0.25, 0.5, 0.75, 0.95]
band = QuantileSVR(quantiles=levels, C=10.0, gamma=0.5).fit(x, y)
tube = SVR(epsilon=0.5, C=10.0, gamma=0.5).fit(x, y)

figure, axes = plt.subplots(1, 2, figsize=(14, 4), sharey=True, layout="constrained")
BoundaryDisplay.from_estimator(tube, x, y, support=False, ax=axes[0], size=16.0)
axes[0].set_title("SVR, epsilon=0.5")
BandDisplay.from_estimator(band, x, y, ax=axes[1])
axes[1].set_title("QuantileSVR, five quantiles")

new = rng.uniform(0, 6, 20_000)[:, None]
target = np.sin(new[:, 0]) + rng.exponential(0.05 + 0.12 * new[:, 0])
for level, column in zip(levels, band.predict(new).T, strict=True):
    print(f"quantile {level:.2f}: {np.mean(target <= column):.3f} of new samples are below")

figure.savefig(out)
print(f"The picture is in {out}.")
