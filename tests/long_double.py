"""Kernel matrices in long double, by code that is not the library's."""

import numpy as np
import scipy.sparse as sp

LONG = np.longdouble


def long_kernel(X, kernel, gamma, degree=3, coef0=0.0):
    X = np.asarray(X.toarray() if sp.issparse(X) else X).astype(LONG)
    if kernel in ("rbf", "laplacian"):
        D = np.zeros((len(X), len(X)), LONG)
        for column in X.T:
            difference = column[:, None] - column
            D += difference**2 if kernel == "rbf" else abs(difference)
        return np.exp(-LONG(gamma) * D)
    products = X @ X.T
    if kernel == "linear":
        return products
    inner = LONG(gamma) * products + LONG(coef0)
    return inner**degree if kernel == "poly" else np.tanh(inner)
