"""Settings of parameters that are the same in several nodes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, complex, str, bytes, type(None), np.generic)


def key_of(value: Any) -> Hashable:
    """A key by which values of a parameter, which may be of any type, are compared.

    Numbers, texts and lists of them are compared by type and value, all other objects (estimators, arrays,
    functions) by identity: their text is long to make, and shortened, so that different ones may have the
    same. The nodes of a grid have the objects of its lists; equal objects that are not the same are trained
    apart. The keys are valid while the objects exist.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.model_selection.settings import key_of
    >>> a, b = np.ones(2), np.ones(2)
    >>> key_of((0, 1)) == key_of((0, 1)), key_of(1) == key_of(1.0), key_of(a) == key_of(b)
    (True, False, False)
    """
    kind = type(value)
    if isinstance(value, _PLAIN):
        return kind, repr(value)
    if kind in (tuple, list):
        return kind, tuple(key_of(item) for item in value)
    if kind is dict:
        return kind, tuple((key_of(name), key_of(item)) for name, item in value.items())
    return kind, id(value)


def keys_of(params: dict[str, Any]) -> Hashable:
    """The keys of several parameters, whatever their order."""
    return tuple((name, key_of(params[name])) for name in sorted(params))
