"""The bar and the table of ``verbose``: what they say, where they are shown, and that they change nothing."""

import functools
import io
import math
import re

import numpy as np
import pytest
import rich.console
from sklearn.base import clone

from maxmargin import SVC, SVR, CrammerSingerSVC, NuSVC, OneClassSVM
from maxmargin.estimators._progress import Course, duration
from maxmargin.estimators._report import LiveTable
from maxmargin.solvers.solution import Record

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5000, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=5000) > 0).astype(int)


def course(violations, tol=1e-3, pace=1.0):
    found = Course(tol)
    for k, violation in enumerate(violations):
        found.add(violation, pace * k)
    return found


# -- the course of a problem ---------------------------------------------------------------------


def test_the_share_is_that_of_the_logarithm():
    assert [round(course([1.0, v]).share, 2) for v in (1.0, 0.1, 0.01, 0.001)] == [0.0, 0.33, 0.67, 1.0]


def test_the_share_never_falls_though_the_violation_may_rise():
    found = Course(1e-3)
    shares = []
    for k, violation in enumerate([1.0, 0.1, 0.5, 20.0, 0.05, 0.3]):
        found.add(violation, float(k))
        shares.append(found.share)
    assert shares == sorted(shares) and 0 < shares[-1] < 1


def test_the_share_is_one_at_the_tolerance_and_below():
    for violations in ([1.0, 1e-3], [1.0, 1e-5], [1.0, 0.0], [0.0], [1e-4]):
        assert course(violations).share == 1.0 and course(violations).left == 0.0


def test_violations_that_are_not_numbers_are_skipped():
    assert course([math.inf, math.nan]).left == math.inf
    assert course([math.inf, 1.0, 0.1]).share == pytest.approx(1 / 3)


def test_the_time_left_is_unknown_without_progress():
    assert Course(1e-3).left == math.inf
    assert course([1.0]).left == math.inf
    assert course([1.0, 2.0, 3.0]).left == math.inf


def test_the_time_left_is_that_of_a_violation_that_falls_evenly():
    found = course(10.0 ** -np.arange(0, 2.01, 0.1), pace=3.0)
    assert found.left == pytest.approx(30.0)  # a third of 90 s


def test_the_time_left_follows_a_pace_that_changed():
    found = Course(1e-4)
    for k, exponent in enumerate(np.arange(0.0, 1.01, 0.1)):
        found.add(10.0**-exponent, 0.1 * k)
    for k, exponent in enumerate(np.arange(1.1, 3.01, 0.1), 1):
        found.add(10.0**-exponent, 1.0 + 10.0 * k)
    assert found.left == pytest.approx(100.0, rel=0.1)  # ten more steps, of the slow kind


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.0, "0 s"), (0.4, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (3599.0, "59 min 59 s"),
        (3600.0, "1 h 0 min"), (90_000.0, "25 h 0 min"), (math.inf, "unknown"), (math.nan, "unknown"),
    ],
)  # fmt: skip
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


# -- what is shown -------------------------------------------------------------------------------


def record(violation, seconds, n_iter=7):
    return Record(
        n_iter=n_iter, objective=-2.5, violation=violation, n_support=12, n_kernel_calls=900,
        n_kernel_evals=800, seconds=seconds,
    )  # fmt: skip


@pytest.fixture
def terminal(monkeypatch):
    """What a terminal receives: a console that believes that it writes to one."""
    out = io.StringIO()
    console = functools.partial(rich.console.Console, file=out, force_terminal=True, width=80)
    monkeypatch.setattr(rich.console, "Console", console)
    return out


@pytest.fixture
def piped(monkeypatch):
    """What a file or a pipe receives."""
    out = io.StringIO()
    console = functools.partial(rich.console.Console, file=out, force_terminal=False, width=100)
    monkeypatch.setattr(rich.console, "Console", console)
    return out


def shown(violations):
    with LiveTable("SVC, solver auto", tol=1e-3, pause=0.0) as table:
        for k, violation in enumerate(violations):
            table.update("0 / 1", record(violation, 10.0 * k))


def test_a_terminal_shows_a_bar_the_violation_and_the_time_left(terminal):
    shown([1.0, 0.1, 0.01])
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue())
    lines = [line.strip() for line in text.splitlines()]
    at = lines.index("violation 1.0e-02, ends at 0.001; about 10 s left after 20 s")
    assert set(lines[at - 1]) == set("━╺") and len(lines[at - 1]) == 60
    assert "0 / 1" in text


def test_a_time_that_is_not_known_is_not_said(terminal):
    shown([1.0])
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue())
    assert "violation 1.0e+00, ends at 0.001; 0 s so far" in text and "unknown" not in text


def test_the_last_picture_has_no_bar(terminal):
    shown([1.0, 0.1, 0.01])
    last = terminal.getvalue().rpartition("SVC, solver auto")[2]
    assert "0 / 1" in last and "━" not in last and "left" not in last


def test_a_file_receives_the_table_once_and_no_bar(piped):
    shown([1.0, 0.1, 0.01])
    text = piped.getvalue()
    assert text.count("0 / 1") == 1 and "1.0e-02" in text
    for part in ("left", "ends at", "━", "\x1b"):
        assert part not in text


# -- fits ----------------------------------------------------------------------------------------

MODELS = [SVC(C=10.0), NuSVC(nu=0.4), SVR(), OneClassSVM(nu=0.1), CrammerSingerSVC(max_iter=300)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("output", ["terminal", "piped"])
def test_verbose_changes_no_result(model, output, request):
    rows = slice(0, 600 if isinstance(model, CrammerSingerSVC) else None)
    silent = clone(model).fit(X[rows], Y[rows])
    out = request.getfixturevalue(output)
    loud = clone(model).set_params(verbose=True).fit(X[rows], Y[rows])
    assert "violation" in out.getvalue()
    for name in ("dual_coef_", "n_iter_", "dual_gap_", "status_"):
        assert np.array_equal(getattr(loud, name), getattr(silent, name)), name
    assert np.array_equal(loud.predict(X), silent.predict(X))


def test_a_fit_that_is_not_verbose_writes_nothing(capfd):
    SVC().fit(X[:500], Y[:500])
    assert capfd.readouterr() == ("", "")


def test_a_fit_that_fails_still_ends_the_picture(terminal):
    def stop(A, B):
        raise RuntimeError("no kernel")

    with pytest.raises(RuntimeError, match="no kernel"):
        SVC(kernel=stop, verbose=True).fit(X[:50], Y[:50])
    assert terminal.getvalue().endswith("\x1b[?25h") or "\x1b[?25l" not in terminal.getvalue()
