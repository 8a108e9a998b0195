"""
The nearest points of two thin hulls, and the zigzag on which MDM finds them
============================================================================

The boundary of a linear SVM with a hard margin lies half-way between the nearest points of the hulls of its
classes. MDM moves weight between two samples at a time and zigzags; accelerated MDM steps along the cycles
of the zigzag.
"""

import argparse

import numpy as np

from maxmargin import SVC
from maxmargin.inspection import HullDisplay

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_hulls.png", help="file of the picture")
out = parser.parse_args().out

rng = np.random.default_rng(2)
parts = []
for middle, angle in (((0.0, 0.0), -0.5), ((0.7, 1.6), -0.55)):
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    parts.append(rng.uniform(-1, 1, (8, 2)) * (3.0, 0.2) @ turn.T + middle)
X, y = np.vstack(parts), np.repeat(["lower", "upper"], 8)

model = SVC(C=np.inf, kernel="linear").fit(X, y)
display = HullDisplay.from_estimator(model, X, y, tol=1e-4)
for solver, steps in display.steps.items():
    print(f"{solver}: {steps} steps")
display.figure_.savefig(out, dpi=125)
print(f"The picture is in {out}.")
