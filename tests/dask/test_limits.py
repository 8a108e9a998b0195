"""A fit on a cluster ends early as one in this process does, and compiles nothing while a clock runs."""

import itertools
import os
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin._compiled import limits
from maxmargin.dask import SVC, session, training
from maxmargin.dask.frame import Frame
from maxmargin.kernels import Kernel
from maxmargin.solvers import Batch

PATIENCE = 120


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(training, "_SMALLEST_CHUNK", 200)


def long_fit(client, **parameters):
    """A fit of thousands of rounds."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3000, 5)), rng.permutation(np.arange(3000) % 2)
    model = SVC(C=1e4, tol=1e-9, solver=Batch(working_set=50, finish=None), distribute=True, client=client)
    return model.set_params(**parameters).fit(X, y)


def test_max_time_ends_a_fit_with_a_feasible_model(client, monkeypatch):
    real, rounds = session.gather, itertools.count(1)

    def gather(client, futures, **options):
        if options["what"] == "kernel-update" and next(rounds) == 20:
            limits.current().deadline = time.perf_counter()  # in this round the time is up
        return real(client, futures, **options)

    monkeypatch.setattr(session, "gather", gather)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = long_fit(client, max_time=10.0 * PATIENCE)
    assert next(rounds) < 40
    assert model.status_ == "max_time" and len(model.support_) > 50
    assert np.isfinite(model.dual_gap_).all() and model.dual_gap_[0] > 0
    assert np.abs(model.dual_coef_).max() <= 1e4 and abs(model.dual_coef_.sum()) < 1e-6


def test_a_fit_that_has_no_time_gives_the_model_of_its_start(client):
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = long_fit(client, max_time=0.0)
    assert model.status_ == "max_time"


SCRIPT = """
    import itertools, os, signal, warnings
    import numpy as np
    from distributed import Client, LocalCluster
    from maxmargin.dask import SVC, session, training
    from maxmargin.solvers import Batch

    def main():
        warnings.simplefilter("ignore")
        training._SMALLEST_CHUNK = 200
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(3000, 5)), rng.permutation(np.arange(3000) % 2)
        real, rounds = session.gather, itertools.count(1)

        def gather(client, futures, **options):
            if options["what"] == "kernel-update" and next(rounds) == 20:
                for _ in range({presses}):
                    {press}
            return real(client, futures, **options)

        session.gather = gather
        options = dict(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address="127.0.0.1:0")
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            model = SVC(C=1e4, tol=1e-9, solver=Batch(working_set=50, finish=None), distribute=True)
            try:
                model.fit(X, y)
                print(model.status_, len(model.support_) > 0, bool(np.isfinite(model.dual_gap_).all()))
            except KeyboardInterrupt:
                print("raised")

    if __name__ == "__main__":
        main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals")
@pytest.mark.parametrize(
    ("press", "presses", "wanted"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", 1, "interrupted True True"),
        ("os.kill(os.getpid(), signal.SIGINT)", 2, "raised"),
        # As a terminal does: the processes of the workers are interrupted too.
        ("os.killpg(0, signal.SIGINT)", 1, "interrupted True True"),
    ],
    ids=["one press", "two presses", "in a terminal"],
)
def test_ctrl_c(press, presses, wanted, tmp_path):
    script = tmp_path / "fit.py"
    script.write_text(textwrap.dedent(SCRIPT.format(press=press, presses=presses)))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=2 * PATIENCE, cwd=tmp_path,
        start_new_session=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == wanted, done.stderr[-3000:]


def test_no_worker_compiles_after_the_warm_up(start_cluster, tmp_path):
    def compiled():
        from maxmargin._compiled import announce

        return [name for name, _ in announce.compiled_here]

    client = start_cluster(1, env={"NUMBA_CACHE_DIR": str(tmp_path / "numba"), "MAXMARGIN_CODE": "0"})
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(900, 5)), rng.permutation(np.arange(900) % 2)
    client.submit(training.load_code, Frame(Kernel("rbf"), 5, False, np.zeros(5)), X[:4]).result(PATIENCE)
    [before] = client.run(compiled).values()
    assert before
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        SVC(solver=Batch(working_set=100), max_iter=500, distribute=True, client=client).fit(X, y)
    assert client.run(compiled) == dict.fromkeys(client.run(os.getpid), before)
