"""Gram and View are rows as solvers see them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from maxmargin._compiled.threads import Threads
from maxmargin._types import Rows, Workers
from maxmargin.gram import Gram
from maxmargin.gram.view import View


def members(protocol):
    names = {
        name for base in protocol.__mro__ for name in vars(base) if base.__module__ == "maxmargin._types"
    }
    return sorted(name for name in names if not name.startswith("_"))


def both():
    gram = Gram(np.arange(12.0).reshape(6, 2), gamma=0.5)
    return [gram, gram.view([4, 0, 3])]


def test_the_protocol_names_what_a_solver_uses():
    assert {"add", "block", "count", "diag", "double", "exact", "n", "rows", "table"} <= set(members(Rows))
    assert not {"kernel", "points", "X"} & set(members(Rows))


def test_gram_and_view_have_every_member_of_rows():
    for rows in both():
        missing = [name for name in members(Rows) if not hasattr(rows, name)]
        assert not missing, type(rows)


@pytest.mark.parametrize("kind", [Gram, View])
@pytest.mark.parametrize("name", [m for m in members(Rows) if callable(getattr(Rows, m))])
def test_methods_take_the_arguments_of_the_protocol(kind, name):
    asked = inspect.signature(getattr(Rows, name)).parameters
    given = inspect.signature(getattr(kind, name)).parameters
    assert set(asked) <= set(given)
    assert all(given[extra].default is not inspect.Parameter.empty for extra in set(given) - set(asked))


def test_threads_have_every_member_of_workers():
    missing = [name for name in members(Workers) if not hasattr(Threads(1), name)]
    assert not missing


def test_every_member_of_the_protocol_is_documented():
    assert all(inspect.getdoc(getattr(Rows, name)) for name in members(Rows))


def test_a_view_has_no_part_and_a_precomputed_matrix_needs_none():
    gram, view = both()
    assert view.part(np.array([0, 1])) is None and gram.part(np.array([0, 1])).n == 2
    view.reopen()
    assert Gram(np.eye(3), "precomputed").part(np.array([0, 1])) is None


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [("rbf", 2.0**-48 * 3.0), ("linear", 2.0**-45), (lambda A, B: A @ B.T, 1.0)],
    ids=["exponential", "products", "callable"],
)
def test_accurate_sums_are_wrong_by_the_exponential_or_by_little(kernel, expected):
    gram = Gram(np.arange(12.0).reshape(6, 2), kernel, gamma=0.5, dtype="float64")
    np.testing.assert_array_equal(gram.accurate_bound(np.ones(2), 3.0), [expected] * 2)


@pytest.mark.parametrize("kernel", ["linear", lambda A, B: A @ B.T], ids=["linear", "callable"])
def test_accurate_sums_have_the_digits_of_the_data_whatever_the_precision_of_the_rows(kernel):
    rng = np.random.default_rng(0)
    X, coef = rng.normal(size=(40, 3)), rng.normal(size=40)
    gram = Gram(X, kernel, dtype="float32")
    everything = np.arange(40)
    found = gram.accurate(everything, everything, coef, np.ones(40))
    np.testing.assert_allclose(found, X @ (X.T @ coef), rtol=0, atol=1e-13)
