"""Settings of parameters that are the same in several nodes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def mark(value: Any) -> Hashable:
    """A value that can be compared in place of a parameter's, which may be of any type.

    Numbers, texts and lists of them are compared by type and value, all other objects (estimators, arrays,
    functions) by identity: their text is long to make, and shortened, so that different ones may have the
    same. The nodes of a grid have the objects of its lists; equal objects that are not the same are trained
    apart. The marks hold while the objects exist.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.model_selection.settings import mark
    >>> a, b = np.ones(2), np.ones(2)
    >>> mark((0, 1)) == mark((0, 1)), mark(1) == mark(1.0), mark(a) == mark(b)
    (True, False, False)
    """
    kind = type(value)
    if isinstance(value, _PLAIN):
        return kind, repr(value)
    if kind in (tuple, list):
        return kind, tuple(mark(item) for item in value)
    if kind is dict:
        return kind, tuple((mark(key), mark(item)) for key, item in value.items())
    return kind, id(value)


def mark_all(params: dict[str, Any]) -> Hashable:
    """The marks of several parameters, whatever their order."""
    return tuple((name, mark(params[name])) for name in sorted(params))
