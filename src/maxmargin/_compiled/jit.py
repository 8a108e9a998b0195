"""How loops are compiled.

Everything compiled is plain functions on arrays: it can be cached on disk, and several Python threads can
run it at once. No function starts threads of its own, so neither concurrent fits nor forks can trip over a
threading layer.
"""

from __future__ import annotations

from typing import Any

import numba as nb


def compiled(**options: Any) -> Any:
    """``njit`` without the GIL, cached on disk; in memory only where no cache can be written.

    Divisions follow NumPy: a check for zero would keep a loop from being vectorised.
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
