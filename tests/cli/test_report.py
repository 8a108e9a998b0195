"""The command that writes a page about a model."""

import sys

import numpy as np
import pytest


@pytest.fixture
def model(run):
    assert run("train", "iris.csv", "iris.mm", "--scale", "standard").code == 0


def test_the_page_is_beside_the_model_and_one_line_says_so(run, model, tmp_path):
    done = run("report", "iris.mm", "iris.csv")
    assert done.code == 0, done.err
    assert done.out.startswith("iris.html: report on 150 rows, accuracy 0.9") and done.out.count("\n") == 1
    html = (tmp_path / "iris.html").read_text(encoding="utf-8")
    assert "Report on iris.mm" in html and "setosa" in html and "petal length (cm)" in html
    assert "does not keep the scores of a search" in html


def test_json_has_the_numbers_of_the_page(run, model, tmp_path):
    found = run("report", "iris.mm", "iris.csv", "-o", "page.html", "--title", "<Iris>", "--json").json
    assert found["report"] == "page.html" and found["rows"]["kind"] == "held-out"
    assert np.sum(found["confusion"]["matrix"]) == 150 and found["certificate"]["status"] == "solved"
    assert "<h1>&lt;Iris&gt;</h1>" in (tmp_path / "page.html").read_text(encoding="utf-8")
    new = run("report", "iris.mm", "iris.csv", "--rows", "new", "--json").json
    assert new["rows"]["kind"] == "new"


def test_a_regression_needs_a_target_that_is_certain(run):
    assert run("train", "diabetes.csv", "model.mm", "--machine", "svr", "-C", "50").code == 0
    done = run("report", "model.mm", "diabetes.csv")
    assert done.code == 2 and "--target progression" in done.err
    done = run("report", "model.mm", "diabetes.csv", "--target", "progression")
    assert done.code == 0 and "R2 0." in done.out


def test_an_outlier_detector_needs_no_target(run):
    assert run("train", "iris.csv", "out.mm", "--machine", "one-class").code == 0
    done = run("report", "out.mm", "iris.csv")
    assert done.code == 0 and "left out" in done.err and "report on 150 rows\n" in done.out


def test_tune_writes_a_page_with_the_scores_of_the_search(run, tmp_path):
    done = run("tune", "iris.csv", "tuned.mm", "--report", "tuned.html")
    assert done.code == 0, done.err
    html = (tmp_path / "tuned.html").read_text(encoding="utf-8")
    assert "combinations (★ chosen)" in html and "Report on SVCCV" in html and "petal width (cm)" in html
    assert run("tune", "iris.csv", "--report", "tuned.html", "--json").json["report"] == "tuned.html"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing.mm", "iris.csv"), "nothing.mm"),
        (("iris.mm", "nothing.csv"), "There is no file nothing.csv"),
        (("iris.csv", "iris.csv"), "not a model file"),
        (("iris.mm", "wine.csv"), "wine.csv"),
        (("iris.mm", "iris.csv", "-o", "nowhere/page.html"), "there is no folder"),
        (("iris.mm", "iris.csv", "-o", "."), "is a folder"),
        (("iris.mm", "iris.csv", "-o", "iris.csv"), "would be overwritten"),
        (("iris.mm", "iris.csv", "-o", "./iris.mm"), "same file"),
        (("iris.mm", "iris.csv", "--max-time", "-1"), "--max-time"),
        (("iris.mm", "iris.csv", "--rows", "old"), "--rows"),
        (("iris.mm", "iris.csv", "--target", "knid"), "knid"),
    ],
)
def test_bad_input_ends_with_code_2_and_one_line(run, model, tmp_path, arguments, message):
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    done = run("report", *arguments)
    assert done.code == 2 and message in done.err and len(done.err.strip().splitlines()) == 1, done.err
    assert not done.out
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_page_that_is_there_is_kept_if_the_report_fails(run, model, tmp_path):
    (tmp_path / "iris.html").write_text("before")
    lines = (tmp_path / "iris.csv").read_text().replace("setosa", "rose")
    (tmp_path / "other.csv").write_text(lines)
    done = run("report", "iris.mm", "other.csv")
    assert done.code == 2 and "rose" in done.err
    assert (tmp_path / "iris.html").read_text() == "before"


def test_files_of_a_tuning_must_differ(run, tmp_path):
    done = run("tune", "iris.csv", "a.html", "--report", "a.html")
    assert done.code == 2 and "same file" in done.err and not (tmp_path / "a.html").exists()


def test_without_matplotlib_the_extra_is_named(run, model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("report", "iris.mm", "iris.csv")
    assert done.code == 2 and "maxmargin[plot]" in done.err


def test_rows_of_a_single_class_are_scored(run, tmp_path):
    assert run("train", "iris.csv", "model.maxmargin").code == 0
    lines = (tmp_path / "iris.csv").read_text().splitlines()
    (tmp_path / "one.csv").write_text("\n".join([lines[0], *(line for line in lines if "setosa" in line)]))
    done = run("report", "model.maxmargin", "one.csv", "--rows", "new", "--max-time", "inf")
    assert done.code == 0 and "accuracy 1.0000" in done.out
