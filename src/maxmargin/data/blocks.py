"""Large files in blocks of rows: memory for one block, whatever the size of the file.

A text is cut at the ends of lines, a Parquet file is read by row groups, a dense array of an NPZ archive row
by row. What cannot be read in parts is read as a whole, within the limits of `maxmargin.data.limits`: Parquet
and NPZ from the standard input or compressed once more, and sparse or column-major arrays of NPZ archives.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from maxmargin._files import read_up_to
from maxmargin.data import csv, files, npz, parquet, svmlight
from maxmargin.data.limits import RATIO, UNPACKED, Limit
from maxmargin.data.table import DataError, Table, Wanted

#: Bytes of text in a block, or of the numbers of a table.
SIZE = 1 << 23
#: Makes a table of the contents of a file in a format.
Parse = Callable[[bytes, str], Table]
_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)
# An index 0 in a line of SVMlight, before the comment.
_ZERO = re.compile(rb"^[^#\n]*[ \t]0+:", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Some rows of a file.

    Attributes
    ----------
    table : Table
        The rows.
    before : int
        Number of rows before them.
    read : int
        Bytes of the file that have been read.
    """

    table: Table
    before: int
    read: int


def read_blocks(
    source: str, *, format: str | None = None, target: str | int | None = None,
    features: Sequence[str] | None = None, width: int | None = None, size: int | None = None,
    parse: Parse | None = None,
) -> Iterator[Block]:  # fmt: skip
    """Read a data file, as `maxmargin.data.read` does, in blocks of rows.

    Targets that are text in the file stay text: whether all of them are numbers is known at its end only.

    Parameters
    ----------
    source : path or "-"
        "-" is the standard input.
    format, target, features, width
        As in `maxmargin.data.read`.
    size : int, optional
        Bytes of text, or of numbers, of a block.
    parse : callable, optional
        Makes a table of a small file with some of the rows, of which it gets the contents and the format; by
        default all features are numbers.

    Yields
    ------
    Block
        At least one row each.

    Raises
    ------
    DataError
        As in `maxmargin.data.read`; some blocks may have been read before.
    """
    where, before = files.name_of(source), 0
    wanted = Wanted(target, features, width, labels_as_text=True)
    with ExitStack() as stack:
        reader = _Reader(source, where, wanted, size or SIZE, stack, parse)
        try:
            for table in reader.tables(format):
                if table.X.shape[0]:
                    yield Block(table, before, reader.read)
                before += table.X.shape[0]
        except MemoryError as error:
            raise DataError(f"{where} does not fit into memory.") from error
    if not before:
        raise DataError(f"{where} has no rows of data.")


class _Reader:
    """The tables of a file."""

    def __init__(
        self, source: str, where: str, wanted: Wanted, size: int, stack: ExitStack, parse: Parse | None
    ) -> None:
        self.where, self.wanted, self.size, self.limit = where, wanted, size, Limit()
        self.own = parse is None
        self.parse = parse or self._numbers
        self.path = None if source == "-" or not os.path.isfile(source) else source
        self.raw: BinaryIO
        if source == "-":
            self.raw = sys.stdin.buffer
        else:
            try:
                self.raw = stack.enter_context(open(source, "rb"))  # noqa: SIM115  (the stack closes it)
            except FileNotFoundError as error:
                raise DataError(f"There is no file {where}.") from error
            except OSError as error:
                raise DataError(f"{where} cannot be read: {error.strerror or error}.") from error
        self.buffered = io.BufferedReader(_Counted(self.raw), 1 << 16)
        start = self.buffered.peek(8)[:8]
        self.packing = next((name for magic, name in _PACKED if start.startswith(magic)), None)
        self.stream = _unpacking(self.packing, self.buffered)
        self.unpacked = 0

    @property
    def read(self) -> int:
        """Bytes of the file that have been read."""
        counted: Any = self.buffered.raw
        return int(counted.total)

    def part(self, n: int) -> bytes:
        """Up to n more bytes."""
        try:
            found = bytes(read_up_to(self.stream, n, bytearray()))
        except _DAMAGED as error:
            what = (
                f"the {self.packing} data are damaged ({error})"
                if self.packing
                else f"cannot be read: {error}"
            )
            raise DataError(f"{self.where}: {what}.") from error
        self.unpacked += len(found)
        # As in `data.read`: small files that unpack to very much text are refused.
        if self.packing and not self.limit.given and self.unpacked > max(UNPACKED, RATIO * self.read):
            self.limit.refuse_ratio(self.read, self.where)
        return found

    def tables(self, format: str | None) -> Iterator[Table]:
        """The table in parts."""
        first = self.part(self.size + 1)
        if not first or (len(first) <= self.size and first.isspace()):
            raise DataError(f"{self.where} is empty.")
        kind = format or files.sniff(first)
        if kind in ("parquet", "npz"):
            parts: Any = None
            if self.path is not None and self.packing is None and (self.own or kind == "parquet"):
                split: Any = parquet.blocks if kind == "parquet" else npz.blocks
                parts = split(self.path, self.where, self.wanted, self.limit, self.size)
                if parts is not None and kind == "parquet":
                    parts = (self.parse(part, kind) for part in parts)
            if parts is None:
                rest = self.part(self.limit.bytes + 1 - len(first)) if len(first) > self.size else b""
                if len(first) + len(rest) > self.limit.bytes:
                    self.limit.refuse("its contents are larger", self.where)
                parts = iter([self.parse(first + rest, kind)])
            yield from parts
        elif len(first) <= self.size:
            yield self.parse(first, kind)
        else:
            yield from (self._csv if kind == "csv" else self._svmlight)(files.text_of(first, self.where))

    def _numbers(self, contents: bytes, kind: str) -> Table:
        return files.table_of(contents, kind, self.where, self.wanted, self.limit)

    def _csv(self, first: bytes) -> Iterator[Table]:
        layout, header = None, b""
        for lines in self._lines(first, quoted=True):
            if layout is None:
                layout = csv.layout_of(lines, self.where, self.limit)
                text = io.BytesIO(lines)
                header = b"".join(text.readline() for _ in range(layout.skip))
            elif not self.own:  # a file of its own
                lines = header + lines
            if not lines.isspace():
                if self.own:
                    table = csv.read(lines, self.where, self.wanted, self.limit, layout)
                else:
                    table = self.parse(lines, "csv")
                yield table
                layout = replace(layout, skip=0, before=layout.before + table.X.shape[0])

    def _svmlight(self, first: bytes) -> Iterator[Table]:
        zero, before = self._has_index_zero(first), 0
        for lines in self._lines(first, quoted=False):
            if not self.own:
                yield self.parse(lines, "svmlight")
            elif not lines.isspace():
                yield svmlight.read(lines, self.where, self.wanted, self.limit, zero, before)
            before += lines.count(b"\n")

    def _has_index_zero(self, first: bytes) -> bool:
        """Whether indices start at 0; of a pipe its beginning decides."""
        if _ZERO.search(first):
            return True
        if self.path is None:
            return False
        with open(self.path, "rb") as file:
            stream = _unpacking(self.packing, file)
            while True:
                part = read_up_to(stream, self.size, bytearray())
                if not part:
                    return False
                if _ZERO.search(bytes(part) + stream.readline()):
                    return True

    def _lines(self, first: bytes, quoted: bool) -> Iterator[bytes]:
        """Whole lines, about `size` bytes of them at a time; a quoted cell may have several lines."""
        rest = first
        while True:
            end = max(rest.rfind(b"\n"), -1) + 1 or rest.rfind(b"\r", 0, len(rest) - 1) + 1
            while quoted and end and rest.count(b'"', 0, end) % 2:
                end = rest.rfind(b"\n", 0, rest.rfind(b'"', 0, end)) + 1
            if end:
                yield rest[:end]
                rest = rest[end:]
            more = self.part(self.size)
            if not more:
                break
            rest += more
            if len(rest) > self.limit.bytes:
                self.limit.refuse("a line is longer", self.where)
        if rest:
            yield rest


class _Counted(io.RawIOBase):
    """A stream that counts what is read from it."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream, self.total = stream, 0

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        part = self.stream.read(len(buffer))
        buffer[: len(part)] = part
        self.total += len(part)
        return len(part)


_PACKED = ((b"\x1f\x8b", "gzip"), (b"BZh", "bzip2"), (b"\xfd7zXZ\x00", "xz"))


def _unpacking(packing: str | None, stream: BinaryIO) -> Any:
    if packing is None:
        return stream
    opened: dict[str, Any] = {"gzip": gzip.open, "bzip2": bz2.open, "xz": lzma.open}
    return opened[packing](stream)
