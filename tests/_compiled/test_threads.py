"""Threads: how many, what they run, and that BLAS gets its threads back."""

from __future__ import annotations

import threading
import time

import joblib
import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (loads its BLAS)
import threadpoolctl
from threadpoolctl import threadpool_info, threadpool_limits

from maxmargin._compiled import threads as _threads
from maxmargin._compiled.threads import Threads, effective_n_jobs


def blas_threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def give_up_control():
    """Let any Python thread set limits: threadpoolctl 3.7 and later listen to the first one only."""
    clear = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@pytest.fixture(autouse=True)
def _two_blas_threads():
    """A limit to be restored that differs from 1 on every machine; nobody holds it."""
    give_up_control()
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("this BLAS cannot be given two threads")
        give_up_control()
        yield
        give_up_control()


# -- how many ----------------------------------------------------------------------------------


def test_none_is_every_core_without_omp_num_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert effective_n_jobs(None) == joblib.cpu_count()


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", 1), ("2", 2), ("3,2", 3), ("1000", 8), ("0", 8), ("", 8), ("many", 8), ("-1", 8), (" 2 ", 2)],
)
def test_none_respects_omp_num_threads_and_the_cores(monkeypatch, value, expected):
    monkeypatch.setattr(_threads, "_cores", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert effective_n_jobs(None) == expected


def test_a_number_is_taken_as_it_is_whatever_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert [effective_n_jobs(n) for n in (1, 2, 7, np.int64(3))] == [1, 2, 7, 3]


def test_negative_numbers_count_back_from_the_cores_and_end_at_one(monkeypatch):
    monkeypatch.setattr(_threads, "_cores", lambda: 8)
    assert [effective_n_jobs(n) for n in (-1, -2, -8, -9, -100)] == [8, 7, 1, 1, 1]


def test_zero_is_refused():
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        effective_n_jobs(0)
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        Threads(0)


# -- run ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 200])
def test_run_makes_every_call_once(n_jobs, n):
    seen = np.zeros(max(n, 1), int)

    def mark(i, by):
        seen[i] += by

    with Threads(n_jobs) as threads:
        threads.run(mark, [(i, 1) for i in range(n)])
        threads.run(mark, ((i, 10) for i in range(n)))
    assert (seen[:n] == 11).all()


def test_run_outside_the_context_makes_every_call_in_the_calling_thread():
    names = []
    Threads(4).run(lambda i: names.append(threading.current_thread()), [(i,) for i in range(8)])
    assert names == [threading.current_thread()] * 8


def test_run_uses_as_many_threads_as_asked_for_at_the_same_time():
    meeting = threading.Barrier(3, timeout=20)
    with Threads(3) as threads:
        threads.run(lambda i: meeting.wait(), [(i,) for i in range(3)])


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("bad", [0, 1, 7])
def test_run_raises_the_error_of_a_call_and_can_be_used_again(n_jobs, bad):
    def work(i):
        if i == bad:
            raise KeyError(f"call {i}")

    done = []
    with Threads(n_jobs) as threads:
        with pytest.raises(KeyError, match=f"call {bad}"):
            threads.run(work, [(i,) for i in range(8)])
        threads.run(done.append, [(i,) for i in range(8)])
    assert sorted(done) == list(range(8))
    assert blas_threads() == {2}


def test_run_raises_an_error_of_another_thread():
    start = threading.Barrier(2, timeout=20)
    here = threading.current_thread()

    def work(i):
        start.wait()
        if threading.current_thread() is not here:
            raise KeyError("elsewhere")

    with Threads(2) as threads, pytest.raises(KeyError, match="elsewhere"):
        threads.run(work, [(0,), (1,)])


def test_leaving_the_context_leaves_no_threads_behind():
    before = threading.active_count()
    with Threads(4) as threads:
        meeting = threading.Barrier(4, timeout=20)
        threads.run(lambda i: meeting.wait(), [(i,) for i in range(4)])
        assert threading.active_count() == before + 3
    assert threading.active_count() == before


def test_a_context_can_be_entered_again():
    threads = Threads(2)
    for _ in range(3):
        meeting = threading.Barrier(2, timeout=20)
        with threads:
            assert blas_threads() == {1}
            threads.run(lambda i, meeting=meeting: meeting.wait(), [(0,), (1,)])
        assert blas_threads() == {2}


# -- BLAS --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_blas_has_one_thread_inside_and_its_own_after(n_jobs):
    inside = []
    with Threads(n_jobs) as threads:
        inside.append(blas_threads())
        threads.run(lambda i: inside.append(blas_threads()), [(i,) for i in range(4)])
    assert inside == [{1}] * 5
    assert blas_threads() == {2}


def test_blas_gets_its_threads_back_after_an_error():
    with pytest.raises(KeyError), Threads(2):
        raise KeyError
    assert blas_threads() == {2}


@pytest.mark.parametrize("same", [True, False])
def test_nested_contexts_keep_the_limit_to_the_last_and_then_restore_it(same):
    outer = Threads(2)
    inner = outer if same else Threads(3)
    with outer:
        with inner:
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_nested_contexts_of_one_object_keep_their_pool_to_the_last():
    threads = Threads(2)
    with threads:
        with threads:
            pass
        meeting = threading.Barrier(2, timeout=20)
        threads.run(lambda i: meeting.wait(), [(0,), (1,)])


@pytest.mark.parametrize("first_out", ["first in", "last in"])
def test_overlapping_contexts_of_two_python_threads_restore_the_original_limit(first_out):
    entered = [threading.Event(), threading.Event()]
    leave = [threading.Event(), threading.Event()]
    left = [threading.Event(), threading.Event()]

    def hold(k):
        with Threads(2):
            entered[k].set()
            leave[k].wait(20)
        left[k].set()

    team = [threading.Thread(target=hold, args=(k,)) for k in range(2)]
    for k in range(2):
        team[k].start()
        assert entered[k].wait(20)
    order = [0, 1] if first_out == "first in" else [1, 0]
    assert blas_threads() == {1}
    leave[order[0]].set()
    assert left[order[0]].wait(20)
    assert blas_threads() == {1}
    leave[order[1]].set()
    assert left[order[1]].wait(20)
    assert blas_threads() == {2}
    for thread in team:
        thread.join()


def in_another_thread(function):
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


@pytest.mark.parametrize("who", ["a context", "the user"])
def test_blas_is_limited_in_another_thread_after_the_main_thread_set_limits(who):
    inside = []

    def work():
        with Threads(2):
            inside.append(blas_threads())
        inside.append(blas_threads())

    if who == "a context":
        with Threads(2):
            pass
        in_another_thread(work)
    else:
        with threadpool_limits(2, user_api="blas"):
            in_another_thread(work)
    assert inside == [{1}, {2}]


def test_a_context_left_last_by_another_living_thread_restores_the_limit():
    entered, leave, left, end = (threading.Event() for _ in range(4))

    def hold():
        with Threads(2):
            entered.set()
            leave.wait(20)
        left.set()
        end.wait(20)

    other = threading.Thread(target=hold)
    with Threads(2):
        other.start()
        assert entered.wait(20)
    leave.set()
    assert left.wait(20)
    after = blas_threads()
    end.set()
    other.join()
    assert after == {2}


def test_many_contexts_of_many_threads_restore_the_original_limit():
    wrong = []

    def work():
        for _ in range(50):
            with Threads(2):
                if blas_threads() != {1}:
                    wrong.append(1)

    team = [threading.Thread(target=work) for _ in range(4)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert not wrong
    assert blas_threads() == {2}


# -- split -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 100, 1001])
@pytest.mark.parametrize("smallest", [0, 1, 3, 50, 10_000])
def test_split_covers_the_range_in_order_with_parts_of_the_smallest_size_or_more(n_jobs, n, smallest):
    parts = Threads(n_jobs).split(n, smallest)
    assert [i for a, b in parts for i in range(a, b)] == list(range(n))
    assert 1 <= len(parts) <= n_jobs
    sizes = [b - a for a, b in parts]
    assert len(parts) == 1 or min(sizes) >= smallest
    assert max(sizes) - min(sizes) <= 1


def test_split_uses_every_thread_where_the_range_is_long_enough():
    assert len(Threads(3).split(300, 100)) == 3
    assert len(Threads(3).split(299, 100)) == 2


def test_a_worker_that_has_not_begun_is_not_waited_for():
    done, busy = [], threading.Event()
    with Threads(2) as threads:
        threads.run(done.append, [(0,), (1,)])
        threads._pool.submit(busy.wait, 60)  # the only worker has something else to do
        began = time.perf_counter()
        threads.run(done.append, [(2,), (3,), (4,)])
        took = time.perf_counter() - began
        busy.set()
    assert sorted(done) == [0, 1, 2, 3, 4] and took < 30
