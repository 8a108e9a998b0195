"""Benchmark programs compare alike: equal repetitions, all nodes, the same machine; cut fits are marked."""

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_moons

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "papers")]
import all_distances  # noqa: E402

import figures  # noqa: E402
import growth_cells  # noqa: E402
import leave_one_out  # noqa: E402
import linear  # noqa: E402
import page_tables  # noqa: E402
import page_tables_scale  # noqa: E402
import peers  # noqa: E402
import quantiles  # noqa: E402
import selection  # noqa: E402
import selection_variety  # noqa: E402
import threads  # noqa: E402
from datasets import Data  # noqa: E402


@pytest.fixture
def moons():
    X, y = make_moons(80, noise=0.3, random_state=0)
    return Data(X[:60], y[:60], X[60:], y[60:])


def search_with(scores):
    nodes = [{"C": float(k), "gamma": 1.0} for k in range(len(scores))]
    return SimpleNamespace(cv_results_={"params": nodes, "mean_test_score": np.array(scores)})


def test_the_scores_of_all_nodes_are_compared():
    found = selection.compared(search_with([0.5, 0.8, 0.9]), search_with([0.5, 0.9, 0.85]))
    assert (found["nodes compared"], found["nodes that differ"]) == (3, 2)
    assert found["largest difference of a score"] == pytest.approx(0.1)
    assert found["their score at our best node, below their best"] == pytest.approx(0.05)
    with pytest.raises(AssertionError):
        selection.compared(search_with([0.5, 0.8]), search_with([0.5]))


def test_predicted_quantiles_are_judged_by_loss_coverage_and_crossing():
    values = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0], [2.0, 1.0, 3.0], [0.0, 2.0, 1.0]])
    found = quantiles.judged(values, np.array([1.0, 2.5, 2.0, 1.0]))
    losses = [(0.05 * (1.0 + 2.5 + 1.0)) / 4, 0.5 * (1.5 + 1.0 + 1.0) / 4, (0.95 * 0.5 + 0.05 * 2.0) / 4]
    assert found == {"loss": pytest.approx(np.mean(losses)), "covered": 0.75, "crossing": 0.5}


@pytest.mark.parametrize(("most", "runs"), [(100, 3), (10, 1)])
def test_all_searches_of_a_set_run_equally_often(moons, monkeypatch, most, runs):
    asked = []

    def timed(search, data, repeat):
        asked.append((type(search).__name__, repeat))
        return 1.0, search.fit(data.X, data.y)

    monkeypatch.setattr(selection, "timed", timed)
    monkeypatch.setattr(selection, "WORKERS", 1)
    monkeypatch.setattr(selection, "SAMPLED", most)
    row = selection.one("moons", moons, 4, False, 3)
    assert {name for name, _ in asked} == {"SVMSearchCV", "GridSearchCV"}
    assert {repeat for _, repeat in asked} == {runs} == {row["runs"]}
    assert row["nodes compared"] == 16


@pytest.mark.parametrize(
    ("problem", "repeat", "fits"), [("a9a C=1", None, 1), ("usps", None, 3), ("usps", 2, 2)]
)
def test_all_machines_of_a_problem_are_fitted_equally_often(monkeypatch, problem, repeat, fits):
    asked = []

    def measured(name, who, threads, repeat, sparse=False):
        asked.append((who, threads, repeat))

    monkeypatch.setattr(peers, "measured", measured)
    monkeypatch.setattr(peers, "load", lambda source, rows: Data(np.zeros((2, 1)), None, None, None))
    assert peers.run(problem, argparse.Namespace(machines=peers.MACHINES, threads=2, repeat=repeat)) == []
    assert asked == [(who, 2, fits) for who in peers.MACHINES]


def test_libsvm_is_compared_on_the_same_machine_in_leave_one_out(moons):
    X, y = moons.X, np.where(moons.y > 0, 1.0, -1.0)
    ways = leave_one_out.trainings(X, y, gamma=1.0)
    exact = leave_one_out.IncrementalSVC(gamma=1.0).fit(X, y).leave_one_out()
    rows = range(0, 60, 10)
    for way, tolerance in (("tight", 1e-8), ("svc", 5e-3), ("libsvm_same", 5e-3)):
        _, values = leave_one_out.trained_without(rows, 60, ways[way])
        assert np.abs(values - exact[rows]).max() < tolerance, way
    _, hinge = leave_one_out.trained_without(rows, 60, ways["libsvm_hinge"])
    assert np.abs(hinge - exact[rows]).max() > 0.05  # another machine


def test_a_fit_that_was_cut_is_marked():
    row = {
        "set": "letter", "machine": "MC", "reading": "s", "C": "4", "paper": None, "accuracy": 90.0,
        "calls": {"": 1e9}, "seconds": 200.1, "status": "max_time",
    }  # fmt: skip
    assert all_distances._shown(row, 200.0)["seconds"] == "200 (cut at 200 s)"
    assert all_distances._shown(row | {"status": "solved"}, 200.0)["seconds"] == "200"


def test_a_row_of_threads_compares_a_library_with_itself():
    best = {("maxmargin", n): {"s": 3.0 / n, "rows": 10, "svs": 2} for n in (1, 2)}
    assert threads.row_of("a9a", best)["intelex"] is None
    best |= {("intelex", n): {"s": 8.0 if n == 1 else 2.0, "rows": 10, "svs": 2} for n in (1, 2)}
    row = threads.row_of("a9a", best)
    assert (row["ratio"], row["intelex"]) == (2.0, 4.0)


def test_processes_of_threads_take_turns_with_the_same_number_of_fits(monkeypatch, capsys):
    monkeypatch.setitem(threads.QUICK, "few", ("covtype-like", 300, 1.0, 1.0))
    echo = "import json, sys\nfor _ in sys.stdin: print(json.dumps({'s': 1.0, 'rows': 3}), flush=True)"
    popen = threads.subprocess.Popen
    monkeypatch.setattr(
        threads.subprocess, "Popen", lambda command, **kw: popen([sys.executable, "-c", echo], **kw)
    )
    best = threads.timed("few", [("maxmargin", 1), ("maxmargin", 2)], 3)
    assert best.keys() == {("maxmargin", 1), ("maxmargin", 2)}
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(", ")[1][0] for line in lines] == ["1", "2", "2", "1", "1", "2"]


def test_searches_over_pipelines_compare_all_nodes_and_run_equally_often(monkeypatch):
    asked = []

    def timed(search, data, repeat):
        asked.append((type(search).__name__, search.n_jobs, repeat))
        return 1.0, search.fit(data.X, data.y)

    monkeypatch.setattr(selection, "timed", timed)
    monkeypatch.setattr(selection_variety, "WORKERS", 1)
    row = selection_variety.Row(lambda: selection_variety.mixed_table(80), selection_variety.columns)
    found = selection_variety.one("table", row, 3)
    assert (found["nodes"], found["nodes compared"]) == (16, 16)
    assert found["largest difference of a score"] <= 1 / 80
    assert {name for name, _, _ in asked} == {"SVMSearchCV", "GridSearchCV"}
    assert {repeat for _, _, repeat in asked} == {3} == {found["runs"]}


def test_a_rival_that_is_not_as_good_does_not_count_in_means_and_is_marked(monkeypatch):
    rows = [
        {"row": name, "library": library, "n": 10, "seconds": seconds, "one_thread": 1.0, "reached": reached}
        for name, library, seconds, reached in [
            ("a", "maxmargin", 1.0, True),
            ("a", "LinearSVC", 2.0, True),
            ("b", "maxmargin", 1.0, True),
            ("b", "LinearSVC", 50.0, False),
        ]
    ]
    found = figures.variety(rows)
    assert (found["LinearSVC"], found["LinearSVC.rows"]) == (pytest.approx(2.0), 1)
    monkeypatch.setattr(page_tables, "rows_of", lambda name: rows)
    assert "50 (not as good)" in page_tables.variety()


@pytest.mark.parametrize("loss", linear.LOSSES)
def test_linear_models_are_compared_at_the_same_value_of_their_own_problems(loss):
    row = linear.one("synthetic", 300, loss, 1.0, 60.0)
    for name, model in row["models"].items():
        theirs = name == "LinearSVC"  # which may end after its 1,000 passes, and is random
        assert -1e-9 <= model["excess"] <= (1e-2 if theirs else 1e-4)
        assert theirs or 0 < model["seconds"]["0.001"] <= model["seconds"]["0.0001"]
    row["models"]["LinearSVC"]["seconds"]["0.001"] = 1.0
    assert linear.ratio(row, "0.001") == 1.0 / row["models"]["SVC"]["seconds"]["0.001"]
    row["models"]["LinearSVC"]["seconds"]["0.001"] = None
    assert linear.ratio(row, "0.001") is None
    assert "excess" in linear.shown(row)["LinearSVC: s to 0.001"]


def test_the_table_of_linear_models_marks_what_was_not_reached(monkeypatch, tmp_path):
    model = {"seconds": {"0.001": 2.0}, "tightest": 9.0}
    late = {"seconds": {"0.001": None}, "tightest": 9.0}
    row = {"data": "a", "n": 5, "d": 2, "loss": "hinge", "C": 1.0}
    row["models"] = {"LinearSVC": late, "SVC": model, "SVC, penalised": model}
    monkeypatch.setattr(page_tables_scale, "rows_of", lambda name: [row])
    monkeypatch.setattr(page_tables_scale, "RESULTS", tmp_path)
    assert "not recorded" in page_tables_scale.linear()
    (tmp_path / "linear.json").touch()
    assert "| 9 (not reached) | 2 | 2 | - |" in page_tables_scale.linear()


def test_rows_in_a_file_are_the_same_by_way_of_parquet(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(growth_cells, "BLOCK", 40)  # the last block has fewer
    growth_cells.prepare(100, tmp_path)
    X, y = (np.concatenate(parts) for parts in zip(*growth_cells.blocks(100), strict=True))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert mapped.dtype == np.float32 and np.array_equal(mapped, X)
    assert np.array_equal(np.load(tmp_path / "y.npy"), y)
