"""Workers that die, stop, leave and join during a fit: the solution keeps its bits."""

import gc
import itertools
import os
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest

from maxmargin.dask import SVC, SVR, session, training, waiting
from maxmargin.solvers import Batch

PATIENCE = 120


def four_chunks(n, threads):
    return 4


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Four chunks, whatever the number of workers: sums over other chunks would have other last bits."""
    monkeypatch.setattr(training, "chunk_count", four_chunks)


@pytest.fixture
def in_round(monkeypatch):
    """A function that arranges something for when the tasks of certain rounds are on their way."""

    def arrange(*calls, name="kernel-update"):
        """Arrange ``(k, action)``: in round k."""
        count, real, actions, done = itertools.count(1), session.gather, dict(calls), []

        def gather(client, futures, **options):
            if options["what"] == name and (k := next(count)) in actions:
                actions[k]()
                done.append(k)
            return real(client, futures, **options)

        monkeypatch.setattr(session, "gather", gather)
        return done

    return arrange


def data(n=1000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0).astype(int)


def model(client, **parameters):
    return SVC(C=5.0, gamma=0.3, solver=Batch(working_set=100), distribute=True, client=client).set_params(
        **parameters
    )


def fitted(client, **parameters):
    return model(client, **parameters).fit(*data())


def assert_same(one, other):
    """Whether two solutions have the same bits."""
    assert one.status_ == other.status_ == "solved"
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_array_equal(one.dual_coef_, other.dual_coef_)
    np.testing.assert_array_equal(one.intercept_, other.intercept_)
    assert one.dual_gap_ == other.dual_gap_ and one.n_iter_ == other.n_iter_
    assert one.n_kernel_evals_ == other.n_kernel_evals_


@pytest.fixture(scope="module")
def undisturbed(cluster):
    """The solution of a fit in peace."""
    from distributed import Client

    patch = pytest.MonkeyPatch()
    patch.setattr(training, "chunk_count", four_chunks)
    with Client(cluster, timeout=PATIENCE, set_as_default=False) as client:
        fit = fitted(client)
    patch.undo()
    assert fit.traffic_.calls > 40, "too few rounds to disturb"
    return fit


def pids(client):
    """The process of each worker."""
    return dict(client.run(os.getpid))


def kill(client, number=None):
    """A function that kills one worker, or all but so many."""
    workers = sorted(pids(client).items())

    def act():
        for _, pid in workers[:1] if number is None else workers[number:]:
            os.kill(pid, signal.SIGKILL)

    return act


def test_two_fits_have_the_same_bits(client, undisturbed):
    assert_same(fitted(client), undisturbed)


@pytest.mark.parametrize("passed_on", [False, True], ids=["sent to each", "passed on"])
@pytest.mark.parametrize("k", [1, 30])
def test_a_killed_worker_changes_no_bit(k, passed_on, start_cluster, in_round, undisturbed, monkeypatch):
    if passed_on:
        monkeypatch.setattr(session, "_SENT_TO_EACH", 0)
    client = start_cluster(2)
    done = in_round((k, kill(client)))
    fit = fitted(client)
    assert done == [k] and fit.traffic_.rebuilt > 0
    assert_same(fit, undisturbed)


def test_all_workers_but_one_may_be_killed(start_cluster, in_round, undisturbed):
    client = start_cluster(3)
    in_round((5, kill(client, 1)))
    fit = fitted(client)
    assert fit.traffic_.rebuilt > 0
    assert_same(fit, undisturbed)


def test_all_workers_may_be_killed_if_they_are_started_again(start_cluster, in_round, undisturbed):
    client = start_cluster(2)
    in_round((20, kill(client, 0)))
    fit = fitted(client)
    assert fit.traffic_.rebuilt >= 4
    assert_same(fit, undisturbed)


def test_a_worker_may_be_killed_while_another_joins(start_cluster, in_round, undisturbed):
    client = start_cluster(1)
    in_round((4, lambda: client.cluster.scale(2)), (5, kill(client)))
    assert_same(fitted(client), undisturbed)


def test_a_worker_may_leave(start_cluster, in_round, undisturbed):
    client = start_cluster(2)
    first = sorted(pids(client))[0]
    in_round((6, lambda: client.retire_workers([first], close_workers=True)))
    assert_same(fitted(client), undisturbed)


def test_a_worker_may_stop_for_a_while(start_cluster, in_round, undisturbed):
    client = start_cluster(2)
    pid = min(pids(client).values())

    def stop():
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(2.0, os.kill, (pid, signal.SIGCONT)).start()

    in_round((6, stop))
    fit = fitted(client)
    assert fit.traffic_.longest > 1.5
    assert_same(fit, undisturbed)


@pytest.mark.parametrize("most", [0, session._SENT_TO_EACH], ids=["passed on", "sent to each"])
def test_tasks_that_dask_gives_up_are_submitted_again(
    most, start_cluster, in_round, undisturbed, monkeypatch
):
    monkeypatch.setattr(session, "_SENT_TO_EACH", most)
    # It does after several deaths; here after the first.
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        client = start_cluster(2)
    workers = sorted(pids(client).values())

    def stop_and_kill():
        os.kill(workers[0], signal.SIGSTOP)  # so that its task is under way for certain
        threading.Timer(1.0, os.kill, (workers[0], signal.SIGKILL)).start()

    in_round((6, stop_and_kill))
    fit = fitted(client)
    assert fit.traffic_.repeated > 0
    assert_same(fit, undisturbed)


def test_paired_variables_and_float64_rows_keep_their_bits_too(start_cluster, in_round):
    X, _ = data(600)
    t = np.sin(2 * X[:, 0]) + X[:, 1]
    client = start_cluster(2)
    fit = {"tol": 1e-8, "solver": Batch(working_set=80), "client": client, "distribute": True}
    wanted = SVR(**fit).fit(X, t)
    in_round((17, kill(client)))
    found = SVR(**fit).fit(X, t)
    assert found.traffic_.rebuilt > 0
    np.testing.assert_array_equal(found.dual_coef_, wanted.dual_coef_)


def test_two_fits_run_side_by_side_on_one_client(client, undisturbed):
    found, errors = {}, []

    def run(k, C):
        try:
            found[k] = fitted(client, C=C)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(k, C)) for k, C in enumerate((5.0, 1.0))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not errors and len(found) == 2
    assert_same(found[0], undisturbed)
    assert found[1].status_ == "solved"


def test_a_cluster_that_loses_all_its_workers_is_reported(start_cluster, in_round, monkeypatch):
    monkeypatch.setattr(waiting, "NO_WORKER", 2.0)
    client = start_cluster(2)
    in_round((3, lambda: client.cluster.scale(0)))
    began = time.monotonic()
    with pytest.raises(waiting.ClusterError, match=r"no workers.*2 s"):
        fitted(client)
    assert time.monotonic() - began < 60


def test_a_cluster_without_workers_is_reported_before_anything_is_sent(start_cluster, monkeypatch):
    monkeypatch.setattr(waiting, "FIRST_WORKER", 1.0)
    client = start_cluster(1)
    client.cluster.scale(0)
    until = time.monotonic() + PATIENCE
    while waiting.threads_of(client) and time.monotonic() < until:
        time.sleep(0.05)
    with pytest.raises(waiting.ClusterError, match=r"no workers.*cluster\.scale"):
        fitted(client)


def test_a_scheduler_that_goes_away_is_reported(start_cluster, in_round):
    client = start_cluster(1)
    in_round((3, lambda: client.cluster.close(timeout=PATIENCE)))
    with pytest.raises(waiting.ClusterError):
        fitted(client)


def test_data_that_were_scattered_and_are_lost_are_reported(start_cluster, in_round):
    client = start_cluster(1)
    X, y = data()
    blocks = [
        da.from_delayed(dask.delayed(client.scatter(part)), (500, 5), float) for part in (X[:500], X[500:])
    ]
    in_round((5, kill(client)))
    with pytest.raises(waiting.ClusterError, match="scattered"):
        model(client).fit(da.concatenate(blocks), y)


def test_an_error_of_a_task_is_raised_as_it_is(client, monkeypatch):
    def broken(*_):
        raise FileNotFoundError("part-7.parquet")

    monkeypatch.setattr(session, "call_chunk", broken)
    with pytest.raises(FileNotFoundError, match="part-7"):
        fitted(client)


@pytest.mark.filterwarnings("ignore:.*max_iter")
def test_nothing_stays_on_the_cluster(client, in_round):
    def keys():
        return client.run_on_scheduler(lambda dask_scheduler: sorted(map(str, dask_scheduler.tasks)))

    before, models, pid = keys(), [fitted(client)], min(pids(client).values())

    def stop():
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(1.0, os.kill, (pid, signal.SIGCONT)).start()

    in_round((1, stop), name="exact-sums")  # the wait for the last tasks has several parts
    gc.disable()  # cycles that refer to tasks would keep them until they are collected
    try:
        models += [fitted(client, max_iter=300), fitted(client)]
        until = time.monotonic() + 30
        while (left := keys()) != before and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        gc.enable()
    assert left == before
    assert len(models) == 3
