"""Shared by all tests; its place also makes `qp` importable from the folders below."""

from hypothesis import settings

settings.register_profile("maxmargin", deadline=None, derandomize=True)
settings.load_profile("maxmargin")
