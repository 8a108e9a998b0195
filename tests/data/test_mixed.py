"""Mixed tables are read as a careful user expects, or refused with the row and the column."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

from maxmargin.data import DataError
from maxmargin.data.files import contents_of
from maxmargin.data.kinds import Column
from maxmargin.data.mixed import Schema, plain, read_new, read_training
from maxmargin.data.table import Wanted
from mixed_tables import mixed, with_text


def contents(text):
    return contents_of(io.BytesIO(text.encode() if isinstance(text, str) else text))


def train(text, target=None, drop=(), **options):
    return read_training(contents(text), Wanted(target, None, None, tuple(drop)), **options)


def kinds(table):
    return {column.name: column.kind for column in table.columns}


def test_every_kind_of_column_is_recognised():
    table = train(with_text(mixed()).to_csv(index=False))
    assert kinds(table) == {
        "id": "left out", "age": "number", "colour": "category", "member": "boolean", "joined": "date",
        "empty": "left out", "constant": "left out", "fare": "number", "note": "text",
    }  # fmt: skip
    why = {column.name: column.why for column in table.columns if column.why}
    assert why == {"id": "differs in nearly every row", "empty": "empty", "constant": "constant"}
    assert {column.name: column.missing for column in table.columns}["age"] == mixed()["age"].isna().sum()
    assert table.target == "outcome" and table.guessed


def test_parquet_has_the_kinds_of_its_types(tmp_path):
    pytest.importorskip("pyarrow")
    frame = with_text(mixed()).replace("", None)
    frame["joined"] = pd.to_datetime(frame["joined"], format="%d.%m.%Y")
    frame["member"] = frame["member"] == "true"
    frame["grade"] = pd.Categorical.from_codes(np.arange(len(frame)) % 3, [10, 20, 30])
    frame["code"] = [str(k % 7) for k in range(len(frame))]
    frame.to_parquet(tmp_path / "some.parquet")
    found = read_training(contents_of(tmp_path / "some.parquet"), Wanted("outcome"))
    of_text = train(with_text(mixed()).to_csv(index=False))
    assert kinds(found) == {**kinds(of_text), "grade": "category", "code": "category"}
    for name in ("age", "member", "joined", "colour", "note"):
        pd.testing.assert_series_equal(found.X[name], of_text.X[name], check_dtype=False)
    assert found.X["grade"].unique().tolist() == ["10", "20", "30"]


def test_parquet_columns_of_lists_are_refused(tmp_path):
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame({"a": [[1], [2]], "b": ["x", "z"], "y": [0, 1]})
    frame.to_parquet(tmp_path / "some.parquet")
    for drop in ("a", "0"):
        table = read_training(contents_of(tmp_path / "some.parquet"), Wanted(drop=(drop,)))
        assert table.X.columns.tolist() == ["b"]
    new = read_new(contents_of(tmp_path / "some.parquet"), Schema(["b"], {"b": Column("b", "category")}), "")
    assert new.X["b"].tolist() == ["x", "z"]
    with pytest.raises(DataError, match=r"column 'a' has type .*: leave it out \(--drop a\)"):
        read_training(contents_of(tmp_path / "some.parquet"), Wanted())


def test_semicolons_with_decimal_commas_are_numbers():
    table = train("a;b;y\n1,5;2;0\n-2.000,5;3;1\n")
    np.testing.assert_array_equal(plain(table).X, [[1.5, 2], [-2000.5, 3]])
    without_names = train("1,5;2,5;x\n1,25;2,0;z\n")
    assert without_names.names == ["0", "1"] and plain(without_names).names is None


def test_quotes_line_ends_and_a_byte_order_mark_are_understood():
    text = '\ufeff"size, cm",kind,y\r\n"1","a ""b"", c",0\r\n2,z,1\r\n,z,1\r\n'
    table = train(text.encode())
    assert table.names == ["size, cm", "kind"] and table.X["kind"].tolist() == ['a "b", c', "z", "z"]
    np.testing.assert_array_equal(table.X["size, cm"], [1, 2, np.nan])


@pytest.mark.parametrize(
    ("first", "named"),
    [
        ("39, State, 77516, yes", False),
        ("age, state, income, target", True),
        ("2019, state, 2020, target", True),
    ],
)
def test_a_first_line_of_data_is_not_taken_for_names(first, named):
    table = train(f"{first}\n50, Private, 83311, no\n38, ?, 215646, yes\n")
    assert table.named is named and len(table.X) == (2 if named else 3)
    assert table.names == ([name.strip() for name in first.split(",")[:3]] if named else ["0", "1", "2"])


def test_rows_without_a_target_are_left_out_and_counted():
    table = train("a,b,y\n1,x,yes\n2,z,\n3,x,no\n4,z,NaN\n")
    assert table.y.tolist() == ["yes", "no"] and table.unlabelled == 2
    assert train("a,b,y\n1,x,1.5\n2,z,NA\n3,x,2\n").y.tolist() == [1.5, 2.0]
    assert train("a,b,y\n1,x,none\n2,z,some\n3,x,none\n").y.tolist() == ["none", "some", "none"]


def test_a_number_can_be_a_category_on_request():
    text = "zip,size,y\n" + "".join(f"{1000 + k % 3},{k},{k % 2}\n" for k in range(12))
    assert kinds(train(text)) == {"zip": "number", "size": "number"}
    table = train(text, category=["zip"])
    assert kinds(table)["zip"] == "category" and table.X["zip"][0] == "1000"
    with pytest.raises(DataError, match="'y' is not a feature"):
        train(text, category=["y"])


def test_row_numbers_without_a_name_are_left_out():
    frame = pd.DataFrame({"a": ["x", "z"] * 5, "y": [0, 1] * 5})
    table = train(frame.to_csv())
    assert [column.why for column in table.columns] == ["row numbers", ""]


NUMBERS = "".join(f"{k / 2},x,{k % 2}\n" for k in range(40))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"a,b,y\n{NUMBERS}soon,x,1\n",
            r"row 41, column 'a' contains 'soon', and 98% .*--category a.*--drop",
        ),
        ("a,b,y\n1,x,0\n1,2\n", "row 2 has only 2 cells"),
        ("a,b,y\n1,x,0\n1,x,2,3\n", "line 3 has 4 cells"),
        ('a,b,y\n1,"x,0\n1,2,3\n', "line 2 opens a quotation"),
        ("a,a,y\n1,x,0\n", "two columns are named 'a'"),
        ("a,b,y\n1,x,\n2,z,\n", "no row has a value in the target column 'y'"),
        ("a,b,y\n1,x,0\ninf,z,1\n", "row 2 has inf in column 'a'"),
        ("a,b,y\n", "no rows"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text, message):
    with pytest.raises(DataError, match=message):
        train(text)


SCHEMA = Schema(
    ["size", "unused", "kind", "day"],
    {
        "size": Column("size", "number"),
        "kind": Column("kind", "category"),
        "day": Column("day", "date", form="day.month.year"),
    },
)


def test_new_rows_have_the_columns_of_the_model_in_any_order():
    table = read_new(contents("day;more;kind;size\n01.02.2024;7;x;1,5\n;8;;\n"), SCHEMA)
    assert list(table.X) == ["size", "unused", "kind", "day"] and table.target == "more"
    np.testing.assert_array_equal(table.X["size"], [1.5, np.nan])
    assert table.X["kind"][0] == "x" and table.X["day"][0] == 19754.0
    one = read_new(contents("size,kind,day\n2,3,2.1.1970\n"), SCHEMA)  # looks like a table of numbers
    assert one.X["kind"].tolist() == ["3"] and one.y is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size,day\n1,1.1.2024\n", "no column 'kind', which the model was trained with"),
        ("size,kind,day\n1,x,1.1.2024\nold,x,1.1.2024\n", "row 2, column 'size' contains 'old'"),
        (
            "size,kind,day\n1,x,2024-01-01\n",
            r"column 'day' contains '2024-01-01', not a date \(day.month.year",
        ),
        ("size,kind,day\n-inf,x,1.1.2024\n", "row 1 has -inf in column 'size'"),
    ],
)
def test_new_rows_that_do_not_suit_the_model_are_refused(text, message):
    with pytest.raises(DataError, match=message):
        read_new(contents(text), SCHEMA)


def test_labels_of_new_rows_may_be_missing():
    table = read_new(contents("size,kind,day,y\n1,x,,a\n2,x,,\n"), SCHEMA)
    assert table.unlabelled == 1 and table.y.tolist() == ["a", None]
    assert read_new(contents("size,kind,day,y\n1,x,,\n"), SCHEMA).y is None
