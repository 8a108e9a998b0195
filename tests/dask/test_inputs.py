"""Containers of training data: blocks of rows without computing anything."""

import dask
import dask.array as da
import dask.bag
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from maxmargin.dask.inputs import blocks_of
from maxmargin.dask.parts import as_rows
from maxmargin.dask.vectors import check_lengths, joined_vector, known_sizes, vector_blocks

X = np.arange(24.0).reshape(6, 4)


def rows_of(data):
    """All rows of a container, through its blocks."""
    blocks = blocks_of(data)
    rows = dask.compute(*blocks.rows, scheduler="synchronous") if blocks.lazy else blocks.rows
    return [as_rows(row, blocks.dtype, i) for i, row in enumerate(rows)]


@pytest.mark.parametrize(
    "data",
    [
        X,
        X.tolist(),
        X.astype(np.int32),
        np.asfortranarray(X),
        sp.csc_matrix(X),
        sp.coo_array(X),
        pd.DataFrame(X),
        da.from_array(X, chunks=(2, 4)),
        da.from_array(X, chunks=(4, 3)),
        da.from_array(X.astype(object), chunks=(4, 3)),
        da.from_array(X.astype(int), chunks=(4, 3)),
        da.from_array(X, chunks=(2, 2)).map_blocks(sp.csr_matrix),
        da.from_array(X, chunks=(2, 4)).map_blocks(sp.coo_array),
        da.from_array(X, chunks=((0, 3, 0, 3, 0), 4)),
        da.from_array(X, chunks=(2, 4))[da.ones(6, dtype=bool, chunks=2)],  # of unknown sizes
        dd.from_pandas(pd.DataFrame(X), npartitions=2),
    ],
    ids=str,
)
def test_rows_of_every_container_are_the_same_float64(data):
    parts = rows_of(data)
    kinds = {sp.issparse(part) for part in parts}
    assert len(kinds) == 1 and all(part.dtype == np.float64 for part in parts)
    found = sp.vstack(parts).toarray() if kinds == {True} else np.concatenate(parts)
    np.testing.assert_array_equal(found, X)
    assert all(part.format == "csr" if sp.issparse(part) else part.flags.c_contiguous for part in parts)


@pytest.mark.parametrize(
    "data",
    [
        X.astype(np.float32),
        sp.csr_array(X.astype(np.float32)),
        da.from_array(X.astype(np.float32), chunks=(2, 2)),
        pd.DataFrame(X.astype(np.float32)),
        dd.from_pandas(pd.DataFrame(X, dtype="Float32"), npartitions=2),
    ],
    ids=str,
)
def test_float32_stays_float32(data):
    assert {part.dtype for part in rows_of(data)} == {np.dtype(np.float32)}


def test_columns_of_nullable_and_mixed_types_are_numbers():
    frame = pd.DataFrame(
        {
            "a": pd.array([1, 2, 3, 4], dtype="Int64"),
            "b": pd.array([True, False, True, True], dtype="boolean"),
            "c": np.array([0.5, 1.5, 2.5, 3.5], dtype=np.float32),
            "d": pd.array([1.0, None, 3.0, 4.0], dtype="Float64"),
            "e": pd.arrays.SparseArray([0.0, 0.0, 1.0, 0.0]),
            "f": pd.array([1, 2, 3, 4], dtype="int32[pyarrow]"),
        }
    )
    expected = [[1, 1, 0.5, 1, 0, 1], [2, 0, 1.5, np.nan, 0, 2], [3, 1, 2.5, 3, 1, 3], [4, 1, 3.5, 4, 0, 4]]
    for data in (frame, dd.from_pandas(frame, npartitions=2)):
        found = np.concatenate(rows_of(data))
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["x", "y"], "str|object|string"),
        (pd.Categorical(["x", "y"]), "category"),
        (pd.to_datetime(["2020-01-01", "2021-01-01"]), "datetime64"),
    ],
    ids=["text", "category", "date"],
)
def test_a_column_that_is_not_numeric_is_refused_by_name_without_computing(column, kind):
    frame = pd.DataFrame({"fine": [1.0, 2.0], "town": column})
    for data in (frame, dd.from_pandas(frame, npartitions=1)):
        with pytest.raises(ValueError, match=rf"column 'town' \(number 1\) of X has the type .*({kind})"):
            blocks_of(data)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (da.from_array(X[:, 0], chunks=2), ValueError, "Expected 2D array, got 1D array"),
        (X[:, 0], ValueError, "Expected 2D array, got 1D array"),
        (da.from_array(X[None], chunks=2), ValueError, "Expected 2D array, got 3D array"),
        (dd.from_pandas(pd.Series(X[:, 0]), npartitions=2), ValueError, "Expected 2D array, got 1D array"),
        (da.from_array(X * 1j, chunks=2), ValueError, "Complex data not supported"),
        (da.from_array(X.astype("M8[s]"), chunks=2), ValueError, "datetime64.*not numeric"),
        (dask.delayed(X), TypeError, "X must be a dask array or data frame, got a dask Delayed"),
        (dask.bag.from_sequence([1, 2]), TypeError, "got a dask Bag: dask.array.from_delayed"),
        (da.from_array(X, chunks=2).sum(), TypeError, "must be a dask array or data frame"),
        (pd.DataFrame(X, columns=list("abca")), ValueError, "several columns with the name 'a'"),
        (dd.from_pandas(pd.DataFrame(X, columns=list("abca")), npartitions=1), ValueError, "name 'a'"),
        (dd.from_pandas(pd.DataFrame(X), npartitions=1)[0].sum(), TypeError, "got a dask Scalar"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_other_data_are_refused_without_computing(data, error, message):
    with pytest.raises(error, match=message):
        blocks_of(data)


def test_text_in_a_chunk_is_refused_with_its_number():
    data = X.astype(object)
    data[5, 1] = "Paris"
    with pytest.raises(ValueError, match=r"chunk 2 of X is not numeric: .*Paris"):
        rows_of(da.from_array(data, chunks=(2, 4)))


def test_large_local_data_are_cut_into_blocks():
    blocks = blocks_of(np.zeros((4_000, 3_000), np.float32))
    assert blocks.sizes is not None and len(blocks.sizes) == len(blocks.rows) == 2
    assert sum(blocks.sizes) == 4_000 and [row.shape for [row] in blocks.rows] == [
        (n, 3_000) for n in blocks.sizes
    ]


def test_names_of_columns_are_those_of_the_frame():
    frame = pd.DataFrame(X, columns=list("abcd"))
    for data in (frame, dd.from_pandas(frame, npartitions=2)):
        assert blocks_of(data).feature_names.tolist() == list("abcd")
    assert blocks_of(pd.DataFrame(X)).feature_names is None


# -- targets and weights -------------------------------------------------------------------------------

LABELS = np.array(["a", "b", "c", "a", "b", "c"])


def vector_of(y, sizes=(6,), **options):
    blocks = dask.compute(*vector_blocks(y, "y"), scheduler="synchronous")
    return joined_vector(blocks, sizes, "y", **options)


@pytest.mark.parametrize(
    "y",
    [
        LABELS,
        LABELS.tolist(),
        LABELS[:, None],
        pd.Series(LABELS, index=range(6, 0, -1)),
        pd.Series(LABELS, dtype="category"),
        pd.DataFrame({"y": LABELS}),
        pd.array(LABELS, dtype="string"),
        da.from_array(LABELS, chunks=4),
        da.from_array(LABELS[:, None], chunks=2),
        da.from_array(LABELS, chunks=((0, 2, 0, 4),)),
        da.from_array(LABELS, chunks=2)[da.ones(6, dtype=bool, chunks=2)],
        dd.from_pandas(pd.Series(LABELS), npartitions=3),
        dd.from_pandas(pd.Series(LABELS, dtype="category"), npartitions=3),
        dd.from_pandas(pd.DataFrame({"y": LABELS}), npartitions=2),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__}",
)
def test_labels_of_every_container_are_the_same_array(y):
    found = vector_of(y)
    assert isinstance(found, np.ndarray) and found.tolist() == LABELS.tolist()


@pytest.mark.parametrize("kind", ["Int64", "int64[pyarrow]", "boolean", "Float32"])
def test_nullable_targets_become_numbers(kind):
    y = pd.Series([1, 0, 1, 0, 0, 1]).astype(kind)
    for data in (y, dd.from_pandas(y, npartitions=2)):
        found = vector_of(data)
        assert found.dtype.kind == {"I": "i", "i": "i", "b": "b", "F": "f"}[kind[0]]
        assert found.tolist() == [1, 0, 1, 0, 0, 1]


@pytest.mark.parametrize(
    ("y", "value"),
    [
        (np.array([1.0, 2.0, 3.0, np.nan, 5.0, np.nan]), "NaN"),
        (np.array([1.0, 2.0, 3.0, -np.inf, 5.0, np.nan]), "infinity"),
        (np.array(["a", "b", "c", None, "b", "c"], dtype=object), "NaN"),
        (np.array(["a", "b", "c", np.nan, "b", "c"], dtype=object), "NaN"),
    ],
)
def test_missing_targets_are_refused_with_chunk_and_place(y, value):
    with pytest.raises(ValueError, match=rf"y contains {value}, first in chunk 1, value 3\b"):
        vector_of(da.from_array(y, chunks=2))


def test_missing_nullable_targets_are_refused():
    y = pd.Series([1, 0, None, 0], dtype="Int64")
    with pytest.raises(ValueError, match=r"y contains NaN, first in chunk 1, value 2\b"):
        vector_of(dd.from_pandas(y, npartitions=2), (4,))


def test_chunks_of_text_and_of_numbers_are_refused():
    with pytest.raises(ValueError, match="y has the type int64 in chunk 1, and <U1 in chunk 0"):
        joined_vector([np.array(["a"]), np.array([1])], [2], "y")


@pytest.mark.parametrize(
    "y",
    [
        da.from_array(X, chunks=(2, 4)),
        da.from_array(X, chunks=(2, 2)),
        dd.from_pandas(pd.DataFrame(X), npartitions=2),
        X,
    ],
)
def test_targets_with_several_columns_are_refused(y):
    with pytest.raises(ValueError, match="y should be a 1d array"):
        vector_of(y)


def test_a_delayed_object_is_no_vector():
    with pytest.raises(TypeError, match="y must be a dask array or data frame, got a dask Delayed"):
        vector_blocks(dask.delayed(LABELS), "y")


def test_lengths_are_compared_in_total_and_one_by_one_where_sizes_were_unknown():
    check_lengths([2, 2], [1, 3], "y")
    check_lengths([4], [1, 3], "y", one_by_one=True)
    with pytest.raises(
        ValueError, match="y has 4 values and X 4 rows: chunk 0 of y has 2 values, chunk 0 of X 1 rows"
    ):
        check_lengths([2, 2], [1, 3], "y", one_by_one=True)
    with pytest.raises(ValueError, match=r"y has 5 values and X 4 rows\.$"):
        check_lengths([5], [1, 3], "y")


def test_known_sizes_are_those_known_without_computing():
    assert known_sizes(LABELS) == [6] and known_sizes(da.from_array(LABELS, chunks=4)) == [4, 2]
    assert known_sizes(dd.from_pandas(pd.Series(LABELS), npartitions=2)) is None
    assert known_sizes(da.from_array(LABELS, chunks=2)[da.ones(6, dtype=bool, chunks=2)]) is None
