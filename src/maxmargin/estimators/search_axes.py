"""The parameters along which a search trains an estimator, declared by the estimator itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Axis:
    """A parameter along which a search starts each fit from the solution of the fit before.

    Parameters
    ----------
    parameter : str
        The name of a numeric parameter of the estimator.
    ascending : bool
        Whether the fits go from the smallest value to the largest, or the other way round. The directions
        were measured, see docs/search.md.
    """

    parameter: str
    ascending: bool
