"""Reading and writing files: the format is detected, and each format has its own functions."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from maxmargin._files import read_up_to, writing
from maxmargin.data import csv, npz, parquet, svmlight
from maxmargin.data.limits import Limit
from maxmargin.data.table import DataError, Table, Wanted

FORMATS = ("svmlight", "csv", "parquet", "npz")
SUFFIXES = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
}
_READ: dict[str, Callable[[bytes, str, Wanted, Limit], Table]] = {
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
    (b"\x1f\x8b", "gzip", gzip.open),
    (b"BZh", "bzip2", bz2.open),
    (b"\xfd7zXZ\x00", "xz", lzma.open),
)
_PAIR = re.compile(rb"^\s*\S+(\s+qid:\d+)?(\s+\d+:\S+)+\s*(#.*)?$")


@dataclass(frozen=True)
class Contents:
    """The unpacked contents of a data file, which may be parsed more than once."""

    data: bytes
    kind: str
    where: str
    limit: Limit

    def parse(self, wanted: Wanted) -> Table:
        """The table of numbers in the contents."""
        try:
            table = _READ[self.kind](self.data, self.where, wanted, self.limit)
        except MemoryError as error:
            raise DataError(f"{self.where} does not fit into memory.") from error
        if not table.X.shape[0]:
            raise DataError(f"{self.where} has no rows of data.")
        return table


def read(
    source: str | os.PathLike[str] | BinaryIO,
    *,
    format: str | None = None,
    target: str | int | None = None,
    features: Sequence[str] | None = None,
    width: int | None = None,
    drop: Sequence[str] = (),
    memory: float | None = None,
) -> Table:
    """Read a data file, which may be compressed (gzip, bzip2, xz).

    Parameters
    ----------
    source : path, "-" or binary file
        "-" is the standard input.
    format : {"svmlight", "csv", "parquet", "npz"}, optional
        By default it is detected from the contents.
    target : str or int, optional
        Name or number of the target column (of CSV and Parquet files). By default a column called target,
        label, class or y, otherwise the last; "" for none.
    features : sequence of str, optional
        The features, in this order; by default all other columns.
    width : int, optional
        The expected number of features: if there are exactly as many columns, there is no target.
    drop : sequence of str
        Columns to leave out.
    memory : float, optional
        Largest size in megabytes of the unpacked file and of the table; reading needs about three times as
        much. By default the environment variable MAXMARGIN_DATA_MEMORY, otherwise a quarter of the
        memory of the computer; a compressed file may then unpack to 100 MB, or to 200 times its size.

    Returns
    -------
    Table
        The data.

    Raises
    ------
    DataError
        If the file is missing, damaged or too large, or a requested column is missing.
    """
    return contents_of(source, format, memory).parse(Wanted(target, features, width, tuple(drop)))


def contents_of(
    source: str | os.PathLike[str] | BinaryIO, format: str | None = None, memory: float | None = None
) -> Contents:
    """Read and unpack a data file, and detect its format."""
    if format is not None and format not in FORMATS:
        raise DataError(f"Unknown format {format!r}: use one of {', '.join(FORMATS)}.")
    limit = Limit(memory)
    where = name_of(source)
    try:
        contents = _unpacked(_contents(source, where, limit), where, limit)
        if not contents or contents.isspace():
            raise DataError(f"{where} is empty.")
        kind = format or sniff(contents)
        if kind in ("svmlight", "csv"):
            contents = text_of(contents, where)
    except MemoryError as error:
        raise DataError(f"{where} does not fit into memory.") from error
    return Contents(contents, str(kind), where, limit)


def write(table: Table, file: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a table to a file, in the format given or that of the suffix.

    Parameters
    ----------
    table : Table
        The data.
    file : path or "-"
        "-" is the standard output.
    format : {"svmlight", "csv", "parquet", "npz"}, optional
        The format; by default that of the suffix.
    """
    kind = format or SUFFIXES.get(Path(file).suffix.lower())
    if kind not in FORMATS:
        raise DataError(f"{os.fspath(file)}: unknown suffix; choose one of the formats {', '.join(FORMATS)}.")
    if os.fspath(file) == "-":
        _WRITE[kind](table, sys.stdout.buffer)
        return
    try:
        with writing(file) as out:
            _WRITE[kind](table, out)
    except OSError as error:
        raise DataError(f"{file} cannot be written: {error.strerror or error}.") from error


def table_of(contents: bytes, kind: str, where: str, wanted: Wanted, limit: Limit) -> Table:
    """The table in the unpacked contents of a file."""
    if kind in ("svmlight", "csv"):
        contents = text_of(contents, where)
    return _READ[kind](contents, where, wanted, limit)


def sniff(contents: bytes) -> str:
    """Detect the format of the contents."""
    if contents.startswith(b"PAR1"):
        return "parquet"
    if contents.startswith(b"PK"):
        return "npz"
    start = contents[:20_000].removeprefix(codecs.BOM_UTF8)
    if len(contents) > 20_000:  # the last word may be incomplete
        start = start.rsplit(None, 1)[0]
    lines = start.splitlines()[:50]
    lines = [line for line in lines if line.strip() and not line.lstrip().startswith(b"#")]
    return "svmlight" if any(_PAIR.match(line) for line in lines) else "csv"


def name_of(source: str | os.PathLike[str] | BinaryIO) -> str:
    """The name of the source in messages."""
    if hasattr(source, "read"):
        return str(getattr(source, "name", "the data"))
    return "standard input" if os.fspath(source) == "-" else os.fspath(source)


def _contents(source: str | os.PathLike[str] | BinaryIO, where: str, limit: Limit) -> bytes:
    """All bytes of a source."""
    if hasattr(source, "read"):
        return _limited(source, where, limit)
    if where == "standard input":
        return _limited(sys.stdin.buffer, where, limit)
    try:
        with open(source, "rb") as stream:
            return _limited(stream, where, limit)
    except FileNotFoundError as error:
        raise DataError(f"There is no file {where}.") from error
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _unpacked(contents: bytes, where: str, limit: Limit) -> bytes:
    """The contents, decompressed if necessary."""
    for magic, name, opened in _COMPRESSED:
        if contents.startswith(magic):
            try:
                most = limit.unpacked(len(contents))
                with opened(io.BytesIO(contents)) as stream:
                    unpacked = read_up_to(stream, most + 1, bytearray())
                if len(unpacked) > most:
                    limit.refuse_ratio(len(contents), where)
                return bytes(unpacked)
            except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
                if isinstance(error, DataError):
                    raise
                raise DataError(f"{where}: the {name} data are damaged ({error}).") from error
    return contents


def _limited(stream: Any, where: str, limit: Limit) -> bytes:
    """The contents of a stream, up to the limit."""
    contents = read_up_to(stream, limit.bytes + 1, bytearray())
    if len(contents) > limit.bytes:
        limit.refuse("its contents are larger", where)
    return bytes(contents)


def text_of(contents: bytes, where: str) -> bytes:
    """Text in UTF-8 without a byte order mark."""
    if contents.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise DataError(f"{where} is text in UTF-16 or UTF-32: save it as UTF-8.")
    if contents.startswith(b"\x93NUMPY"):
        raise DataError(f"{where} is a single NumPy array: write X and y into one file with numpy.savez.")
    if b"\0" in contents[:4096]:
        raise DataError(f"{where} is neither text in UTF-8 nor Parquet or NPZ (it has null bytes).")
    return contents.removeprefix(codecs.BOM_UTF8)
