"""Checks and defaults shared by the constructors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._types import Floats, Index
from maxmargin.dual.problem import Dual

Array = NDArray[Any]


def hulls(name: str, y: Floats, **parts: Any) -> Dual:
    """Two groups, one per class, each summing to 1."""
    group = (y < 0).astype(np.intp)
    return problem(
        name,
        p=np.zeros(len(y)),
        sums=[1.0, 1.0],
        group=group,
        label=group,
        coupling=[[1.0, -1.0], [-1.0, 1.0]],
        **parts,
    )


def problem(
    name: str,
    *,
    p: Array,
    sums: Sequence[float] | Floats,
    lo: ArrayLike = 0.0,
    hi: ArrayLike = np.inf,
    ridge: ArrayLike = 0.0,
    group: ArrayLike | None = None,
    label: ArrayLike | None = None,
    coupling: ArrayLike = ((1.0,),),
    rows: ArrayLike | None = None,
    shift: float = 0.0,
    scale: float = 1.0,
    self_scaled: bool = False,
) -> Dual:
    m = len(p)

    def floats(values: ArrayLike) -> Floats:
        out = np.empty(m)
        out[:] = values
        return out

    def indices(values: ArrayLike | None) -> Index:
        return np.zeros(m, np.intp) if values is None else np.array(values, dtype=np.intp)

    r = floats(ridge)
    none = isinstance(ridge, float) and ridge == 0.0
    if not none and ((r < 0).any() or not np.isfinite(r).all()):
        raise ValueError("ridge must be finite and non-negative.")
    return Dual(
        name=name,
        p=floats(p),
        lo=floats(lo),
        hi=floats(hi),
        ridge=r,
        group=indices(group),
        sums=np.asarray(sums, dtype=np.float64),
        row=np.arange(m) if rows is None else np.array(rows, dtype=np.intp),
        label=indices(label),
        coupling=np.asarray(coupling, dtype=np.float64),
        shift=shift,
        scale=scale,
        self_scaled=self_scaled,
    )


def signs_of(y: ArrayLike) -> Floats:
    y = np.asarray(y, dtype=np.float64)
    if y.ndim != 1 or not (np.abs(y) == 1.0).all():
        raise ValueError("y must be one-dimensional with values -1 and +1.")
    return y


def upper(mu: ArrayLike, shape: tuple[int, ...], name: str) -> Floats:
    mu = np.array(np.broadcast_to(np.asarray(mu, dtype=np.float64), shape))
    if not (mu > 0).all() or np.isinf(mu).any():
        raise ValueError(f"{name} must be positive and finite.")
    return mu


def check_unit_interval(value: float, name: str) -> None:
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be in (0, 1], got {value!r}.")


def squared_scale(scale: float) -> float:
    """The constant s^2 that a penalised bias of scale s adds to the kernel."""
    square = float(scale) * float(scale)
    if not 0 < square < np.inf:
        raise ValueError(f"The scale of the bias must be positive and its square finite, got {scale!r}.")
    return square
