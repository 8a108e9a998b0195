"""Parameters, labels and names as JSON, and back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernels.parts import KernelFunction
from maxmargin.persistence.kernels import decode_kernel, encode_kernel

_INFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}
_TYPES: dict[str, Any] = {"float64": np.float64, "float32": np.float32}
_LABELS: tuple[str, ...] = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_LABELS += ("float16", "float32", "float64", "bool", "str", "object")
# An array of strings gives each the room of the longest: one long label among many would fill the memory.
_MOST_LETTERS = 1 << 24


class Refused(ValueError):
    """A value that is not allowed in a model file; becomes an error that names the file."""


def encode(value: Any, what: str) -> Any:
    """A parameter: None, bool, int, float, str, or a list, tuple or dict of these; an array is a list.

    Infinity and NaN, which JSON does not have, become ``{"float": "inf"}``; lists, tuples and dicts
    ``{"list": [...]}``, ``{"tuple": [...]}`` and ``{"dict": [[key, value], ...]}``, kernels that are objects
    ``{"kernel": ...}``, and the types of numbers ``{"dtype": "float64"}``.
    """
    if isinstance(value, type) and value in _TYPES.values():
        return {"dtype": np.dtype(value).name}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.ndim == 1:
        value = value.tolist()
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"{what} is {value}: a whole number beyond 64 bits cannot be stored.")
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, tuple | list):
        return {type(value).__name__: [encode(v, what) for v in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(k, what), encode(v, what)] for k, v in value.items()]}
    if isinstance(value, KernelFunction):
        return {"kernel": encode_kernel(value, what)}
    kind = "a function" if callable(value) else f"of type {type(value).__name__}"
    raise ValueError(
        f"{what} is {kind}, and a model file holds numbers and names only: use a name instead of an object "
        "where there is one, or pickle the model."
    )


def decode(value: Any, what: str) -> Any:
    """The parameter that `encode` encoded."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, dict) and len(value) == 1:
        tag, content = next(iter(value.items()))
        if tag == "float" and isinstance(content, str) and content in _INFINITE:
            return _INFINITE[content]
        if tag == "dtype" and isinstance(content, str) and content in _TYPES:
            return _TYPES[content]
        if tag == "kernel":
            try:
                return decode_kernel(content)
            except ValueError as error:
                raise Refused(f"{what} with {error}") from None
        if tag == "tuple" and isinstance(content, list):
            return tuple(_scalar(v, what) for v in content)
        if tag == "list" and isinstance(content, list):
            return [_scalar(v, what) for v in content]
        if tag == "dict" and isinstance(content, list):
            if not all(isinstance(pair, list) and len(pair) == 2 for pair in content):
                raise Refused(f"{what} with a dict that is not made of pairs")
            return {_scalar(k, what): _scalar(v, what) for k, v in content}
    raise Refused(f"{what} with a value of an unknown form")


def _scalar(value: Any, what: str) -> Any:
    out = decode(value, what)
    if isinstance(out, tuple | dict | list):
        raise Refused(f"{what} with lists, tuples or dicts inside each other")
    return out


def encode_labels(labels: NDArray[Any]) -> dict[str, Any]:
    """Class labels with their dtype."""
    dtype = {"U": "str", "O": "object"}.get(labels.dtype.kind, labels.dtype.name)
    if dtype not in _LABELS or (dtype == "object" and not all(type(v) is str for v in labels)):
        raise ValueError(
            f"Labels of dtype {labels.dtype} cannot be stored: use integers, floats, booleans or strings."
        )
    if dtype == "str" and _padded(labels.tolist()) > _MOST_LETTERS:
        raise ValueError("Labels of this length and number cannot be stored: use shorter ones.")
    return {"dtype": dtype, "values": [encode(v, "A label") for v in labels.tolist()]}


def _padded(labels: list[str]) -> int:
    return len(labels) * max(map(len, labels), default=0)


def decode_labels(value: Any, *, ordered: bool = True) -> NDArray[Any]:
    """The array that `encode_labels` encoded; distinct, and ascending if `ordered`."""
    if not isinstance(value, dict) or set(value) != {"dtype", "values"}:
        raise Refused("labels without exactly the keys 'dtype' and 'values'")
    dtype, values = value["dtype"], value["values"]
    if not isinstance(dtype, str) or dtype not in _LABELS or not isinstance(values, list) or not values:
        raise Refused("labels of an unknown dtype, or no labels")
    expected: Any = {"s": str, "o": str, "b": bool, "f": float}.get(dtype[0], int)
    if any(type(v) is not expected for v in values):
        raise Refused(f"labels that are not all of dtype {dtype}")
    if dtype == "str" and _padded(values) > _MOST_LETTERS:
        raise Refused("labels that are too long or too many")
    try:
        with np.errstate(over="ignore"):
            out = np.array(values, dtype=dtype)
    except (OverflowError, ValueError):
        raise Refused(f"labels beyond the range of {dtype}") from None
    same = all(a == b for a, b in zip(out.tolist(), values, strict=True))
    order = np.argsort(out, kind="stable")
    if not same or (out[order[1:]] == out[order[:-1]]).any():
        raise Refused(f"labels that are not distinct values of {dtype}")
    if ordered and (order != np.arange(len(out))).any():
        raise Refused("labels that are not in ascending order")
    return out


def decode_names(value: Any, n: int) -> NDArray[Any]:
    """Feature names, as scikit-learn keeps them."""
    if not isinstance(value, list) or len(value) != n or any(type(v) is not str for v in value):
        raise Refused(f"feature names that are not {n} strings")
    return np.array(value, dtype=object)
