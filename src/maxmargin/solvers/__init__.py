"""Solvers of the dual problem, by name.

>>> from maxmargin import solvers
>>> solvers.get("smo")
SMO(selection='second-order')
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from maxmargin.dual import Dual
from maxmargin.solvers.base import Callback, Record, Solution, Solver, State, Status, Stop

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

# Built-in solvers are named, not imported: their compiled loops cost time that `import` should not.
_BUILT_IN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "auto": ("batch", "Batch", {}),
    "batch": ("batch", "Batch", {}),
    "crammer-singer": ("crammer_singer", "CrammerSinger", {}),
    "direct": ("geometric", "DirectSVM", {}),
    "geometric": ("geometric", "GeometricSVM", {}),
    "gilbert": ("gilbert", "Gilbert", {}),
    "maxminover": ("maxminover", "MaxMinOver", {}),
    "mdm": ("mdm", "MDM", {}),
    "mdm-accelerated": ("mdm", "MDM", {"accelerate": True}),
    "npa": ("npa", "NPA", {}),
    "rosen": ("rosen", "Rosen", {}),
    "rosen-conjugate": ("rosen", "Rosen", {"directions": "conjugate"}),
    "simple": ("simple", "SimpleSVM", {}),
    "simple-block": ("simple", "SimpleSVM", {"block": True}),
    "smo": ("smo", "SMO", {}),
    "smo-first-order": ("smo", "SMO", {"selection": "first-order"}),
}
_CLASSES = {
    "Batch": "batch",
    "CrammerSinger": "crammer_singer",
    "DirectSVM": "geometric",
    "GeometricSVM": "geometric",
    "Gilbert": "gilbert",
    "MDM": "mdm",
    "MaxMinOver": "maxminover",
    "NPA": "npa",
    "Rosen": "rosen",
    "SMO": "smo",
    "SimpleSVM": "simple",
}
_registered: dict[str, Callable[[], Solver]] = {}


def register(name: str, make: Callable[[], Solver]) -> None:
    """Make a solver known under `name`, so that ``SVC(solver=name)`` finds it.

    Parameters
    ----------
    name : str
        Built-in names cannot be taken; registering another name again replaces the earlier solver.
    make : callable
        A `Solver` subclass or any function without arguments that returns a solver.

    Examples
    --------
    >>> from maxmargin import SVC, solvers
    >>> from maxmargin.solvers.smo import SMO
    >>> solvers.register("my-smo", lambda: SMO("first-order"))
    >>> SVC(solver="my-smo").fit([[0.0], [1.0]], [0, 1]).status_
    'solved'
    """
    if not isinstance(name, str) or not name:
        raise TypeError("A solver's name must be a non-empty string.")
    if name in _BUILT_IN:
        raise ValueError(f"The name {name!r} belongs to a built-in solver.")
    _registered[name] = make


def names() -> list[str]:
    """Names that `get` understands, sorted."""
    return sorted([*_BUILT_IN, *_registered])


def get(solver: str | Solver) -> Solver:
    """The solver with the given name; a solver is returned as it is."""
    if isinstance(solver, Solver):
        return solver
    if solver in _BUILT_IN:
        module, cls, arguments = _BUILT_IN[solver]
        made = getattr(import_module(f"maxmargin.solvers.{module}"), cls)(**arguments)
    elif solver in _registered:
        made = _registered[solver]()
    else:
        raise ValueError(f"Unknown solver {solver!r}: use one of {', '.join(names())}.")
    if not isinstance(made, Solver):
        raise TypeError(f"The factory of solver {solver!r} did not return a Solver: {made!r}.")
    return made


def accepting(problem: Dual) -> list[str]:
    """Names of the solvers that can take `problem`."""
    return [name for name in names() if get(name).accepts(problem)]


def __getattr__(name: str) -> Any:
    if name in _CLASSES:
        return getattr(import_module(f"maxmargin.solvers.{_CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
