import numpy as np
import pytest
from sklearn.preprocessing import KernelCenterer

from maxmargin import SVC
from maxmargin.model_selection.folds import Folds, kind_of

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
SPLIT = (np.arange(8), np.arange(8, 12))
TWICE = (np.array([0, 0, 1, 5, 7, 7]), np.array([2, 3]))


def test_folds_without_preprocessing_share_one_matrix():
    folds = Folds(1e9)
    first = folds.get(X, Y, 0, SPLIT, None, np.float32, "named")
    other = folds.get(X, Y, 1, SPLIT[::-1], None, np.float32, "named")
    assert other.kernels is first.kernels is not None
    assert Folds(0.0).get(X, Y, 0, SPLIT, None, np.float32, "named").kernels is None


def test_a_matrix_is_not_shared_with_who_needs_more_digits_or_reads_the_data_otherwise():
    folds = Folds(1e9)
    rough = folds.get(X, Y, 0, SPLIT, None, np.float32, "named")
    fine = folds.get(X, Y, 0, SPLIT, None, np.float64, "named")
    assert (rough.kernels.dtype, fine.kernels.dtype) == (np.float32, np.float64)
    frame = X.tolist()
    assert folds.get(frame, Y, 0, SPLIT, None, np.float64, "function").X is frame


@pytest.mark.parametrize("memory", [0.0, 1e9])
@pytest.mark.parametrize("split", [SPLIT, TWICE])
def test_a_given_matrix_is_split_by_rows_and_columns(memory, split):
    K = X @ X.T
    fold = Folds(memory).get(K, Y, 0, split, None, np.float64, "given")
    train, test = fold.rows(pairwise=True)
    np.testing.assert_array_equal(train, K[np.ix_(split[0], split[0])])
    np.testing.assert_array_equal(test, K[np.ix_(split[1], split[0])])


def test_what_cannot_be_shared_is_left_to_scikit_learn():
    folds = Folds(1e9)
    with pytest.raises(NotImplementedError):
        folds.get(X @ X.T, Y, 0, SPLIT, KernelCenterer(), np.float64, "given")
    with pytest.raises(ValueError, match="square"):
        folds.get(X, Y, 0, SPLIT, None, np.float64, "given")


def test_kernels_are_told_apart_by_how_they_read_the_data():
    kernels = ("rbf", "precomputed", np.dot)
    assert [kind_of(SVC(kernel=kernel)) for kernel in kernels] == ["named", "given", "function"]
