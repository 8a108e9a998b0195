import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

from maxmargin.persistence import load


def test_classes_are_tuned_and_the_model_is_written(run, tmp_path):
    done = run("tune", "iris.csv", "model.mm", "--plot", "tuned.png")
    assert done.code == 0, done.err
    assert "95 % interval" in done.out and "predicted setosa" in done.out
    assert "C = " in done.err and "gamma = " in done.err and "3 classes" in done.err
    bunch = load_iris()
    predicted = load("model.mm").predict(bunch.data)
    assert (predicted == bunch.target_names[bunch.target]).mean() > 0.93
    assert (tmp_path / "tuned.png").read_bytes().startswith(b"\x89PNG")


def test_json_is_one_object_with_interval_and_parameters(run):
    found = run("tune", "cancer.npz", "--json").json
    assert found["accuracy_low"] < found["accuracy"] < found["accuracy_high"]
    assert found["accuracy"] > 0.95 and {"C", "gamma", "kernel"} <= set(found["best_params"])


def test_numbers_are_a_regression(run):
    X, y = load_diabetes(return_X_y=True)
    found = run("tune", "diabetes.csv", "model.mm", "--json").json
    assert 0.4 < found["best_score"] < 0.6 and found["mean_absolute_error"] > 0
    assert "epsilon" in found["best_params"]
    assert load("model.mm").score(X, y + 0.5) > 0.4


def test_a_task_that_does_not_suit_the_target_is_refused(run):
    done = run("tune", "iris.csv", "--task", "regression")
    assert done.code == 2 and "holds text" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scoring", "nonsense"), "scoring"),
        (("--kernel", "rfb"), "kernel"),
        (("--cv", "1"), "--cv"),
    ],
)
def test_bad_options_are_refused_in_one_line(run, options, message):
    done = run("tune", "iris.csv", *options)
    assert done.code == 2 and message in done.err and len(done.err.strip().splitlines()) <= 3


def test_class_weights_belong_to_classes(run):
    done = run("tune", "diabetes.csv", "--class-weight", "balanced")
    assert done.code == 2 and "--class-weight belongs to a classification" in done.err


def test_a_missing_folder_is_noticed_before_training(run):
    done = run("tune", "iris.csv", "nowhere/model.mm")
    assert done.code == 2 and "there is no folder" in done.err


@pytest.mark.parametrize("command", ["tune", "train", "search"])
def test_the_data_file_is_never_overwritten(run, tmp_path, command):
    before = (tmp_path / "iris.csv").read_bytes()
    done = run(command, "iris.csv", "./iris.csv")
    assert done.code == 2 and "would be overwritten" in done.err
    assert (tmp_path / "iris.csv").read_bytes() == before


def test_advice_names_options_of_this_command(run):
    assert "--task classification" in run("tune", "iris.csv", "--task", "regression").err
    done = run("tune", "diabetes.csv", "--task", "classification")
    assert done.code != 0 and "--machine" not in done.err


def test_all_kernels_have_a_plot(run, tmp_path):
    done = run("tune", "iris.csv", "--kernel", "auto", "--plot", "tuned.png")
    assert done.code == 0 and (tmp_path / "tuned.png").exists()


def test_the_model_keeps_its_probabilities(run, tmp_path):
    assert run("tune", "iris.csv", "model.mm").code == 0
    done = run("predict", "model.mm", "iris.csv", "--probabilities")
    lines = done.out.splitlines()
    assert lines[0] == "prediction,probability setosa,probability versicolor,probability virginica"
    shares = np.array([[float(v) for v in line.split(",")[1:]] for line in lines[1:]])
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-9)
    found = run("predict", "model.mm", "iris.csv", "--probabilities", "--json").json
    np.testing.assert_allclose(found["probabilities"], shares)
    assert found["classes"] == ["setosa", "versicolor", "virginica"]
    loaded = load("model.mm").predict_proba(load_iris().data)
    np.testing.assert_allclose(shares, loaded, atol=1e-12)


def test_probabilities_of_a_model_without_them_are_refused(run):
    assert run("train", "iris.csv", "plain.mm").code == 0
    done = run("predict", "plain.mm", "iris.csv", "--probabilities")
    assert done.code == 2 and "maxmargin tune" in done.err


def test_a_figure_is_written_beside_the_model_unless_it_is_refused(run, tmp_path):
    assert run("tune", "iris.csv", "first.maxmargin").code == 0
    assert (tmp_path / "first.png").exists()
    assert run("tune", "iris.csv", "second.maxmargin", "--no-plot").code == 0
    assert not (tmp_path / "second.png").exists()
    done = run("tune", "iris.csv", "third.maxmargin", "--no-plot", "--plot", "a.png")
    assert done.code == 2 and "exclude each other" in done.err
    assert not (tmp_path / "third.maxmargin").exists()


@pytest.mark.parametrize("output", ["iris.csv", "model.maxmargin", "link.csv"])
def test_predictions_do_not_overwrite_data_or_model(run, tmp_path, output):
    assert run("tune", "iris.csv", "model.maxmargin", "--no-plot").code == 0
    (tmp_path / "link.csv").symlink_to(tmp_path / "iris.csv")
    before = (tmp_path / output).read_bytes()
    done = run("predict", "model.maxmargin", "iris.csv", "--output", output)
    assert done.code == 2 and "would be overwritten" in done.err
    assert (tmp_path / output).read_bytes() == before


def test_a_tuned_model_with_a_scaler_is_not_a_libsvm_file(run, tmp_path):
    assert run("tune", "iris.csv", "model.maxmargin", "--no-plot").code == 0
    done = run("convert", "model.maxmargin", "other.model")
    assert done.code == 2 and "LIBSVM files cannot hold" in done.err and len(done.err.splitlines()) <= 2
    assert not (tmp_path / "other.model").exists()
