"""Limits of the memory for a data file.

A file of some kilobytes can unpack to gigabytes, or declare an array of any shape. Therefore the sizes of the
unpacked file and of the table are determined before memory is allocated, and each is limited to a share of
the memory of the computer. Reading needs at most about three times as much in total.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from maxmargin.data.table import DataError

# The environment variable with the limit in megabytes.
VARIABLE = "MAXMARGIN_DATA_MEMORY"
# Share of the memory of the computer if no limit is given.
_SHARE = 0.25
# Size of the memory if it cannot be determined.
_UNKNOWN = 4 << 30


class Limit:
    """The largest number of bytes for one object.

    Parameters
    ----------
    megabytes : float, optional
        By default the environment variable MAXMARGIN_DATA_MEMORY, otherwise a quarter of the memory.

    Examples
    --------
    >>> from maxmargin.data.limits import Limit
    >>> Limit(1).check(2_500_000, "the array X", "some.npz")
    Traceback (most recent call last):
    maxmargin.data.table.DataError: some.npz: the array X would take 2.5 MB, more than the limit of 1 MB ...
    """

    def __init__(self, megabytes: float | None = None) -> None:
        if megabytes is None and VARIABLE in os.environ:
            try:
                megabytes = float(os.environ[VARIABLE])
            except ValueError as error:
                raise DataError(
                    f"The environment variable {VARIABLE} must be a number of megabytes, got "
                    f"{os.environ[VARIABLE]!r}."
                ) from error
        if megabytes is not None and not 0 < megabytes < 1e12:
            raise DataError(f"The memory for data must be a positive number of megabytes, got {megabytes:g}.")
        self.bytes = int(_SHARE * available() if megabytes is None else megabytes * 1e6)

    def check(self, size: int, what: str, where: str) -> None:
        """Raise an error if the size exceeds the limit."""
        if size > self.bytes:
            self.refuse(f"{what} would take {_shown(size)}", where)

    def refuse(self, what: str, where: str) -> NoReturn:
        """Raise the error for an object that is too large."""
        raise DataError(
            f"{where}: {what}, more than the limit of {_shown(self.bytes)} for data: if the file is not "
            f"damaged, set the environment variable {VARIABLE} to a larger number of megabytes."
        )


def available() -> int:
    """Bytes of memory for this process: those of the computer, or the limit of the container or process."""
    found = []
    try:
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):  # pragma: no cover  (not on Windows)
        found.append(_UNKNOWN)
    with suppress(OSError, ValueError):  # no container, or one without a limit
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    try:
        import resource

        own = resource.getrlimit(resource.RLIMIT_AS)[0]
        found += [own] if own != resource.RLIM_INFINITY else []
    except ImportError:  # pragma: no cover  (not on Windows)
        pass
    return min(found)


def _shown(size: int) -> str:
    for unit, factor in (("TB", 1e12), ("GB", 1e9)):
        if size >= factor:
            return f"{size / factor:,.1f} {unit}"
    return f"{size / 1e6:,.3g} MB" if size < 1e7 else f"{size / 1e6:,.0f} MB"
