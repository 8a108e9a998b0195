"""Files that are written as a whole or not at all, and read as far as they go."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

File = Any  # str, os.PathLike or a binary file object


def is_path(file: File) -> bool:
    """Whether the file is named rather than open."""
    return isinstance(file, str | bytes | os.PathLike)


@contextmanager
def writing(file: File) -> Iterator[IO[bytes]]:
    """A stream to write to; a path is replaced when all is written, or not at all.

    Except for what is not an ordinary file, such as a device or a pipe: that must stay what it is.
    """
    if not is_path(file):
        if not hasattr(file, "write"):
            raise TypeError(f"file must be a path or a binary file object, got {type(file).__name__}.")
        yield file
        return
    target = os.path.realpath(os.fsdecode(os.fspath(file)))
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as stream:
            yield stream
        return
    beside = f"{target}.{secrets.token_hex(4)}.part"
    stream = open(beside, "xb")  # noqa: SIM115  (closed before it is renamed)
    try:
        with stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise


def read_up_to(stream: IO[bytes], n: int, out: bytearray) -> bytearray:
    """Append to `out` until it has n bytes or the file ends; memory grows with what is there, not with n."""
    while len(out) < n:
        part = stream.read(min(n - len(out), 1 << 20))
        if not isinstance(part, bytes | bytearray | memoryview):
            raise TypeError("file must be opened in binary mode, open(..., 'rb').")
        if not part:
            break
        out += part
    return out
