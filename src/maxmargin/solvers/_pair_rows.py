"""How the pair loop reads rows of Q: three small functions, which each kind of rows brings."""

from __future__ import annotations

from typing import Any


def has(rows: Any, i: int) -> bool:
    """Whether row i is there."""
    raise NotImplementedError


def fetch(rows: Any, i: int) -> None:
    """Compute row i."""
    raise NotImplementedError


def begin(rows: Any, i: int) -> int:
    """Where row i begins in ``rows.flat``."""
    raise NotImplementedError


def is_kind(rows: Any, kind: type) -> bool:
    """Whether the type of an argument in compiled code is the NamedTuple `kind`."""
    return getattr(rows, "instance_class", None) is kind
