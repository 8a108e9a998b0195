"""Reading and writing: which format it is, and one function per format."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from maxmargin._files import writing
from maxmargin.data import csv, npz, parquet, svmlight
from maxmargin.data.table import DataError, Table, Wanted

FORMATS = ("svmlight", "csv", "parquet", "npz")
_SUFFIXES = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
}
_READ: dict[str, Callable[[bytes, str, Wanted], Table]] = {
    "svmlight": svmlight.read,
    "csv": csv.read,
    "parquet": parquet.read,
    "npz": npz.read,
}
_WRITE: dict[str, Callable[[Table, Any], None]] = {
    "svmlight": svmlight.write,
    "csv": csv.write,
    "parquet": parquet.write,
    "npz": npz.write,
}
_COMPRESSED: tuple[tuple[bytes, str, Any], ...] = (
    (b"\x1f\x8b", "gzip", gzip.decompress),
    (b"BZh", "bzip2", bz2.decompress),
    (b"\xfd7zXZ\x00", "xz", lzma.decompress),
)
_PAIR = re.compile(rb"^\s*\S+(\s+qid:\d+)?(\s+\d+:\S+)+\s*(#.*)?$")


def read(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    target: str | int | None = None,
    features: Sequence[str] | None = None,
    width: int | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """Read a data file; compressed ones (gzip, bzip2, xz) too.

    Parameters
    ----------
    source : path, "-" or binary file
        "-" is the standard input.
    format : {"svmlight", "csv", "parquet", "npz"}, optional
        By default the contents tell.
    target : str or int, optional
        Name or number of the target column (of CSV and Parquet files). By default a column called target,
        label, class or y, otherwise the last; "" for none.
    features : sequence of str, optional
        The features, in this order; by default all other columns.
    width : int, optional
        The number of features that are expected: with just as many columns there is no target.
    drop : sequence of str
        Columns to leave out.

    Returns
    -------
    Table
        The data.

    Raises
    ------
    DataError
        If the file is missing, damaged or does not hold what was asked for.
    """
    contents, where = _contents(source)
    if format is not None and format not in FORMATS:
        raise DataError(f"Unknown format {format!r}: use one of {', '.join(FORMATS)}.")
    if not contents.strip():
        raise DataError(f"{where} is empty.")
    kind = format or sniff(contents)
    table = _READ[kind](contents, where, Wanted(target, features, width, tuple(drop)))
    if not table.X.shape[0]:
        raise DataError(f"{where} has no rows of data.")
    return table


def write(table: Table, file: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a table to a file; its suffix tells the format unless it is named.

    Parameters
    ----------
    table : Table
        The data.
    file : path or "-"
        "-" is the standard output.
    format : {"svmlight", "csv", "parquet", "npz"}, optional
        What to write.
    """
    kind = format or _SUFFIXES.get(Path(file).suffix.lower())
    if kind not in FORMATS:
        raise DataError(
            f"{os.fspath(file)}: the suffix does not tell the format; name one of {', '.join(FORMATS)}."
        )
    if os.fspath(file) == "-":
        _WRITE[kind](table, sys.stdout.buffer)
        return
    try:
        with writing(file) as out:
            _WRITE[kind](table, out)
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror or error}.") from error


def sniff(contents: bytes) -> str:
    """The format that the contents look like."""
    if contents.startswith(b"PAR1"):
        return "parquet"
    if contents.startswith(b"PK"):
        return "npz"
    lines = contents[:20_000].splitlines()[:50]
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith(b"#")]
    return "svmlight" if any(_PAIR.match(line) for line in lines) else "csv"


def _contents(source: str | os.PathLike[str] | BinaryIO) -> tuple[bytes, str]:
    """All bytes, and what to call them in messages."""
    if hasattr(source, "read"):
        contents, where = source.read(), str(getattr(source, "name", "the data"))
    elif os.fspath(source) == "-":
        contents, where = sys.stdin.buffer.read(), "standard input"
    else:
        where = os.fspath(source)
        try:
            contents = Path(source).read_bytes()
        except FileNotFoundError as error:
            raise DataError(f"There is no file {where}.") from error
        except OSError as error:
            raise DataError(f"{where} cannot be read: {error.strerror or error}.") from error
    for magic, name, unpack in _COMPRESSED:
        if contents.startswith(magic):
            try:
                return unpack(contents), where
            except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
                raise DataError(f"{where}: the {name} data are damaged ({error}).") from error
    return contents, where
