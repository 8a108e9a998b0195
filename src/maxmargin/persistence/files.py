"""Where model files come from and go to: paths and binary streams, and the one error of all formats."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from maxmargin._files import File, is_path


class ModelFileError(ValueError):
    """A model file that is damaged, malformed or not what it claims to be.

    The message tells which file, what is wrong with it, and what to do.

    Examples
    --------
    >>> import io
    >>> from maxmargin.persistence import load
    >>> load(io.BytesIO(b"something else"))
    Traceback (most recent call last):
    maxmargin.persistence.files.ModelFileError: <stream>: this is no maxmargin model file; ...
    """


def name_of(file: File) -> str:
    """What messages call the file."""
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
