"""The decorator of compiled loops.

Compiled code consists of plain functions on arrays: they can be cached on disk, and several Python threads
can run them at once. No function starts threads of its own, so that concurrent fits and forks do not depend
on a threading layer of Numba.
"""

from __future__ import annotations

from typing import Any

import numba as nb

# Both use parts of Numba that another version may not have: functions are compiled then as by plain Numba.
try:
    from maxmargin._compiled.code_cache import CodeCache
except (ImportError, AttributeError):
    CodeCache = None  # type: ignore[assignment, misc]
try:
    from maxmargin._compiled.announce import start as announce_compilations
except (ImportError, AttributeError):
    pass
else:
    announce_compilations()


def compiled(**options: Any) -> Any:
    """``njit`` without the GIL, with code from a file or a cache where there is one.

    Divisions follow NumPy: a check for zero would prevent vectorisation.
    """
    options = {"nogil": True, "error_model": "numpy", **options}

    def decorate(function: Any) -> Any:
        dispatcher = nb.njit(**options)(function)
        if CodeCache is not None and hasattr(dispatcher, "_cache"):  # not with NUMBA_DISABLE_JIT
            dispatcher._cache = CodeCache(function)
            return dispatcher
        try:
            return nb.njit(cache=True, **options)(function)
        except RuntimeError:  # "no locator available": a read-only installation without a home
            return dispatcher

    return decorate


# Flags for loops in which sums may be reordered, and for those in which they must not be
# (`exp2` rounds with a magic number that reassociation would remove).
REORDER = {"contract", "nnan", "ninf", "nsz", "reassoc", "arcp"}
IN_ORDER = {"contract", "nnan", "ninf", "nsz"}
