"""Solvers of the dual problem, by name.

>>> from maxmargin import solvers
>>> solvers.get("smo")
SMO(selection='second-order')
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from maxmargin.solvers.base import Solver
from maxmargin.solvers.registry import accepting, made, names, register
from maxmargin.solvers.solution import Callback, Record, Solution, Status
from maxmargin.solvers.state import State, Stop

__all__ = [
    "Callback",
    "Record",
    "Solution",
    "Solver",
    "State",
    "Status",
    "Stop",
    "accepting",
    "get",
    "names",
    "register",
]

_CLASSES = {
    "Batch": "batch",
    "CrammerSinger": "papers.crammer_singer",
    "DirectSVM": "papers.geometric",
    "GeometricSVM": "papers.geometric",
    "Gilbert": "papers.gilbert",
    "MDM": "papers.mdm",
    "MaxMinOver": "papers.maxminover",
    "NPA": "papers.npa",
    "Rosen": "papers.rosen",
    "SMO": "papers.smo",
    "SimpleSVM": "papers.simple",
}


def get(solver: str | Solver[Any]) -> Solver[Any]:
    """The solver with the given name; a solver is returned as it is."""
    if isinstance(solver, Solver):
        return solver
    found = made(solver)
    if not isinstance(found, Solver):
        raise TypeError(f"The factory of solver {solver!r} did not return a Solver: {found!r}.")
    return found


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(import_module(f"maxmargin.solvers.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
