"""Reading and writing data files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from maxmargin.data import DataError, Table, read, write

IRIS = load_iris()
NAMES = [name.replace(" (cm)", "") for name in IRIS.feature_names]
SPECIES = IRIS.target_names[IRIS.target]


def table(labels=SPECIES, names=NAMES, X=IRIS.data):
    return Table(X, labels, names, "species")


def source(text):
    return io.BytesIO(text.encode() if isinstance(text, str) else text)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_what_was_written_is_read_again_with_names_and_text(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"iris.{suffix}"
    write(table(), file)
    again = read(file)
    np.testing.assert_array_equal(again.X, IRIS.data)
    np.testing.assert_array_equal(again.y, SPECIES)
    assert again.names == NAMES


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "svm"])
def test_integer_labels_stay_integers(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    file = tmp_path / f"iris.{suffix}"
    write(table(IRIS.target), file)
    again = read(file)
    assert again.y.dtype.kind == "i"
    np.testing.assert_array_equal(again.y, IRIS.target)
    np.testing.assert_array_equal(again.X, IRIS.data)


@pytest.mark.parametrize("suffix", ["npz", "svm"])
def test_sparse_data_stay_sparse(tmp_path, suffix):
    X = sp.random_array((200, 50), density=0.05, rng=np.random.default_rng(0)).tocsr()
    file = tmp_path / f"some.{suffix}"
    write(Table(X, np.arange(200) % 2), file)
    again = read(file, width=50)
    assert sp.issparse(again.X)
    np.testing.assert_allclose(again.X.toarray(), X.toarray(), rtol=1e-15)  # 16 digits in the text


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_files_are_read(pack):
    assert read(source(pack(b"1 1:2 2:3\n-1 2:1\n"))).y.tolist() == [1, -1]


def test_damaged_compressed_file_is_an_error():
    with pytest.raises(DataError, match="gzip data are damaged"):
        read(source(gzip.compress(b"1 1:2\n" * 100)[:-20]))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_delimiters_are_found(delimiter):
    got = read(source("a,b,c\n1,2,x\n3,4,y\n".replace(",", delimiter)))
    assert got.names == ["a", "b"] and got.target == "c" and got.y.tolist() == ["x", "y"]


def test_csv_without_names_takes_the_last_column_as_target():
    got = read(source("1.5,2,0\n3,4,1\n"))
    assert got.names is None and got.target == "2" and got.guessed
    np.testing.assert_array_equal(got.X, [[1.5, 2.0], [3.0, 4.0]])


def test_a_column_called_label_is_the_target_wherever_it_is():
    got = read(source("a,Label,b\n1,x,2\n3,y,4\n"))
    assert got.target == "Label" and got.names == ["a", "b"]


def test_quoted_cells_windows_line_ends_and_byte_order_mark_are_understood():
    got = read(source(b'\xef\xbb\xbf"a, first",b,kind\r\n1,"2","x, y"\r\n3,4,z\r\n'))
    assert got.names == ["a, first", "b"] and got.y.tolist() == ["x, y", "z"]


def test_named_and_numbered_targets_are_the_same():
    text = "a,b,c\n1,2,3\n4,5,6\n"
    for target in ("b", 1, "1", "-2"):
        got = read(source(text), target=target)
        assert got.target == "b" and not got.guessed
        np.testing.assert_array_equal(got.X, [[1, 3], [4, 6]])


def test_no_target_if_none_is_wanted():
    assert read(source("a,b\n1,2\n"), target="").X.shape == (1, 2)


def test_features_of_a_model_come_in_its_order_and_one_column_too_many_is_the_target():
    got = read(source("kind,b,a\nx,1,2\ny,3,4\n"), features=["a", "b"])
    np.testing.assert_array_equal(got.X, [[2, 1], [4, 3]])
    assert got.target == "kind"


def test_as_many_columns_as_features_means_that_there_is_no_target():
    assert read(source("1,2\n3,4\n"), width=2).y is None
    assert read(source("1,2,0\n3,4,1\n"), width=2).y.tolist() == [0, 1]


def test_dropped_columns_are_left_out():
    got = read(source("id,a,kind\nq,1,x\nw,2,y\n"), drop=["id"])
    assert got.names == ["a"]


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,x\n", {"target": "c"}, "no target column 'c'.*The columns are 'a', 'b'"),
        ("weight,b\n1,x\n", {"target": "wieght"}, "Did you mean 'weight'"),
        ("a,sex,y\n1,male,0\n", {}, "row 1, column 'sex' contains 'male', not a number.*--drop sex"),
        ("a,b,y\n1,2,0\n1,,0\n", {}, "row 2, column 'b' is empty"),
        ("a,b,y\n1,2,0\n1,2\n", {}, "row 2 has only 2 cells"),
        ("a,b,y\n1,2,0\n1,2,\n", {}, "row 2 has no value in the target column 'y'"),
        ("a,a,y\n1,2,0\n", {}, "two columns are named 'a'"),
        ("a,b\n", {}, "no rows"),
        ("", {}, "empty"),
        ("y\n1\n", {}, "no column is left"),
        ("a,b,y\n1,2,0\n", {"features": ["a", "z"]}, "no column 'z', which the model was trained with"),
        ("a,b,y\n1,2,0\n", {"target": "y", "drop": ["y"]}, "among the columns to drop"),
        ("1 1:2 3:4\n-1 2:x\n", {}, "line 2: '2:x', index:value was expected"),
        ("1 1:2 3:4\n-1 5:1 2:3\n", {}, "line 2: '2:3', indices must ascend"),
        ("1 1:2 3:4\nblue 2:3\n", {}, "line 2: the label 'blue' is not a number"),
        ("1 1:2 3:4\n", {"target": "y"}, "no named columns"),
        ("1,2\n", {"format": "xls"}, "Unknown format"),
        (b"PK\x03\x04garbage", {}, "not an NPZ file"),
        (b"a,b\n1,\xff\n", {}, r"neither text in UTF-8.*byte 6 "),
        (b"a,b\n1,\x00\n", {}, "neither text in UTF-8.*null bytes"),
        ("a,b\n1,2\n".encode("utf-16"), {}, "UTF-16.*save it as UTF-8"),
        ("1 1:2\n".encode("utf-16-be"), {}, "neither text in UTF-8"),
        ("a" * 9999 + ",b\n1,2\n", {"target": "c"}, "no target column 'c'. The columns are 'aaa.{60}"),
        ("1 1:2 9223372036854775807:1\n", {}, "line 1: '9223372036854775807:1', the index is too large"),
    ],
)  # fmt: skip
def test_bad_data_give_an_error_that_says_what_is_wrong(text, options, message):
    with pytest.raises(DataError, match=message):
        read(source(text), **options)


def test_bad_parquet_gives_an_error(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    with pytest.raises(DataError, match="not a Parquet file"):
        read(source(b"PAR1 and then nothing"))
    for column, message in ((["p", "q"], "type string"), ([1.0, None], "1 empty cells")):
        file = tmp_path / "some.parquet"
        pq.write_table(pa.table({"a": column, "y": [0, 1]}), file)
        with pytest.raises(DataError, match=message):
            read(file)


def test_missing_file_and_folder_give_an_error(tmp_path):
    with pytest.raises(DataError, match="There is no file"):
        read(tmp_path / "nothing.csv")
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path)


def test_npz_never_unpickles(tmp_path):
    file = tmp_path / "evil.npz"
    np.savez(file, X=np.array([[{}]], dtype=object), y=np.array([1]))
    with pytest.raises(DataError, match="plain array"):
        read(file)


def test_failed_write_leaves_the_old_file(tmp_path):
    file = tmp_path / "data.svm"
    write(table(IRIS.target), file)
    before = file.read_bytes()
    with pytest.raises(DataError, match="only numbers"):
        write(table(), file)
    assert file.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_unknown_suffix_asks_for_the_format(tmp_path):
    with pytest.raises(DataError, match="unknown suffix"):
        write(table(), tmp_path / "iris.dat")


@pytest.mark.parametrize(
    ("text", "rows", "names"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,other\n", 2, None),
        ("setosa,5.1,3.5\nother,4.9,3.0\n", 2, None),
        ("0,1,target\n5.1,3.5,setosa\n4.9,3.0,other\n", 2, ["0", "1"]),
        ("width,length,target\n5.1,3.5,setosa\n", 1, ["width", "length"]),
        ("2019,2020,income,target\n5.1,3.5,1,a\n", 1, ["2019", "2020", "income"]),
    ],
)
def test_a_first_line_of_numbers_and_one_label_is_data(tmp_path, text, rows, names):
    (tmp_path / "some.csv").write_text(text)
    target = "0" if text.startswith("setosa") else None
    table = read(tmp_path / "some.csv", target=target)
    assert table.X.shape[0] == rows and (None if table.names is None else list(table.names)) == names
