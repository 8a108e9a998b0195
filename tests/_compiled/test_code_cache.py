"""Numba's cache behind the files of code."""

from maxmargin._compiled.jit import compiled


class Damaged:
    """A cache whose index another version of the package has written."""

    def __init__(self):
        self.emptied, self.saved = False, 0

    def load_overload(self, sig, target_context):
        raise AttributeError("Can't get attribute 'Form' on <module 'maxmargin.kernels._tiles'>")

    def flush(self):
        self.emptied = True

    def save_overload(self, sig, data):
        assert self.emptied
        self.saved += 1


def test_a_cache_of_another_version_is_emptied_and_the_function_compiled():
    @compiled()
    def twice(x):
        return 2 * x

    twice._cache._own = cache = Damaged()
    assert twice(21) == 42
    assert cache.emptied and cache.saved == 1
