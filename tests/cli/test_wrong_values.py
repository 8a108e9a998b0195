"""Every option of every command, with wrong values: exit code 2, one short line, and no file is changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.main import get_command

from maxmargin.cli.app import app

# What each command needs beside the option that is tried.
ARGUMENTS = {
    "tune": ("t.csv", "out.mm"),
    "report": ("model.mm", "t.csv"),
    "train": ("t.csv", "out.mm"),
    "predict": ("model.mm", "t.csv"),
    "search": ("t.csv", "out.mm", "-C", "1,10", "--gamma", "1"),
    "compare": ("t.csv", "-s", "smo"),
    "convert": ("t.csv", "out.npz"),
    "demo": (),
    "warmup": (),
}
# Options that take any text.
FREE = {("report", "--title"), ("demo", "--out")}
# Options of other estimators than the first.
ESTIMATORS = {
    "--nu": "nu-svc", "--quantile": "quantile-svr", "--quantiles": "quantile-svr",
    "--contamination": "one-class", "--epsilon": "svr",
}  # fmt: skip
FILES = ("--plot", "--report", "--output", "--checkpoint", "--out")


def options():
    for name, command in get_command(app).commands.items():
        for param in command.params:
            if param.opts[0].startswith("-") and not getattr(param, "is_flag", False):
                yield name, param.opts[-1] if param.opts[-1].startswith("--") else param.opts[0]


OPTIONS = sorted(set(options()))


@pytest.fixture
def small(run):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > 0 else 'no'}" for a, b in rng.normal(size=(30, 2))]
    Path("t.csv").write_text("\n".join(["a,b,kind", *rows]) + "\n")
    assert run("train", "t.csv", "model.mm").code == 0
    Path("out.mm").write_text("an older model")
    Path("out.npz").write_text("older data")
    return run


def wrong(command, option):
    """Values that cannot be right."""
    if option in FILES:
        return ["nowhere/file", "."]
    if option in ("--solver", "--kernel", "--loss", "--bias", "--machine", "--scoring", "--scale"):
        return ["blue", "rfb"]
    if option == "--param":
        return ["blue", "blue=1", "degree=", "kernel=rfb"]
    if option in ("-C", "--tol", "--cache-size", "--gamma", "--nu", "--epsilon", "--quantile"):
        return ["blue", "nan", "-1", "1:100"]
    if option == "--n-jobs":
        return ["blue", "0", "1.5"]
    return ["blue", "-1000000"]


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [(c, o, v) for c, o in OPTIONS if (c, o) not in FREE for v in wrong(c, o)],
)
def test_a_wrong_value_ends_with_code_2_and_one_line_and_changes_no_file(small, command, option, value):
    if command == "demo" or (option, value) in {("--coef0", "-1000000"), ("--out", ".")}:
        pytest.skip("a right value")
    before = {path: path.read_bytes() for path in Path().iterdir() if path.is_file()}
    arguments = list(ARGUMENTS[command])
    if option in arguments:
        at = arguments.index(option)
        del arguments[at : at + 2]
    if command in ("train", "search", "compare") and option in ESTIMATORS:
        arguments += ["--machine", ESTIMATORS[option]]
    if command == "compare" and option == "--max-time":
        value = {"-1000000": "-1"}.get(value, value)
    got = small(command, *arguments, option, value)
    assert got.code == 2, (got.out, got.err)
    lines = [line for line in got.err.splitlines() if line.startswith("maxmargin: ")]
    assert len(lines) == 1 and got.err.splitlines()[-1] == lines[0]
    assert len(lines[0]) < 400 and "Traceback" not in got.err
    assert not got.out
    assert {path: path.read_bytes() for path in Path().iterdir() if path.is_file()} == before


def test_every_command_with_options_is_tried():
    assert {command for command, _ in OPTIONS} <= set(ARGUMENTS)
    assert len(OPTIONS) > 80


@pytest.mark.parametrize("command", ["train", "search", "tune"])
@pytest.mark.parametrize("missing", ["model", "data"])
def test_files_and_folders_that_are_missing_are_found_before_training(small, command, missing):
    files = ("t.csv", "nowhere/m.mm") if missing == "model" else ("nothing.csv", "m.mm")
    got = small(command, *files)
    assert got.code == 2 and ("nowhere" in got.err or "nothing.csv" in got.err)


def test_an_error_that_nobody_expected_is_one_line_with_code_1(small, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("maxmargin.cli.training_data.prepare", broken)
    got = small("train", "t.csv")
    assert got.code == 1 and len(got.err.splitlines()) == 1
    assert "unexpected RuntimeError: two lines" in got.err and "MAXMARGIN_TRACEBACK=1" in got.err
    monkeypatch.setenv("MAXMARGIN_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        small("train", "t.csv")


def test_a_solver_that_does_not_suit_is_one_line_in_searches_too(small):
    for command in (("search", "t.csv", "-C", "1,10", "--gamma", "1"), ("train", "t.csv", "--cv", "3")):
        got = small(*command, "--solver", "mdm")
        assert got.code == 2 and "loss='squared_hinge'" in got.err.splitlines()[-1]
        assert "All the" not in got.err and "Traceback" not in got.err and len(got.err) < 600


@pytest.mark.parametrize(
    ("option", "value", "nearest"),
    [
        ("--scoring", "rocauc", "roc_auc"),
        ("--scoring", "neg_logloss", "neg_log_loss"),
        ("--kernel", "rfb", "rbf"),
        ("--machine", "one_class", "one-class"),
        ("--solver", "smo_first_order", "smo-first-order"),
        ("--param", "class_wight=balanced", "class_weight"),
    ],
)
def test_the_nearest_name_is_suggested(small, option, value, nearest):
    assert f"did you mean {nearest!r}?" in small("search", "t.csv", option, value).err


def test_a_score_that_needs_probabilities_says_what_to_do(small):
    got = small("search", "t.csv", "-C", "1,10", "--gamma", "1", "--scoring", "neg_log_loss")
    assert got.code == 2 and "maxmargin tune" in got.err
    with_them = ("--scoring", "neg_log_loss", "--param", "probability=true", "--json")
    assert small("search", "t.csv", "-C", "1,10", "--gamma", "1", *with_them).code == 0
    assert small("tune", "t.csv", "--scoring", "neg_log_loss", "--json").code == 0


def test_a_score_for_two_classes_names_those_for_more(run):
    got = run("search", "iris.csv", "-C", "1,10", "--gamma", "1", "--scoring", "f1")
    assert got.code == 2 and "use f1_macro, f1_weighted, f1_micro" in got.err


def test_a_model_does_not_go_to_a_file_called_minus(small):
    got = small("convert", "model.mm", "-", "--to", "onnx")
    assert got.code == 2 and "standard output" in got.err and not Path("-").exists()


def test_a_picture_of_an_unknown_format_is_refused_before_training(small):
    pytest.importorskip("matplotlib")
    got = small("compare", "t.csv", "--plot", "a.xyz")
    assert got.code == 2 and ".png" in got.err
