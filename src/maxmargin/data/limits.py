"""Limits of the memory for a data file.

A file of some kilobytes can unpack to gigabytes, or declare an array of any shape. Therefore the sizes of the
unpacked file and of the table are determined before memory is allocated, and each is limited to a share of
the memory of the computer. Reading needs at most about three times as much in total.

Text takes long to read, too. Unless a limit is given, a compressed file may therefore unpack to 100 MB, and
to more only up to 200 times its own size.
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
# Bytes to which every compressed file may unpack, and the largest ratio of the sizes beyond that.
UNPACKED, RATIO = 100_000_000, 200


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
        self.given = megabytes is not None
        self.bytes = int(_SHARE * available() if megabytes is None else megabytes * 1e6)

    def unpacked(self, packed: int) -> int:
        """The largest number of bytes to which a compressed file of this size may unpack."""
        return self.bytes if self.given else min(self.bytes, max(UNPACKED, RATIO * packed))

    def refuse_ratio(self, packed: int, where: str) -> NoReturn:
        """Raise the error for a file that unpacks to more than it may."""
        if self.unpacked(packed) == self.bytes:
            self.refuse("its contents are larger", where)
        most = _shown(self.unpacked(packed))
        raise DataError(
            f"{where}: {_shown(packed)} of compressed data unpack to more than {most}: if this is "
            f"no decompression bomb, set the environment variable {VARIABLE} to a number of megabytes, which "
            "is then the only limit."
        )

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
