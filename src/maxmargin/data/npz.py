"""NumPy's archives: X and y; a sparse X as scipy.sparse writes it or as its parts."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from maxmargin.data.table import DataError, Table, Wanted

_X, _Y = ("X", "X_train", "data", "x"), ("y", "y_train", "target", "labels")
_DAMAGED = (
    OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError,
)  # fmt: skip
_PARTS = ("data", "indices", "indptr", "shape")


def read(contents: bytes, where: str, wanted: Wanted) -> Table:
    """Never unpickles anything."""
    try:
        with np.load(io.BytesIO(contents), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (
        OSError,
        ValueError,
        EOFError,
        KeyError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as e:
        raise DataError(f"{where} is not an NPZ file of plain arrays: {e}.") from e
    X = _matrix(arrays, where)
    key = wanted.target if wanted.target not in (None, "") else next((k for k in _Y if k in arrays), None)
    if key is not None and key not in arrays:
        raise DataError(f"{where}: there is no array {key!r} for the target; there are {_listed(arrays)}.")
    y = None if key is None or wanted.target == "" else arrays[str(key)].ravel()
    if y is not None and len(y) != X.shape[0]:
        raise DataError(f"{where}: X has {X.shape[0]} rows and {key} has {len(y)} values.")
    names = [str(n) for n in arrays["names"].ravel()] if "names" in arrays else None
    if names is not None and len(names) != X.shape[1]:
        raise DataError(f"{where}: {len(names)} names for {X.shape[1]} features.")
    if y is not None and y.dtype.kind not in "iufbU":
        raise DataError(f"{where}: the target {key!r} is of the type {y.dtype}; numbers or text are needed.")
    return Table(X, y, names, None if y is None else str(key))


def write(table: Table, out: BinaryIO) -> None:
    """X, y and names; a sparse X as X_data, X_indices, X_indptr, X_shape."""
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


def _matrix(arrays: dict[str, Any], where: str) -> Any:
    prefix = next((p for p in ("X_", "X_train_", "") if all(p + part in arrays for part in _PARTS)), None)
    try:
        if prefix is not None:
            data, indices, indptr, shape = (arrays[prefix + part] for part in _PARTS)
            X = sp.csr_array((data.astype(np.float64), indices, indptr), shape=tuple(int(s) for s in shape))
            X.check_format(full_check=True)
            return X
        key = next((k for k in _X if k in arrays), None)
        if key is None:
            raise DataError(f"{where}: there is no array 'X'; there are {_listed(arrays)}.")
        X = arrays[key]
        if X.ndim != 2:
            raise DataError(f"{where}: {key} must have two dimensions, rows and features; it has {X.ndim}.")
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    except (ValueError, TypeError, IndexError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{where}: the features are not a matrix of numbers ({error}).") from error


def _listed(arrays: dict[str, Any]) -> str:
    return ", ".join(repr(name) for name in arrays) or "none"
