"""
A kernel of one's own: as a function, and as a matrix
=====================================================

A kernel function gets two data sets and returns the matrix between them. With ``kernel="precomputed"`` the
matrix itself takes the place of the data, so the samples may be anything, here words.
"""

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from maxmargin import SVC

Floats = NDArray[np.float64]


def intersection(A: Floats, B: Floats) -> Floats:
    """The common part of two histograms."""
    return np.stack([np.minimum(row, B).sum(axis=1) for row in A])


def common_pairs(words: list[str], others: list[str]) -> Floats:
    """How many pairs of neighbouring letters two words share, relative to their lengths."""
    pairs = [[{word[k : k + 2] for k in range(len(word) - 1)} for word in some] for some in (words, others)]
    return np.array([[len(a & b) / np.sqrt(len(a) * len(b)) for b in pairs[1]] for a in pairs[0]])


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=600, test_size=400, random_state=0)
model = SVC(kernel=intersection).fit(X_train, y_train)
print(f"digits, kernel of histograms: accuracy {model.score(X_test, y_test):.3f}")

words = ["running", "jumping", "singing", "walking", "slowly", "quickly", "sadly", "gladly"]
kind = np.repeat(["verb", "adverb"], 4)
new = ["laughing", "softly", "dancing", "boldly"]
speller = SVC(kernel="precomputed").fit(common_pairs(words, words), kind)
print(dict(zip(new, speller.predict(common_pairs(new, words)).tolist(), strict=True)))
