"""``maxmargin solvers``: list the solvers and the estimators."""

from __future__ import annotations

from typing import Any

from maxmargin.cli import options as o
from maxmargin.cli.output import emit, table


def solvers(json: o.Json = False) -> None:
    """List the solvers with the problems they accept and their papers, and the estimators."""
    from maxmargin import solvers as known
    from maxmargin.cli.estimators import ESTIMATORS
    from maxmargin.solvers.registry import about

    problems = _problems()
    rows: list[dict[str, Any]] = []
    for name in known.names():
        solver = known.get(name)
        takes = [kind for kind, problem in problems.items() if solver.accepts(problem)]
        rows.append({"solver": name, "takes": takes, "about": about(name)})
    estimators = [{"machine": name, "class": cls, "for": text} for name, (cls, text) in ESTIMATORS.items()]
    if json:
        emit({"solvers": rows, "machines": estimators})
        return
    for row in rows:
        row["takes"] = "all" if len(row["takes"]) == len(problems) else ", ".join(row["takes"])
    table(
        "Solvers (--solver); hulls: svc with squared_hinge or C=inf, one hull: and with a penalised bias; "
        "squared_epsilon: svr with that loss",
        rows,
    )
    table("Estimators (--machine)", estimators)


def _problems() -> dict[str, Any]:
    """A small dual problem of each kind."""
    import numpy as np

    from maxmargin import dual

    y = np.array([1.0, 1.0, -1.0, -1.0])
    return {
        "svc": dual.c_svc(y),
        "squared_hinge": dual.squared_c_svc(y, 0.5),
        "hulls": dual.nearest_points(y, 0.5),
        "one hull": dual.minimum_norm(y, 0.5),
        "nu-svc": dual.reduced_hulls(y, 1.0),
        "svr": dual.epsilon_svr(y, 0.1),
        "squared_epsilon": dual.squared_epsilon_svr(y, 0.1, ridge=0.5),
        "nu-svr": dual.nu_svr(y),
        "quantile-svr": dual.quantile_svr(y),
        "one-class": dual.one_class(4),
        "l2-one-class": dual.one_class_l2(4, 0.5),
        "all-distances": dual.all_distances(y, 1.0),
        "all-distances, squared_hinge": dual.squared_all_distances([0, 0, 1, 2], 0.5),
        "crammer-singer": dual.crammer_singer(y, 1.0),
    }
