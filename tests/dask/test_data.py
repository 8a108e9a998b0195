"""Training data on workers: loaded, aligned, checked before training, and cut into chunks."""

from uuid import uuid4

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from maxmargin.dask import data as module
from maxmargin.dask.data import TrainingData, rows_known
from maxmargin.dask.parts import joined

pytestmark = pytest.mark.timeout(300)

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 4))
LABELS = np.where(X[:, 0] > 0, "right", "left")
WEIGHTS = rng.random(60)
UNKNOWN = da.from_array(X, chunks=(20, 4))[da.ones(60, dtype=bool, chunks=20)]
FRAME = pd.DataFrame(X, columns=list("abcd"), index=rng.permutation(60))


def loaded(client, *arguments):
    data = TrainingData.load(client, *arguments)
    rows = joined(client.gather(data.parts)) if client is not None else joined(data.parts)
    return data, rows.toarray() if sp.issparse(rows) else rows


@pytest.mark.parametrize(
    ("rows", "y", "weights"),
    [
        (da.from_array(X, chunks=(20, 4)), da.from_array(LABELS, chunks=20), None),
        (da.from_array(X, chunks=(20, 3)), da.from_array(LABELS, chunks=7), da.from_array(WEIGHTS, chunks=9)),
        (da.from_array(X, chunks=((0, 30, 0, 30), 4)), LABELS, WEIGHTS),
        (da.from_array(X, chunks=(-1, -1)), pd.Series(LABELS), WEIGHTS.tolist()),
        (UNKNOWN, da.from_array(LABELS, chunks=20), da.from_array(WEIGHTS, chunks=30)),
        (X, da.from_array(LABELS, chunks=20), da.from_array(WEIGHTS, chunks=9)),
        (X, LABELS, WEIGHTS),
        (
            dd.from_pandas(FRAME, npartitions=3, sort=False),
            dd.from_pandas(pd.DataFrame({"y": LABELS}, index=FRAME.index), npartitions=3, sort=False),
            WEIGHTS,
        ),
        (dd.from_pandas(FRAME, npartitions=3, sort=False), LABELS, da.from_array(WEIGHTS, chunks=11)),
        (da.from_array(X, chunks=(20, 2)).map_blocks(sp.csr_matrix), LABELS[:, None], None),
    ],
    ids=["equal-chunks", "other-chunks", "empty-chunks", "one-chunk", "unknown", "local-X", "local", "frame",
         "frame-local-y", "sparse"],
)  # fmt: skip
def test_rows_targets_and_weights_stay_together(client, rows, y, weights):
    data, found = loaded(client, rows, y, weights)
    np.testing.assert_array_equal(found, X)
    assert data.shape == (60, 4) and data.sizes.sum() == 60 and data.y.tolist() == LABELS.tolist()
    if weights is None:
        assert data.weight is None
    else:
        np.testing.assert_array_equal(data.weight, WEIGHTS)
    assert data.summary.variance == pytest.approx(
        X[data.weight > 0 if weights is not None else slice(None)].var()
    )


def test_data_load_in_this_process_without_a_client():
    data, found = loaded(None, da.from_array(X, chunks=(20, 3)), da.from_array(LABELS, chunks=7), None)
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(data.here(), X)
    assert data.y.tolist() == LABELS.tolist()


def test_rows_without_weight_do_not_count_for_statistics(client):
    weights = WEIGHTS * (np.arange(60) % 3 > 0)
    data, found = loaded(client, da.from_array(X, chunks=(20, 4)), None, weights)
    np.testing.assert_array_equal(found, X)
    assert data.summary.variance == pytest.approx(X[weights > 0].var())


def test_one_number_is_the_weight_of_all_rows(client):
    data, _ = loaded(client, da.from_array(X, chunks=(20, 4)), LABELS, 2.0)
    np.testing.assert_array_equal(data.weight, np.full(60, 2.0))


def with_value(value, form):
    bad = X.copy()
    bad[45, 2] = value
    array = da.from_array(bad, chunks=(20, 4))
    if form == "frame":
        return dd.from_pandas(pd.DataFrame(bad, columns=["a", "b", "height", "d"]), npartitions=3)
    return array.map_blocks(sp.csr_matrix) if form == "sparse" else array


@pytest.mark.parametrize("form", ["dense", "sparse", "frame"])
@pytest.mark.parametrize(("value", "kind"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_values_that_are_not_finite_are_refused_with_chunk_row_and_column(client, form, value, kind):
    name = r" \('height'\)" if form == "frame" else ""
    message = rf"chunk 2 \(rows 40 to 59\) of X contains {kind}, first in row 45, column 2{name}: impute"
    with pytest.raises(ValueError, match=message):
        TrainingData.load(client, with_value(value, form), LABELS)


@pytest.mark.parametrize(
    ("rows", "y", "message"),
    [
        (da.from_array(X, chunks=(20, 4)), LABELS[:59], r"y has 59 values and X 60 rows\.$"),
        (
            da.from_array(X, chunks=(20, 4)),
            da.from_array(LABELS[:59], chunks=20),
            "y has 59 values and X 60 rows: chunk 2 of y has 19 values, chunk 2 of X 20 rows",
        ),
        (
            UNKNOWN,
            da.from_array(LABELS, chunks=((10, 30, 20),)),
            "chunk 0 of y has 10 values, chunk 0 of X 20 rows",
        ),
        (UNKNOWN, LABELS[:59], r"y has 59 values and X 60 rows\.$"),
    ],
)
def test_targets_of_another_length_are_refused_with_the_chunk(client, rows, y, message):
    with pytest.raises(ValueError, match=message):
        TrainingData.load(client, rows, y)


def test_lengths_that_are_known_to_differ_are_refused_before_anything_is_computed(client):
    def never(block):
        raise AssertionError

    rows = da.from_array(X, chunks=(20, 4)).map_blocks(never, dtype=float, meta=np.empty((0, 0)))
    with pytest.raises(ValueError, match="sample_weight has 5 values and X 60 rows"):
        TrainingData.load(client, rows, LABELS, np.ones(5))


@pytest.mark.parametrize("weights", [-np.ones(60), np.zeros(60)])
def test_weights_that_leave_no_row_are_refused(client, weights):
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        TrainingData.load(client, da.from_array(X, chunks=(20, 4)), LABELS, da.from_array(weights, chunks=20))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (da.from_array(X[:0], chunks=(20, 4)), "X has no rows"),
        (UNKNOWN[UNKNOWN[:, 0] > 100.0], "X has no rows"),
        (dd.from_pandas(FRAME, npartitions=2, sort=False).query("a > 100"), "X has no rows"),
        (X[:0], "X has no rows"),
        (da.from_array(X[:, :0], chunks=(20, 0)), "X has no columns"),
    ],
    ids=["array", "unknown", "frame", "local", "columns"],
)
def test_nothing_is_refused(client, rows, message):
    with pytest.raises(ValueError, match=message):
        TrainingData.load(client, rows)


@pytest.mark.parametrize("with_client", [True, False])
def test_an_error_of_the_users_own_task_is_raised(client, with_client):
    def fail(block, block_info=None):
        if block_info[0]["chunk-location"][0] == 1:
            raise ZeroDivisionError("in my own function")
        return block

    rows = da.from_array(X, chunks=(20, 4)).map_blocks(fail, dtype=float, meta=np.empty((0, 0)))
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(ZeroDivisionError, match="in my own function") as caught,
    ):
        TrainingData.load(client if with_client else None, rows, LABELS)
    if with_client:
        assert caught.value.__notes__ == ["This was raised while chunk 1 of X was computed."]


@pytest.mark.parametrize("form", ["arrays", "frames"])
def test_what_X_and_y_have_in_common_is_read_once(client, tmp_path, form):
    def read(i):
        (tmp_path / f"{i}-{uuid4()}").touch()
        return pd.DataFrame(X[20 * i : 20 * i + 20]).assign(y=WEIGHTS[20 * i : 20 * i + 20])

    if form == "frames":
        both = dd.from_map(read, range(3), meta=pd.DataFrame(X[:0]).assign(y=WEIGHTS[:0]))
        arguments = both[[0, 1, 2, 3]], both["y"]
    else:
        blocks = [dask.delayed(lambda i: read(i).to_numpy())(i) for i in range(3)]
        array = da.concatenate([da.from_delayed(block, (20, 5), dtype=float) for block in blocks])
        arguments = array[:, :4], array[:, 4]
    data, found = loaded(client, *arguments)
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(data.y, WEIGHTS)
    assert sorted(path.name[0] for path in tmp_path.iterdir()) == ["0", "1", "2"]


def test_persisted_collections_are_used_where_they_are(client):
    rows = client.persist(da.from_array(X, chunks=(20, 4)))
    data, found = loaded(client, rows, client.persist(da.from_array(LABELS, chunks=20)))
    np.testing.assert_array_equal(found, X)
    assert data.y.tolist() == LABELS.tolist()


def test_many_small_chunks_are_merged(client, monkeypatch):
    many = np.arange(1000.0)[:, None] * [1.0, -1.0]
    monkeypatch.setattr(module, "_FEW_ROWS", 300)
    data, found = loaded(client, da.from_array(many, chunks=(20, 2)), many[:, 0])
    np.testing.assert_array_equal(found, many)
    assert data.sizes.tolist() == [300, 300, 300, 100] and len(data.parts) == 4


def test_large_chunks_stay_as_they_are(client, monkeypatch):
    monkeypatch.setattr(module, "_FEW_ROWS", 10)
    data, found = loaded(client, da.from_array(X, chunks=((30, 2, 1, 27), 4)), LABELS)
    np.testing.assert_array_equal(found, X)
    assert data.sizes.tolist() == [30, 3, 27]


@pytest.mark.parametrize("k", [1, 3, 7, 60, 100])
def test_pieces_are_all_rows_in_order_in_nearly_equal_chunks(k):
    data = TrainingData.load(None, da.from_array(X, chunks=((7, 20, 0, 33), 4)), LABELS)
    pieces = data.pieces(k)
    sizes = [sum(stop - start for _, start, stop in piece) for piece in pieces]
    assert len(pieces) == min(k, 60) and max(sizes) - min(sizes) <= 1
    rows = [part[start:stop] for piece in pieces for part, start, stop in piece]
    np.testing.assert_array_equal(np.concatenate(rows), X)


def test_rows_are_known_only_without_computing():
    assert rows_known(da.from_array(X, chunks=7)) == 60
    assert rows_known(UNKNOWN) is rows_known(dd.from_pandas(FRAME, npartitions=2, sort=False)) is None
