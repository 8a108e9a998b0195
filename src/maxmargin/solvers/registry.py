"""Solvers by name: the built-in ones, and those that users register."""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from maxmargin.dual import Dual

# Built-in solvers are named, not imported: their compiled loops cost time that `import` should not.
_BUILT_IN: dict[str, tuple[str, str, dict[str, Any]]] = {
    "auto": ("batch", "Batch", {}),
    "batch": ("batch", "Batch", {}),
    "crammer-singer": ("papers.crammer_singer", "CrammerSinger", {}),
    "direct": ("papers.geometric", "DirectSVM", {}),
    "geometric": ("papers.geometric", "GeometricSVM", {}),
    "gilbert": ("papers.gilbert", "Gilbert", {}),
    "maxminover": ("papers.maxminover", "MaxMinOver", {}),
    "maxminover-doubling": ("papers.maxminover", "MaxMinOver", {"doubling": True}),
    "mdm": ("papers.mdm", "MDM", {}),
    "mdm-accelerated": ("papers.mdm", "MDM", {"accelerate": True}),
    "mdm-second-order": ("papers.mdm", "MDM", {"selection": "second-order"}),
    "npa": ("papers.npa", "NPA", {}),
    "rosen": ("papers.rosen", "Rosen", {}),
    "rosen-conjugate": ("papers.rosen", "Rosen", {"directions": "conjugate"}),
    "simple": ("papers.simple", "SimpleSVM", {}),
    "simple-block": ("papers.simple", "SimpleSVM", {"block": True}),
    "smo": ("papers.smo", "SMO", {}),
    "smo-accelerated": ("papers.smo", "SMO", {"accelerate": True}),
    "smo-first-order": ("papers.smo", "SMO", {"selection": "first-order"}),
}
# Descriptions of names whose class has several.
_ABOUT = {
    "auto": "batch, but crammer-singer or smo for problems with very many sums (the default)",
    "batch": "two-level decomposition, second-order SMO inside",
    "maxminover": "Martinetz 2004, Timm, Klement, Martinetz 2009: counters up and down",
    "maxminover-doubling": "maxminover whose counters are doubled where steps are too long: fewer steps",
    "mdm": "Mitchell, Dem'yanov, Malozemov 1974: minimum-norm point, weight between two vertices",
    "mdm-accelerated": "Barbero, López, Dorronsoro 2008: mdm with cycles of steps collapsed into one",
    "mdm-second-order": "mdm, the second vertex chosen by the decrease: fewer steps, more kernel rows",
    "rosen": "López, Dorronsoro 2009: gradient projection in closed form",
    "rosen-conjugate": "rosen with conjugate directions, for ill-conditioned problems",
    "simple": "Vishwanathan, Murty 2002: add-and-prune active set with an exact factor",
    "simple-block": "simple with many violators at a time, after a coarse run of batch",
    "smo": "Fan et al. 2005: pairs chosen by second order, as in LIBSVM",
    "smo-accelerated": "smo with the cycles of mdm-accelerated: fewer steps where C is large",
    "smo-first-order": "Keerthi et al. 2001: the pair that violates most",
}
_registered: dict[str, Callable[[], Any]] = {}


def register(name: str, make: Callable[[], Any]) -> None:
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
    >>> from maxmargin.solvers.papers.smo import SMO
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


def about(name: str) -> str:
    """A line about the solver with the given name, which differs from that of every other one."""
    return _ABOUT.get(name) or str(made(name).about)


def made(solver: str) -> Any:
    """Make the solver with the given name."""
    if solver in _BUILT_IN:
        return _factory(solver)()
    if solver in _registered:
        return _registered[solver]()
    raise ValueError(f"Unknown solver {solver!r}: use one of {', '.join(names())}.")


@functools.cache
def _factory(name: str) -> Callable[[], Any]:
    module, cls, arguments = _BUILT_IN[name]
    return functools.partial(getattr(import_module(f"maxmargin.solvers.{module}"), cls), **arguments)


def accepting(problem: Dual) -> list[str]:
    """Names of the solvers that can take `problem`."""
    return [name for name in names() if made(name).accepts(problem)]
