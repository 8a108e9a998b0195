"""Files of compiled functions: a header in JSON, then one compressed entry per specialisation.

    magic, size of the header, header (what the code depends on, and the place of each entry), entries

An entry is a pickle of what Numba needs to rebuild the function, as in Numba's own cache, and like a cache it
is a program: read files from trusted folders only. zlib's checksum finds damage before anything is unpickled.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

MAGIC = b"maxmargin compiled code 1\n"
_SIZE = struct.Struct("<Q")
_LARGEST_HEADER = 1 << 24


class CodeFile:
    """A file of compiled functions, open for reading.

    Raises
    ------
    OSError, ValueError
        If it cannot be read or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, "rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise ValueError("it is not a file of compiled code of this version")
            size = file.read(_SIZE.size)
            if len(size) != _SIZE.size or _SIZE.unpack(size)[0] > _LARGEST_HEADER:
                raise ValueError("its header is damaged")
            try:
                header = json.loads(zlib.decompress(file.read(_SIZE.unpack(size)[0])))
            except (zlib.error, ValueError) as error:
                raise ValueError("its header is damaged") from error
            #: What the code was made for.
            self.made_for: dict[str, str] = header["made_for"]
            self._entries: dict[str, list[int]] = header["entries"]
            end = max((offset + size for offset, size in self._entries.values()), default=0)
            if os.fstat(file.fileno()).st_size != file.tell() + end:
                raise ValueError("it is incomplete")
            # All of it (some 8 MB): the file may be replaced while this process runs.
            self._blobs = file.read()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names(self) -> list[str]:
        """The specialisations."""
        return list(self._entries)

    def read(self, key: str) -> bytes | None:
        """The entry of a specialisation, or None."""
        place = self._entries.get(key)
        if place is None:
            return None
        return zlib.decompress(self._blobs[place[0] : sum(place)])

    def damaged(self) -> list[str]:
        """Specialisations whose entries cannot be read."""
        found = []
        for name in self._entries:
            try:
                self.read(name)
            except zlib.error:
                found.append(name)
        return found


def write_code(path: Path, made_for: dict[str, str], entries: dict[str, bytes]) -> None:
    """Write a file so that readers see all of it or nothing."""
    places: dict[str, list[int]] = {}
    blobs: list[bytes] = []
    at = 0
    for key, entry in sorted(entries.items()):
        blob = zlib.compress(entry, 9)
        places[key] = [at, len(blob)]
        blobs.append(blob)
        at += len(blob)
    header: dict[str, Any] = {"made_for": made_for, "entries": places}
    packed = zlib.compress(json.dumps(header).encode(), 9)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(MAGIC + _SIZE.pack(len(packed)) + packed + b"".join(blobs))
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
