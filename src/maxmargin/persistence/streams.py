"""Streams that model files are read from, and the error that all formats raise."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from maxmargin._files import File, is_path


class ModelFileError(ValueError):
    """A model file that is damaged, malformed or not what it claims to be.

    The message names the file, the error and a remedy.

    Examples
    --------
    >>> import io
    >>> from maxmargin.persistence import load
    >>> load(io.BytesIO(b"something else"))
    Traceback (most recent call last):
    maxmargin.persistence.streams.ModelFileError: <stream>: this is not a maxmargin model file; ...
    """


def name_of(file: File) -> str:
    """The name of the file in messages."""
    if is_path(file):
        return os.fsdecode(os.fspath(file))
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "<stream>"


@contextmanager
def reading(file: File) -> Iterator[tuple[IO[bytes], int | None]]:
    """A stream to read from and, for a path, the file's length."""
    if not is_path(file):
        if not hasattr(file, "read"):
            raise TypeError(f"file must be a path or a binary file object, got {type(file).__name__}.")
        yield file, None
        return
    with open(file, "rb") as stream:
        yield stream, os.fstat(stream.fileno()).st_size
