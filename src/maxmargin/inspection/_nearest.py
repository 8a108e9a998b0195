"""Nearest points of hulls in the plane, and the iterates of solvers that find them."""

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
from maxmargin.inspection._fitted import last_step, refitted
from maxmargin.solvers.base import Solver
from maxmargin.solvers.state import Stop


@dataclass(frozen=True)
class Geometry:
    """Samples in the plane on two sides (or one), and the dual problem of their nearest points."""

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
        """The nearest points: of the positive side, then of the negative one (or the origin)."""
        u = solvers.get("auto").solve(self.problem, self.gram(), stop=Stop(1e-9, max_iter=10**6)).u
        return np.stack([u[self.sides == side] @ self.points[self.sides == side] for side in (1.0, -1.0)])


def geometry_of(X: Any, y: Any, mu: float | None) -> Geometry:
    """Check the samples and construct the dual problem of their nearest points."""
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else ("feature 0", "feature 1")
    points = check_array(X, dtype=np.float64, order="C")
    if points.shape[1] != 2:
        raise ValueError(
            f"X must have two features, because hulls are drawn in the plane; it has {points.shape[1]}."
        )
    if y is None:
        if mu is not None:
            raise ValueError("Reduced hulls need two classes: pass y, or leave out mu.")
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
            f"mu must be in [{least:g}, 1], where {least:g} is one over the size of the smaller class; got "
            f"{mu!r}."
        )
    return Geometry(points, sides, dual.reduced_hulls(sides, mu), tuple(classes), names)


def iterates(
    at: Geometry, solver: str | Solver[Any], tol: float, most: int, start: ArrayLike | None
) -> tuple[Floats, int, bool]:
    """The difference of the points in both hulls after each step, the number of steps, whether it converged.

    A solver does not expose its iterates between checkpoints, so it is run repeatedly, one step longer each
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


def model_and_mu(estimator: Any, X: Any) -> tuple[Any, float | None, Any]:
    """The model inside a fitted estimator, the bound of the weights in its hulls, and its samples."""
    fitted = refitted(estimator)
    model = last_step(fitted)
    name = type(model).__name__
    if getattr(model, "kernel", None) != "linear":
        raise ValueError(
            f"Hulls are drawn for the linear kernel only: train this {name} with kernel='linear'."
        )
    if len(getattr(model, "classes_", ())) != 2:
        raise ValueError(f"Hulls are drawn for two classes only: train this {name} with two.")
    if model is not fitted:
        X = fitted[:-1].transform(X)
    params = model.get_params(deep=False)
    squared = "squared" in params.get("loss", "")
    if hasattr(model, "mu_") and not squared:
        return model, min(1.0, float(model.mu_)), X
    if "C" not in params and "nu" in params:
        return model, min(1.0, 2.0 / (model.nu * model.shape_fit_[0])), X
    if params.get("bias", "free") != "free":
        raise ValueError(
            f"The hulls of a penalised bias are not in the plane: train this {name} with bias='free'."
        )
    if np.isinf(params.get("C", 0.0)):
        return model, None, X
    if np.ptp(getattr(model, "class_weight_", 1.0)) > 0:
        raise ValueError("Class weights give the two hulls different bounds: train without class_weight.")
    # Squared slacks add dimensions, and Crammer and Singer's problem has no bias to balance the classes.
    other = isinstance(model, CrammerSingerSVC) or params.get("loss", "hinge") != "hinge"
    if "C" in params and hasattr(model, "dual_coef_") and not other:
        # The multipliers of each class add up to the same; divided by that they are weights of a hull.
        total = 0.5 * float(abs(model.dual_coef_).sum())
        return model, min(1.0, model.C / total), X
    raise ValueError(f"The hulls of this {name} are not in the plane: use an SVC with loss='hinge'.")


def offset_of(model: Any, w: Floats) -> float | None:
    """The value of <w, x> on the boundary of a model with normal vector w; None if w is not its normal."""
    coef, intercept = model.coef_, np.ravel(model.intercept_)
    if len(coef) > 1:  # a plane for each class
        coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
    along = float(coef[0] @ w)
    return -float(intercept[0] * (w @ w)) / along if along > 0 else None
