"""Which variables a block contains, and their values."""

import numpy as np
import pytest

from maxmargin.solvers.c_path.block import empty_block, gather, select
from maxmargin.solvers.c_path.state import Point


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_block_has_its_members_and_their_values_after_any_sequence(dtype):
    rng = np.random.default_rng(0)
    n = 60
    K = rng.normal(size=(n, n))
    K = np.ascontiguousarray(K + K.T, dtype=dtype)
    block = empty_block(K, n)
    for _ in range(50):
        wanted = int(rng.integers(1, n))
        members = rng.permutation(n)
        size = gather(K, block, members, wanted)
        inside = block.slots[:size]
        assert size == block.size[0] and set(members[:wanted]) <= set(inside) and len(set(inside)) == size
        np.testing.assert_array_equal(block.place[inside], np.arange(size))
        assert (np.delete(block.place, inside) == -1).all()
        for i in np.flatnonzero(block.valid[:size]):
            np.testing.assert_array_equal(block.Q[i, :size], K[inside[i], inside])
        for i in rng.integers(0, size, 5):  # as pair steps read rows
            block.Q[i, :size] = K[inside[i], inside]
            block.valid[i] = True


def test_free_variables_and_the_worst_violators_are_selected():
    n = 2000
    g = np.linspace(-1.0, 1.0, n)
    u, lo, hi = np.zeros(n), np.zeros(n), np.ones(n)
    u[1000:1100] = 0.5  # free
    u[1500:] = 1.0  # at the upper bound: violators with the largest gradients
    members = np.empty(n, np.int64)
    size = select(Point(u, g, lo, hi, 0.0), g[0], g[-1], 400, members)
    chosen = set(members[:size])
    assert set(range(1000, 1100)) <= chosen and size <= 410
    others = np.array(sorted(chosen - set(range(1000, 1100))))
    assert others.min() == 0 and others.max() == n - 1
    low, high = others[others < 1000], others[others >= 1500]
    bin_ = n // 128 + 1  # among those of the last bin of the histogram any may be chosen
    assert low.max() < len(low) + bin_ and high.min() >= n - len(high) - bin_
