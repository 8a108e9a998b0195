"""The problems of classes that come one after the other."""

from __future__ import annotations


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Pairs a < b of the codes of classes, the problems of a new class behind those of the others.

    Examples
    --------
    >>> from maxmargin.solvers.arrival import pairs_of
    >>> pairs_of(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    return [(a, b) for b in range(n_classes) for a in range(b)]
