"""NumPy archives with X and y; a sparse X in the format of scipy.sparse or as its parts."""

from __future__ import annotations

import io
import lzma
import math
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy

from maxmargin._files import read_up_to
from maxmargin.data.limits import Limit
from maxmargin.data.table import DataError, Table, Wanted, brief, first_repeated, quoted

_X, _Y = ("X", "X_train", "data", "x"), ("y", "y_train", "target", "labels")
_PARTS = ("data", "indices", "indptr", "shape")
# Errors of the standard library and NumPy for damaged archives and headers.
_DAMAGED = (
    OSError, ValueError, EOFError, LookupError, TypeError, ArithmeticError, SyntaxError, RecursionError,
    NotImplementedError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, tokenize.TokenError,
)  # fmt: skip
# Bytes per array in the list of arrays of an archive.
_ENTRY = 1000


def read(contents: bytes, where: str, wanted: Wanted, limit: Limit) -> Table:
    """Read X, y and names; nothing is unpickled."""
    arrays = _Archive(contents, where, limit)
    X = _matrix(arrays, where)
    key = wanted.target if wanted.target not in (None, "") else next((k for k in _Y if k in arrays), None)
    if key is not None and key not in arrays:
        raise DataError(
            f"{where}: there is no array {brief(str(key))} for the target; the arrays are {arrays.listed()}."
        )
    y = (
        None
        if key is None or wanted.target == ""
        else arrays.get(str(key), "iufbU", "numbers or text").ravel()
    )
    if y is not None and len(y) != X.shape[0]:
        raise DataError(f"{where}: X has {X.shape[0]} rows and {key} has {len(y)} values.")
    names = [str(n) for n in arrays.get("names", "U", "text").ravel()] if "names" in arrays else None
    if names is not None and len(names) != X.shape[1]:
        raise DataError(f"{where}: {len(names)} names for {X.shape[1]} features.")
    return Table(X, y, names, None if y is None else str(key))


def blocks(path: str, where: str, wanted: Wanted, limit: Limit, size: int) -> Iterator[Table] | None:
    """Parts of about `size` bytes of a dense X that is stored row by row; None for any other archive."""
    try:
        archive = zipfile.ZipFile(path)
        infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    except _DAMAGED:
        return None
    x = next((k for k in _X if k in infos), None)
    y = wanted.target if wanted.target is not None else next((k for k in _Y if k in infos), None)
    sparse = any(p + "indptr" in infos for p in ("X_", "X_train_", ""))
    names = infos.get("names")
    if x is None or sparse or (y not in (None, "") and y not in infos) or infos[x].file_size <= size:
        return None
    if names is not None and names.file_size > size:
        return None
    used = [infos[x]] + ([infos[str(y)]] if y else []) + ([names] if names else [])
    if any(info.flag_bits & 1 for info in used):  # encrypted
        return None
    try:
        streams = [archive.open(info) for info in used]
        heads = [_Archive._header(stream) for stream in streams]
    except _DAMAGED:
        return None
    kinds = ["iufb", *(["iufbU"] if y else []), *(["U"] if names else [])]
    (shape, fortran, dtype) = heads[0]
    plain = all(
        head[2].kind in kind and not head[2].hasobject for head, kind in zip(heads, kinds, strict=True)
    )
    fits = all(
        head[0] == (length,) for head, length in zip(heads[1:], [shape[0], shape[-1]][not y :], strict=False)
    )
    if len(shape) != 2 or fortran or not plain or not fits:
        return None
    limit.check(shape[1] * dtype.itemsize, "a row", where)
    return _parts(archive, streams, heads, where, str(y) if y else None, size)


def _parts(
    archive: zipfile.ZipFile, streams: list[Any], heads: list[Any], where: str, y: str | None, size: int
) -> Iterator[Table]:
    n, width = heads[0][0]

    def part(k: int, rows: int, columns: int = 1) -> Any:
        count = rows * columns
        try:
            data = read_up_to(streams[k], count * heads[k][2].itemsize, bytearray())
        except _DAMAGED as error:
            raise DataError(f"{where} is damaged: {error}.") from error
        if len(data) < count * heads[k][2].itemsize:
            raise DataError(f"{where} is damaged: an array is truncated.")
        return np.frombuffer(data, heads[k][2], count=count)

    with archive:
        names = [str(name) for name in part(len(heads) - 1, width)] if len(heads) > 1 + bool(y) else None
        step = max(1, size // max(1, width * heads[0][2].itemsize))
        for start in range(0, n, step):
            rows = min(step, n - start)
            X = part(0, rows, width).reshape(rows, width)
            X = X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
            yield Table(X, part(1, rows) if y else None, names, y)


def write(table: Table, out: BinaryIO) -> None:
    """Write X, y and names; a sparse X as X_data, X_indices, X_indptr, X_shape."""
    arrays: dict[str, Any] = {}
    if sp.issparse(table.X):
        X = sp.csr_array(table.X)
        arrays |= {f"X_{part}": np.asarray(getattr(X, part)) for part in _PARTS}
    else:
        arrays["X"] = table.X
    if table.y is not None:
        arrays["y"] = table.y if table.y.dtype != object else table.y.astype(str)
    if table.names is not None:
        arrays["names"] = np.array(table.names, dtype=str)
    np.savez_compressed(out, **arrays)


class _Archive:
    """The arrays of a file, read on request, with a limit for all of them together."""

    def __init__(self, contents: bytes, where: str, limit: Limit) -> None:
        self.where, self.limit, self.used = where, limit, 0
        limit.check(contents.count(b"PK\x01\x02") * _ENTRY, "the list of arrays", where)
        try:
            self.zip = zipfile.ZipFile(io.BytesIO(contents))
            names = self.zip.namelist()
        except _DAMAGED as error:
            self._refuse(error)
        twice = first_repeated(names)
        if twice is not None:
            raise DataError(f"{where}: the archive contains two arrays {brief(twice)}: save it again.")
        self.members = {name.removesuffix(".npy"): name for name in names}

    def __contains__(self, name: object) -> bool:
        return name in self.members

    def listed(self) -> str:
        """Names for a message."""
        return quoted(list(self.members)) or "none"

    def get(self, name: str, kinds: str, what: str) -> Any:
        """Read an array; its type must be one of the `kinds` of NumPy."""
        info = self.zip.getinfo(self.members[name])
        if info.flag_bits & 1:
            raise DataError(
                f"{self.where}: the array {brief(name)} is encrypted: save the archive without encryption."
            )
        try:
            with self.zip.open(info) as stream:
                shape, fortran, dtype = self._header(stream)
                if dtype.kind not in kinds or dtype.hasobject or dtype.shape:
                    raise DataError(
                        f"{self.where}: the array {brief(name)} has type {brief(str(dtype))[1:-1]}; it must "
                        f"be a plain array of {what}."
                    )
                size = math.prod(shape) * dtype.itemsize
                # Numbers become float64.
                self.used += max(size, math.prod(shape) * 8)
                self.limit.check(self.used, f"the array {brief(name)} of shape {shape}", self.where)
                data = read_up_to(stream, size, bytearray())
            if len(data) < size:
                raise DataError(f"{self.where} is damaged: the array {brief(name)} is truncated.")
            array = np.frombuffer(data, dtype, count=math.prod(shape)) if size else np.empty(shape, dtype)
            return array.reshape(shape, order="F" if fortran else "C")
        except DataError:
            raise
        except _DAMAGED as error:
            self._refuse(error)

    @staticmethod
    def _header(stream: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
        version = npy.read_magic(stream)
        read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = read_header(stream)
        if any(size < 0 for size in shape):
            raise ValueError("an array has a negative size")
        return shape, fortran, dtype

    def _refuse(self, error: BaseException) -> NoReturn:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{self.where} is not an NPZ file of plain arrays: {reason[:200]}.") from error


def _matrix(arrays: _Archive, where: str) -> Any:
    prefix = next((p for p in ("X_", "X_train_", "") if all(p + part in arrays for part in _PARTS)), None)
    if prefix is not None:
        return _sparse(arrays, prefix, where)
    key = next((k for k in _X if k in arrays), None)
    if key is None:
        raise DataError(f"{where}: there is no array 'X'; the arrays are {arrays.listed()}.")
    X = arrays.get(key, "iufb", "numbers")
    if X.ndim != 2:
        raise DataError(f"{where}: {key} must have two dimensions, rows and features, got {X.ndim}.")
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def _sparse(arrays: _Archive, prefix: str, where: str) -> Any:
    layout = b"csr"
    if not prefix and "format" in arrays:  # of scipy.sparse.save_npz
        layout = np.ravel(arrays.get("format", "SU", "text")).astype("S")[:1].tobytes()
        if layout not in (b"csr", b"csc"):
            raise DataError(f"{where}: a sparse matrix must be stored as csr or csc, got {layout!r}.")
    data = arrays.get(prefix + "data", "iufb", "numbers").astype(np.float64)
    rest = [arrays.get(prefix + part, "iu", "whole numbers") for part in _PARTS[1:]]
    try:
        indices, indptr = (part.astype(np.int64, casting="same_kind") for part in rest[:2])
        shape = tuple(int(size) for size in rest[2])
        X = (sp.csr_array if layout == b"csr" else sp.csc_array)((data, indices, indptr), shape=shape)
        X.check_format(full_check=True)
        return X.tocsr()
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{where}: the features are not a matrix of numbers ({reason}).") from error
