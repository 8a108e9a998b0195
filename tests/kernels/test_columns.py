"""Sparse data with many columns, of which few occur."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import SVC, SVR, AllDistancesSVC, CrammerSingerSVC, IncrementalSVC, OneClassSVM
from maxmargin import _costs as costs
from maxmargin.gram.gram import Gram
from maxmargin.kernels._columns import compact, occurring, product, renumbered
from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import Kernel
from maxmargin.persistence import load_libsvm

KERNELS = ("linear", "poly", "rbf", "sigmoid", "laplacian")
# Of the narrow form of the data in the wide one, which has 2 billion.
PLACES = np.sort(np.random.default_rng(7).choice(2_000_000_000, 60, replace=False))


def narrow(n, seed, columns=60):
    """Rows with some columns that other data do not have."""
    X = sp.random_array((n, columns), density=0.2, rng=np.random.default_rng(seed), format="csr")
    return sp.csr_matrix(X)


def wide(X):
    return sp.csr_matrix((X.data, PLACES[X.indices], X.indptr), shape=(X.shape[0], 2_000_000_000))


def back(X):
    return renumbered(X, PLACES).toarray()[:, :-1]


def test_columns_that_occur_are_found_by_marks_and_by_sorting():
    rng = np.random.default_rng(0)
    for d, n in ((20_000, 50), (10**12, 50), (100_000, 5000)):
        entries = rng.integers(0, d, n)
        X = sp.csr_array((np.ones(n), entries, [0, n]), shape=(1, d))
        np.testing.assert_array_equal(occurring(X), np.unique(entries))


def test_data_with_few_columns_or_most_of_them_are_left_as_they_are():
    assert occurring(sp.csr_array((3, 16_384))) is None
    X = sp.csr_array(np.ones((1, 20_000)))
    assert occurring(X) is None and compact(X) is X and renumbered(X, None) is X


def test_columns_that_others_do_not_have_get_the_last_number():
    X = sp.csr_array(([1.0, 2.0, 3.0, 4.0], [3, 5, 9, 4], [0, 3, 4]), shape=(2, 10**10))
    got = renumbered(X, np.array([3, 9]))
    np.testing.assert_array_equal(got.toarray(), [[1, 3, 2], [0, 0, 4]])
    assert got.indices.dtype == got.indptr.dtype == np.int32
    np.testing.assert_array_equal(renumbered(X, np.zeros(0, np.intp)).toarray(), [[6], [4]])


def test_rows_without_entries_have_no_columns():
    empty = sp.csr_array((3, 10**10))
    assert compact(empty).shape == (3, 1)
    assert product(np.ones((2, 3)), empty).shape == (2, 10**10)


def test_product_is_that_of_the_narrow_data():
    X = narrow(30, 0)
    coef = np.random.default_rng(1).normal(size=(3, 30))
    got = product(coef, wide(X))
    assert got.shape == (3, 2_000_000_000) and got.has_sorted_indices
    np.testing.assert_allclose(back(got), coef @ X.toarray(), rtol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel_values_are_those_of_the_narrow_data(name, dtype):
    kernel = Kernel(name, gamma=0.3, coef0=0.5)
    Z = narrow(40, 0)
    Z = sp.csr_matrix(Z.multiply(np.arange(60) % 3 > 0))  # X has columns that Z does not have
    X = narrow(25, 1)
    values = []
    for a, b in ((X, Z), (wide(X), wide(Z))):
        B = kernel.prepare(b, dtype)
        A = kernel.prepare(a, dtype, like=B)
        out = np.empty((25, 40), dtype)
        kernel.fill(A, kernel.lay_out(B), 0, 40, out, np.arange(25))
        values.append(out)
    np.testing.assert_allclose(values[1], values[0], rtol=1e-5 if dtype == "float32" else 1e-12)
    np.testing.assert_allclose(kernel.diag(kernel.prepare(wide(X))), kernel.diag(kernel.prepare(X)))


@pytest.mark.parametrize("name", KERNELS)
def test_rows_of_a_gram_are_those_of_the_narrow_data(name):
    X, index = narrow(50, 3), np.array([40, 2, 3, 5, 8, 13, 21])
    kernel = Kernel(name, gamma=0.3, coef0=0.5)
    few, many = (Gram(x, kernel, dtype="float64", index=index) for x in (X, wide(X)))
    np.testing.assert_allclose(many.rows(np.arange(7)), few.rows(np.arange(7)), rtol=1e-12)
    some = np.array([0, 4]), np.arange(7), np.linspace(-1, 1, 7)
    np.testing.assert_allclose(many.exact(*some), few.exact(*some), rtol=1e-12, atol=1e-14)
    assert many.X.shape[1] <= 61


def test_gamma_is_that_of_all_columns():
    X = sp.csr_matrix(([1.0, 2.0], ([0, 1], [5, 19_999])), shape=(2, 20_000))
    dense = X.toarray()
    assert resolve_gamma("scale", X) == pytest.approx(1 / (20_000 * dense.var()), rel=1e-10)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "make",
    [SVC, SVR, OneClassSVM, AllDistancesSVC, CrammerSingerSVC, IncrementalSVC],
    ids=lambda m: m.__name__,
)
def test_predictions_and_weights_are_those_of_the_narrow_data(make, kernel):
    X, T = narrow(90, 4), narrow(30, 5)
    y = np.arange(90) % (2 if make is IncrementalSVC else 3)
    options = {"kernel": kernel, "gamma": 0.3} | ({} if make is IncrementalSVC else {"tol": 1e-6})
    few, many = (make(**options).fit(x, y) for x in (X, wide(X)))
    function = "predict" if make is SVR else "decision_function"
    np.testing.assert_allclose(
        getattr(many, function)(wide(T)), getattr(few, function)(T), rtol=1e-5, atol=1e-5
    )
    if kernel == "linear" and make is not IncrementalSVC:
        assert sp.issparse(many.coef_) and many.coef_.shape[1] == 2_000_000_000
        np.testing.assert_allclose(back(many.coef_), few.coef_.toarray(), atol=1e-5)


def test_a_libsvm_model_with_a_huge_index_predicts():
    text = (
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\nnr_sv 1 1\n"
        "SV\n1 1:1\n-1 2147483647:1\n"
    )
    model = load_libsvm(io.BytesIO(text.encode()))
    rows = ([1.0, 1.0, 1.0], ([0, 1, 2], [0, 2147483646, 77]))
    got = model.decision_function(sp.csr_matrix(rows, shape=(3, 2147483647)))
    far = np.exp(-0.5 * 2)
    np.testing.assert_allclose(got, [1 - far, far - 1, 0.0], atol=1e-12)


# Grows by nothing but what the entries take; 200 bytes per column would be 400 GB.
_PROGRAM = """
import io, resource, sys, warnings
import numpy as np
import scipy.sparse as sp
import maxmargin
from maxmargin import persistence
from maxmargin.model_selection import SVMSearchCV

warnings.simplefilter("ignore")

def data(n, d, seed):
    rng = np.random.default_rng(seed)
    rows = [np.unique(np.r_[rng.choice(200, 10) * (d // 200), rng.integers(0, d, 10)]) for _ in range(n)]
    ends = np.cumsum([0, *map(len, rows)])
    return sp.csr_matrix((rng.random(ends[-1]), np.concatenate(rows), ends), shape=(n, d))

def use(name, kernel, d):
    X, T, y = data(200, d, 0), data(50, d, 1), np.arange(200) % (2 if name == "IncrementalSVC" else 3)
    if name == "search":
        model = SVMSearchCV(maxmargin.SVC(kernel=kernel, gamma=0.1), {"C": [1.0, 10.0]}, cv=2)
    else:
        model = getattr(maxmargin, name)(kernel=kernel)
    model.fit(X, y).predict(T)
    getattr(model, "coef_", None)
    file = io.BytesIO()
    persistence.save(model, file)
    file.seek(0)
    persistence.load(file).predict(T)
    if kernel != "laplacian" and name not in ("search", "AllDistancesSVC", "CrammerSingerSVC"):
        file = io.BytesIO()
        persistence.save_libsvm(model, file)
        file.seek(0)
        persistence.load_libsvm(file, n_features=d).predict(T)

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

names = "SVC NuSVC SVR NuSVR OneClassSVM L2OneClassSVM AllDistancesSVC CrammerSingerSVC IncrementalSVC search"
cases = [(name, kernel) for name in names.split() for kernel in ("rbf", "linear", "laplacian")]
for name, kernel in [*cases, ("SVC", "poly"), ("SVC", "sigmoid")]:
    use(name, kernel, 5000)  # loads what has to be compiled
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    # Arrays of zeros that nobody reads take address space only.
    resource.setrlimit(resource.RLIMIT_AS, (size + (1 << 30), resource.RLIM_INFINITY))
    before = peak()
    use(name, kernel, 2_000_000_000)
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(name, kernel, (peak() - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_only_columns_that_occur_cost_memory():
    run = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    grown = [line.split() for line in run.stdout.splitlines()]
    assert len(grown) == 32
    assert all(int(megabytes) <= 40 for *_, megabytes in grown), grown


def test_looking_for_columns_ends_when_most_were_found(monkeypatch):
    X = sp.random_array((3000, 20_000), density=0.002, rng=np.random.default_rng(0), format="csr")
    full = sp.csr_array(sp.vstack([np.ones((1, 20_000)), X]))
    narrow_columns = sp.csr_array((X.data, X.indices // 4, X.indptr), shape=X.shape)
    monkeypatch.setattr(costs, "MARKED_AT_ONCE", 15_000)
    seen = []
    count = np.count_nonzero
    monkeypatch.setattr(np, "count_nonzero", lambda *given: seen.append(1) or count(*given))
    assert occurring(full) is None
    assert len(seen) == 1
    np.testing.assert_array_equal(occurring(narrow_columns), np.unique(narrow_columns.indices))


def test_all_rows_are_not_selected_to_find_their_columns(monkeypatch):
    X = sp.random_array((50, 20_000), density=0.01, rng=np.random.default_rng(0), format="csr")
    expected = compact(X).toarray()
    monkeypatch.setattr(type(X), "__getitem__", lambda *_: pytest.fail("a selection"))
    np.testing.assert_array_equal(compact(X, np.arange(50)[::-1]).toarray(), expected)
