"""Real clusters of processes on this computer.

Each process of pytest-xdist starts its own shared cluster, the first time that a test asks for it.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager

import cloudpickle
import pytest

pytest.importorskip("distributed")

import dask
from distributed import Client, LocalCluster

# Seconds to wait for a cluster, on a computer that is busy with other tests.
PATIENCE = 120


@contextmanager
def local_cluster(n_workers, folder, **options):
    """A cluster of processes with one thread each; a nanny starts those again that die."""
    # Without limits of memory: workers that wait for memory would fail tests on a computer with little.
    options = {
        "memory_limit": 0,
        "dashboard_address": "127.0.0.1:0",
        "local_directory": str(folder),
        **options,
    }
    with dask.config.set({"distributed.comm.timeouts.connect": f"{PATIENCE}s"}):
        cluster = LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True, **options)
        try:
            yield cluster
        finally:
            cluster.close(timeout=PATIENCE)


@contextmanager
def connected(cluster, n_workers):
    """A client of a cluster, which has so many workers."""
    with Client(cluster, timeout=PATIENCE) as client:
        client.wait_for_workers(n_workers, timeout=PATIENCE)
        yield client


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """A cluster of two processes that all tests share, which leave it as it was."""
    with local_cluster(2, tmp_path_factory.mktemp("workers")) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """A client of the shared cluster, the current one during the test."""
    with connected(cluster, 2) as client:
        yield client


@pytest.fixture
def start_cluster(tmp_path):
    """A function that starts a cluster of n processes for one test, which may kill them; its client."""
    with ExitStack() as stack:

        def start(n_workers, **options):
            cluster = stack.enter_context(local_cluster(n_workers, tmp_path, **options))
            return stack.enter_context(connected(cluster, n_workers))

        yield start


@pytest.fixture(autouse=True, scope="module")
def functions_by_value(request):
    """Workers cannot import the modules of tests, whose functions are therefore sent with their code."""
    cloudpickle.register_pickle_by_value(request.module)
    yield
    cloudpickle.unregister_pickle_by_value(request.module)
