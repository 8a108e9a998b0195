"""Compiled functions that the processes of a warm-up share: what one has compiled the others read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, MutableMapping
from pathlib import Path


class Entries(MutableMapping[str, bytes]):
    """A folder with one file for each specialisation, which is there as a whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, key: str) -> Path:
        return self._folder / hashlib.sha256(key.encode()).hexdigest()

    def __getitem__(self, key: str) -> bytes:
        try:
            return self._path(key).read_bytes().partition(b"\0")[2]
        except FileNotFoundError:
            raise KeyError(key) from None

    def __setitem__(self, key: str, entry: bytes) -> None:
        path = self._path(key)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(key.encode() + b"\0" + entry)
        os.replace(part, path)

    def __delitem__(self, key: str) -> None:
        self._path(key).unlink()

    def __iter__(self) -> Iterator[str]:
        for path in sorted(self._folder.iterdir()):
            if not path.suffix:
                yield path.read_bytes().partition(b"\0")[0].decode()

    def __len__(self) -> int:
        return sum(1 for _ in self)
