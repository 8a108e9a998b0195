"""Predictions of files larger than memory: block by block, equal to those of one block."""

from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maxmargin.data import blocks
from maxmargin.persistence import load

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


@pytest.fixture
def in_blocks(run, monkeypatch):
    """Run a command twice, with small blocks and with one; the results must be the same."""

    def both(*arguments: str):
        whole = run(*arguments)
        with monkeypatch.context() as patched:
            patched.setattr(blocks, "SIZE", 2000)
            count = []
            original = blocks.Block.__init__
            patched.setattr(
                blocks.Block, "__init__", lambda self, *a, **k: (count.append(1), original(self, *a, **k))[1]
            )
            parts = run(*arguments)
        assert len(count) > 2
        assert (parts.code, parts.err) == (whole.code, whole.err)
        # Kernel values may differ in their last bits with the rows that are computed together.
        words, expected = NUMBER.sub("#", parts.out), NUMBER.sub("#", whole.out)
        assert words == expected
        found, wanted = ([float(n) for n in NUMBER.findall(text)] for text in (parts.out, whole.out))
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
        return whole

    return both


@pytest.mark.parametrize("options", [(), ("--values",), ("--json",), ("--json", "--values")])
def test_predictions_and_score_do_not_depend_on_the_blocks(run, in_blocks, options):
    run("train", "iris.csv", "m.mm", "--scale", "standard")
    got = in_blocks("predict", "m.mm", "iris.csv", *options)
    assert got.code == 0 and "versicolor" in got.out
    assert "accuracy 0.9" in got.err or "--json" in options


@pytest.mark.parametrize("machine", ["one-class", "l2-one-class", "nu-svc", "crammer-singer"])
def test_every_kind_of_model_predicts_in_blocks(run, in_blocks, machine):
    run("train", "iris.csv", "m.mm", "--machine", machine)
    assert in_blocks("predict", "m.mm", "iris.csv", "--values").code == 0


def test_probabilities_are_written_in_blocks(run, in_blocks):
    run("tune", "iris.csv", "m.mm", "--no-plot")
    assert in_blocks("predict", "m.mm", "iris.csv", "--probabilities").out.startswith("prediction,prob")


@pytest.mark.parametrize(
    "options", [("--machine", "svr"), ("--machine", "quantile-svr", "--quantiles", "0.1,0.5")]
)
def test_scores_of_regressions_are_those_of_the_whole(run, in_blocks, options):
    from maxmargin.data import read

    run("train", "diabetes.csv", "m.mm", "--scale", "standard", "-C", "30", *options)
    got = in_blocks("predict", "m.mm", "diabetes.csv", "--target", "progression", "--json").json
    whole = read("diabetes.csv")
    score = got.get("r2", got.get("d2_pinball"))
    assert score == pytest.approx(load("m.mm").score(whole.X, whole.y), rel=1e-9)


def test_numbers_as_classes_are_compared_as_numbers(run, in_blocks):
    run("train", "cancer.npz", "m.mm")
    assert in_blocks("predict", "m.mm", "cancer.npz").err.startswith("accuracy 0.9")
    run("convert", "cancer.npz", "cancer.csv")
    assert in_blocks("predict", "m.mm", "cancer.csv", "--target", "y").err.startswith("accuracy 0.9")


def test_a_sparse_file_of_which_later_rows_are_wider_is_predicted_by_a_libsvm_model(run, in_blocks):
    run("train", "cancer.svm", "m.mm")
    run("convert", "m.mm", "m.model")
    lines = Path("cancer.svm").read_text().splitlines()
    lines[300] += " 40:1.5"
    Path("wide.svm").write_text("\n".join(lines) + "\n")
    assert in_blocks("predict", "m.model", "wide.svm").code == 0


def test_parquet_is_predicted_by_row_groups(run, in_blocks):
    pytest.importorskip("pyarrow")
    run("train", "iris.csv", "m.mm")
    run("convert", "iris.csv", "iris.parquet")
    assert "accuracy 0.9" in in_blocks("predict", "m.mm", "iris.parquet").err


def test_compressed_files_are_predicted_in_blocks(run, in_blocks):
    run("train", "iris.csv", "m.mm")
    Path("iris.csv.gz").write_bytes(gzip.compress(Path("iris.csv").read_bytes()))
    assert "accuracy 0.9" in in_blocks("predict", "m.mm", "iris.csv.gz").err


def test_an_error_late_in_the_file_leaves_the_output_as_it_was(run, monkeypatch):
    monkeypatch.setattr(blocks, "SIZE", 2000)
    run("train", "iris.csv", "m.mm")
    lines = Path("iris.csv").read_text().splitlines()
    lines[140] = "a" + lines[140]
    Path("bad.csv").write_text("\n".join(lines) + "\n")
    Path("out.txt").write_text("older predictions")
    before = sorted(os.listdir())
    got = run("predict", "m.mm", "bad.csv", "--output", "out.txt")
    assert got.code == 2 and "row 140" in got.err and len(got.err.splitlines()) == 1
    assert Path("out.txt").read_text() == "older predictions" and sorted(os.listdir()) == before


def largest_memory(folder, file):
    """Largest resident memory of a prediction, in megabytes."""
    script = (
        "import resource, sys; from maxmargin.cli import app; code = app.run(sys.argv[1:]); "
        "print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "predict", "m.mm", file, "-o", "out.txt", "--values"],
        cwd=folder, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    code, memory = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    return int(memory)


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss has other units elsewhere")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("format", ["csv", "npz"])
def test_memory_does_not_grow_with_the_file(run, tmp_path, format):
    run("train", "iris.csv", "m.mm", "--kernel", "linear")
    names = load("m.mm").feature_names_in_.tolist()
    rows = 1_000_000
    if format == "csv":
        lines = "".join(f"{k % 7}.25,{k % 5}.5,{k % 3}.125,1.75\n" for k in range(rows // 10))
        for file, times in (("small.csv", 10), ("large.csv", 40)):
            with open(file, "w") as out:
                out.write(",".join(names) + "\n")
                for _ in range(times):
                    out.write(lines)
    else:
        X = np.random.default_rng(0).normal(size=(rows, 4))
        np.savez("small.npz", X=X)
        np.savez("large.npz", X=np.tile(X, (4, 1)))
    small, large = (largest_memory(tmp_path, f"{size}.{format}") for size in ("small", "large"))
    size = os.path.getsize(f"large.{format}") / 1e6
    assert size > 80 and large < small + 0.25 * size
    assert Path("out.txt").read_bytes().count(b"\n") == 4 * rows + 1


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.timeout(200)
def test_long_predictions_show_their_progress_in_a_terminal(run, tmp_path):
    import pty

    run("train", "iris.csv", "m.mm", "--kernel", "linear")
    body = Path("iris.csv").read_text().split("\n", 1)
    Path("long.csv").write_text(body[0] + "\n" + body[1] * 4000)
    child, terminal = pty.fork()
    if child == 0:
        os.chdir(tmp_path)
        script = (
            "from maxmargin.cli import app, predict; predict._PATIENCE = 0.0; "
            "app.main(['predict', 'm.mm', 'long.csv', '-o', 'out.txt'])"
        )
        os.execv(sys.executable, [sys.executable, "-c", script])
    out = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        out += part
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.decode(errors="replace"))
    assert "predicting" in text and "rows" in text and "accuracy 0.9" in text
