"""The progress bar of a search, in a pseudo terminal and without one."""

import os
import pickle
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from sklearn.datasets import make_classification

from maxmargin.model_selection import progress
from maxmargin.model_selection.counts import Counts
from maxmargin.model_selection.progress import ProgressBar
from maxmargin.solvers.c_path.path import solve_folds

SEARCH = """
import sys
import numpy as np
from sklearn.datasets import make_classification
from maxmargin import SVC
from maxmargin.model_selection import SVMSearchCV

n, gammas, progress = int(sys.argv[1]), [0.05, 0.02, 0.01][: int(sys.argv[2])], eval(sys.argv[3])
X, y = make_classification(n, 20, flip_y=0.1, random_state=0)
grid = {"C": [0.1, 1.0, 10.0, 100.0], "gamma": gammas}
print("begin", file=sys.stderr, flush=True)
search = SVMSearchCV(SVC(), grid, cv=3, n_jobs=2, progress=progress).fit(X, y)
print("results so far" if search.interrupted_ else "end", file=sys.stderr)
"""
COMMAND = """
import sys
from maxmargin.cli.app import main
from maxmargin.model_selection.progress import ProgressBar

ProgressBar.patience = 0.0  # whatever the speed of the computer
print("begin", file=sys.stderr, flush=True)
main()
"""
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Screen:
    """Output of a program in a terminal, with the seconds since it wrote "begin"."""

    def __init__(self, *arguments, program=("-c", SEARCH), interrupt_at=None):
        pty = pytest.importorskip("pty")
        master, slave = pty.openpty()
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
        began, self.parts, interrupted = None, [], False
        with subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)], stdin=slave, stdout=slave, stderr=slave,
            env=environment,
        ) as process:  # fmt: skip
            os.close(slave)
            while True:
                try:
                    text = os.read(master, 1 << 16).decode(errors="replace")
                except OSError:  # the other end was closed
                    break
                now = time.monotonic()
                began = now if began is None and "begin" in text else began
                if began is not None:
                    self.parts.append((now - began, text))
                    if interrupt_at is not None and interrupt_at in text and not interrupted:
                        process.send_signal(signal.SIGINT)
                        interrupted = True
        os.close(master)
        self.code = process.returncode
        self.text = "".join(text for _, text in self.parts)

    def counts(self):
        """Seconds and finished nodes, as far as they change."""
        out = []
        for seconds, text in self.parts:
            for done in re.findall(r"(\d+)/\d+", text):
                if not out or out[-1][1] != int(done):
                    out.append((seconds, int(done)))
        return out


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Compile before anything is timed."""
    subprocess.run([sys.executable, "-c", SEARCH, "200", "1", "False"], check=True, capture_output=True)


def test_the_bar_of_a_search_opens_soon_and_moves_within_a_chain():
    screen = Screen(9000, 1, None)  # a single chain of four nodes on three folds, for seconds
    assert screen.code == 0, screen.text
    counts = screen.counts()
    assert counts[0][0] < 2.0
    done = [count for _, count in counts]
    assert done == sorted(done) and done[0] < 12 and done[-1] == 12
    assert any(0 < count < 12 for count in done)
    assert "training" in screen.text and "refit" in screen.text
    assert HIDE in screen.text and screen.text.rindex(SHOW) > screen.text.rindex(HIDE)


def test_ctrl_c_is_shown_and_gives_the_cursor_back():
    screen = Screen(8000, 3, None, interrupt_at="training")  # long: it must not end before the signal comes
    assert screen.code == 0, screen.text
    assert "interrupted" in screen.text and "results so far" in screen.text
    assert screen.text.rindex(SHOW) > screen.text.rindex(HIDE)


@pytest.mark.parametrize("command", ["train {} --cv 3", "search {} -C 1,10,100 --gamma 0.05 --cv 3"])
def test_commands_show_the_bar(command, tmp_path):
    X, y = make_classification(3000, 20, flip_y=0.1, random_state=0)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    screen = Screen(*command.format(tmp_path / "data.npz").split(), program=("-c", COMMAND))
    assert screen.code == 0, screen.text
    assert "loading" in screen.text and "reading data" in screen.text
    assert screen.counts()[-1][1] == (3 if "train" in command else 9)
    assert screen.text.rindex(SHOW) > screen.text.rindex(HIDE)


def test_a_bar_can_be_refused():
    text = Screen(2000, 1, False).text
    assert "end" in text and "search" not in text and HIDE not in text


@pytest.mark.parametrize(("seconds", "shown"), [(0.0, False), (1.0, True)])
def test_a_short_search_has_no_bar(seconds, shown, monkeypatch, capfd):
    monkeypatch.setattr(progress, "is_terminal", lambda stream: True)
    with ProgressBar(None, 1, 1, Counts()):
        time.sleep(seconds)
    assert ("search" in capfd.readouterr().err) == shown


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}])
def test_nothing_is_shown_where_there_is_no_terminal(environment):
    found = subprocess.run(
        [sys.executable, "-c", SEARCH, "2000", "1", "None"], check=True, capture_output=True, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert found.stderr.split() == ["begin", "end"] and found.stdout == ""


def test_running_jobs_are_counted_until_their_results_are():
    counts = Counts()
    assert counts.finished == 0 and not counts.preparing
    first, second = counts.begin("a", 6), counts.begin("b", 2)
    assert counts.preparing
    steps = np.full((2, 3), -1)
    first.follow(steps, weight=0.5)
    first.training = True
    steps[0] = [7, 0, 3]
    second.add()
    assert counts.finished == 2.5 and not counts.preparing
    for _ in range(4):
        second.add()  # by a second trainer
    assert counts.finished == 3.5
    assert pickle.loads(pickle.dumps(counts)).finished == 0
    counts.end("a")
    counts.end("a")
    assert counts.finished == 2


def test_a_path_reports_the_nodes_that_it_has_solved():
    X = np.random.default_rng(0).normal(size=(30, 2))
    seen = []

    def watch(steps):
        assert (steps == -1).all()
        seen.append(steps)

    trains = np.arange(30) % 3 != np.arange(3)[:, None]
    found = solve_folds(X @ X.T, np.sign(X[:, 0]), trains, [0.1, 1.0], monitor=watch)
    assert seen[0].shape == (3, 2)
    np.testing.assert_array_equal(seen[0], [path.steps for path in found])


def test_only_one_bar_is_shown_at_a_time(capfd):
    with ProgressBar(True, 1, 1, Counts()) as first:
        first.update({(0, 0): {"test_scores": 0.5}})
        time.sleep(1.5 * ProgressBar.patience)
        with ProgressBar(True, 7, 1, Counts()):
            time.sleep(1.5 * ProgressBar.patience)
    err = capfd.readouterr().err
    assert "1/1" in err and "best 0.5000" in err and "0/7" not in err
