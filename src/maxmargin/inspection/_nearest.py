"""Nearest points of hulls in the plane, and the iterates of solvers that look for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from maxmargin import dual, solvers
from maxmargin._types import Floats
from maxmargin.dual import Dual
from maxmargin.estimators.crammer_singer import CrammerSingerSVC
from maxmargin.estimators.incremental import IncrementalSVC
from maxmargin.inspection._fitted import machine_of, refitted
from maxmargin.solvers.base import Solver
from maxmargin.solvers.state import Stop


@dataclass(frozen=True)
class Geometry:
    """Samples of the plane on two sides (or one), and the problem of their nearest points."""

    points: Floats
    sides: Floats
    problem: Dual
    classes: tuple[Any, ...]
    names: tuple[str, ...]

    def gram(self) -> Any:
        """Inner products of the samples."""
        from maxmargin.gram.gram import Gram  # compiled loops: not at import

        return Gram(self.points, "linear", dtype="float64", n_jobs=1)

    def nearest(self) -> Floats:
        """The nearest points: of the positive side, then of the negative one, or the origin."""
        u = solvers.get("auto").solve(self.problem, self.gram(), stop=Stop(1e-9, max_iter=10**6)).u
        return np.stack([u[self.sides == side] @ self.points[self.sides == side] for side in (1.0, -1.0)])


def geometry_of(X: Any, y: Any, mu: float | None) -> Geometry:
    """Check the samples, and state their problem."""
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else ("feature 0", "feature 1")
    points = check_array(X, dtype=np.float64, order="C")
    if points.shape[1] != 2:
        raise ValueError(f"Hulls are drawn in the plane: X must have two features, it has {points.shape[1]}.")
    if y is None:
        if mu is not None:
            raise ValueError("Reduced hulls are for two classes: pass y, or no mu.")
        return Geometry(points, np.ones(len(points)), dual.one_class_l2(len(points), 0.0), (), names)
    y = np.ravel(np.asarray(y))
    check_consistent_length(points, y)
    classes = np.unique(y)
    if len(classes) != 2:
        raise ValueError(f"Two classes are needed, y has {len(classes)}.")
    sides = np.where(y == classes[1], 1.0, -1.0)
    if mu is None:
        return Geometry(points, sides, dual.nearest_points(sides), tuple(classes), names)
    least = 1.0 / min(np.sum(sides > 0), np.sum(sides < 0))
    if not least * (1 - 1e-9) <= mu <= 1:
        raise ValueError(
            f"mu must be at most 1, and at least {least:g}, one over the size of the smaller class; got "
            f"{mu!r}."
        )
    return Geometry(points, sides, dual.reduced_hulls(sides, mu), tuple(classes), names)


def iterates(
    at: Geometry, solver: str | Solver, tol: float, most: int, start: ArrayLike | None
) -> tuple[Floats, int, bool]:
    """The difference of the points in both hulls after each step, the number of steps, and if it arrived.

    A solver does not tell where it is between checkpoints, so it is run again and again, one step longer each
    time.
    """
    solver, gram = solvers.get(solver), at.gram()
    path: list[Floats] = []
    steps = 0
    while True:
        stop = Stop(tol, max_iter=len(path) and steps + 1)
        solution = solver.solve(at.problem, gram, warm=start, stop=stop)
        if not path or solution.n_iter > steps:
            steps = solution.n_iter
            path.append((at.sides * solution.u) @ at.points)
        if solution.status != "max_iter" or steps >= most:
            return np.array(path), steps, solution.status == "solved"


def machine_and_mu(estimator: Any, X: Any) -> tuple[Any, float | None, Any]:
    """The machine inside a fitted estimator, the bound of the weights in its hulls, and its samples."""
    fitted = refitted(estimator)
    machine = machine_of(fitted)
    name = type(machine).__name__
    if getattr(machine, "kernel", None) != "linear":
        raise ValueError(f"Hulls are drawn for the linear kernel; this {name} has another one or none.")
    if len(getattr(machine, "classes_", ())) != 2:
        raise ValueError(f"Hulls are drawn for two classes; this {name} was not trained with two.")
    if machine is not fitted:
        X = fitted[:-1].transform(X)
    params = machine.get_params(deep=False)
    if hasattr(machine, "mu_"):
        return machine, min(1.0, float(machine.mu_)), X
    if "C" not in params and "nu" in params:
        return machine, min(1.0, 2.0 / (machine.nu * machine.shape_fit_[0])), X
    if np.isinf(params.get("C", 0.0)):
        return machine, None, X
    if np.ptp(getattr(machine, "class_weight_", 1.0)) > 0:
        raise ValueError("With weights of classes the hulls have different bounds: train without them.")
    # Squared slacks add dimensions, and Crammer and Singer's machine has no bias to balance the classes.
    other = isinstance(machine, IncrementalSVC | CrammerSingerSVC) or params.get("loss", "hinge") != "hinge"
    if "C" in params and hasattr(machine, "dual_coef_") and not other:
        # The multipliers of each class add up to the same; divided by that they are weights of a hull.
        total = 0.5 * float(abs(machine.dual_coef_).sum())
        return machine, min(1.0, machine.C / total), X
    raise ValueError(f"The hulls of this {name} are not in the plane: use an SVC with loss='hinge'.")


def offset_of(machine: Any, w: Floats) -> float | None:
    """The value of <w, x> on the boundary of a machine with normal vector w; None if w is not one."""
    coef, intercept = machine.coef_, np.ravel(machine.intercept_)
    if len(coef) > 1:  # a plane for each class
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    along = float(coef[0] @ w)
    return -float(intercept[0] * (w @ w)) / along if along > 0 else None
