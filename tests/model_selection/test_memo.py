import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest

from maxmargin.model_selection.memo import Memo


def test_a_value_is_made_once_however_many_ask():
    calls, memo = [], Memo()

    def make():
        calls.append(1)
        return object()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: memo.get("key", make), range(20)))
    assert len(calls) == 1
    assert all(value is found[0] for value in found)


def test_an_exception_is_not_kept():
    memo = Memo()
    with pytest.raises(ZeroDivisionError):
        memo.get("key", lambda: 1 // 0)
    assert memo.get("key", lambda: 3) == 3


def test_a_pickled_memo_is_empty():
    memo = Memo()
    memo.get("key", lambda: 1)
    assert pickle.loads(pickle.dumps(memo)).get("key", lambda: 2) == 2
