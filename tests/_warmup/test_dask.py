"""Workers of a dask cluster: they warm up together, and fit without compiling."""

import os

import numpy as np
import pytest

import maxmargin
from maxmargin._compiled import cpu, ready_code

distributed = pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(not cpu.suitable_levels(), reason="no common set of instructions on this CPU"),
]


def fit(n):
    """Fit in a worker; the functions it compiled."""
    from maxmargin import SVC
    from maxmargin._compiled import announce

    X = np.random.default_rng(n).normal(size=(n, 3))
    SVC().fit(X, X[:, 0] > 0).predict(X)
    return announce.compiled_here


def test_fresh_workers_do_not_compile(code, tmp_path, monkeypatch):
    monkeypatch.setenv(ready_code.VARIABLE, str(code))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        files = client.run(maxmargin.warmup)
        assert len(files) == 2 and {path.parent for path in files.values()} == {code}
        workers = list(files)
        for n in (200, 900):
            futures = [client.submit(fit, n, workers=[w], pure=False) for w in workers]
            assert client.gather(futures) == [[], []]
    assert os.listdir(tmp_path) == []
