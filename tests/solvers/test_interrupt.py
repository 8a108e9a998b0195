"""Ctrl-C, with real signals to a process of its own."""

import subprocess
import sys

import pytest

from maxmargin._compiled.limits import Limit
from maxmargin.solvers import interrupt
from maxmargin.solvers.interrupt import relied_on, watch_interrupt

SETUP = """
import os, signal, threading, time, warnings
import numpy as np
from maxmargin import SVC, SVR
from maxmargin.model_selection import SVMSearchCV
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 10))
y = rng.integers(0, 2, 3000)
long = dict(C=1e6, gamma=0.01, tol=1e-9, solver="smo-first-order")  # minutes
SVC(**long, max_time=0.2).fit(X[:200], y[:200])  # compiled by now
began = time.perf_counter()

def press(*after):
    for seconds in after:
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        timer.daemon = True
        timer.start()
"""


def run(script, timeout=120):
    """What a script prints, and how long it took from the end of its setup."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SETUP + script + "\nprint(time.perf_counter() - began)"],
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    *lines, seconds = done.stdout.split("\n")[:-1] or ["", "nan"]
    return lines, float(seconds), done.stderr


LOOPS = {
    "GridSearchCV": "GridSearchCV(SVC(**long), {'C': [1e6, 1e5]}, cv=3).fit(X, y)",
    "a pipeline in GridSearchCV": "GridSearchCV(make_pipeline(StandardScaler(), SVC(**long)), "
    "{'svc__C': [1e6, 1e5]}, cv=3).fit(X, y)",
    "cross_val_score": "cross_val_score(SVC(**long), X, y, cv=3)",
    "OneVsRestClassifier": "OneVsRestClassifier(SVC(**long)).fit(X, rng.integers(0, 3, 3000))",
    "BaggingClassifier": "BaggingClassifier(SVC(**long), 3).fit(X, y)",
    "a search in cross_val_score": "cross_val_score(SVMSearchCV(SVC(**long), "
    "{'C': [1e6]}, n_jobs=1, cv=2), X, y, cv=3)",
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_one_press_raises_where_the_fit_is_inside_a_loop_of_another_estimator(loop):
    lines, seconds, errors = run(f"""
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
press(1.5)
try:
    {loop}
except KeyboardInterrupt:
    print("raised")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
""")
    assert lines == ["raised"], errors
    assert seconds < 10


def test_the_first_press_ends_a_fit_and_the_second_the_loop():
    lines, seconds, errors = run("""
from maxmargin.solvers import interrupt
interrupt.REPEATED = 30.0  # a machine may be slow
press(0.5)
try:
    for k in range(10):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = SVC(**long).fit(X, y)
        assert np.isfinite(model.decision_function(X)).all() and np.isfinite(model.dual_gap_)
        print(model.status_, "press again" in str(caught[-1].message))
        press(0.5)
except KeyboardInterrupt:
    print("raised")
""")
    assert lines == ["interrupted True", "raised"], errors
    assert seconds < 20


def test_presses_far_apart_end_one_fit_each():
    lines, _, errors = run("""
from maxmargin.solvers import interrupt
interrupt.REPEATED = 0.1
for k in range(2):
    press(0.5)
    print(SVC(**long).fit(X, y).status_)
""")
    assert lines == ["interrupted", "interrupted"], errors


@pytest.mark.parametrize(
    "fit",
    [
        "make_pipeline(StandardScaler(), SVC(**long)).fit(X, y)[-1]",
        "TransformedTargetRegressor(SVR(**long, epsilon=0)).fit(X, y + 0.5).regressor_",
    ],
    ids=["pipeline", "target"],
)
def test_an_estimator_around_one_fit_keeps_the_best_solution_so_far(fit):
    lines, seconds, errors = run(f"""
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
press(0.7)
print({fit}.status_)
""")
    assert lines == ["interrupted"], errors
    assert seconds < 10


ONE_CALL = {
    # Each is one compiled call of many seconds, in which no Python code runs.
    "a class pair in one call": "SVC(C=1e9, gamma=1e-3, tol=1e-3).fit(W[:4000], z[:4000])",
    "a regression in one call": "SVR(C=1e9, epsilon=1e-9, gamma=1e-4, tol=1e-9).fit(W[:2000, :20], t[:2000])",
    "gradient projection": "SVC(C=1e7, gamma=1e-4, tol=1e-12, solver='rosen').fit(W[:2000, :20], z[:2000])",
}


@pytest.mark.parametrize("fit", ONE_CALL.values(), ids=ONE_CALL)
def test_a_press_ends_a_long_compiled_call(fit):
    lines, seconds, errors = run(f"""
W = rng.normal(size=(4000, 2000))
z, t = rng.integers(0, 2, 4000), rng.normal(size=4000)
short = {fit.replace("[:4000]", "[:300]").replace("[:2000", "[:300").replace(").fit", ", max_time=0.3).fit")}
began = time.perf_counter()
press(0.5)
print({fit}.status_)
""")
    assert lines == ["interrupted"], errors
    assert seconds < 4


def test_a_worker_process_raises_at_the_first_press():
    lines, _, errors = run("""
import multiprocessing
def work():
    press(0.7)
    try:
        SVC(**long).fit(X, y)
    except KeyboardInterrupt:
        os._exit(7)
child = multiprocessing.get_context("fork").Process(target=work)
child.start()
child.join()
print(child.exitcode)
""")
    assert lines == ["7"], errors


def test_a_handler_of_somebody_else_is_respected():
    lines, _, errors = run("""
seen = []
signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
press(0.5)
print(SVC(**long, max_time=1.5).fit(X, y).status_, len(seen))
""")
    assert lines == ["max_time 1"], errors


def called_from(name, file):
    """Whether a function of the module `name` that calls a fit is taken for one that uses the result."""
    space = {"__name__": name, "relied_on": relied_on, "sys": sys}
    exec(compile("def fit():\n    return relied_on(sys._getframe())\n", file, "exec"), space)
    return space["fit"]()


def test_installed_libraries_are_taken_to_use_what_they_fit():
    library = interrupt._libraries()[0]
    assert called_from("tuner.study", library + "tuner/study.py")
    assert called_from("sklearn.model_selection._validation", "/home/me/scikit-learn/_validation.py")
    assert called_from("maxmargin.model_selection.runner", "runner.py")
    assert not called_from("my_study", "/home/me/my_study.py")
    assert not called_from("sklearn.pipeline", library + "sklearn/pipeline.py")
    assert not called_from("ipykernel.zmqshell", library + "ipykernel/zmqshell.py")
    assert not called_from("__main__", library + "pytest/__main__.py")


def test_in_other_threads_there_is_nothing_to_watch():
    import threading

    limits = []

    def work():
        with watch_interrupt(Limit()) as limit:
            limits.append(limit.signals)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert limits == [False]
