"""
The scores of a grid search, and the combinations to choose from
================================================================

The star is the best combination, the diamond the simplest one within one standard error of it. Thick dashes
mark the edge of the grid if the best one is there: a better one may be beyond.
"""

import argparse

import numpy as np
from sklearn.datasets import make_moons

from maxmargin import SVC
from maxmargin.inspection import SearchDisplay
from maxmargin.model_selection import SVMSearchCV

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", default="plot_search.png", help="file of the picture")
out = parser.parse_args().out

X, y = make_moons(200, noise=0.3, random_state=2)
grid = {"C": np.logspace(-2, 4, 10), "gamma": np.logspace(-2, 2, 10)}
search = SVMSearchCV(SVC(), grid).fit(X, y)
best = ", ".join(f"{name} = {value:.3g}" for name, value in search.best_params_.items())
print(f"best: {best}, accuracy {search.best_score_:.3f}")

display = SearchDisplay.from_estimator(search)
display.figure_.savefig(out, dpi=110)
print(f"The picture is in {out}.")
