"""Kernel values against scikit-learn's, whatever the storage of the data."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.metrics import pairwise

from maxmargin import _costs
from maxmargin.kernels.gamma import gamma_of_rows, resolve_gamma
from maxmargin.kernels.given import Given
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.points import Points

GAMMA, DEGREE, COEF0 = 0.3, 3, 0.7
PRODUCTS = ("linear", "poly", "rbf", "sigmoid", "laplacian")
RTOL = {"float32": 1e-5, "float64": 1e-10}


def reference(name, X, Z):
    """Scikit-learn's matrix in float64."""
    X, Z = (sp.csr_matrix(x).astype(np.float64) if sp.issparse(x) else np.float64(x) for x in (X, Z))
    if name == "linear":
        return pairwise.linear_kernel(X, Z, dense_output=True)
    if name == "poly":
        return pairwise.polynomial_kernel(X, Z, degree=DEGREE, gamma=GAMMA, coef0=COEF0)
    if name == "rbf":
        return pairwise.rbf_kernel(X, Z, gamma=GAMMA)
    if name == "sigmoid":
        return pairwise.sigmoid_kernel(X, Z, gamma=GAMMA, coef0=COEF0)
    return pairwise.laplacian_kernel(X, Z, gamma=GAMMA)


def make(name):
    return Kernel(name, gamma=GAMMA, degree=DEGREE, coef0=COEF0)


def filled(kernel, X, Z, dtype):
    """The whole matrix by way of `prepare` and `fill`, as a Gram matrix or a prediction does it."""
    B = kernel.prepare(Z, dtype)
    A = kernel.prepare(X, dtype, like=B)
    out = np.full((A.n, B.n), np.nan, dtype)
    kernel.fill(A, B, 0, B.n, out, np.arange(A.n))
    return out


def assert_near(got, expected, rtol):
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=rtol * scale)


def dense_pair(seed=0, n=23, m=37, d=9):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=(m, d))


def sparse_pair(seed=0, n=23, m=37, d=60, density=0.1, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return tuple(
        sp.csr_matrix(sp.random(k, d, density, format="csr", random_state=rng, dtype=dtype)) for k in (n, m)
    )


# -- values ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("given", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_dense_values_equal_sklearn(name, given, dtype):
    X, Z = (x.astype(given) for x in dense_pair())
    assert_near(filled(make(name), X, Z, dtype), reference(name, X, Z), RTOL[dtype])


@pytest.mark.parametrize("container", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("given", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_csr_values_equal_sklearn(name, given, dtype, container):
    X, Z = (container(x.astype(given)) for x in sparse_pair())
    assert make(name).prepare(Z, dtype).sparse
    assert_near(filled(make(name), X, Z, dtype), reference(name, X, Z), RTOL[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_well_filled_csr_is_laid_out_densely_with_equal_values(name, dtype):
    X, Z = sparse_pair(density=0.6, d=20)
    assert not make(name).prepare(Z, dtype).sparse
    assert_near(filled(make(name), X, Z, dtype), reference(name, X, Z), RTOL[dtype])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_mostly_zero_dense_data_take_the_sparse_path_with_equal_values(name, dtype):
    X, Z = (x.toarray() for x in sparse_pair())
    assert make(name).prepare(Z, dtype).sparse
    assert_near(filled(make(name), X, Z, dtype), reference(name, X, Z), RTOL[dtype])


@pytest.mark.parametrize("name", PRODUCTS)
def test_dense_data_against_sparse_points_and_the_reverse_agree(name):
    S, T = sparse_pair()
    expected = reference(name, S, T)
    D = dense_pair(d=60)[1]
    assert_near(filled(make(name), S.toarray(), T, "float64"), expected, 1e-10)
    assert_near(filled(make(name), S, D, "float64"), reference(name, S.toarray(), D), 1e-10)


@pytest.mark.parametrize("name", PRODUCTS)
def test_block_of_lists_is_float64_and_equals_sklearn(name):
    X, Z = dense_pair(n=4, m=5, d=3)
    got = make(name).block(X.tolist(), Z.tolist())
    assert got.dtype == np.float64
    assert_near(got, reference(name, X, Z), 1e-10)


@pytest.mark.parametrize("name", PRODUCTS)
def test_block_of_integers_equals_that_of_the_same_floats(name):
    X, Z = (np.rint(x * 3).astype(np.int64) for x in dense_pair())
    assert_near(make(name).block(X, Z), reference(name, X, Z), 1e-10)
    assert_near(make(name).block(sp.csr_matrix(X), sp.csr_matrix(Z)), reference(name, X, Z), 1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_blocks_that_cross_tile_borders_equal_sklearn(name, dtype, storage):
    n, m = 300, 2500
    assert n > _costs.TILE_ROWS and m > _costs.TILE_COLUMNS
    X, Z = dense_pair(n=n, m=m, d=5) if storage == "dense" else sparse_pair(n=n, m=m, d=200, density=0.03)
    assert_near(filled(make(name), X, Z, dtype), reference(name, X, Z), RTOL[dtype])


@pytest.mark.parametrize("d", [1, 9000, 70000])
def test_panels_of_narrow_and_very_wide_sparse_data_equal_sklearn(d):
    rng = np.random.default_rng(0)
    X, Z = (sp.csr_matrix(sp.random(n, d, min(0.2, 20 / d), random_state=rng)) for n in (20, 40))
    assert_near(filled(make("rbf"), X, Z, "float64"), reference("rbf", X, Z), 1e-10)


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_poly_of_every_degree_equals_the_formula(degree):
    X, Z = dense_pair()
    expected = (GAMMA * (X @ Z.T) + COEF0) ** degree
    for dtype in RTOL:
        kernel = Kernel("poly", gamma=GAMMA, degree=degree, coef0=COEF0)
        assert_near(filled(kernel, X, Z, dtype), expected, RTOL[dtype])


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_values_far_below_the_smallest_float32_are_tiny_and_not_negative(name):
    X, Z = dense_pair()
    values = filled(Kernel(name, gamma=1e4), X, Z, "float32")
    assert (values >= 0).all() and values.max() < 1e-30


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_gamma_zero_gives_ones(name):
    X, Z = dense_pair()
    assert (filled(Kernel(name, gamma=0.0), X, Z, "float32") == 1).all()


# -- odd CSR -----------------------------------------------------------------------------------


def with_int64_indices(X):
    out = sp.csr_matrix(X.shape, dtype=X.dtype)
    out.data, out.indices, out.indptr = X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return out


def with_explicit_zeros(X):
    coo = X.tocoo()
    rows = np.concatenate([coo.row, np.arange(X.shape[0])])
    columns = np.concatenate([coo.col, np.full(X.shape[0], X.shape[1] - 1)])
    keep = np.asarray(X[:, X.shape[1] - 1].todense()).ravel() == 0
    keep = np.concatenate([np.ones(coo.nnz, bool), keep])
    data = np.concatenate([coo.data, np.zeros(X.shape[0])])
    out = sp.csr_matrix((data[keep], (rows[keep], columns[keep])), shape=X.shape)
    assert (out.data == 0).any()
    return out


def with_unsorted_indices(X):
    out = X.copy()
    for r in range(X.shape[0]):
        part = slice(X.indptr[r], X.indptr[r + 1])
        out.indices[part], out.data[part] = X.indices[part][::-1], X.data[part][::-1]
    out.has_sorted_indices = False
    return out


def with_duplicates(X):
    out = sp.csr_matrix(X.shape, dtype=X.dtype)
    out.data = np.repeat(X.data, 2) * np.tile([0.25, 0.75], X.nnz)
    out.indices, out.indptr = np.repeat(X.indices, 2), 2 * X.indptr
    assert not out.has_canonical_format
    return out


ODD = {
    "int64 indices": with_int64_indices,
    "explicit zeros": with_explicit_zeros,
    "unsorted indices": with_unsorted_indices,
    "duplicate entries": with_duplicates,
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("name", PRODUCTS)
def test_odd_csr_has_the_values_of_the_plain_one(name, odd, dtype):
    X, Z = sparse_pair(density=0.06)
    expected = reference(name, X, Z)
    oddX, oddZ = ODD[odd](X), ODD[odd](Z)
    kernel = make(name)
    assert kernel.prepare(oddZ, dtype).sparse
    assert_near(filled(kernel, oddX, oddZ, dtype), expected, RTOL[dtype])
    assert_near(kernel.diag(kernel.prepare(oddX, dtype)), np.diag(reference(name, X, X)), RTOL[dtype])


@pytest.mark.parametrize("odd", ["duplicate entries", "unsorted indices"])
def test_preparing_odd_csr_leaves_the_users_matrix_alone(odd):
    X = ODD[odd](sparse_pair()[0])
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    make("rbf").prepare(X)
    for old, new in zip(before, (X.data, X.indices, X.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("odd", ODD)
def test_odd_csr_that_is_laid_out_densely_has_the_values_of_the_plain_one(odd):
    X, Z = sparse_pair(density=0.6, d=20)
    got = filled(make("rbf"), ODD[odd](X), ODD[odd](Z), "float64")
    assert_near(got, reference("rbf", X, Z), 1e-10)


@pytest.mark.parametrize("name", PRODUCTS)
def test_empty_csr_rows_are_zero_vectors(name):
    X, Z = (sp.vstack([x, sp.csr_matrix((3, x.shape[1]))]).tocsr() for x in sparse_pair())
    assert_near(filled(make(name), X, Z, "float64"), reference(name, X, Z), 1e-10)


# -- centring ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("given", ["float32", "float64"])
def test_offset_data_keep_float32_values_accurate(name, given):
    rng = np.random.default_rng(0)
    X, Z = ((1e6 + rng.normal(size=(n, 6))).astype(given) for n in (40, 60))
    difference = X[:, None].astype(np.float64) - Z[None].astype(np.float64)
    distance = (difference**2).sum(axis=2) if name == "rbf" else np.abs(difference).sum(axis=2)
    got = filled(Kernel(name, gamma=0.1), X, Z, "float32")
    np.testing.assert_allclose(got, np.exp(-0.1 * distance), rtol=1e-5, atol=1e-6)


def test_centring_leaves_the_users_array_alone():
    X = dense_pair()[0] + 100
    before = X.copy()
    points = make("rbf").prepare(X, np.float64)
    assert points.centre is not None
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("name", ["linear", "poly", "sigmoid"])
def test_kernels_that_see_a_translation_are_not_centred(name):
    assert make(name).prepare(dense_pair()[0] + 5).centre is None


# -- diag, take, fill --------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_diag_is_float64_and_equals_the_diagonal(name, storage, dtype):
    X = dense_pair()[0] if storage == "dense" else sparse_pair()[0]
    got = make(name).diag(make(name).prepare(X, dtype))
    assert got.dtype == np.float64
    assert_near(got, np.diag(reference(name, X, X)), RTOL[dtype])


def test_diag_of_a_callable_and_of_a_given_matrix_equal_the_diagonal():
    X = dense_pair()[0]
    K = X @ X.T
    kernel = Kernel(lambda a, b: a @ b.T)
    np.testing.assert_allclose(kernel.diag(kernel.prepare(X)), np.diag(K))
    given = Kernel("precomputed")
    np.testing.assert_array_equal(given.diag(given.prepare(K)), np.diag(K))


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_taken_points_have_the_values_of_their_rows(name, storage):
    X, Z = dense_pair() if storage == "dense" else sparse_pair()
    index = np.array([5, 0, 5, 36, 2])
    kernel = make(name)
    B = kernel.prepare(Z)
    A, some = kernel.prepare(X, like=B), B.take(index)
    assert isinstance(some, Points) and some.n == 5
    out = np.empty((A.n, 5))
    kernel.fill(A, some, 0, 5, out, np.arange(A.n))
    assert_near(out, reference(name, X, Z[index]), 1e-10)
    back = np.empty((5, A.n))
    kernel.fill(some, A, 0, A.n, back, np.arange(5))
    assert_near(back, reference(name, Z[index], X), 1e-10)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_prepare_with_index_equals_taking_the_rows_first(name, storage):
    X = dense_pair()[0] if storage == "dense" else sparse_pair()[0]
    index = np.array([7, 3, 3, 19])
    kernel = make(name)
    points = kernel.prepare(X, np.float64, index=index)
    out = np.empty((4, 4))
    kernel.fill(points, points, 0, 4, out, np.arange(4))
    assert_near(out, reference(name, X[index], X[index]), 1e-10)


CASES = [*PRODUCTS, "precomputed", "callable"]


def case(name, storage="dense"):
    """A kernel, two sets of points and their matrix."""
    X, Z = dense_pair() if storage == "dense" else sparse_pair()
    if name == "precomputed":
        K = reference("linear", X, Z)
        B = Points(Given(np.empty((0, K.shape[1])), np.arange(K.shape[1])), K.shape[1])
        return Kernel(name), Kernel(name).prepare(K, like=B), B, K
    if name == "callable":
        kernel = Kernel(lambda a, b: pairwise.rbf_kernel(a, b, gamma=GAMMA))
        return kernel, kernel.prepare(X), kernel.prepare(Z), reference("rbf", X, Z)
    kernel = make(name)
    B = kernel.prepare(Z)
    return kernel, kernel.prepare(X, like=B), B, reference(name, X, Z)


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("c0", "c1"), [(0, 37), (0, 10), (10, 29), (36, 37), (29, 37)])
def test_fill_writes_the_asked_columns_of_the_asked_slots_and_nothing_else(name, storage, c0, c1):
    kernel, A, B, K = case(name, storage)
    slots = np.random.default_rng(0).permutation(40)[: A.n]
    out = np.full((40, B.n), np.nan)
    kernel.fill(A, B, c0, c1, out, slots)
    assert_near(out[slots, c0:c1], K[:, c0:c1], 1e-10)
    written = np.zeros(out.shape, bool)
    written[slots, c0:c1] = True
    assert np.isnan(out[~written]).all()


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", CASES)
def test_fill_with_first_shifts_the_columns(name, storage):
    kernel, A, B, K = case(name, storage)
    out = np.full((A.n, 19), np.nan)
    kernel.fill(A, B, 10, 29, out, np.arange(A.n), first=10)
    assert_near(out, K[:, 10:29], 1e-10)
    wide = np.full((A.n, 21), np.nan)
    kernel.fill(A, B, 10, 29, wide, np.arange(A.n), first=8)
    assert_near(wide[:, 2:], K[:, 10:29], 1e-10)
    assert np.isnan(wide[:, :2]).all()


@pytest.mark.parametrize("storage", ["dense", "csr"])
@pytest.mark.parametrize("name", [*PRODUCTS, "precomputed"])
def test_fill_of_an_empty_column_range_writes_nothing(name, storage):
    kernel, A, B, _ = case(name, storage)
    out = np.full((A.n, B.n), np.nan)
    kernel.fill(A, B, 12, 12, out, np.arange(A.n))
    assert np.isnan(out).all()


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("storage", ["dense", "csr"])
def test_fill_of_no_rows_writes_nothing(name, storage):
    kernel, A, B, _ = case(name, storage)
    out = np.full((3, B.n), np.nan)
    kernel.fill(A.take(np.arange(0)), B, 0, B.n, out, np.arange(0))
    assert np.isnan(out).all()


def test_fill_does_not_change_the_points():
    for name in PRODUCTS:
        kernel, A, B, _ = case(name)
        before = A.X.copy(), B.X.copy()
        out = np.empty((A.n, B.n))
        kernel.fill(A, B, 0, B.n, out, np.arange(A.n))
        np.testing.assert_array_equal(A.X, before[0])
        np.testing.assert_array_equal(B.X, before[1])


def test_a_given_float64_matrix_is_not_copied():
    K = np.eye(4)
    assert Kernel("precomputed").prepare(K).X.K is K


def test_a_given_matrix_with_index_is_cut_in_rows_and_columns():
    K = np.arange(16.0).reshape(4, 4)
    points = Kernel("precomputed").prepare(K, index=np.array([2, 0]))
    got = points.X.block(np.arange(2), np.arange(2))
    np.testing.assert_array_equal(got, K[np.ix_([2, 0], [2, 0])])


# -- gamma -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["float32", "float64"])
@pytest.mark.parametrize("gamma", ["scale", "auto", 0.37])
@pytest.mark.parametrize("storage", ["dense", "csr_matrix", "csr_array", "constant"])
def test_gamma_equals_that_of_sklearns_svc(storage, gamma, given):
    X = sparse_pair(n=30)[0].astype(given)
    if storage == "dense":
        X = dense_pair(n=30)[0].astype(given)
    elif storage == "csr_array":
        X = sp.csr_array(X)
    elif storage == "constant":
        X = np.full((30, 4), 3.0, given)
    y = np.arange(30) % 2
    expected = svm.SVC(gamma=gamma).fit(X, y)._gamma
    assert resolve_gamma(gamma, X) == pytest.approx(expected, rel=1e-12)


def test_gamma_scale_of_offset_float32_data_is_summed_in_float64():
    X = (1000 + np.random.default_rng(0).normal(size=(5000, 3))).astype(np.float32)
    assert resolve_gamma("scale", X) == pytest.approx(1 / (3 * X.astype(np.float64).var()), rel=1e-9)


def test_gamma_of_lists_and_a_constant_is_a_plain_float():
    for gamma, expected in [("auto", 0.5), ("scale", 1.0), (2, 2.0)]:
        value = resolve_gamma(gamma, [[1.0, 1.0], [1.0, 1.0]])
        assert type(value) is float and value == expected


@pytest.mark.parametrize("largest_copy", [0, 1 << 26])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, np.ones_like, lambda X: sp.csr_array(0.0 * X)])
def test_gamma_of_some_rows_is_that_of_their_copy(form, largest_copy, monkeypatch):
    monkeypatch.setattr("maxmargin._costs.STREAMED_BYTES", largest_copy)
    monkeypatch.setattr("maxmargin._costs.COPIED_VALUES", 100)
    rng = np.random.default_rng(0)
    X = form(np.where(rng.random((300, 7)) < 0.3, rng.normal(3.0, size=(300, 7)), 0.0))
    kept = np.flatnonzero(np.arange(300) % 3)
    for gamma in ("scale", "auto", 0.3):
        assert gamma_of_rows(gamma, X, kept) == pytest.approx(resolve_gamma(gamma, X[kept]), rel=1e-12)


def test_an_unknown_gamma_is_refused():
    with pytest.raises(ValueError, match="gamma must be"):
        resolve_gamma("automatic", [[1.0]])


# -- mistakes ----------------------------------------------------------------------------------


def test_a_degree_that_is_not_an_integer_is_refused():
    with pytest.raises(ValueError, match=r"degree must be an integer, got 2\.5"):
        Kernel("poly", degree=2.5)


def test_an_unknown_kernel_is_refused_and_the_known_ones_are_named():
    with pytest.raises(ValueError, match=r"Unknown kernel 'gauss'.*rbf.*callable"):
        Kernel("gauss")


@pytest.mark.parametrize(
    "wrong", [lambda a, b: np.ones((len(b), len(a))), lambda a, b: np.ones(len(a)), lambda a, b: 1.0]
)
def test_a_callable_that_returns_a_wrong_shape_is_refused(wrong):
    with pytest.raises(ValueError, match="returned an array of shape"):
        Kernel(wrong).block(np.zeros((2, 1)), np.zeros((3, 1)))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_callable_that_returns_nan_or_infinity_is_refused(bad):
    def kernel(a, b):
        K = a @ b.T
        K[-1, -1] = bad
        return K

    with pytest.raises(ValueError, match="NaN or infinity"):
        Kernel(kernel).block(*dense_pair())


def test_a_callable_may_return_a_sparse_matrix():
    X, Z = sparse_pair()
    got = Kernel(lambda a, b: a @ b.T).block(X, Z)
    assert isinstance(got, np.ndarray)
    np.testing.assert_allclose(got, (X @ Z.T).toarray())


def test_a_callable_gets_the_samples_as_they_were_given():
    def common(a, b):
        assert all(isinstance(s, str) for s in [*a, *b])
        return [[len(set(s) & set(t)) for t in b] for s in a]

    words, others = ["abc", "abd", "xyz"], ["ab", "z"]
    got = Kernel(common).block(words, others)
    np.testing.assert_array_equal(got, [[2, 0], [2, 0], [0, 1]])
    kernel = Kernel(common)
    np.testing.assert_array_equal(kernel.diag(kernel.prepare(words)), [3, 3, 3])


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("value", [0.1, -1e-9, 1e8 / 3])
def test_gamma_of_data_without_variance_is_one(layout, value):
    assert resolve_gamma("scale", layout(np.full((13, 1), value))) == 1.0


def test_gamma_of_sparse_data_is_that_of_the_same_dense_data():
    X = 1e4 + np.random.default_rng(0).normal(size=(50, 4))
    X[::3, 1] = 0.0
    assert resolve_gamma("scale", sp.csr_array(X)) == pytest.approx(resolve_gamma("scale", X), rel=1e-12)


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_scale_counts_a_row_as_often_as_its_weight_says(layout, shift):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3)) + shift
    weight = rng.integers(1, 5, 20)
    expected = resolve_gamma("scale", np.repeat(X, weight, axis=0))
    assert resolve_gamma("scale", layout(X), weight.astype(float)) == pytest.approx(expected, rel=1e-6)


def test_gamma_of_entries_that_are_stored_in_parts_is_that_of_their_sums():
    X = sp.csr_matrix(([1.0, 1.0, 3.0, 2.0], [0, 0, 1, 1], [0, 2, 3, 4]), shape=(3, 2))
    assert resolve_gamma("scale", X) == pytest.approx(resolve_gamma("scale", X.toarray()), rel=1e-14)
    assert X.nnz == 4  # the user's matrix is left alone


def test_equal_weights_do_not_change_scale():
    X = np.random.default_rng(0).normal(size=(20, 3))
    assert resolve_gamma("scale", X, np.full(20, 0.3)) == resolve_gamma("scale", X)


@pytest.mark.parametrize("storage", ["dense", "float32", "fortran", "csr"])
def test_gamma_of_large_data_is_computed_in_parts_without_a_copy(storage, monkeypatch):
    X = 5.0 + np.random.default_rng(0).normal(size=(3000, 40))
    X = X.astype(np.float32) if storage == "float32" else X
    expected = 1 / (40 * X.astype(np.float64).var())
    X = sp.csr_matrix(X) if storage == "csr" else np.asfortranarray(X) if storage == "fortran" else X
    monkeypatch.setattr(_costs, "COPIED_VALUES", 1 << 10)
    resolve_gamma("scale", X)
    tracemalloc.start()
    assert resolve_gamma("scale", X) == pytest.approx(expected, rel=1e-12)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 0.2 * 8 * 3000 * 40
