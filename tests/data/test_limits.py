"""Data files that ask for more memory than they may have, and those that are not what they say."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import warnings
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.data import DataError, Table, limits, read, write
from maxmargin.data.limits import VARIABLE, Limit, available

X = np.arange(12.0).reshape(4, 3)


def npz(**arrays):
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def archive(*members, **options):
    """An archive with the given contents of its members, in this order."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", **options) as file:
        for name, content in members:
            file.writestr(name, content)
    return stream.getvalue()


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def declared(shape, kind="<f8"):
    """An array whose header says what it likes."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(96)


def refused(contents, message, **options):
    with pytest.raises(DataError, match=message) as found:
        read(io.BytesIO(contents), **options)
    assert "\n" not in str(found.value) and len(str(found.value)) < 1000


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("line", [b"1,2,3\n", b"1 1:2\n", b"1,"])
def test_what_unpacks_to_more_than_the_limit_is_refused(pack, line):
    refused(
        pack(line * (20_000_000 // len(line))),
        "its contents are larger, more than the limit of 10",
        memory=10,
    )


def test_what_unpacks_to_many_times_its_size_is_refused_unless_a_limit_is_given(monkeypatch, tmp_path):
    monkeypatch.delenv(VARIABLE, raising=False)
    line = b"1,2\n"
    contents = gzip.compress(line * 26_000_000)  # 104 MB
    refused(contents, r"0\.\d+ MB of compressed data unpack to more than 100 MB: .*DATA_MEMORY to a number")
    monkeypatch.setattr(limits, "UNPACKED", 1_000_000)
    short = gzip.compress(line * 300_000)
    refused(short, "unpack to more than 1 MB")
    (tmp_path / "short.csv.gz").write_bytes(short)
    with pytest.raises(DataError, match=r"short\.csv\.gz: .* unpack to more than"):
        read(tmp_path / "short.csv.gz")
    # A limit that is given is the only one; and so it is for what is packed like data.
    assert read(io.BytesIO(short), memory=20).X.shape == (300_000, 1)
    monkeypatch.setenv(VARIABLE, "20")
    assert read(io.BytesIO(short)).X.shape == (300_000, 1)
    monkeypatch.delenv(VARIABLE)
    numbers = np.random.default_rng(0).integers(0, 10, 500_000)
    packed = gzip.compress(b"".join(b"%d,1\n" % number for number in numbers))
    assert read(io.BytesIO(packed)).X.shape == (500_000, 1)


def test_files_and_devices_larger_than_the_limit_are_refused(tmp_path):
    file = tmp_path / "large.csv"
    file.write_bytes(b"1,2\n" * 1_000_000)
    with pytest.raises(DataError, match="contents are larger"):
        read(file, memory=3)
    if sys.platform == "linux":
        with pytest.raises(DataError, match="contents are larger"):
            read("/dev/zero", memory=3)


def test_tables_that_take_more_than_their_text_are_refused():
    refused(b"1," * 4999 + b"1\n" + b"," * 4999 * 100, "the longest line|the table", memory=2)
    refused(b",\n" * 400_000, "the table would take", memory=1)
    refused(b"1 1:1\n" * 50_000, "the table would take 2 MB", memory=1)
    refused(b"1" + b" 1:1" * 50_000, "the table would take", memory=1)
    # One long label makes all of them long.
    refused(b"a,y\n" + b"1,x\n" * 50_000 + b"1," + b"y" * 5000, "labels, of up to 5,000 char", memory=50)


def test_limit_says_how_to_raise_it_and_can_be_raised(monkeypatch):
    contents = b"1,2\n" * 100_000
    monkeypatch.setenv(VARIABLE, "0.1")
    refused(contents, f"more than the limit of 0.1 MB for data.*set the environment variable {VARIABLE}")
    assert read(io.BytesIO(contents), memory=10).X.shape == (100_000, 1)
    monkeypatch.setenv(VARIABLE, "10")
    assert read(io.BytesIO(contents)).X.shape == (100_000, 1)
    for wrong in ("much", "-1", "nan"):
        monkeypatch.setenv(VARIABLE, wrong)
        with pytest.raises(DataError, match="number of megabytes"):
            Limit()


def test_limit_is_a_quarter_of_the_memory_by_default(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert Limit().bytes == available() // 4 > 10**8


@pytest.mark.parametrize(
    ("shape", "kind"),
    [((2**40, 8), "<f8"), ((2**62, 2**62), "<f8"), ((4, 3), "<U99999999"), ((10**8,), "|b1")],
)
def test_shapes_that_are_declared_are_checked_before_memory_is_taken(shape, kind):
    name = "y" if kind[1] == "U" else "X"
    members = [(f"{name}.npy", declared(shape, kind))] + ([("X.npy", npy(X))] if name == "y" else [])
    refused(archive(*members), f"the array '{name}' of shape .* would take", memory=500)


def test_arrays_that_end_too_early_are_refused():
    refused(archive(("X.npy", declared((100, 30)))), "the array 'X' is truncated")
    refused(archive(("X.npy", declared((-1, 30)))), "negative")
    refused(npz(X=X)[:-40], "not an NPZ file")


def test_many_arrays_share_the_limit():
    stream = io.BytesIO()
    np.savez_compressed(stream, X=np.zeros((1000, 10)), y=np.zeros(1000, "U100"))
    contents = stream.getvalue()
    refused(contents, "the array 'y' of shape", memory=0.2)
    assert read(io.BytesIO(contents), memory=1).X.shape == (1000, 10)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X + 1j}, "'X' has type complex128; it must be a plain array of numbers"),
        ({"X": X, "y": np.ones(4) * 1j}, "'y' has type complex128; .* array of numbers or text"),
        ({"X": X.astype("M8[s]")}, "'X' has type datetime64"),
        ({"X": X.astype("U")}, "'X' has type <U"),
        ({"X": np.zeros(4, "f8,f4")}, "'X' has type"),
        ({"X": X.astype(object)}, "'X' has type object; it must be a plain array"),
        ({f"X_{k}": X[0] for k in ("data", "indices", "indptr", "shape")}, "'X_indices' has type"),
    ],
)  # fmt: skip
def test_types_that_are_no_numbers_are_refused(arrays, message):
    refused(npz(**arrays), message)


def test_encrypted_arrays_are_refused():
    contents = bytearray(npz(X=X))
    for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        contents[contents.find(mark) + flag] |= 1
    refused(bytes(contents), "the array 'X' is encrypted")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_arrays_of_one_name_are_refused():
    refused(archive(("X.npy", npy(X)), ("X.npy", npy(-X))), "two arrays 'X.npy'")


def test_arrays_that_are_not_asked_for_are_not_read():
    table = read(io.BytesIO(archive(("X.npy", npy(X)), ("huge.npy", declared((2**50,))))))
    np.testing.assert_array_equal(table.X, X)


def test_a_long_line_of_pairs_is_known_as_such():
    table = read(io.BytesIO(b"1" + b"".join(b" %d:1.25" % k for k in range(1, 5000)) + b"\n"))
    assert table.X.shape == (1, 4999) and table.target == "label"


def test_empty_lines_are_read_over_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(io.BytesIO(b"a,y\n\n1,x\n\n2,z\n\n")).y.tolist() == ["x", "z"]


def test_a_single_array_is_named_as_such():
    refused(npy(X), "single NumPy array.*numpy.savez")


def test_columns_and_rows_of_a_square_sparse_matrix_are_not_confused():
    square = sp.csr_array(np.triu(np.arange(16.0).reshape(4, 4)))
    for form in ("csr", "csc"):
        stream = io.BytesIO()
        sp.save_npz(stream, square.asformat(form))
        got = read(io.BytesIO(stream.getvalue()))
        np.testing.assert_array_equal(got.X.toarray(), square.toarray())
    stream = io.BytesIO()
    sp.save_npz(stream, sp.bsr_array(square))
    refused(stream.getvalue(), "stored as csr or csc, got b'bsr'")


@pytest.mark.parametrize("text", ["1 1:2 2:3\n-1 2:1\n", "a,y\n2,1\n3,-1\n"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_byte_order_mark_is_read_over(text, pack):
    marked, plain = (read(io.BytesIO(pack(text.encode(code)))) for code in ("utf-8-sig", "utf-8"))
    np.testing.assert_array_equal(marked.X, plain.X)
    assert marked.y.tolist() == plain.y.tolist() == [1, -1] and marked.names == plain.names


def test_text_that_is_repeated_is_not_expanded_beyond_the_limit():
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    def parquet(label, n):
        stream = io.BytesIO()
        pq.write_table(pa.table({"a": np.zeros(n), "y": pa.array([label] * n)}), stream)
        return stream.getvalue()

    refused(parquet("x" * 1000, 10_000), "the target would take", memory=10)
    refused(parquet("x", 100_000), "the table would take", memory=1)
    assert set(read(io.BytesIO(parquet("x" * 10, 10_000)), memory=10).y) == {"x" * 10}


def test_categories_that_no_row_has_do_not_make_labels_text():
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    labels = pa.DictionaryArray.from_arrays(np.array([0, 1, 0], np.int32), ["3", "5", "other"])
    stream = io.BytesIO()
    pq.write_table(pa.table({"a": [1.0, 2.0, 3.0], "y": labels}), stream)
    assert read(io.BytesIO(stream.getvalue())).y.tolist() == [3, 5, 3]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_sparse_data_with_many_columns_are_not_written_densely(tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    table = Table(sp.csr_array(([1.0], ([0], [10**9])), shape=(2, 2 * 10**9)), np.array([0, 1]))
    with pytest.raises(DataError, match="would take"):
        write(table, tmp_path / f"wide.{suffix}")
    assert not list(tmp_path.iterdir())
    write(table, tmp_path / "wide.npz")
    assert read(tmp_path / "wide.npz").X.shape == (2, 2 * 10**9)
