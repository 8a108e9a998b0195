"""The demonstration says what it measures, is never silent for long, and ends with one line on Ctrl-C."""

import sys
import time
from types import SimpleNamespace

import pytest

from maxmargin.cli import demo
from maxmargin.cli.demo import fitted, percent_above

ROW = {
    "data": "digits", "rows": 1347, "seconds_sklearn": 0.2, "seconds": 0.1, "ratio": 2.0,
    "support_vectors": 9, "dual_gap": 1.0, "relative_gap": 3.1e-3,
    "accuracy_sklearn": 0.98, "accuracy": 0.99, "same_labels": 0.99, "held_out_rows": 100,
}  # fmt: skip
FOUND = {
    "data": "digits", "rows": 1347, "seconds_sklearn": 2.0, "seconds": 0.5, "ratio": 4.0,
    "best_score_sklearn": 0.98, "best_score": 0.98, "best_params": {"C": 10.0, "gamma": 0.1},
}  # fmt: skip


@pytest.fixture
def quick(monkeypatch):
    """A demonstration whose measurements are given."""
    monkeypatch.setattr(demo, "_data", lambda: [("digits",), ("wine",)])
    monkeypatch.setattr(demo, "_train", lambda name: {**ROW, "data": name, "ratio": 2.0 + (name == "wine")})
    monkeypatch.setattr(demo, "_search", lambda: (FOUND, None))
    monkeypatch.setattr(demo, "_draw", lambda out, search, say: [str(out / "a.png")])


def test_the_story_has_four_parts_in_lines_of_at_most_80_columns(run, quick):
    got = run("demo")
    lines = got.out.splitlines()
    assert got.code == 0 and max(map(len, lines)) <= 80
    assert [line[:2] for line in lines if line[:1].isdigit()] == ["1.", "2.", "3.", "4."]
    text = " ".join(lines)
    assert "maxmargin was 2.0 to 3.0 times as fast" in text
    assert "the same label for 198 of 200 rows" in text
    assert "maxmargin is right for 198 of them, scikit-learn for 196." in text
    assert "is 3.1e-03: the objective is at most 0.31 % above the lowest possible value" in text
    assert "SVMSearchCV 0.50 s, 4.0 times as fast" in text and "C = 10, gamma = 0.1" in text
    assert lines[-1].startswith("Done in ")


def test_lines_are_not_longer_than_the_terminal(run, quick, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = run("demo").out.splitlines()
    table = lines.index("1. Training: SVC(C=10), seconds")
    assert max(map(len, lines[:table] + lines[table + 4 :])) <= 60


@pytest.mark.parametrize(("load", "warned"), [(100.0, True), (0.0, False), (None, False)])
def test_a_busy_computer_is_noticed(run, quick, monkeypatch, load, warned):
    def average():
        if load is None:
            raise OSError
        return load, load, load

    monkeypatch.setattr(demo.os, "getloadavg", average, raising=False)
    assert ("the times below mean little" in run("demo").out) == warned


def test_json_has_the_numbers_and_nothing_else_is_printed(run, quick):
    report = run("demo", "--json").json
    assert set(report) == {"training", "search", "pictures", "seconds"}
    assert report["search"] == [FOUND] and [row["ratio"] for row in report["training"]] == [2.0, 3.0]


@pytest.mark.parametrize("part", ["_data", "_train", "_search", "_draw"])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_interrupted_demonstration_ends_with_one_line(run, quick, monkeypatch, part, options):
    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, part, stop)
    got = run("demo", *options)
    assert got.code == 130
    assert got.err.count("\n") == 1 and got.err.startswith("maxmargin: interrupted after ")


@pytest.mark.parametrize("how", [{"status_": "interrupted"}, {"interrupted_": True}])
def test_an_interrupted_fit_does_not_go_on_with_the_best_so_far(how):
    assert fitted(SimpleNamespace(fit=lambda X, y: None, status_="solved"), [], []) is not None
    with pytest.raises(KeyboardInterrupt):
        fitted(SimpleNamespace(fit=lambda X, y: None, **how), [], [])


def test_long_work_is_reported_again_and_again_and_short_work_is_not(monkeypatch, capsys):
    monkeypatch.setattr(demo, "_SILENT", 0.05)
    with demo._busy("waiting"):
        time.sleep(0.4)
    assert capsys.readouterr().err.count("... waiting, 0 s\n") >= 2
    monkeypatch.setattr(demo, "_SILENT", 30.0)
    began = time.perf_counter()
    with demo._busy("waiting"):
        pass
    assert time.perf_counter() - began < 10.0 and not capsys.readouterr().err


def test_without_matplotlib_the_rest_is_shown_and_the_extra_is_named(run, quick, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "_data", lambda: [("digits",)])
    monkeypatch.setattr(demo, "_train", lambda name: ROW)
    monkeypatch.setattr(demo, "_search", lambda: (FOUND, None))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    got = run("demo", "--out", "pictures")
    assert got.code == 0 and "pip install 'maxmargin[plot]'" in got.out and "Done in" in got.out
    assert not (tmp_path / "pictures").exists()
    assert run("demo", "--json").json["pictures"] == []


def test_every_picture_is_written_and_described(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    from sklearn.datasets import make_moons

    from maxmargin import SVC
    from maxmargin.model_selection import SVMSearchCV

    search = SVMSearchCV(SVC(), {"C": [1, 10], "gamma": [0.1, 1]}, progress=False).fit(*make_moons(60))
    names = demo._draw(tmp_path, search, demo._say)
    lines = capsys.readouterr().out.splitlines()
    for name in names:
        with open(name, "rb") as file:
            assert file.read(4) == b"\x89PNG"
        at = lines.index(f"  {name}:") if f"  {name}:" in lines else lines.index(f"{name}:")
        assert len(lines[at + 1].strip()) > 40
    assert {name.rsplit("/")[-1] for name in names} == {
        "boundary.png", "search.png", "trace.png", "hulls.png",
    }  # fmt: skip


def test_a_file_in_place_of_the_folder_is_noticed_before_anything_is_trained(run, monkeypatch):
    monkeypatch.setattr(demo, "_data", lambda: pytest.fail("trained"))
    for place in ("iris.csv", "iris.csv/pictures"):
        got = run("demo", "--out", place)
        assert got.code == 2 and "a file is in the way" in got.err and got.err.count("\n") == 1


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (3.1e-3, "0.31"),
        (3.101e-3, "0.32"),
        (2e-7, "0.00002"),
        (0.05, "5"),
        (0.0, "0.000000001"),
        (9.99e-4, "0.1"),
    ],
)
def test_a_gap_in_percent_is_rounded_up(gap, words):
    assert percent_above(gap) == words
    assert float(words) >= 100 * gap * (1 - 1e-9)
