"""The command line as a whole: exit codes, errors in one line, pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

needs_posix = pytest.mark.skipif(os.name == "nt", reason="needs bash and signals")


def shell(command, folder, **more):
    function = f'maxmargin() {{ {sys.executable} -m maxmargin "$@"; }}'
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {function}; {command}"],
        cwd=folder, capture_output=True, text=True, timeout=200, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "nothing.csv"), "There is no file nothing.csv"),
        (("train", "iris.csv", "--target", "knid"), "Did you mean 'kind'"),
        (("train", "iris.csv", "-C", "-1"), "'C' parameter"),
        (("train", "iris.csv", "-C", "blue"), "-C"),
        (("train", "iris.csv", "--kernel", "rfb"), "did you mean 'rbf'?"),
        (("train", "iris.csv", "--gamma", "blue"), "--gamma 'blue' is unknown: use auto, scale, or a number"),
        (("train", "iris.csv", "--solver", "sm"), "did you mean 'smo'?"),
        (("train", "iris.csv", "--solver", "mdm"), "loss='squared_hinge'"),
        (("train", "iris.csv", "--machine", "svx"), "did you mean 'svr'?"),
        (("train", "iris.csv", "--machine", "nu-svc", "-C", "1"), "no parameter C"),
        (("train", "iris.csv", "--machine", "nu-svc", "--target", "0", "--no-encode"), "column 'kind'"),
        (("train", "iris.csv", "--class-weight", "rose=2"), "label=weight"),
        (("train", "iris.csv", "--scale", "big"), "--scale"),
        (("train", "iris.csv", "folder/that/is/not/there/model"), "folder/that/is/not/there"),
        (("train",), "Missing argument"),
        (("train", "iris.csv", "--colour"), "--colour"),
        (("trian", "iris.csv"), "Did you mean 'train'"),
        (("predict", "iris.csv", "iris.csv"), "iris.csv"),
        (("predict", "nothing.maxmargin", "iris.csv"), "nothing.maxmargin"),
        (("search", "iris.csv", "-C", "1:0:x"), "first:last:count"),
        (("search", "iris.csv", "-C", "0:1:3"), "first:last:count"),
        (("search", "iris.csv", "--nu", "0.1"), "no parameter nu"),
        (("search", "iris.csv", "--param", "C"), "name=values"),
        (("search", "iris.csv", "--scoring", "beauty"), "beauty"),
        (("search", "iris.csv", "--cv", "1"), "--cv"),
        (("compare", "iris.csv", "-s", "npa"), "squared_hinge"),
        (("compare", "iris.csv", "-s", "bach"), "did you mean 'batch'?"),
        (("compare", "cancer.npz", "--machine", "incremental"), "one training algorithm"),
        (("train", "diabetes.csv"), "--machine svr"),
        (("train", "diabetes.csv", "--machine", "crammer-singer"), "--machine svr"),
        (("search", "diabetes.csv"), "--machine svr"),
        (("compare", "diabetes.csv"), "--machine svr"),
        (("train", "iris.csv", "--machine", "svr"), "'kind' holds text such as 'setosa'"),
        (("search", "iris.csv", "--machine", "nu-svr"), "--machine svc"),
        (("train", "diabetes.csv", "--machine", "svr", "--epsilon", "-1"), "'epsilon' parameter"),
        (("train", "diabetes.csv", "--machine", "nu-svr", "--epsilon", "1"), "no parameter epsilon"),
        (("train", "diabetes.csv", "--machine", "svr", "--class-weight", "balanced"), "no parameter class_w"),
        (("train", "diabetes.csv", "--machine", "svr", "--loss", "hinge"), "--loss 'hinge' is unknown"),
        (("train", "diabetes.csv", "--machine", "svr", "--solver", "mdm"), "cannot train SVR"),
        (("search", "iris.csv", "--epsilon", "0.1,1"), "no parameter epsilon"),
        (("convert", "iris.csv", "iris.onnx"), "not a model"),
        (("convert", "iris.csv", "iris.what"), "suffix"),
        (("convert", "iris.csv", "iris.svm"), "only numbers"),
    ],
)  # fmt: skip
def test_bad_input_ends_with_code_2_and_one_line(run, arguments, message):
    got = run(*arguments)
    assert got.code == 2
    lines = [line for line in got.err.splitlines() if "(--target names another)" not in line]
    assert len(lines) == 1 and message in lines[0], got.err
    assert not got.out


def test_help_and_version(run):
    assert run("--version").out.startswith("maxmargin ")
    assert run("--version").code == 0
    for command in ("demo", "train", "report", "predict", "search", "solvers", "compare", "convert"):
        got = run(command, "--help")
        assert got.code == 0 and "Usage" in got.out
        assert command in run("--help").out


def test_help_comes_without_loading_the_compiler(tmp_path):
    script = (
        "import sys; from maxmargin.cli import app; app.run(['--help']); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert not {"numba", "matplotlib", "typer.testing"} & set(done.stderr.split())


@needs_posix
def test_standard_input_and_a_pipe(run, tmp_path):
    done = shell(
        "maxmargin train - model.maxmargin --json < cancer.svm && head -3 cancer.svm | "
        "maxmargin predict model.maxmargin - | cat",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    first, *labels = done.stdout.splitlines()
    assert json.loads(first)["rows"] == 569
    assert labels == ["-1", "-1", "-1"]


@needs_posix
def test_output_to_a_file_has_no_escape_codes_and_no_bar(run, tmp_path):
    done = shell("maxmargin search iris.csv -C 1,10 --gamma 0.1,1 > table.txt", tmp_path)
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "table.txt").read_text()
    assert "| gamma |" in text.replace("  ", " ") or "gamma" in text
    assert "\x1b" not in text + done.stderr and "%" not in done.stderr


@needs_posix
def test_a_closed_pipe_is_not_an_error(run, tmp_path):
    assert run("train", "cancer.svm", "model.maxmargin").code == 0
    done = shell(
        "for i in $(seq 200); do cat cancer.svm; done > many.svm; "
        "maxmargin predict model.maxmargin many.svm | head -1; echo ${PIPESTATUS[0]}",
        tmp_path,
    )
    assert done.stdout.split() == ["-1", "0"], done.stderr
    assert "Error" not in done.stderr and "Exception" not in done.stderr


@needs_posix
def test_ctrl_c_keeps_the_best_model_so_far(run, tmp_path):
    import signal

    import numpy as np

    rng = np.random.default_rng(0)
    np.savez(tmp_path / "hard.npz", X=rng.normal(size=(4000, 20)), y=rng.integers(0, 2, 4000))
    arguments = "train hard.npz m.maxmargin -C 1e6 --gamma 0.001 --solver smo-first-order"
    command = [sys.executable, "-m", "maxmargin", *arguments.split()]
    for seconds in (8, 20, 60):  # on a busy computer training may not have begun
        process = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        if out:
            break
    assert "interrupted" in out and "best solution so far" in err
    assert (tmp_path / "m.maxmargin").exists()
