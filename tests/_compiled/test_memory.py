"""Arrays that begin on a cache line."""

from __future__ import annotations

import os

import numpy as np
import pytest

from maxmargin._compiled import memory as _memory
from maxmargin._compiled.memory import LINE, aligned, writable

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


needs_recycling = pytest.mark.skipif(not _memory._CAN_KEEP, reason="the system cannot mark memory as free")


@pytest.fixture
def nothing_waits(monkeypatch):
    monkeypatch.setattr(_memory, "_waiting", [])


@pytest.mark.parametrize("shape", [5, (3, 5), 1 << 23, (1 << 12, 1 << 12)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recycled_arrays_are_contiguous_writable_and_begin_a_cache_line(shape, dtype, nothing_waits):
    array = _memory.recycled(shape, dtype)
    assert array.dtype == dtype and array.shape == (shape if isinstance(shape, tuple) else (shape,))
    assert array.flags.c_contiguous and array.flags.writeable and array.ctypes.data % 64 == 0
    array[...] = 1


@needs_recycling
def test_the_memory_of_a_large_array_serves_the_next_one(nothing_waits):
    first = _memory.recycled(1 << 23, "float32")
    first[:] = 1
    address = first.ctypes.data
    part = first[100:]
    del first
    assert not _memory._waiting  # a view still needs it
    del part
    assert _memory.recycled((1 << 11, 1 << 11), "float64").ctypes.data == address


@needs_recycling
def test_living_arrays_never_share_memory(nothing_waits):
    arrays = [_memory.recycled(1 << 22, "float64") for _ in range(4)]
    for k, array in enumerate(arrays):
        array[:] = k
    assert [float(array.min()) for array in arrays] == [0, 1, 2, 3]
    assert [float(array.max()) for array in arrays] == [0, 1, 2, 3]


@needs_recycling
def test_one_buffer_waits_at_most_and_it_is_the_largest(nothing_waits):
    small, large = _memory.recycled(1 << 22, "float64"), _memory.recycled(1 << 23, "float64")
    del large
    del small
    assert [len(buffer) for buffer in _memory._waiting] == [8 << 23]


@needs_recycling
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_process_has_memory_of_its_own(nothing_waits):
    array = _memory.recycled(1 << 22, "float64")
    array[:] = 1
    pid = os.fork()
    if pid == 0:
        array[:] = 2
        os._exit(0)
    os.waitpid(pid, 0)
    assert (array == 1).all()


def test_a_read_only_array_becomes_one_of_the_writable_type_without_a_copy():
    array = np.arange(6.0)
    assert writable(array) is array
    array.flags.writeable = False
    found = writable(array)
    assert found.flags.writeable and np.shares_memory(found, array)
    del array
    np.testing.assert_array_equal(found, np.arange(6.0))


def test_buffers_reuse_the_memory_of_arrays_that_are_gone_only():
    buffers = _memory.Buffers()
    first, second = buffers.empty((30, 30), "float32"), buffers.empty((30, 30), "float32")
    first[:], second[:] = 1.0, 2.0
    assert (first == 1.0).all() and (second == 2.0).all()
    assert first.flags.writeable and first.ctypes.data % LINE == 0
    address, part = first.ctypes.data, first[3:]
    del first
    assert buffers.empty((30, 30), "float32").ctypes.data != address  # a part is in use
    del part
    addresses = {buffers.empty(k, "float32").ctypes.data for k in (10, 900)}
    assert addresses == {address}


def test_buffers_that_are_too_small_are_replaced_and_released_ones_keep_nothing():
    buffers = _memory.Buffers()
    small = buffers.empty(10, "float64")
    del small
    large = buffers.empty(1000, "float64")
    large[:] = 3.0
    buffers.release()
    assert (large == 3.0).all()
    del large
    assert buffers._free == []
