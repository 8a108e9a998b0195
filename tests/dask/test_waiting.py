"""Every wait ends: with results, or with an error that names the reason."""

import threading
import time

import dask
import pytest
from distributed import Client

from maxmargin._compiled.limits import Limit, Stopped, under
from maxmargin.dask import waiting
from maxmargin.dask.waiting import ClusterError, gather, large_messages, threads_of

WARN_ABOVE = "distributed.admin.large-graph-warning-threshold"


def double(x):
    return 2 * x


def cancelled(client):
    """A future whose task is cancelled."""
    future = client.submit(double, 1, pure=False)
    future.cancel()
    until = time.monotonic() + 60
    while future.status != "cancelled" and time.monotonic() < until:
        time.sleep(0.01)
    return future


def test_results_come_in_the_order_of_the_futures(client):
    assert gather(client, client.map(double, range(5)), what="doubling") == [0, 2, 4, 6, 8]
    assert gather(client, [], what="nothing") == []


def test_a_wait_ends_with_its_timeout(client):
    future = client.submit(time.sleep, 2, pure=False)
    with pytest.raises(TimeoutError, match=r"sleeping: 1 of 1 tasks not done in 0\.3 s"):
        gather(client, [future], what="sleeping", timeout=0.3)


def test_a_wait_under_a_limit_ends_with_it(client):
    future = client.submit(time.sleep, 2, pure=False)
    with Limit(seconds=0.1) as limit, under(limit), pytest.raises(Stopped):
        gather(client, [future], what="sleeping", limited=True)


def test_cancelled_tasks_are_submitted_again_if_they_can_be(client):
    futures = [client.submit(double, 4), cancelled(client)]
    found = gather(client, futures, what="doubling", resubmit=lambda i: client.submit(double, 10 * i))
    assert found == [8, 20]
    with pytest.raises(ClusterError, match="doubling: task 1 of 2 was lost"):
        gather(client, [client.submit(double, 4), cancelled(client)], what="doubling")


def test_tasks_that_are_lost_again_and_again_are_given_up(client, monkeypatch):
    monkeypatch.setattr(waiting, "RETRIES", 2)
    tries = []

    def again(i):
        tries.append(i)
        return cancelled(client)

    with pytest.raises(ClusterError, match=r"3 times.*logs"):
        gather(client, [cancelled(client)], what="doubling", resubmit=again)
    assert tries == [0, 0]


def test_an_error_of_a_task_is_raised_as_it_is(client):
    future = client.submit(double, None, pure=False)
    with pytest.raises(TypeError, match="NoneType"):
        gather(client, [future], what="doubling", resubmit=lambda i: future)


def test_a_client_that_is_closed_is_named(cluster):
    with Client(cluster, timeout=120, set_as_default=False) as client:
        assert set(threads_of(client).values()) == {1}
    with pytest.raises(ClusterError, match="closed"):
        threads_of(client)


def test_warnings_about_large_graphs_come_back_when_the_last_fit_ends():
    before = dask.config.get(WARN_ABOVE)
    entered, leave = threading.Event(), threading.Event()

    def other():
        with large_messages():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with large_messages():
        thread.start()
        assert entered.wait(60)
    assert dask.config.get(WARN_ABOVE) == "1 TB"
    leave.set()
    thread.join(60)
    assert dask.config.get(WARN_ABOVE) == before
