"""Solutions of earlier jobs from which later ones start."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np

from maxmargin._types import Floats

# Chains whose last solutions are kept.
_KEPT = 32


class Start(NamedTuple):
    """Solutions for one C: an array (n_folds, n_variables) for all dual problems of an estimator."""

    C: float
    u: list[Floats]


class Starts:
    """The solutions of chains along C, by everything that a chain has in common.

    Jobs of one search have different keys and find nothing here. An `Evaluator` asks for the same kernel with
    one C after the other.

    Parameters
    ----------
    kept : int
        Chains whose last solutions are kept; the least recently used goes first.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._known: OrderedDict[Hashable, dict[float, Start]] = OrderedDict()

    def __reduce__(self) -> tuple[type[Starts], tuple[int]]:
        return Starts, (self._kept,)  # another process has its own

    def nearest(self, key: Hashable, C: float) -> Start | None:
        """The start whose C is nearest; None without any."""
        with self._lock:
            known = self._known.get(key)
            if not known:
                return None
            self._known.move_to_end(key)
            return known[min(known, key=lambda other: abs(np.log(other / C)))]

    def add(self, key: Hashable, start: Start) -> None:
        """Keep a start."""
        with self._lock:
            self._known.setdefault(key, {})[start.C] = start
            self._known.move_to_end(key)
            while len(self._known) > self._kept:
                self._known.popitem(last=False)
