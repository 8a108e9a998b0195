"""Sums with samples that are not among the columns are those of the kernel matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.gram import foreign
from maxmargin.gram.foreign import add_samples
from maxmargin.kernels import Kernel

KERNELS = ("rbf", "linear", "poly", "sigmoid", "laplacian")


def data(form, n, d=9, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, d))
    return sp.csr_array(np.where(np.abs(X) > 1, X, 0.0)) if form == "sparse" else X


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_are_those_of_the_matrix(name, form, dtype, monkeypatch):
    monkeypatch.setattr(foreign.costs, "STREAM_ROWS", 16)  # several tiles, the last ones not full
    monkeypatch.setattr(foreign.costs, "STREAM_COLUMNS", 64)
    kernel = Kernel(name, gamma=0.1, degree=2, coef0=0.5)
    X, Z = data(form, 150), data(form, 37, seed=1)
    columns = kernel.prepare(X, np.dtype(dtype))
    samples, coef = kernel.prepare(Z, np.dtype(dtype), like=columns), np.random.default_rng(2).normal(size=37)
    for start, stop in ((0, 150), (3, 141), (70, 71), (20, 20)):
        out = np.ones(stop - start)
        add_samples(kernel, samples, kernel.lay_out(columns), coef, start, stop, out)
        wanted = 1.0 + coef @ kernel.block(Z, X[start:stop]) if stop > start else np.empty(0)
        np.testing.assert_allclose(out, wanted, rtol=0, atol=3e-5 if dtype == "float32" else 1e-11)


def test_sums_of_parts_have_the_bits_of_sums_of_all():
    kernel = Kernel("rbf", gamma=0.1)
    X, Z = data("dense", 5000), data("dense", 60, seed=1)
    columns = kernel.prepare(X, np.dtype("float32"))
    samples, coef = kernel.prepare(Z, np.dtype("float32"), like=columns), np.linspace(-1, 1, 60)
    laid_out, whole, parts = kernel.lay_out(columns), np.zeros(5000), np.zeros(5000)
    add_samples(kernel, samples, laid_out, coef, 0, 5000, whole)
    for start, stop in ((0, 1024), (1024, 4096), (4096, 5000)):
        add_samples(kernel, samples, laid_out, coef, start, stop, parts[start:stop])
    np.testing.assert_array_equal(whole, parts)


def test_a_kernel_may_be_a_function():
    kernel = Kernel(lambda A, B: A @ B.T + 1.0)
    X, Z = data("dense", 50), data("dense", 7, seed=1)
    out, coef = np.zeros(50), np.arange(7.0)
    add_samples(kernel, kernel.prepare(Z), kernel.prepare(X), coef, 0, 50, out)
    np.testing.assert_allclose(out, coef @ (Z @ X.T + 1.0), rtol=1e-12)
