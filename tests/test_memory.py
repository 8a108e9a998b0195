"""Arrays that begin on a cache line."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin._memory import LINE, aligned

SHAPES = [0, 1, 7, (3,), (5, 9), (0, 4), (4, 0), (2, 3, 5), (1000, 17), ()]


@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("dtype", ["float32", np.float64, np.int8, np.dtype(np.int64), bool])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shape_and_type_are_as_asked_and_the_first_element_begins_a_line(shape, dtype, zero):
    out = aligned(shape, dtype, zero=zero)
    plain = np.empty(shape, dtype)
    assert (out.shape, out.dtype) == (plain.shape, plain.dtype)
    assert out.flags.c_contiguous and out.flags.writeable and out.flags.aligned
    if out.size:
        assert out.ctypes.data % LINE == 0 and out.strides == plain.strides


@pytest.mark.parametrize("shape", [0, 5, (300, 300), ()], ids=str)
def test_zeroed_arrays_are_zero(shape):
    for _ in range(3):
        out = aligned(shape, np.float64, zero=True)
        assert not out.any()
        out[...] = np.nan  # for the next one to find, if it did not clear its memory


def test_arrays_do_not_overlap_and_hold_what_is_written_to_the_last_element():
    arrays = [aligned(k, np.float32) for k in range(40)]
    for k, array in enumerate(arrays):
        array[:] = k
    assert all((array == k).all() for k, array in enumerate(arrays))


def test_numbers_of_numpy_are_shapes_too():
    assert aligned(np.int64(6), "f4").shape == (6,)
    assert aligned((np.int32(2), np.intp(3)), "f4").shape == (2, 3)
