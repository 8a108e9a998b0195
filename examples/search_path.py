"""A search, its scores and its path.

`SVMSearchCV` trains every node of a grid from a neighbour. The picture shows the mean score of each node, the
best one, and which node was trained from which.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC
from maxmargin.inspection import SearchDisplay
from maxmargin.model_selection import SVMSearchCV

X, y = load_breast_cancer(return_X_y=True)
grid = {"svc__C": np.logspace(-2, 4, 10), "svc__gamma": np.logspace(-5, 0, 10)}
search = SVMSearchCV(make_pipeline(StandardScaler(), SVC()), grid).fit(X, y)
print(
    f"{len(search.cv_results_['params'])} nodes, 5 folds: {search.best_score_:.3f} at {search.best_params_}"
)

SearchDisplay.from_search(search)
plt.show()
