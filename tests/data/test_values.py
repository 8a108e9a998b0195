"""Cells of any kind become numbers, texts and days."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from maxmargin.data import DataError
from maxmargin.data.columns import ColumnValues
from maxmargin.data.values import days, missing_cells, numbers, texts


def column(*values):
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def test_numbers_are_read_from_every_form_they_have():
    found = numbers(column(1, "2", " 3e0 ", True, "FALSE", decimal.Decimal("2.5"), np.float32(4)))
    np.testing.assert_array_equal(found, [1, 2, 3, 1, 0, 2.5, 4])
    np.testing.assert_array_equal(numbers(pd.array([1, None], dtype="Int64")), [1, np.nan])


@pytest.mark.parametrize(
    "cell", [None, "", "  ", "?", "NA", "n/a", "NaN", "null", np.nan, pd.NA, pd.NaT, "-", "None"]
)
def test_cells_without_a_value_are_missing_in_every_kind(cell):
    cells = column(cell, "1")
    assert missing_cells(cells).tolist() == [True, False]
    assert np.isnan(numbers(cells)[0]) and np.isnan(days(column(cell, "2024-01-01"))[0])
    assert texts(cells)[0] != texts(cells)[0]


@pytest.mark.parametrize("cell", ["one", "1_000", "0x10", "1,5", object()])
def test_a_cell_that_is_no_number_is_named_with_its_row(cell):
    with pytest.raises(DataError, match=r"row 2, column 'age' contains .*, not a number"):
        numbers(column("1", cell), "age")


def test_a_category_has_one_text_in_every_form():
    assert texts(column(3, 3.0, "3", " 3 ", np.int8(3))).tolist() == ["3"] * 5
    assert texts(np.array([1.0, 2.5])).tolist() == ["1", "2.5"]
    assert texts(np.array([True, False])).tolist() == ["True", "False"]
    assert texts(pd.Series(["a", "b"], dtype="category")).tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("cells", "form"),
    [
        (["1970-01-02", "1970-01-03 12:00", "1970-01-01T06:00:00Z"], None),
        (["1970/01/02", "1970/1/3", "1970/01/01"], "year/month/day"),
        (["02.01.1970", "3.1.1970", "01.01.1970"], "day.month.year"),
        (["01/02/1970", "01/03/1970", "1/1/1970"], "month/day/year"),
        (["02/01/1970", "03/01/1970", "1/1/1970"], "day/month/year"),
        (
            [datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 3, 12), pd.Timestamp(21_600, unit="s")],
            None,
        ),
    ],
)
def test_dates_are_days_whatever_their_form(cells, form):
    expected = [1.0, 2.5 if form is None else 2.0, 0.25 if form is None else 0.0]
    np.testing.assert_array_equal(days(column(*cells), form), expected)


def test_dates_of_pandas_are_days_in_utc():
    there = pd.Series(pd.to_datetime(["1970-01-02", None]))
    np.testing.assert_array_equal(days(there), [1.0, np.nan])
    np.testing.assert_array_equal(days(there.dt.tz_localize("Etc/GMT+12")), [1.5, np.nan])


def test_a_cell_that_is_no_date_is_named_with_its_row():
    with pytest.raises(DataError, match=r"row 3, column 'day' contains '32.01.2024', not a date \(day.month"):
        days(column("31.01.2024", None, "32.01.2024"), "day.month.year", "day")


def test_columns_keep_their_number_and_names():
    frame = pd.DataFrame({"a": ["1", "2"], "b": [True, False]})
    model = clone(ColumnValues()).fit(frame)
    assert model.n_features_in_ == 2 and model.get_feature_names_out().tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.transform(frame), [[1, 1], [2, 0]])
    with pytest.raises(ValueError, match="1 columns, but was fitted with 2"):
        model.transform(frame[["a"]])
    with pytest.raises(DataError, match="row 2, column 'a' is empty"):
        ColumnValues(missing=False).fit_transform(frame.assign(a=["1", ""]))


def test_text_is_one_column_of_strings():
    found = ColumnValues("text").fit_transform(pd.Series(["some words", None], name="note"))
    assert found.tolist() == ["some words", ""]
    with pytest.raises(ValueError, match="one column at a time"):
        ColumnValues("text").fit_transform(np.array([["a", "b"]], dtype=object))
