"""Properties that are computed once."""

from __future__ import annotations

import copy
import pickle
import threading
from dataclasses import FrozenInstanceError, dataclass, replace

import pytest

from maxmargin._compiled.lazy import lazy


@dataclass(frozen=True, eq=False)
class Frozen:
    side: int

    @lazy
    def area(self):
        """Side times side."""
        return [self.side**2]


class Counted:
    def __init__(self):
        self.calls = 0

    @lazy
    def value(self):
        self.calls += 1
        if self.calls == 1 and getattr(self, "fails", False):
            raise RuntimeError("once")
        return object()

    @lazy
    def none(self):
        self.calls += 1


class Heir(Counted):
    @lazy
    def value(self):
        return "own"


def test_the_value_is_computed_at_first_use_and_never_again():
    thing = Counted()
    assert thing.calls == 0
    assert thing.value is thing.value
    assert thing.calls == 1


def test_none_is_a_value_like_others():
    thing = Counted()
    assert thing.none is thing.none is None
    assert thing.calls == 1


def test_every_instance_has_its_own_value():
    one, two = Counted(), Counted()
    assert one.value is not two.value
    assert one.calls == two.calls == 1


def test_two_properties_of_one_instance_do_not_mix():
    thing = Counted()
    assert thing.none is None and thing.value is not None


def test_a_frozen_dataclass_keeps_its_value_and_stays_frozen():
    frozen = Frozen(3)
    assert frozen.area is frozen.area and frozen.area == [9]
    with pytest.raises(FrozenInstanceError):
        frozen.side = 4
    assert replace(frozen, side=4).area == [16]


def test_the_class_gives_the_property_itself_with_its_text():
    assert isinstance(Frozen.area, lazy)
    assert Frozen.area.__doc__ == "Side times side."


def test_an_heir_may_replace_the_property():
    assert Heir().value == "own"


def test_a_failure_is_not_kept():
    thing = Counted()
    thing.fails = True
    with pytest.raises(RuntimeError, match="once"):
        _ = thing.value
    assert thing.value is thing.value
    assert thing.calls == 2


def test_copies_keep_the_value_until_it_is_deleted():
    frozen = Frozen(3)
    kept = frozen.area
    assert copy.copy(frozen).area is kept
    assert pickle.loads(pickle.dumps(frozen)).area == kept
    del frozen.__dict__["area"]
    assert frozen.area == kept and frozen.area is not kept


def test_threads_that_come_at_once_neither_wait_for_each_other_nor_fail():
    entered = threading.Barrier(4, timeout=20)

    class Slow:
        @lazy
        def value(self):
            entered.wait()  # passes only if all four are inside together
            return 7

    things = [Slow(), Slow()]
    got = []
    team = [threading.Thread(target=lambda t=t: got.append(t.value)) for t in things * 2]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert got == [7] * 4
    assert [t.value for t in things] == [7, 7]
