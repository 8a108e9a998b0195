import numpy as np
import pytest

from maxmargin.estimators.base import Machines


def test_machines_are_made_once_and_iteration_over_them_ends():
    made = []
    machines = Machines(np.array([3, 5, 4]), lambda k: made.append(k) or f"machine {k}")
    assert list(machines) == ["machine 0", "machine 1", "machine 2"]
    assert list(machines) == [machines[0], machines[1], machines[2]]
    assert sorted(made) == [0, 1, 2]
    with pytest.raises(IndexError):
        machines[3]
