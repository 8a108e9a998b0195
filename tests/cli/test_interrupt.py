"""Ctrl-C in a terminal: the best result so far, one line, exit code 130."""

from __future__ import annotations

import os
import re
import select
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest

from maxmargin.persistence import load

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
# Seconds until a command must have shown its bar, and until it must have ended.
PATIENCE = 90.0


@dataclass
class Ended:
    code: int
    lines: list[str]
    pressed: bool


def press_ctrl_c(folder, arguments, when):
    """Run a command in a pseudo-terminal of 80 columns and press Ctrl-C when its output matches `when`."""
    import pty

    child, terminal = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ["COLUMNS"] = "80"
        os.execv(sys.executable, [sys.executable, "-m", "maxmargin", *arguments])
    out, pressed, began = b"", False, time.monotonic()
    while time.monotonic() - began < 2 * PATIENCE:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        if ready:
            try:
                part = os.read(terminal, 65536)
            except OSError:  # the child has closed its end
                break
            if not part:
                break
            out += part
        if not pressed and re.search(when, ESCAPES.sub(b"", out)):
            os.write(terminal, b"\x03")  # the terminal sends SIGINT
            pressed = True
    else:
        os.kill(child, 9)
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    text = ESCAPES.sub(b"", out).decode(errors="replace")
    lines = [line.rstrip("\r").rpartition("\r")[2].rstrip() for line in text.split("\n")]
    return Ended(code, [line for line in lines if line], pressed)


@pytest.fixture(params=[3000])
def hard(tmp_path, request):
    rng, n = np.random.default_rng(0), request.param
    X = rng.normal(size=(n, 20))
    y = (X[:, 0] + rng.normal(size=n) > 0).astype(int)
    np.savez(tmp_path / "hard.npz", X=X, y=y)
    return tmp_path


def check(ended, folder):
    """What all commands have in common after Ctrl-C."""
    text = "\n".join(ended.lines)
    assert ended.pressed and ended.code == 130, text
    assert [line for line in ended.lines if line.startswith("maxmargin: interrupted")] == [ended.lines[-1]], (
        text
    )
    for unwanted in ("Warning", "warning", "nan", "edge of the grid", "Traceback", "cancelled"):
        assert unwanted not in text
    model = load(folder / "m.mm")
    model = model[-1] if hasattr(model, "steps") else model
    assert len(model.support_) > 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_search_keeps_the_best_of_what_is_done(hard, workers):
    arguments = ["search", "hard.npz", "m.mm", "-C", "0.1:1000:25", "--gamma", "0.01:1:20", "-j", workers]
    ended = press_ctrl_c(hard, arguments, rb"best 0\.\d")
    check(ended, hard)
    done, planned = re.search(r"after ([\d,]+) of ([\d,]+) fits", ended.lines[-1]).groups()
    assert planned == "2,500" and 0 < int(done.replace(",", "")) < 2500
    assert any(line.startswith("best score") for line in ended.lines)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_cross_validation_in_train_gives_the_score_of_the_folds_that_are_done(hard, workers):
    arguments = ["train", "hard.npz", "m.mm", "--cv", "40", "-C", "1000", "--gamma", "0.05", "-j", workers]
    ended = press_ctrl_c(hard, arguments, rb" [1-9]\d*/40 ")
    check(ended, hard)
    done = int(re.search(r"after (\d+) of 40 folds", ended.lines[-1])[1])
    assert 0 < done < 40
    assert any(re.match(rf"cv folds +{done}$", line) for line in ended.lines)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("hard", [40_000], indirect=True)  # less is tuned before anybody can press a key
@pytest.mark.parametrize("workers", ["1", "2"])
def test_tune_keeps_the_best_parameters_so_far(hard, workers):
    arguments = ["tune", "hard.npz", "m.mm", "--no-plot", "--kernel", "auto", "-j", workers]
    ended = press_ctrl_c(hard, arguments, rb"[1-9]\d* tried")
    check(ended, hard)
    assert any(line.startswith("best score") for line in ended.lines)


@pytest.mark.timeout(300)
def test_before_the_first_result_nothing_is_written(hard):
    (hard / "m.mm").write_text("an older model")
    ended = press_ctrl_c(hard, ["tune", "hard.npz", "m.mm"], rb"loading|reading")
    assert ended.code == 130 and ended.lines[-1] == "maxmargin: interrupted"
    assert (hard / "m.mm").read_text() == "an older model"
