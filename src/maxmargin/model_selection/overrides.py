"""Methods of the library's estimators that a subclass overrides."""

from __future__ import annotations

import re
from typing import Any

_LIBRARIES = ("maxmargin", "sklearn")
# Constructors and other special methods get no data; scikit-learn generates `set_fit_request` and the like.
_IGNORED = re.compile(r"__\w+__|set_\w+_request")


def overridden(kind: type) -> list[str]:
    """Names of the methods and properties that classes outside the library override.

    An estimator without any is trained and evaluated by the code of this library alone, so that faster code
    can take its place. New methods, parameters and constants of a subclass do not count.

    Examples
    --------
    >>> from maxmargin import SVC
    >>> from maxmargin.model_selection.overrides import overridden
    >>> overridden(SVC)
    []
    >>> overridden(type("Scaled", (SVC,), {"fit": lambda self, X, y: ..., "__module__": "elsewhere"}))
    ['fit']
    """
    mro = kind.__mro__
    found: set[str] = set()
    for k, owner in enumerate(mro):
        if _in_library(owner):
            continue
        beyond = {name for other in mro[k + 1 :] if _in_library(other) for name in vars(other)}
        found |= {
            name
            for name, value in vars(owner).items()
            if name in beyond and _is_method(value) and not _IGNORED.fullmatch(name)
        }
    return sorted(found)


def _in_library(owner: type) -> bool:
    return owner.__module__.partition(".")[0] in _LIBRARIES


def _is_method(value: Any) -> bool:
    return callable(value) or hasattr(type(value), "__get__")
