"""Files in blocks of rows: the same rows as in one piece, whatever their format."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import data
from maxmargin.data.blocks import read_blocks
from maxmargin.data.table import DataError, Table

ROWS = 500


def table(labels=("no", "yes")):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(ROWS, 3)), 3)
    return Table(X, np.array(labels)[(X[:, 0] > 0).astype(int)], ["a", "b", "c"], "kind")


def together(blocks):
    """The rows of all blocks, and the numbers of rows before each."""
    blocks = list(blocks)
    X = [b.table.X.toarray() if sp.issparse(b.table.X) else b.table.X for b in blocks]
    width = max(part.shape[1] for part in X)
    X = np.vstack([np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in X])
    y = np.concatenate([b.table.y for b in blocks])
    assert [b.before for b in blocks] == np.cumsum([0, *[b.table.X.shape[0] for b in blocks]])[:-1].tolist()
    return X, y, blocks


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.npz"])
def test_blocks_have_the_rows_of_the_whole(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    data.write(table(), tmp_path / name)
    X, y, blocks = together(read_blocks(str(tmp_path / name), size=1000))
    whole = data.read(tmp_path / name)
    assert len(blocks) > 5 and blocks[0].table.X.shape[0] < 100
    np.testing.assert_array_equal(X, whole.X)
    np.testing.assert_array_equal(y, whole.y)
    assert {tuple(b.table.names) for b in blocks} == {("a", "b", "c")}
    assert {b.table.target for b in blocks} == {whole.target}


@pytest.mark.parametrize("first", [0, 1])
def test_indices_of_svmlight_begin_where_they_begin_in_the_whole_file(tmp_path, first):
    lines = [f"{k % 2} {first + 1}:{k} {first + 2}:0.5" for k in range(400)]
    lines[390] = f"1 {first}:7"  # only late in the file there is the first index
    (tmp_path / "t.svm").write_text("\n".join(lines) + "\n")
    X, y, blocks = together(read_blocks(str(tmp_path / "t.svm"), size=500))
    whole = data.read(tmp_path / "t.svm")
    np.testing.assert_array_equal(X, whole.X.toarray() if sp.issparse(whole.X) else whole.X)
    np.testing.assert_array_equal(y, whole.y)
    assert len(blocks) > 5


@pytest.mark.parametrize(("suffix", "module"), [(".gz", gzip), (".bz2", bz2), (".xz", lzma)])
def test_compressed_text_is_read_in_blocks(tmp_path, suffix, module):
    data.write(table(), tmp_path / "t.csv")
    packed = tmp_path / f"t.csv{suffix}"
    packed.write_bytes(module.compress((tmp_path / "t.csv").read_bytes()))
    X, _, blocks = together(read_blocks(str(packed), size=1000))
    np.testing.assert_array_equal(X, table().X)
    assert len(blocks) > 5
    packed.write_bytes(packed.read_bytes()[:-200])
    with pytest.raises(DataError, match="damaged"):
        list(read_blocks(str(packed), size=1000))


def test_the_standard_input_is_read_in_blocks(tmp_path, monkeypatch):
    data.write(table(), tmp_path / "t.csv")

    class Pipe:
        buffer = io.BytesIO((tmp_path / "t.csv").read_bytes())

    monkeypatch.setattr(sys, "stdin", Pipe)
    X, _, blocks = together(read_blocks("-", size=1000))
    np.testing.assert_array_equal(X, table().X)
    assert len(blocks) > 5


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("header", ["a,kind\n", ""])
def test_a_quoted_cell_with_line_breaks_is_not_cut(tmp_path, end, header):
    rows = [f'{k},"{"x" * (k % 7)}{end}y"' for k in range(300)]
    (tmp_path / "t.csv").write_bytes((header + end.join(rows) + end).encode())
    X, y, blocks = together(read_blocks(str(tmp_path / "t.csv"), format="csv", size=200))
    whole = data.read(tmp_path / "t.csv", format="csv")
    np.testing.assert_array_equal(X, whole.X)
    np.testing.assert_array_equal(y, whole.y)
    assert len(blocks) > 5


def test_rows_in_messages_are_counted_from_the_beginning_of_the_file(tmp_path):
    lines = ["a,b,kind", *[f"{k},1,x" for k in range(300)]]
    for row, cells, message in ((250, "q,1,x", "row 250, column 'a'"), (260, "1,1,", "row 260 has no value")):
        (tmp_path / "t.csv").write_text("\n".join([*lines[:row], cells, *lines[row + 1 :]]) + "\n")
        with pytest.raises(DataError, match=message):
            list(read_blocks(str(tmp_path / "t.csv"), size=300))
    svm = [f"1 1:{k}" for k in range(300)]
    svm[249] = "1 2:1 1:1"
    (tmp_path / "t.svm").write_text("\n".join(svm) + "\n")
    with pytest.raises(DataError, match="line 250: '1:1', indices must ascend"):
        list(read_blocks(str(tmp_path / "t.svm"), size=300))


def test_labels_that_are_numbers_stay_text_as_later_ones_may_be_words(tmp_path):
    (tmp_path / "t.csv").write_text("a,kind\n" + "\n".join(f"{k},{k % 2}" for k in range(100)) + "\n")
    (block,) = read_blocks(str(tmp_path / "t.csv"))
    assert block.table.y.dtype.kind == "U"


def test_a_line_longer_than_memory_allows_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_DATA_MEMORY", "0.01")
    (tmp_path / "t.csv").write_text("a,b\n" + "1" * 50_000 + ",2\n")
    with pytest.raises(DataError, match="MAXMARGIN_DATA_MEMORY"):
        list(read_blocks(str(tmp_path / "t.csv"), size=100))


@pytest.mark.parametrize("make", ["fortran", "sparse"])
def test_arrays_that_are_not_stored_by_rows_are_read_as_a_whole(tmp_path, make):
    X = np.asfortranarray(table().X)
    if make == "fortran":
        np.savez(tmp_path / "t.npz", X=X, y=np.zeros(ROWS))
    else:
        sp.save_npz(tmp_path / "t.npz", sp.csr_array(X))
    (block,) = read_blocks(str(tmp_path / "t.npz"), size=1000)
    found = block.table.X.toarray() if make == "sparse" else block.table.X
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("contents", [b"", b"\n\n", b"a,b\n"])
def test_a_file_without_rows_is_an_error_as_in_read(tmp_path, contents):
    (tmp_path / "t.csv").write_bytes(contents)
    with pytest.raises(DataError) as whole:
        data.read(tmp_path / "t.csv")
    with pytest.raises(DataError) as parts:
        list(read_blocks(str(tmp_path / "t.csv")))
    assert str(whole.value) == str(parts.value)


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_reader_of_ones_own_gets_small_files_with_all_columns(tmp_path, name):
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    data.write(table(), tmp_path / name)
    formats = []

    def parse(contents, kind):
        formats.append(kind)
        return data.read(io.BytesIO(contents), format=kind, features=["c", "a"], target="kind")

    X, y, blocks = together(read_blocks(str(tmp_path / name), size=1000, parse=parse))
    np.testing.assert_array_equal(X, table().X[:, [2, 0]])
    np.testing.assert_array_equal(y, table().y)
    assert len(blocks) > 5 and set(formats) == {name[2:]}
