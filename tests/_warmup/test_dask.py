"""Workers of a dask cluster: they warm up together, and fit without compiling."""

import os

import numpy as np
import pytest
from scipy.sparse import csr_array

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


def compiled_here():
    from maxmargin._compiled import announce

    return announce.compiled_here


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_fresh_workers_that_train_together_do_not_compile(code, tmp_path, monkeypatch):
    monkeypatch.setenv(ready_code.VARIABLE, str(code))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    da = pytest.importorskip("dask.array")
    from maxmargin.dask import SVC, SVR, NuSVC, OneClassSVM

    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 6))
    y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    wide = np.where(rng.random((4000, 40)) < 0.1, X[:, :1], 0.0)
    sparse = da.from_array(wide, chunks=(1000, -1)).map_blocks(csr_array)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        for data in (X, X.astype(np.float32), wide, sparse):
            rows = data if data is sparse else da.from_array(data, chunks=(1000, -1))
            models = [SVC(), SVC(kernel="linear", max_iter=2000)]
            if data is X:
                models += [
                    SVC(kernel=kernel, gamma=0.1, max_iter=2000)
                    for kernel in ("poly", "sigmoid", "laplacian")
                ]
                models += [NuSVC(nu=0.5), SVR(epsilon=0.5), OneClassSVM(nu=0.1), SVC(tol=1e-7, max_iter=5000)]
            for model in models:
                target = () if isinstance(model, OneClassSVM) else (y,)
                model.set_params(distribute=True).fit(rows, *target).predict(rows).compute()
        assert set(map(tuple, client.run(compiled_here).values())) == {()}
