"""The decorator of compiled loops.

Compiled code consists of plain functions on arrays: they can be cached on disk, and several Python threads
can run them at once. No function starts threads of its own, so that concurrent fits and forks do not depend
on a threading layer of Numba.
"""

from __future__ import annotations

from typing import Any

import numba as nb


def compiled(**options: Any) -> Any:
    """``njit`` without the GIL, cached on disk, or in memory where no cache can be written.

    Divisions follow NumPy: a check for zero would prevent vectorisation.
    """
    options = {"nogil": True, "error_model": "numpy", **options}

    def decorate(function: Any) -> Any:
        try:
            return nb.njit(cache=True, **options)(function)
        except RuntimeError:  # "no locator available": a read-only installation without a home
            return nb.njit(**options)(function)

    return decorate


# Flags for loops in which sums may be reordered, and for those in which they must not be
# (`exp2` rounds with a magic number that reassociation would remove).
REORDER = {"contract", "nnan", "ninf", "nsz", "reassoc", "arcp"}
IN_ORDER = {"contract", "nnan", "ninf", "nsz"}
