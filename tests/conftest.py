"""Shared by all tests; its place also makes `qp` importable from the folders below."""

import pytest
from hypothesis import settings

from maxmargin.solvers import interrupt

settings.register_profile("maxmargin", deadline=None, derandomize=True)
settings.load_profile("maxmargin")


@pytest.fixture(autouse=True)
def no_press_before(monkeypatch):
    """A Ctrl-C of the test before must not make that of this one the second."""
    monkeypatch.setattr(interrupt, "_last_press", -float("inf"))
