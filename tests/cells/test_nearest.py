"""The nearest centre is that of exact distances, whatever the blocks, the type and the range of values."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.cells import nearest
from maxmargin.cells.nearest import nearest_centres


def exact(X, centres):
    X = X.toarray() if sp.issparse(X) else X
    return np.array([np.square(row - centres).sum(axis=1).argmin() for row in X.astype(np.float64)])


def drawn(n=400, k=30, d=5, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(k, d))


@pytest.mark.parametrize("convert", [np.asarray, np.float32, sp.csr_matrix, np.asfortranarray])
def test_it_is_the_centre_with_the_least_distance(convert):
    X, centres = drawn()
    X = convert(X)
    assert np.array_equal(nearest_centres(X, centres).own, exact(X, centres))


@pytest.mark.parametrize(("scale", "shift"), [(1e-20, 0.0), (1e30, 0.0), (1.0, 1e7), (1e-6, 1.0)])
def test_it_is_exact_for_values_that_float32_does_not_tell_apart(scale, shift):
    X, centres = (scale * part + shift for part in drawn())
    assert np.array_equal(nearest_centres(X, centres).own, exact(X, centres))


def test_of_equal_distances_the_first_centre_counts():
    X = np.array([[0.0, 1.0], [0.0, -3.0], [2.0, 0.0]])
    centres = np.array([[5.0, 5.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
    assert nearest_centres(X, centres).own.tolist() == [1, 1, 2]


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_blocks_threads_and_neighbouring_rows_do_not_matter(monkeypatch, convert):
    X, centres = drawn(seed=1)
    X = np.round(X)  # many rows that are nearly as far from two centres
    centres = np.round(2 * centres) / 2
    X = convert(X)
    whole = nearest_centres(X, centres, two=True)
    monkeypatch.setattr(nearest, "_BLOCK", 7 * len(centres))
    monkeypatch.setattr(nearest, "_STEP", 50)
    parts = nearest_centres(X, centres, two=True, n_jobs=2)
    rows = [nearest_centres(X[i : i + 1], centres, two=True) for i in range(X.shape[0])]
    for a, b, c in zip(whole, parts, zip(*rows, strict=True), strict=True):
        assert np.array_equal(a, b) and np.array_equal(a, np.concatenate(c))


def test_the_second_centre_and_the_distance_from_the_border_are_exact():
    X, centres = drawn()
    found = nearest_centres(X, centres, two=True)
    order = np.argsort(np.square(X[:, None] - centres).sum(axis=2), axis=1)
    assert np.array_equal(found.second, order[:, 1])
    first, second = centres[order[:, 0]], centres[order[:, 1]]
    normal = (first - second) / np.linalg.norm(first - second, axis=1, keepdims=True)
    np.testing.assert_allclose(found.far, ((X - (first + second) / 2) * normal).sum(axis=1), atol=1e-12)


def test_one_centre_has_all_rows_and_there_is_no_second():
    X, centres = drawn(k=1)
    found = nearest_centres(X, centres, two=True)
    assert not found.own.any() and found.second is None and found.far is None
