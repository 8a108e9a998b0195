"""Commands train and score regressions."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVR, IncrementalSVR, NuSVR, QuantileSVR
from maxmargin.model_selection import SVMSearchCV
from maxmargin.persistence import load, save

X, Y = load_diabetes(return_X_y=True)
Y = Y + 0.5  # as in the file: no classes


def numbers(text):
    return np.array([float(line) for line in text.split()])


def write(name, header, rows):
    with open(name, "w") as file:
        file.write(",".join(header) + "\n")
        file.writelines(",".join(map(repr, row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("options", "machine"),
    [
        (["--machine", "svr", "--epsilon", "10"], SVR(C=50.0, epsilon=10.0)),
        (
            ["--machine", "svr", "--loss", "squared_epsilon_insensitive"],
            SVR(C=50.0, loss="squared_epsilon_insensitive"),
        ),
        (["--machine", "nu-svr", "--nu", "0.3"], NuSVR(C=50.0, nu=0.3)),
        (["--machine", "quantile-svr", "--quantile", "0.8"], QuantileSVR(C=50.0, quantile=0.8)),
    ],
)
def test_train_and_predict_are_what_the_regressor_does(run, options, machine):
    report = run(
        "train", "diabetes.csv", "m.maxmargin", "--scale", "standard", "-C", "50", *options, "--json"
    )
    model = make_pipeline(StandardScaler(), machine).fit(X, Y)
    assert report.code == 0 and report.json["status"] == "solved" and report.json["classes"] is None
    assert report.json["support_vectors"] == len(model[-1].support_)
    score = "d2_pinball" if isinstance(machine, QuantileSVR) else "r2"
    assert report.json[f"training_{score}"] == pytest.approx(model.score(X, Y))
    assert report.json["epsilon"] == pytest.approx(getattr(model[-1], "epsilon_", None))
    got = run("predict", "m.maxmargin", "diabetes.csv", "--target", "progression")
    np.testing.assert_allclose(numbers(got.out), model.predict(X), rtol=1e-9)
    assert f"{score} {model.score(X, Y):.4g}" in got.err


def test_rows_that_come_and_go_are_trained_searched_and_exported(run):
    write("d.csv", ["a", "b", "y"], [[*map(float, x[:2]), float(y)] for x, y in zip(X[:90], Y, strict=False)])
    report = run(
        "train", "d.csv", "m.maxmargin", "--machine", "incremental-svr", "-C", "50", "--cv", "3", "--json"
    )
    model = IncrementalSVR(50.0).fit(X[:90, :2], Y[:90])
    assert report.code == 0 and report.json["training_r2"] == pytest.approx(model.score(X[:90, :2], Y[:90]))
    assert np.isfinite(report.json["cv_score"])
    assert run("convert", "m.maxmargin", "m.onnx").code == 0
    found = run("search", "d.csv", "--machine", "incremental-svr", "-C", "5,50", "--gamma", "1", "--json")
    assert found.code == 0 and found.json["fits"] == 2 * 5


def test_a_column_that_is_left_over_is_no_target_unless_its_name_says_so(run):
    run("train", "diabetes.csv", "m.maxmargin", "--machine", "svr", "-C", "1000")
    names = load_diabetes().feature_names
    write("serial.csv", [*names, "id"], np.column_stack([X, np.arange(len(X))]).tolist())
    write("called.csv", [*names, "target"], np.column_stack([X, Y]).tolist())
    write("bare.csv", names, X.tolist())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the model knows its features by name
        expected = load("m.maxmargin").predict(X)
    for name in ("serial.csv", "called.csv", "bare.csv"):
        got = run("predict", "m.maxmargin", name)
        np.testing.assert_array_equal(numbers(got.out), expected)
        assert ("r2" in got.err) == (name == "called.csv")
        assert ("--target id" in got.err) == (name == "serial.csv")
    assert "r2 -" in run("predict", "m.maxmargin", "serial.csv", "--target", "id").err
    report = run("predict", "m.maxmargin", "called.csv", "--json").json
    assert report["r2"] == pytest.approx(r2_score(Y, expected))
    assert set(run("predict", "m.maxmargin", "serial.csv", "--json").json) == {"predictions"}


def test_targets_that_give_no_score_are_told_or_passed_over(run):
    run("train", "diabetes.csv", "m.maxmargin", "--machine", "svr", "-C", "1000")
    names = load_diabetes().feature_names
    with open("text.csv", "w") as file:
        file.write(",".join([*names, "kind"]) + "\n")
        file.writelines(",".join([*map(repr, row), "rose"]) + "\n" for row in X[:5].tolist())
    got = run("predict", "m.maxmargin", "text.csv", "--target", "kind")
    assert got.code == 0 and len(got.out.split()) == 5 and "no score" in got.err
    np.savez("data.npz", X=X, y=Y)
    assert run("train", "data.npz", "n.maxmargin", "--machine", "svr", "-C", "1000").code == 0
    assert "r2 0." in run("predict", "n.maxmargin", "data.npz").err  # the file says which array it is
    np.savez("zeros.npz", X=X, y=np.zeros(len(X)))  # what SVMlight files have in place of targets
    assert "r2" not in run("predict", "n.maxmargin", "zeros.npz").err


def test_several_quantiles_are_trained_and_predicted_as_columns(run):
    options = ["--machine", "quantile-svr", "--quantiles", "0.1,0.5,0.9", "-C", "50", "--json"]
    report = run("train", "diabetes.csv", "q.maxmargin", *options).json
    model = QuantileSVR(quantiles=[0.1, 0.5, 0.9], C=50.0).fit(X, Y)
    assert report["training_d2_pinball"] == pytest.approx(model.score(X, Y), rel=1e-6)
    found = run("predict", "q.maxmargin", "diabetes.csv", "--target", "progression")
    lines = found.out.split()
    assert lines[0] == "prediction0,prediction1,prediction2" and "d2_pinball" in found.err
    np.testing.assert_allclose(
        [[float(v) for v in line.split(",")] for line in lines[1:]], model.predict(X), rtol=1e-6
    )
    wrong = run("train", "diabetes.csv", "--machine", "quantile-svr", "--quantiles", "low,high")
    assert wrong.code != 0 and "--quantiles low,high" in wrong.err
    wrong = run("train", "diabetes.csv", "--machine", "quantile-svr", "--quantiles", "0.9,0.1")
    assert wrong.code != 0 and "ascend" in wrong.err


def test_a_model_of_several_targets_predicts_a_column_for_each(run):
    model = SVR(C=100.0).fit(X, np.column_stack([Y, -Y]))
    save(model, "two.maxmargin")
    found = run("predict", "two.maxmargin", "diabetes.csv", "--target", "progression")
    lines = found.out.split()
    assert found.code == 0 and lines[0] == "prediction0,prediction1" and "r2" not in found.err
    np.testing.assert_allclose(
        [[float(v) for v in line.split(",")] for line in lines[1:]], model.predict(X), rtol=1e-6
    )


def test_values_of_a_regression_are_its_predictions(run):
    run("train", "diabetes.csv", "m.maxmargin", "--machine", "nu-svr")
    plain, values = (
        run("predict", "m.maxmargin", "diabetes.csv"),
        run("predict", "m.maxmargin", "diabetes.csv", "--values"),
    )
    assert values.code == 0 and values.out == plain.out


def test_search_scores_by_r2_and_epsilon_is_searched_if_asked_for(run):
    report = run(
        "search", "diabetes.csv", "best.maxmargin", "--machine", "svr", "-C", "10,100", "--gamma", "1,10",
        "--epsilon", "1,20", "--json",
    ).json  # fmt: skip
    grid = {"C": [10, 100], "gamma": [1, 10], "epsilon": [1, 20]}
    search = SVMSearchCV(SVR(), grid).fit(X, Y)
    assert report["best_params"] == search.best_params_ and len(report["nodes"]) == 8
    assert report["best_score"] == pytest.approx(search.best_score_)
    assert load("best.maxmargin").epsilon == search.best_params_["epsilon"]


def test_the_usual_grid_of_a_regression_follows_the_units_of_the_target(run):
    names = load_diabetes().feature_names
    found = []
    for unit in (1.0, 1000.0):
        write("scaled.csv", [*names, "y"], np.column_stack([X, unit * Y]).tolist())
        report = run(
            "search", "scaled.csv", "--machine", "nu-svr", "--gamma", "1", "--cv", "2", "--json"
        ).json
        assert len(report["nodes"]) == 9 and set(report["best_params"]) == {"C", "gamma"}
        found.append((report["best_params"]["C"] / unit, report["best_score"]))
    assert found[0] == pytest.approx(found[1], rel=1e-3)
    assert run("search", "scaled.csv", "--machine", "nu-svr", "--gamma", "1", "--cv", "2", "--nu", "0.3,0.6",
               "--json").json["fits"] == 36  # fmt: skip


def test_compare_trains_regressions_with_all_solvers_that_can(run):
    report = run("compare", "diabetes.csv", "--machine", "svr", "-C", "10", "--epsilon", "20", "--json").json
    assert {row["solver"] for row in report["solvers"]} >= {"batch", "smo", "rosen", "simple"}
    assert {row["status"] for row in report["solvers"]} == {"solved"} and "mdm" in report["refused"]


def test_solvers_tells_which_take_the_duals_of_regression(run):
    report = run("solvers", "--json").json
    takes = {row["solver"]: row["takes"] for row in report["solvers"]}
    assert {"svr", "squared_epsilon", "nu-svr"} <= set(takes["batch"])
    assert "svr" in takes["simple"] and "nu-svr" not in takes["simple"] and "svr" not in takes["mdm"]
    assert {"svr", "nu-svr"} <= {row["machine"] for row in report["machines"]}


def test_convert_takes_regressions_to_libsvm_and_back(run):
    np.savez("data.npz", X=X, y=Y)
    run("train", "data.npz", "a.maxmargin", "--machine", "svr", "-C", "100")
    assert run("convert", "a.maxmargin", "a.model").code == 0
    assert run("convert", "a.model", "b.maxmargin").code == 0
    first, *others = (
        numbers(run("predict", f, "data.npz").out) for f in ("a.maxmargin", "a.model", "b.maxmargin")
    )
    for other in others:
        np.testing.assert_allclose(other, first, rtol=1e-10)


def test_targets_in_unlucky_units_give_a_warning_that_names_the_fix(run):
    names = load_diabetes().feature_names
    write("narrow.csv", [*names, "y"], np.column_stack([X, 1e-4 * Y]).tolist())
    got = run("train", "narrow.csv", "--machine", "svr")
    assert got.code == 0 and "warning" in got.err and "--epsilon" in got.err
    assert "warning" not in run("train", "narrow.csv", "--machine", "svr", "--epsilon", "0.001").err
    arguments = ["search", "narrow.csv", "--machine", "svr", "-C", "1", "--gamma", "1", "--cv", "2"]
    assert "--epsilon" in run(*arguments).err
    assert "warning" not in run(*arguments, "--epsilon", "1e-4,1e-3").err
    write("wide.csv", [*names, "y"], np.column_stack([X, 1e6 * Y]).tolist())
    assert "--tol" in run("train", "wide.csv", "--machine", "svr").err
    assert "warning" not in run("train", "wide.csv", "--machine", "svr", "--tol", "100").err


def test_a_classifier_of_very_many_classes_asks_whether_they_are_quantities(run):
    write("whole.csv", ["a", "y"], [[float(k % 7), k // 2] for k in range(160)])
    got = run("train", "whole.csv", "--max-time", "5")
    assert got.code == 0 and "80 different values" in got.err and "--machine svr" in got.err
