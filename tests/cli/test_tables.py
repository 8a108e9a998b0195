"""Mixed tables in the commands: one line says what was done, and models take the same tables again."""

from __future__ import annotations

import builtins

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from maxmargin.persistence import load
from mixed_tables import mixed, with_text

FAST = ("--scale", "standard", "-C", "10")


@pytest.fixture
def table(run):
    """A mixed table in the folder of the commands."""
    mixed().to_csv("mixed.csv", index=False)
    with_text(mixed()).to_csv("text.csv", index=False)
    return run


def lines(err):
    return [line for line in err.splitlines() if line.startswith(("mixed.csv:", "text.csv:"))]


def test_a_line_says_what_is_done_with_every_kind_of_column(table):
    got = table("train", "text.csv", "m.maxmargin", *FAST)
    assert got.code == 0
    missing = mixed().replace("", None).isna().sum()
    assert lines(got.err)[0] == (
        f"text.csv: empty cells filled in (age {missing['age']}, colour {missing['colour']}); categories "
        "one-hot (colour); true/false as 1/0 (member); dates as days (joined: day.month.year); "
        "text as TF-IDF (note); "
        "columns left out (id: differs in nearly every row, empty: empty, constant: constant)"
    )
    report = table("train", "text.csv", *FAST, "--json")
    assert report.json["columns"].startswith("empty cells filled in") and not report.err


def test_a_trained_model_predicts_the_same_table_from_any_file(table):
    table("train", "mixed.csv", "m.maxmargin", *FAST)
    model = load("m.maxmargin")
    assert isinstance(model, Pipeline) and model.feature_names_in_.tolist() == list(mixed())[:-1]
    got = table("predict", "m.maxmargin", "mixed.csv")
    assert "accuracy" in got.err and "target 'outcome'" in got.err
    frame = mixed()
    np.testing.assert_array_equal(got.out.split(), model.predict(frame))
    other = frame[frame.columns[::-1]].drop(columns=["outcome", "id", "constant"]).assign(more="?")
    other.to_csv("other.csv", index=False, sep=";", decimal=",")
    other.replace("", None).to_parquet("other.parquet")
    for name in ("other.csv", "other.parquet"):
        assert table("predict", "m.maxmargin", name, "--target", "").out == got.out


def test_unknown_categories_and_missing_labels_are_no_obstacle(table):
    table("train", "mixed.csv", "m.maxmargin", *FAST)
    frame = mixed().assign(colour="violet")
    frame.loc[3:, "outcome"] = ""
    frame.to_csv("new.csv", index=False)
    got = table("predict", "m.maxmargin", "new.csv")
    assert got.code == 0 and len(got.out.split()) == len(frame) and "(3 rows, target 'outcome')" in got.err


def test_slices_of_rows_and_missing_labels_do_not_change_predictions_and_score(table, monkeypatch):
    table("train", "text.csv", "m.maxmargin", *FAST)
    frame = with_text(mixed())
    frame.loc[10:19, "outcome"] = ""  # a slice without labels, and one with some
    frame.loc[::7, "outcome"] = ""
    frame.to_csv("new.csv", index=False)
    whole = table("predict", "m.maxmargin", "new.csv", "--values")
    monkeypatch.setattr("maxmargin.cli.predict._SLICE", 8 * frame.shape[1] * 5)
    sliced = table("predict", "m.maxmargin", "new.csv", "--values")
    known = (frame["outcome"] != "").to_numpy()
    labels = [line.split(",")[0] for line in whole.out.splitlines()[1:]]
    share = np.mean(np.array(labels)[known] == frame["outcome"][known].astype(str))
    assert sliced.err == whole.err == f"accuracy {share:.4g} ({known.sum()} rows, target 'outcome')\n"
    assert [line.split(",")[0] for line in sliced.out.splitlines()[1:]] == labels


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"age": "old"}, "row 1, column 'age' contains 'old', not a number"),
        ({"joined": "2024-01-01"}, "not a date (day.month.year)"),
        ({"age": None}, "no column 'age', which the model was trained with"),
    ],
)
def test_new_data_that_do_not_suit_the_model_end_with_one_line(table, change, message):
    table("train", "mixed.csv", "m.maxmargin", *FAST)
    frame = mixed().assign(**change)
    frame.drop(columns=[name for name, value in change.items() if value is None]).to_csv(
        "new.csv", index=False
    )
    got = table("predict", "m.maxmargin", "new.csv")
    assert got.code == 2 and message in got.err and got.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--no-impute",), "row 1, column 'age' is empty: fill them in, let them be filled in (--impute)"),
        (("--no-encode",), "column 'id' holds values other than numbers: let it be encoded (--encode)"),
        (("--no-impute", "--no-encode"), "column 'id' contains 'P0"),
        (("--category", "agee"), "no column of categories (--category) 'agee'. Did you mean 'age'?"),
        (("--category", "age", "--no-encode"), "exclude each other"),
    ],
)
@pytest.mark.parametrize("command", ["train", "search", "tune"])
def test_options_that_do_not_suit_the_table_are_refused_before_training(table, command, options, message):
    got = table(command, "mixed.csv", "m.maxmargin", *options)
    assert got.code == 2 and message in got.err and len(got.err.splitlines()) == 1
    with pytest.raises(FileNotFoundError):
        load("m.maxmargin")


def test_numbers_with_empty_cells_need_no_encoding_and_categories_no_imputing(table):
    frame = mixed()[["age", "fare", "outcome"]]
    frame.to_csv("mixed.csv", index=False)
    got = table("train", "mixed.csv", "m.maxmargin", *FAST, "--no-encode")
    assert got.code == 0 and "empty cells filled in (age" in got.err
    mixed()[["fare", "member", "joined", "outcome"]].to_csv("mixed.csv", index=False)
    assert table("train", "mixed.csv", "m.maxmargin", *FAST, "--no-impute").code == 0
    mixed().assign(fare="").to_csv("new.csv", index=False)
    got = table("predict", "m.maxmargin", "new.csv", "--target", "outcome")
    assert (
        got.code == 2 and "row 1, column 'fare' is empty: the model was trained with --no-impute" in got.err
    )


def test_rows_without_a_label_are_left_out_of_a_table_of_numbers_too(table):
    frame = mixed()[["fare", "constant", "outcome"]]
    frame.loc[4, "outcome"] = None
    frame.to_csv("mixed.csv", index=False)
    got = table("train", "mixed.csv", "m.maxmargin")
    assert got.code == 0 and "rows without a target left out (1)" in got.err
    got = table("train", "mixed.csv", "--no-impute")
    assert got.code == 2 and "1 rows have no value in the target column 'outcome'" in got.err


def test_a_table_of_numbers_with_decimal_commas_is_one_of_numbers(table):
    frame = mixed()[["fare", "outcome"]].assign(other=np.arange(120) / 4)[["fare", "other", "outcome"]]
    frame.to_csv("point.csv", index=False)
    frame.to_csv("comma.csv", index=False, sep=";", decimal=",")
    for name in ("point", "comma"):
        got = table("train", f"{name}.csv", f"{name}.maxmargin")
        assert got.code == 0 and "one-hot" not in got.err
    assert not isinstance(load("comma.maxmargin"), Pipeline)
    predicted = {
        table("predict", f"{a}.maxmargin", f"{b}.csv").out
        for a in ("point", "comma")
        for b in ("point", "comma")
    }
    assert len(predicted) == 1


def test_search_and_train_score_the_pipeline_that_they_store(table):
    got = table(
        "search",
        "mixed.csv",
        "s.maxmargin",
        "--scale",
        "standard",
        "-C",
        "1,10",
        "--gamma",
        "0.1,0.3",
        "--cv",
        "3",
        "--json",
    )
    from sklearn.model_selection import cross_val_score

    frame = mixed()
    model = load("s.maxmargin")
    best = got.json["best_params"]
    assert (model[-1].C, model[-1].gamma) == (best["C"], best["gamma"])
    expected = cross_val_score(clone(model), frame.drop(columns="outcome"), frame["outcome"], cv=3).mean()
    assert got.json["best_score"] == pytest.approx(expected, abs=1e-12)
    chosen = ("-C", str(best["C"]), "--gamma", str(best["gamma"]))
    trained = table("train", "mixed.csv", "--scale", "standard", *chosen, "--cv", "3", "--json").json
    assert trained["cv_score"] == pytest.approx(expected, abs=1e-12)


def test_a_tuned_model_encodes_calibrates_and_reports(table):
    got = table(
        "tune", "mixed.csv", "t.maxmargin", "--no-plot", "--report", "r.html", "--scale", "robust", "--json"
    )
    assert got.code == 0 and got.json["accuracy"] > 0.6 and "one-hot (colour)" in got.json["columns"]
    shares = table("predict", "t.maxmargin", "mixed.csv", "--probabilities", "--json").json
    np.testing.assert_allclose(np.sum(shares["probabilities"], axis=1), 1.0)
    page = table("report", "t.maxmargin", "mixed.csv", "--target", "outcome", "--max-time", "1", "--json")
    assert page.code == 0 and page.json["rows"]["n"] == len(mixed())


def test_outlier_detectors_and_regressions_take_mixed_tables(table):
    frame = mixed().drop(columns="outcome").assign(price=np.arange(120) * 1.5)
    frame.to_csv("prices.csv", index=False)
    got = table("train", "prices.csv", "p.maxmargin", "--machine", "svr", "--scale", "standard", "--json")
    assert got.json["training_r2"] is not None
    assert "r2" in table("predict", "p.maxmargin", "prices.csv", "--target", "price").err
    assert table("train", "mixed.csv", "o.maxmargin", "--machine", "one-class", *FAST[:2]).code == 0
    assert set(table("predict", "o.maxmargin", "mixed.csv").out.split()) <= {"1", "-1"}


def test_numbers_can_be_categories(table):
    frame = pd.DataFrame({"zip": np.arange(60) % 3 + 1000, "size": np.arange(60.0), "y": np.arange(60) % 2})
    frame.to_csv("mixed.csv", index=False)
    got = table("train", "mixed.csv", "m.maxmargin", "--category", "zip", *FAST)
    assert got.code == 0 and "categories one-hot (zip)" in got.err
    assert load("m.maxmargin")[-1].n_features_in_ == 4
    np.testing.assert_array_equal(
        table("predict", "m.maxmargin", "mixed.csv").out.split(),
        load("m.maxmargin").predict(frame).astype(str),
    )


def test_dates_that_are_not_scaled_are_named_in_the_warning(table):
    got = table("train", "mixed.csv", "-C", "1")
    assert "warning: feature 'joined' varies" not in got.err  # days and years are alike
    mixed().assign(tiny=np.arange(120) * 1e-6).to_csv("mixed.csv", index=False)
    got = table("train", "mixed.csv", "--target", "outcome")
    assert "warning: feature 'joined' varies" in got.err and "--scale standard" in got.err


def test_a_table_without_useful_columns_is_refused(table):
    pd.DataFrame({"a": ["x"] * 4, "b": [None] * 4, "y": [0, 1, 0, 1]}).to_csv("mixed.csv", index=False)
    got = table("train", "mixed.csv")
    assert (
        got.code == 2
        and "no column is left for the features: columns left out (a: constant, b: empty)" in got.err
    )


def test_without_pandas_the_message_names_the_row_and_what_to_install(table, monkeypatch):
    table("train", "mixed.csv", "m.maxmargin", *FAST)
    real = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.split(".")[0] == "pandas":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    got = table("train", "mixed.csv")
    assert got.code == 2 and "row 1, column 'id'" in got.err and "pip install 'maxmargin[tables]'" in got.err
    got = table("predict", "m.maxmargin", "mixed.csv")
    assert got.code == 2 and "pip install 'maxmargin[tables]'" in got.err and got.err.count("\n") == 1
    assert table("train", "iris.csv").code == 0


def test_models_of_mixed_tables_are_converted_or_refused(table):
    pytest.importorskip("onnx")
    for name in ("mixed", "text"):
        table("train", f"{name}.csv", f"{name}.maxmargin", *FAST)
    assert table("convert", "mixed.maxmargin", "m.onnx").code == 0
    got = table("convert", "text.maxmargin", "t.onnx")
    assert got.code == 2 and "the column 'note' cannot be exported" in got.err
    assert table("convert", "mixed.maxmargin", "m.model").code == 2
    assert table("convert", "mixed.csv", "m.npz").code == 2


def test_solvers_are_compared_on_a_mixed_table(table):
    got = table("compare", "mixed.csv", "-s", "batch", "-s", "smo", *FAST[:2], "--json")
    assert got.code == 0 and len(got.json["solvers"]) == 2
