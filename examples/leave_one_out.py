"""
Leave-one-out without training n times, and rows that come and go
=================================================================

`IncrementalSVC` computes the value that each row would get from the model trained on all others. It also
learns and forgets single rows: afterwards it is the model that a training from scratch would give.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from maxmargin import SVC, IncrementalSVC

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)

for C in (0.01, 0.1, 1.0, 10.0):
    values = IncrementalSVC(C=C).fit(X, y).leave_one_out()
    print(f"C = {C:5g}: leave-one-out accuracy {np.mean((values > 0) == y):.4f}")

# One of these values the slow way.
others = np.arange(len(y)) != 7
gamma = 1.0 / X.shape[1]
exact = IncrementalSVC(gamma=gamma).fit(X, y)
slow = SVC(gamma=gamma, loss="squared_hinge", tol=1e-9).fit(X[others], y[others])
print(f"row 7: {exact.leave_one_out()[7]:.6f}, trained without it: {slow.decision_function(X[7:8])[0]:.6f}")

# New rows come in, fifty at a time, and the oldest are forgotten.
moving = IncrementalSVC(gamma=gamma).fit(X[:300], y[:300])
for start in range(300, 500, 50):
    new = slice(start, start + 50)
    moving.partial_fit(X[new], y[new]).forget(np.arange(50))
again = IncrementalSVC(gamma=gamma).fit(X[200:500], y[200:500])
difference = np.abs(moving.decision_function(X) - again.decision_function(X)).max()
print(f"{moving.n_held_} rows held; against a training from scratch: {difference:.1e}")
