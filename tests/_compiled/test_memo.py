"""Values that are computed once for all threads."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from maxmargin._compiled.memo import Memo


def test_a_value_is_made_once_however_many_ask():
    calls, memo = [], Memo()

    def make():
        calls.append(1)
        return object()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: memo.get("key", make), range(20)))
    assert len(calls) == 1
    assert all(value is found[0] for value in found)


def test_none_is_a_value_like_others():
    calls, memo = [], Memo()
    assert memo.get("key", lambda: calls.append(1)) is memo.get("key", lambda: calls.append(1)) is None
    assert len(calls) == 1


def test_an_exception_is_not_kept():
    memo = Memo()
    with pytest.raises(ZeroDivisionError):
        memo.get("key", lambda: 1 // 0)
    assert memo.get("key", lambda: 3) == 3


def test_who_waits_for_a_value_that_cannot_be_made_makes_it():
    memo, started, released = Memo(), threading.Event(), threading.Event()

    def fail():
        started.set()
        released.wait(20)
        raise RuntimeError("of the first caller")

    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(memo.get, "key", fail)
        assert started.wait(20)
        others = [pool.submit(memo.get, "key", object) for _ in range(2)]
        released.set()
        with pytest.raises(RuntimeError, match="first caller"):
            first.result(20)
        assert others[0].result(20) is others[1].result(20)


def test_callers_with_other_keys_do_not_wait():
    memo, both = Memo(), threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(memo.get, key, lambda: both.wait(20)) for key in "ab"]:
            future.result(20)  # passes only if both are inside together


def test_a_value_may_need_another_one():
    memo = Memo()
    assert memo.get("sum", lambda: 1 + memo.get("part", lambda: 2)) == 3


def test_the_least_recently_used_values_go_first():
    memo = Memo(keep=2)
    kept = {key: memo.get(key, object) for key in "ab"}
    assert memo.get("a", object) is kept["a"]
    memo.get("c", object)
    assert memo.get("a", object) is kept["a"]
    assert memo.get("b", object) is not kept["b"]


def test_all_values_are_kept_if_there_is_no_limit():
    memo = Memo()
    kept = [memo.get(key, object) for key in range(100)]
    assert [memo.get(key, object) for key in range(100)] == kept


def test_a_cleared_memo_makes_its_values_again():
    memo = Memo()
    kept = memo.get("key", object)
    memo.clear()
    assert memo.get("key", object) is not kept


def test_a_pickled_memo_is_empty():
    memo = Memo(keep=3)
    memo.get("key", lambda: 1)
    other = pickle.loads(pickle.dumps(memo))
    assert other.get("key", lambda: 2) == 2 and other.keep == 3


def test_values_that_are_needed_are_kept_beyond_the_limit():
    needed = {"a"}
    memo = Memo(2, lambda key: key in needed)
    first = {key: memo.get(key, object) for key in "abcd"}
    assert memo.get("a", object) is first["a"] and memo.get("d", object) is first["d"]
    assert memo.get("b", object) is not first["b"]
    needed.clear()
    memo.get("e", object)
    assert memo.get("a", object) is not first["a"]
