"""Commands give the results of the library, and refuse bad input before they train."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, solvers
from maxmargin.data import read
from maxmargin.persistence import load


def test_train_and_predict_are_what_the_estimator_does(run):
    report = run("train", "wine.csv", "wine.maxmargin", "--scale", "standard", "-C", "10", "--json").json
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVC(C=10.0)).fit(X, y)
    assert report["support_vectors"] == len(model[-1].support_)
    assert report["status"] == "solved" and report["training_accuracy"] == model.score(X, y)
    got = run("predict", "wine.maxmargin", "wine.csv")
    names = load_wine().target_names
    assert got.out.split() == names[model.predict(X)].tolist()
    assert "accuracy 1" in got.err
    values = run("predict", "wine.maxmargin", "wine.csv", "--json", "--values").json["values"]
    np.testing.assert_allclose(values, model.decision_function(X), rtol=1e-10)


def test_the_bias_may_be_penalised(run):
    options = ("--loss", "squared_hinge", "--bias", "penalised", "--solver", "mdm-accelerated")
    report = run("train", "iris.csv", "i.maxmargin", *options, "--json").json
    assert report["status"] == "solved" and report["parameters"]["bias"] == "penalised"
    X, y = load_iris(return_X_y=True)
    model = SVC(loss="squared_hinge", bias="penalised", solver="mdm-accelerated").fit(X, y)
    np.testing.assert_array_equal(load("i.maxmargin").intercept_, model.intercept_)
    refused = run("train", "iris.csv", "--machine", "nu-svc", "--bias", "penalised")
    assert refused.code == 2 and "no parameter bias" in refused.err


def test_model_finds_its_columns_by_name(run):
    run("train", "iris.csv", "iris.maxmargin")
    table = read("iris.csv")
    with open("shuffled.csv", "w") as file:
        file.write(",".join([*reversed(table.names), "id"]) + "\n")
        for k, row in enumerate(table.X.tolist()):
            file.write(",".join(map(str, [*reversed(row), k])) + "\n")
    plain, shuffled = (run("predict", "iris.maxmargin", name) for name in ("iris.csv", "shuffled.csv"))
    assert plain.out == shuffled.out and "accuracy" in plain.err and "accuracy" not in shuffled.err
    load("iris.maxmargin")
    assert load("iris.maxmargin").feature_names_in_.tolist() == table.names


def test_wrong_number_of_features_is_told(run):
    run("train", "cancer.npz", "cancer.maxmargin")
    np.savez("narrow.npz", X=np.zeros((3, 4)))
    got = run("predict", "cancer.maxmargin", "narrow.npz")
    assert got.code == 2 and "4 features" in got.err and "30" in got.err


def test_dense_model_predicts_a_sparse_file_with_missing_last_features(run):
    run("train", "cancer.svm", "cancer.maxmargin")
    with open("few.svm", "w") as file:
        file.write("1 1:0.5 3:1\n")
    assert run("predict", "cancer.maxmargin", "few.svm").out.strip() in ("1", "-1")


def test_unscaled_features_give_a_warning_that_names_the_fix(run):
    got = run("train", "wine.csv")
    warnings = [line for line in got.err.splitlines() if line.startswith("warning")]
    assert len(warnings) == 1 and "--scale standard" in warnings[0] and "'proline'" in warnings[0]
    assert "warning" not in run("train", "wine.csv", "--scale", "standard").err
    assert "warning" not in run("train", "iris.csv").err


def test_cross_validation_in_train_is_that_of_the_search(run):
    report = run("train", "iris.csv", "--cv", "5", "--json").json
    from sklearn.model_selection import cross_val_score

    X, y = load_iris(return_X_y=True)
    assert report["cv_score"] == pytest.approx(cross_val_score(SVC(), X, y, cv=5).mean(), abs=0.007)


def test_class_weights_reach_the_machine(run):
    report = run("train", "iris.csv", "--class-weight", "setosa=3,virginica=0.5", "--json").json
    assert report["parameters"]["class_weight"] == {"setosa": 3.0, "virginica": 0.5}
    assert run("train", "iris.csv", "--class-weight", "balanced", "--json").code == 0


@pytest.mark.parametrize("machine", ["one-class", "l2-one-class"])
def test_the_share_of_outliers_is_an_option(run, machine):
    run("train", "iris.csv", "out.mm", "--machine", machine, "--contamination", "0.1")
    model = load("out.mm")
    assert model.contamination == 0.1
    assert 0.08 <= np.mean(model.predict(read("iris.csv").X) == -1) <= 0.1
    bad = run("train", "iris.csv", "--machine", machine, "--contamination", "much")
    assert bad.code == 2 and "contamination" in bad.err
    assert "no parameter contamination" in run("train", "iris.csv", "--contamination", "0.1").err


@pytest.mark.parametrize("machine", ["one-class", "l2-one-class"])
def test_outlier_detectors_do_not_look_at_the_target(run, machine):
    assert run("train", "iris.csv", "o.maxmargin", "--machine", machine).code == 0
    labels = run("predict", "o.maxmargin", "iris.csv").out.split()
    assert set(labels) <= {"1", "-1"} and len(labels) == 150


@pytest.mark.parametrize("machine", ["nu-svc", "all-distances", "crammer-singer", "incremental"])
def test_every_machine_is_trained_and_predicts(run, machine):
    assert run("train", "cancer.npz", "m.maxmargin", "--machine", machine).code == 0
    assert "accuracy 0.9" in run("predict", "m.maxmargin", "cancer.npz").err


@pytest.mark.parametrize(("loss", "axis"), [("hinge", "nu"), ("squared_hinge", "C")])
def test_the_usual_grid_of_all_distances_follows_the_loss(run, loss, axis):
    report = run(
        "search",
        "iris.csv",
        "all.maxmargin",
        "--machine",
        "all-distances",
        "--loss",
        loss,
        "--gamma",
        "0.1",
        "--json",
    ).json
    assert set(report["best_params"]) == {axis, "gamma"} and len(report["nodes"]) == 9
    assert load("all.maxmargin").loss == loss


def test_search_finds_what_the_library_finds(run):
    from maxmargin.model_selection import SVMSearchCV

    pytest.importorskip("matplotlib")
    report = run(
        "search", "cancer.npz", "best.maxmargin", "-C", "0.1:10:3", "--gamma", "0.001,0.01,0.1", "--json",
        "--plot", "grid.png",
    ).json  # fmt: skip
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    grid = {"C": np.geomspace(0.1, 10.0, 3), "gamma": [0.001, 0.01, 0.1]}
    search = SVMSearchCV(SVC(), grid).fit(X, y)
    assert report["best_params"] == pytest.approx(search.best_params_)
    assert report["best_score"] == pytest.approx(search.best_score_)
    assert len(report["nodes"]) == 9
    assert pytest.approx(search.best_params_["C"]) == load("best.maxmargin").C
    with open("grid.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


@pytest.mark.parametrize(
    ("scoring", "reason"),
    [
        ("neg_log_loss", "needs predict_proba"),
        ("roc_auc_ovr", "needs predict_proba"),
        ("f1", "Target is multiclass"),
        ("roc_auc", "multi_class must be"),
    ],
)
def test_a_score_that_cannot_be_computed_is_one_line_and_leaves_the_model_file(run, scoring, reason):
    Path("best.maxmargin").write_text("another model")
    got = run("search", "iris.csv", "best.maxmargin", "-C", "1,10", "--gamma", "0.1,1", "--scoring", scoring)
    assert (got.code, got.out) == (2, "")
    line = got.err.splitlines()[-1]
    assert line.startswith("maxmargin: ") and reason in line
    assert "Traceback" not in got.err and len(got.err.splitlines()) <= 2
    assert Path("best.maxmargin").read_text() == "another model"


@pytest.mark.parametrize(
    "command", [("train", "iris.csv", "m.maxmargin", "--cv", "3"), ("search", "iris.csv")]
)
def test_what_has_no_score_cannot_be_cross_validated(run, command):
    got = run(*command, "--machine", "one-class")
    assert got.code == 2
    assert "has no score" in got.err.splitlines()[-1]
    assert not Path("m.maxmargin").exists()


def test_search_of_a_pipeline_names_parameters_as_the_user_did(run):
    report = run("search", "iris.csv", "--scale", "standard", "-C", "1,10", "--json").json
    assert set(report["best_params"]) == {"C", "gamma"}
    assert len(report["nodes"]) == 14  # two C, seven widths around 1 / n_features


def test_search_says_when_the_best_is_at_the_edge_of_the_grid(run):
    edge = run("search", "cancer.npz", "-C", "1e-4,1e-3,1e-2", "--gamma", "0.001,0.03,1")
    assert "best C is at the edge" in edge.err
    assert (
        "gamma is at the edge" not in run("search", "cancer.npz", "-C", "1,10", "--gamma", "1e-6,0.01,10").err
    )


def test_search_over_names_lists_them(run):
    got = run("search", "iris.csv", "-C", "1", "--param", "kernel=rbf,linear", "--gamma", "0.1")
    assert got.code == 0 and "kernel=" in got.out


def test_warnings_that_differ_in_numbers_only_are_shown_once(capsys, monkeypatch):
    from maxmargin.cli import output

    monkeypatch.setattr(output, "_shown", set())
    for text in ("violation 1.5e-03, tol 0.001", "violation 2.25, tol 0.001", "something else"):
        output.show_warning(text, UserWarning, "", 0)
    output.show_warning("old", FutureWarning, "", 0)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["warning: violation 1.5e-03, tol 0.001", "warning: something else"]


def test_compare_lists_each_solver_and_they_agree(run):
    pytest.importorskip("matplotlib")
    report = run(
        "compare", "cancer.npz", "-s", "batch", "-s", "smo", "-s", "rosen", "--json", "--plot", "gap.png"
    ).json
    assert {row["solver"] for row in report["solvers"]} == {"batch", "smo", "rosen"}
    assert {row["status"] for row in report["solvers"]} == {"solved"}
    assert len({row["support_vectors"] // 10 for row in report["solvers"]}) == 1
    with open("gap.png", "rb") as file:
        assert file.read(4) == b"\x89PNG"


def test_compare_takes_the_fastest_of_several_runs_and_says_so(run, monkeypatch):
    from maxmargin.cli import compare

    report = run("compare", "iris.csv", "-s", "smo", "--json").json
    assert [row["runs"] for row in report["solvers"]] == [3]
    assert "fastest of 2 runs" in run("compare", "iris.csv", "-s", "smo", "--repeat", "2").out
    monkeypatch.setattr(compare, "_LONG", 0.0)
    assert "one run each" in run("compare", "iris.csv", "-s", "smo").out


def test_the_reported_seconds_do_not_include_loading(run, monkeypatch):
    calls = []
    original = SVC.fit

    def fit(self, X, y, *rest):
        calls.append(len(X))
        return original(self, X, y, *rest)

    monkeypatch.setattr(SVC, "fit", fit)
    assert run("train", "iris.csv", "--scale", "standard", "--json").json["seconds"] < 10
    assert calls[0] < 50 and calls[-1] == 150  # a small training loads what the one that is measured needs


def test_every_solver_has_a_description_of_its_own(run):
    rows = run("solvers", "--json").json["solvers"]
    built_in = [row for row in rows if row["solver"] != "my-smo"]
    assert len({row["about"] for row in built_in}) == len(built_in) and all(row["about"] for row in built_in)


def test_solvers_lists_all_and_what_they_take(run):
    report = run("solvers", "--json").json
    assert {row["solver"] for row in report["solvers"]} >= set(solvers.names()) - {"my-smo"}
    takes = {row["solver"]: row["takes"] for row in report["solvers"]}
    assert "svc" in takes["batch"] and "svc" not in takes["mdm"] and "hulls" in takes["mdm"]
    assert "one hull" in takes["mdm"] and "one hull" not in takes["simple"]
    assert "Keerthi" in run("solvers").out


def test_convert_takes_data_from_format_to_format(run):
    assert run("convert", "cancer.svm", "cancer.csv").code == 0
    assert run("convert", "cancer.csv", "again.npz", "--target", "label").code == 0
    np.testing.assert_allclose(read("again.npz").X, read("cancer.svm").X, rtol=1e-15)
    np.testing.assert_array_equal(read("again.npz").y, read("cancer.svm").y)


def test_convert_takes_models_to_libsvm_and_back(run):
    run("train", "cancer.svm", "a.maxmargin")
    assert run("convert", "a.maxmargin", "a.model").code == 0
    assert run("convert", "a.model", "b.maxmargin").code == 0
    first = run("predict", "a.maxmargin", "cancer.svm").out
    assert (
        run("predict", "a.model", "cancer.svm").out
        == run("predict", "b.maxmargin", "cancer.svm").out
        == first
    )


def test_demo_writes_tables_and_pictures(run):
    pytest.importorskip("matplotlib")
    report = run("demo", "--out", "pictures", "--json").json
    assert all(row["same_labels"] > 0.99 for row in report["training"])
    assert abs(report["search"][0]["best_score"] - report["search"][0]["best_score_sklearn"]) < 0.005
    assert len(report["pictures"]) == 4
    for name in report["pictures"]:
        with open(name, "rb") as file:
            assert file.read(4) == b"\x89PNG"


def test_a_file_with_a_huge_index_is_trained_on_and_predicted(run):
    with open("wide.svm", "w") as file:
        file.write("1 1:0.5 2000000000:1\n-1 3:1\n1 1:0.4 77:1\n-1 3:2\n")
    assert run("train", "wide.svm", "wide.maxmargin", "--kernel", "linear").code == 0
    assert run("predict", "wide.maxmargin", "wide.svm").out.split() == ["1", "-1", "1", "-1"]
    got = run("train", "wide.svm", "--scale", "standard")
    assert got.code == 2 and "--scale standard stores numbers for each of the 2,000,000,000" in got.err
    assert run("convert", "wide.svm", "wide.csv").code == 2


def test_a_file_larger_than_the_limit_is_refused_in_one_line(run, monkeypatch):
    monkeypatch.setenv("MAXMARGIN_DATA_MEMORY", "0.001")
    got = run("train", "iris.csv")
    assert got.code == 2 and got.err.count("\n") == 1 and "MAXMARGIN_DATA_MEMORY" in got.err


def test_commands_show_the_relative_gap_and_json_has_both(run):
    for command in (("train",), ("compare", "-s", "smo"), ("search", "-C", "1,10", "--gamma", "0.1")):
        report = run(command[0], "iris.csv", *command[1:], "--json").json
        report = report["solvers"][0] if "solvers" in report else report
        assert 0 < report["relative_gap"] < 0.01 and report["dual_gap"] > 0
        shown = run(command[0], "iris.csv", *command[1:]).out
        assert "relative gap" in shown and "dual gap" not in shown


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["train", "iris.csv", "nowhere/a.mm"], "there is no folder nowhere"),
        (["train", "iris.csv", "."], "is a folder"),
        (["search", "iris.csv", "a.mm", "-C", "1", "--plot", "nowhere/a.png"], "there is no folder nowhere"),
        (["search", "iris.csv", "a.mm", "-C", "abc"], "'C' parameter of SVC must be a float"),
        (["search", "iris.csv", "a.mm", "-C", "1:10"], "not first:last:count"),
        (["search", "iris.csv", "a.mm", "--param", "degree=x"], "'degree' parameter of SVC must be an int"),
        (["train", "gaps.csv", "a.mm", "--no-impute"], "row 2 has nan in column 'b'"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_trained(run, arguments, reason, monkeypatch):
    Path("gaps.csv").write_text("a,b,t\n1,2,x\n3,nan,y\n")
    monkeypatch.setattr(SVC, "fit", lambda *_, **__: pytest.fail("trained"))
    got = run(*arguments)
    assert got.code == 2 and reason in got.err.splitlines()[-1] and "Traceback" not in got.err
