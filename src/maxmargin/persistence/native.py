"""The container of native model files: a JSON header and named arrays, with a checksum.

======================  =====================================================================
bytes                   content
======================  =====================================================================
0 to 7                  the magic bytes ``89 4D 41 58 4D 47 0D 0A``
8 to 11                 version of the format, unsigned, 1
12 to 15                length h of the header
16 to 23                length of the whole file, the checksum included
24 to 23 + h            the header: JSON in UTF-8
from there              the arrays in the order of the header, in C order; each begins at the next
                        multiple of 64, and the gaps are zero
last 32                 SHA-256 of all bytes before
======================  =====================================================================

All numbers are little-endian. The checksum detects damage, not manipulation: a file with a wrong checksum
is not used, and the contents are checked even if the checksum is right.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from typing import IO, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from maxmargin._files import read_up_to
from maxmargin.persistence.streams import ModelFileError

Array = NDArray[Any]

MAGIC = b"\x89MAXMG\r\n"
VERSION = 1
PREFIX = struct.Struct("<8sIIQ")
DIGEST = 32
ALIGNMENT = 64
# A header of empty lists takes some twenty times its length in memory.
LONGEST_HEADER = 1 << 24
LARGEST_DIMENSION = 1 << 40
MOST_ARRAYS = 10_000
DTYPES = {name: np.dtype("<" + name if name != "b1" else "?") for name in ("f4", "f8", "i4", "i8", "b1")}


def write(stream: IO[bytes], content: dict[str, Any], arrays: dict[str, Array]) -> None:
    """Write a header's content and arrays of the dtypes f4, f8, i4, i8 and b1."""
    names = {dtype: name for name, dtype in DTYPES.items()}
    stored = {name: np.ascontiguousarray(a, a.dtype.newbyteorder("<")) for name, a in arrays.items()}
    table = [[name, names[a.dtype], list(a.shape)] for name, a in stored.items()]
    text = json.dumps(
        {"arrays": table, "content": content},
        ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"),
    )  # fmt: skip
    header = text.encode()
    if len(header) > LONGEST_HEADER:
        raise ValueError(
            f"Labels, feature names and parameters take {len(header)} bytes, more than the "
            f"{LONGEST_HEADER} that a model file may have: use shorter names."
        )
    end = _aligned(PREFIX.size + len(header))
    for a in stored.values():
        end = _aligned(end + a.nbytes)
    digest = hashlib.sha256()
    at = 0

    def put(piece: Any) -> None:
        nonlocal at
        gap = bytes(_aligned(at) - at) if at > PREFIX.size else b""
        for part in (gap, piece):
            digest.update(part)
            stream.write(part)
            at += len(part)

    put(PREFIX.pack(MAGIC, VERSION, len(header), end + DIGEST))
    put(header)
    for a in stored.values():
        put(a.reshape(-1).view(np.uint8).data)
    put(b"")
    stream.write(digest.digest())


def read(stream: IO[bytes], name: str, length: int | None) -> tuple[dict[str, Any], dict[str, Array]]:
    """Content and arrays of a file, whose `length` is known if it has a path; both are checked."""
    data = read_up_to(stream, PREFIX.size, bytearray())
    header_length, total = _check_prefix(data, name, length)
    read_up_to(stream, total, data)
    if len(data) < total:
        _damaged(name, f"it ends after {len(data)} of {total} bytes")
    if hashlib.sha256(memoryview(data)[:-DIGEST]).digest() != data[-DIGEST:]:
        _damaged(name, "its checksum is wrong")
    return _parse(data, header_length, name)


def _check_prefix(prefix: bytearray, name: str, length: int | None) -> tuple[int, int]:
    if len(prefix) < PREFIX.size or prefix[: len(MAGIC)] != MAGIC:
        if prefix[:6] == MAGIC[:6]:
            _damaged(name, "its first bytes are not as they were written")
        raise ModelFileError(
            f"{name}: this is not a maxmargin model file; maxmargin.persistence.kind recognises other "
            "formats."
        )
    _, version, header_length, total = PREFIX.unpack(prefix)
    if version != VERSION:
        raise ModelFileError(
            f"{name}: the file has version {version} of the format, and this maxmargin reads version "
            f"{VERSION}. Read it with the maxmargin that wrote it, or a newer one."
        )
    if length is not None and length != total:
        _damaged(name, f"it has {length} bytes and should have {total}")
    if header_length > LONGEST_HEADER:
        _wrong(name, f"a header of {header_length} bytes, where {LONGEST_HEADER} are allowed")
    if total < _aligned(PREFIX.size + header_length) + DIGEST:
        _wrong(name, f"a length of {total} bytes, which does not hold its header")
    return header_length, total


def _parse(data: bytearray, header_length: int, name: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a file whose checksum is right; it may still have been manipulated."""
    at = PREFIX.size + header_length
    header = _strict_json(data[PREFIX.size : at], name)
    if not isinstance(header, dict) or set(header) != {"arrays", "content"}:
        _wrong(name, "a header that is not made of 'arrays' and 'content'")
    table, content = header["arrays"], header["content"]
    if not isinstance(table, list) or not isinstance(content, dict):
        _wrong(name, "a header whose 'arrays' is not a list or whose 'content' is not an object")
    if len(table) > MOST_ARRAYS:
        _wrong(name, f"{len(table)} arrays, where {MOST_ARRAYS} are allowed")
    plan = []
    for entry in table:
        key, dtype, shape, size = _check_entry(entry, name)
        start = _aligned(at)
        plan.append((key, dtype, shape, start, at))
        at = start + size
        if at + DIGEST > len(data):
            _wrong(name, f"an array {key!r} that does not fit into the file")
    if _aligned(at) + DIGEST != len(data):
        _wrong(name, f"{len(data) - DIGEST - _aligned(at)} bytes that do not belong to an array")
    gaps = [data[before:start] for *_, start, before in plan] + [data[at:-DIGEST]]
    if any(any(gap) for gap in gaps):
        _wrong(name, "bytes other than zero between its arrays")
    arrays: dict[str, Array] = {}
    for key, dtype, shape, start, _ in plan:
        if key in arrays:
            _wrong(name, f"two arrays {key!r}")
        raw = np.frombuffer(data, np.uint8, math.prod(shape) * dtype.itemsize, start)
        if dtype == np.bool_ and (raw > 1).any():
            _wrong(name, f"values other than 0 and 1 in the array {key!r}")
        arrays[key] = raw.view(dtype).reshape(shape).astype(dtype.newbyteorder("="))
    return content, arrays


def _check_entry(entry: Any, name: str) -> tuple[str, np.dtype[Any], tuple[int, ...], int]:
    if not isinstance(entry, list) or len(entry) != 3:
        _wrong(name, "an array that is not described by name, dtype and shape")
    key, dtype, shape = entry
    if not isinstance(key, str) or not isinstance(dtype, str) or dtype not in DTYPES:
        _wrong(name, f"an array whose name is not a string or whose dtype is not one of {', '.join(DTYPES)}")
    if not isinstance(shape, list) or len(shape) > 2:
        _wrong(name, f"an array {key!r} of more than two dimensions, or without a shape")
    for n in shape:
        if type(n) is not int or not 0 <= n < LARGEST_DIMENSION:
            _wrong(name, f"an array {key!r} with an impossible shape")
    return key, DTYPES[dtype], tuple(shape), math.prod(shape) * DTYPES[dtype].itemsize


def _strict_json(raw: bytearray, name: str) -> Any:
    """JSON without NaN, numbers out of range, duplicate keys, or nesting without end."""

    def whole(text: str) -> int:
        if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
            _wrong(name, "a whole number beyond 64 bits")
        return int(text)

    def real(text: str) -> float:
        value = float(text)
        if not math.isfinite(value):
            _wrong(name, "a number beyond float64")
        return value

    def constant(text: str) -> NoReturn:
        _wrong(name, f"the constant {text}, which is not valid JSON")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(items)
        if len(out) < len(items):
            _wrong(name, "a duplicate key")
        return out

    try:
        text = raw.decode()
        header = json.loads(
            text, parse_int=whole, parse_float=real, parse_constant=constant, object_pairs_hook=pairs
        )
        # Half of a surrogate pair can be escaped in JSON, but is not a character.
        if "\\u" in text:
            json.dumps(header, ensure_ascii=False).encode()
    except RecursionError:
        _wrong(name, "a header that is nested too deeply")
    except ModelFileError:
        raise
    except ValueError as error:  # not UTF-8, or not JSON
        _wrong(name, f"a header that cannot be read ({error})")
    return header


def _aligned(at: int) -> int:
    return -(-at // ALIGNMENT) * ALIGNMENT


def _damaged(name: str, what: str) -> NoReturn:
    raise ModelFileError(f"{name}: the file is damaged: {what}. Copy it again or save the model again.")


def _wrong(name: str, what: str) -> NoReturn:
    raise ModelFileError(
        f"{name}: the checksum is right, but the file has {what}. maxmargin does not write such "
        "files: do not trust its source."
    )
