"""Fields of model files: types, shapes and ranges, which are checked when a file is read.

A field names the shape of an array by sizes ("support", "features", ...) that the model's class fills in, so
that arrays that prediction uses together are known to fit together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.persistence.values import Refused, decode, encode

Sizes = dict[str, int]
Stored = dict[str, NDArray[Any]]
Values = dict[str, Any]


@dataclass(frozen=True)
class ArrayField:
    """An array of a known shape.

    Parameters
    ----------
    shape : tuple of str or int
        Sizes by name.
    dtypes : tuple of str
        Those that are allowed.
    low, below : float, str
        The least value, and the size that values stay below.
    positive : bool
        Whether 0 is refused.
    finite : bool
        Whether NaN and infinity are refused.
    sparse : bool
        Whether it may be a CSR matrix: three arrays ``name.data``, ``name.indices``, ``name.indptr``.
    optional : bool
        Whether it may be None.
    missing : float, optional
        The values where a file of an earlier version has none.
    """

    shape: tuple[str | int, ...]
    dtypes: tuple[str, ...] = ("f8",)
    low: float = -math.inf
    below: str | None = None
    positive: bool = False
    finite: bool = True
    sparse: bool = False
    optional: bool = False
    missing: float | None = None

    def put(self, name: str, value: Any, values: dict[str, Any], arrays: Stored) -> None:
        """Store the attribute's value."""
        if value is None and self.optional:
            return
        if sp.issparse(value):
            for part in ("data", "indices", "indptr"):
                arrays[f"{name}.{part}"] = getattr(value, part)
        else:
            arrays[name] = np.asarray(value)
        for part in [k for k in arrays if k == name or k.startswith(f"{name}.")]:
            if arrays[part].dtype not in (*map(np.dtype, self.dtypes), np.int32, np.int64):
                raise ValueError(f"{name} of dtype {arrays[part].dtype} cannot be stored.")

    def get(self, name: str, values: Mapping[str, Any], arrays: Stored, sizes: Sizes) -> Any:
        """The attribute's value, checked; its arrays are removed from `arrays`."""
        shape = tuple(n if isinstance(n, int) else sizes[n] for n in self.shape)
        if self.sparse and f"{name}.indptr" in arrays:
            return self._matrix(name, arrays, shape)
        if name not in arrays:
            if self.optional:
                return None
            if self.missing is not None:
                return np.full(shape, self.missing)
            raise Refused(f"no array {name!r}")
        out = arrays.pop(name)
        if out.shape != shape:
            raise Refused(f"an array {name!r} of shape {out.shape} instead of {shape}")
        self._check(name, out, sizes)
        return out

    def _check(self, name: str, out: NDArray[Any], sizes: Sizes) -> None:
        if out.dtype.str[1:] not in self.dtypes:
            raise Refused(f"an array {name!r} of dtype {out.dtype} instead of {' or '.join(self.dtypes)}")
        if self.finite and not np.isfinite(out).all():
            raise Refused(f"NaN or infinity in the array {name!r}")
        wrong = out < self.low
        if self.positive:
            wrong |= ~(out > 0)
        if self.below is not None:
            wrong |= out >= sizes[self.below]
        if wrong.any():
            raise Refused(f"a value out of range in the array {name!r}")

    def _matrix(self, name: str, arrays: Stored, shape: tuple[int, ...]) -> Any:
        """A CSR matrix whose indices stay inside: compiled loops do not look again."""
        try:
            data, indices, indptr = (arrays.pop(f"{name}.{part}") for part in ("data", "indices", "indptr"))
        except KeyError as missing:
            raise Refused(f"no array {missing}") from None
        if data.ndim != 1 or indices.shape != data.shape or indptr.shape != (shape[0] + 1,):
            raise Refused(f"a sparse matrix {name!r} whose parts do not fit together")
        if indices.dtype.kind != "i" or indices.dtype != indptr.dtype:
            raise Refused(f"a sparse matrix {name!r} whose indices are not integers of one kind")
        self._check(name, data, {})
        if indptr[0] != 0 or indptr[-1] != len(data) or (indptr[1:] < indptr[:-1]).any():
            raise Refused(f"a sparse matrix {name!r} whose rows overlap or end beyond its values")
        if len(indices) and not (indices.min() >= 0 and indices.max() < shape[1]):
            raise Refused(f"a sparse matrix {name!r} with a column outside of it")
        # Without the constructor, which would choose other index types.
        out = sp.csr_array(shape, dtype=data.dtype)
        out.data, out.indices, out.indptr = data, indices, indptr
        return out


@dataclass(frozen=True)
class NumberField:
    """A number or a word among the values of the header.

    Parameters
    ----------
    kind : type
        bool, int, float or str; a float may be a whole number.
    low : float
        The least value.
    finite : bool
        Whether NaN and infinity are refused.
    choices : tuple of str
        Allowed words.
    missing : float, optional
        The value where a file of an earlier version has none.
    """

    kind: type
    low: float = -math.inf
    finite: bool = True
    choices: tuple[str, ...] = ()
    missing: float | None = None

    def put(self, name: str, value: Any, values: dict[str, Any], arrays: Stored) -> None:
        """Store the attribute's value."""
        values[name] = encode(self.kind(value), name)

    def get(self, name: str, values: Mapping[str, Any], arrays: Stored, sizes: Sizes) -> Any:
        """The attribute's value, checked."""
        if name not in values and self.missing is not None:
            return self.missing
        if name not in values:
            raise Refused(f"no value {name!r}")
        out: Any = decode(values[name], repr(name))
        if type(out) is not self.kind:  # a bool does not count as an int
            raise Refused(f"a value {name!r} that is not of type {self.kind.__name__}")
        if isinstance(out, int | float) and ((self.finite and not math.isfinite(out)) or out < self.low):
            raise Refused(f"a value {name!r} out of range")
        if self.choices and out not in self.choices:
            raise Refused(f"a value {name!r} that is not one of {', '.join(self.choices)}")
        return out


@dataclass(frozen=True)
class PerRowField:
    """A number where the model has a single row of coefficients, and otherwise an array with one for each.

    Parameters
    ----------
    number : NumberField
        The number.
    array : ArrayField
        The array, of the shape ``("rows",)``.
    """

    number: NumberField
    array: ArrayField

    def put(self, name: str, value: Any, values: dict[str, Any], arrays: Stored) -> None:
        """Store the attribute's value."""
        (self.array if np.size(value) > 1 else self.number).put(name, value, values, arrays)

    def of(self, sizes: Sizes) -> ArrayField | NumberField:
        """The field of a model of these sizes."""
        return self.number if sizes["rows"] == 1 else self.array


Fields = dict[str, ArrayField | NumberField | PerRowField]


@dataclass(frozen=True)
class Entry:
    """How one class is stored.

    Parameters
    ----------
    module : str
        Where the class is.
    fields : dict
        Its fitted attributes.
    sizes : callable
        Adds the sizes that the shapes of the fields refer to; raises `Refused` for impossible ones.
    finish : callable
        Makes an estimator with parameters a fitted one; is given the estimator, the values of the fields and
        of the labels by name, and the sizes.
    labels : str
        The name of the class labels among the values, if there are any.
    begin : callable
        Returns the values, by name, that are not attributes of an estimator to be stored.
    earlier : dict
        Parameters that files of earlier versions do not have, with what these versions did.
    may_be_nan : frozenset of str
        Parameters that may be NaN.
    """

    module: str
    fields: Fields
    sizes: Callable[[Any, Sizes, Stored], None]
    finish: Callable[[Any, Values, Sizes], None]
    labels: str | None = None
    begin: Callable[[Any], Values] = lambda estimator: {}
    earlier: Mapping[str, Any] = field(default_factory=dict)
    may_be_nan: frozenset[str] = frozenset()
