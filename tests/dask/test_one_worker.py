"""A fit by a single task ends early as one in this process does."""

import signal
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin.dask import SVC, one_worker
from maxmargin.solvers import Batch

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no signals")
# Seconds of a fit that is not interrupted, and in which all fits of a test have to end.
ENDLESS, PATIENCE = 600.0, 120.0


def interrupted_fit(client, monkeypatch, presses):
    """A fit of many minutes; Ctrl-C is pressed when its task is on the way."""
    real = one_worker.gather

    def gather(client, tasks, **options):
        if options.get("limited"):
            for _ in range(presses):
                signal.raise_signal(signal.SIGINT)
        return real(client, tasks, **options)

    monkeypatch.setattr(one_worker, "gather", gather)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 5)), rng.permutation(np.arange(3000) % 2)
    hard = {"C": 1e4, "tol": 1e-9, "max_time": ENDLESS, "solver": Batch(working_set=50, finish=None)}
    return SVC(**hard, distribute="auto", client=client).fit(X, y)


def test_ctrl_c_keeps_the_best_solution_and_warns(client, monkeypatch):
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = interrupted_fit(client, monkeypatch, presses=1)
    assert model.status_ == "interrupted" and not model.distributed_
    assert np.isfinite(model.dual_gap_).all() and abs(model.dual_coef_.sum()) < 1e-6


def test_a_second_ctrl_c_raises_and_frees_the_worker(client, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        interrupted_fit(client, monkeypatch, presses=2)
    for address in client.nthreads():
        task = client.submit(int, pure=False, workers=[address], key=f"free-{address}")
        assert task.result(timeout=PATIENCE) == 0
