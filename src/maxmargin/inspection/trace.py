"""Convergence of solvers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._types import Floats
from maxmargin.dual import relative_to_value
from maxmargin.estimators.one_class import OneClassSVM
from maxmargin.estimators.one_class_l2 import L2OneClassSVM
from maxmargin.estimators.svc import SVC
from maxmargin.inspection._fitted import last_step, refitted
from maxmargin.inspection._style import (
    COLOURS,
    LINES,
    MARKERS,
    legend_beside,
    new_axes,
    pyplot,
    style,
    titled,
)
from maxmargin.solvers.solution import Record, Solution

_X = {
    "iterations": ("n_iter", "iterations"),
    "seconds": ("seconds", "seconds"),
    "kernel_calls": ("n_kernel_calls", "kernel values used"),
}
_Y = {
    "violation": "KKT violation",
    "objective": "objective above the lowest one",
    "gap": "bound on the distance to the optimal value",
    "relative_gap": "bound on the distance, relative to the optimal value",
}


# The only curve, if it has no label.
_ALONE = "records of the run"


class TraceDisplay:
    r"""Convergence of solvers, on logarithmic axes.

    Use `from_estimator` or `from_solution` to create it.

    Parameters
    ----------
    curves : dict
        Arrays of the values along x and along y, by label.
    x, y : str
        The quantities on the axes, see `from_estimator`.
    constant : float, optional
        The constant c of the curve :math:`c/\sqrt t`.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Axes and figure of the plot.
    lines_ : list of Line2D
        One for each curve.
    bound_ : Line2D or None
        The curve :math:`c/\sqrt t`.
    legend_ : Legend or None
        The legend beside the axes.

    Examples
    --------
    >>> from maxmargin.inspection import TraceDisplay
    >>> display = TraceDisplay.from_estimator({"mdm": a, "smo": b}, x="kernel_calls")  # doctest: +SKIP
    """

    def __init__(
        self,
        curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
        *,
        x: str = "iterations",
        y: str = "violation",
        constant: float | None = None,
    ) -> None:
        _check_axes(x, y)
        self.curves: dict[str, tuple[Floats, Floats]] = {
            str(label): (np.array(a, dtype=np.float64), np.array(b, dtype=np.float64))
            for label, (a, b) in curves.items()
        }
        self.x, self.y, self.constant = x, y, constant

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        x: str = "iterations",
        y: str = "violation",
        machine: int | None = None,
        bound: bool = False,
        ax: Any = None,
        **options: Any,
    ) -> TraceDisplay:
        r"""Plot the convergence of one or several fitted estimators.

        Parameters
        ----------
        estimator : estimator or dict of estimators
            Fitted, with `trace_`; or a pipeline that ends in such an estimator, or a search, of which the
            best estimator is plotted. Several are passed by label; they should have been trained on the same
            data.
        x : {"iterations", "seconds", "kernel_calls"}
            Quantity on the x axis.
        y : {"violation", "objective", "gap", "relative_gap"}
            The largest KKT violation; the objective minus the lowest final objective of all estimators; or a
            bound on its distance to the minimum,

            .. math:: f(u_t) - \min f \le f(u_t) - f(u) + \mathrm{gap}(u),

            where u is the final point of the same run; or this bound as a fraction of the optimal value,
            which ends at `relative_gap_`. Objectives are in the units of `dual_gap_`, also where a solver
            works on the nearest points of two hulls.
        machine : int, optional
            Index of the binary problem, for an estimator that has one for each pair of classes; by default
            the one with the most iterations.
        bound : bool
            Add :math:`c/\sqrt t`, see `from_solution`.
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        **options
            Options of the legend and of the lines, see `plot`.

        Returns
        -------
        TraceDisplay
            The display. Values that are not positive are left out, because the axes are logarithmic.
        """
        _check_axes(x, y)
        several = dict(estimator) if isinstance(estimator, Mapping) else {_name(estimator): estimator}
        if not several:
            raise ValueError("estimator is empty: pass at least one estimator.")
        fitted = {label: _traced(one) for label, one in several.items()}
        if bound and x != "iterations":
            raise ValueError("bound=True draws c/sqrt(t) over the iterations t: it needs x='iterations'.")
        index = _binary_problem(list(fitted.values()), machine)
        runs = {}
        for label, one in fitted.items():
            records = one.trace_[index]
            gap = float(np.ravel(one.dual_gap_)[index])
            runs[label] = (records, _in_units_of_the_gap(one, _objectives(records)), gap)
        return cls._of_runs(runs, x, y, bound).plot(ax, **options)

    @classmethod
    def from_solution(
        cls,
        solution: Solution | Mapping[str, Solution],
        *,
        x: str = "iterations",
        y: str = "violation",
        bound: bool = False,
        ax: Any = None,
        **options: Any,
    ) -> TraceDisplay:
        r"""Plot the traces of one or several solutions.

        Parameters
        ----------
        solution : Solution or dict of Solution
            Solutions of the same problem, by label.
        x : {"iterations", "seconds", "kernel_calls"}
            Quantity on the x axis.
        y : {"violation", "objective", "gap", "relative_gap"}
            The largest KKT violation; the objective minus the lowest final objective of all solutions; or a
            bound on its distance to the minimum,

            .. math:: f(u_t) - \min f \le f(u_t) - f(u) + \mathrm{gap}(u),

            where u is the final point of the same run; or this bound as a fraction of the optimal value, see
            `maxmargin.dual.relative_to_value`.
        bound : bool
            Add :math:`c/\sqrt t` with the least c that bounds all curves: the guaranteed rate of
            `maxmargin.solvers.MaxMinOver`.
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        **options
            Options of the legend and of the lines, see `plot`.

        Returns
        -------
        TraceDisplay
            The display. Values that are not positive are left out, because the axes are logarithmic.
        """
        _check_axes(x, y)
        several = dict(solution) if isinstance(solution, Mapping) else {"": solution}
        if not several:
            raise ValueError("solution is empty: pass at least one Solution.")
        for label, one in several.items():
            if not isinstance(one, Solution):
                raise TypeError(f"A Solution is needed, got {one!r}{f' for {label!r}' if label else ''}.")
        if bound and x != "iterations":
            raise ValueError("bound=True draws c/sqrt(t) over the iterations t: it needs x='iterations'.")
        runs = {label: (one.trace, _objectives(one.trace), one.gap) for label, one in several.items()}
        return cls._of_runs(runs, x, y, bound).plot(ax, **options)

    @classmethod
    def _of_runs(
        cls, runs: Mapping[str, tuple[Sequence[Record], Floats, float]], x: str, y: str, bound: bool
    ) -> TraceDisplay:
        """Curves from the records of runs, their objectives and their final gaps."""
        lowest = min((f[-1] for _, f, _ in runs.values() if len(f)), default=0.0)
        curves = {}
        for label, (records, objectives, gap) in runs.items():
            at = np.array([getattr(record, _X[x][0]) for record in records], np.float64)
            if y == "violation":
                values = np.array([record.violation for record in records], np.float64)
            elif len(records):
                values = objectives - (lowest if y == "objective" else objectives[-1] - gap)
                if y == "relative_gap":
                    pairs = zip(values, objectives, strict=True)
                    values = np.array([relative_to_value(bound, value) for bound, value in pairs])
            else:
                values = at
            shown = (at > 0) & (values > 0) & np.isfinite(values)
            curves[label] = (at[shown], values[shown])
        display = cls(curves, x=x, y=y)
        if bound:
            products = [float((b * np.sqrt(a)).max()) for a, b in display.curves.values() if len(a)]
            display.constant = max(products) if products else None
        return display

    def plot(self, ax: Any = None, *, legend: bool = True, **options: Any) -> TraceDisplay:
        """Draw the plot.

        Parameters
        ----------
        ax : Axes, optional
            Axes to plot into; a new figure by default.
        legend : bool
            Whether to put a legend beside the axes.
        **options
            Options of matplotlib's `plot`; they override the line styles and markers chosen here.

        Returns
        -------
        TraceDisplay
            The display.
        """
        pyplot("TraceDisplay")
        from matplotlib.cbook import normalize_kwargs
        from matplotlib.lines import Line2D

        ax = new_axes(figsize=(7.4, 4.8)) if ax is None else ax
        self.ax_, self.figure_ = ax, ax.figure
        self.lines_: list[Any] = []
        self.bound_ = None
        for k, (label, (a, b)) in enumerate(self.curves.items()):
            # A few markers distinguish lines that cross; a single point has no line.
            chosen = {
                "linestyle": style(k, LINES), "linewidth": 1.6, "color": style(k, COLOURS),
                "marker": style(k, MARKERS), "markersize": 5, "markerfacecolor": "white",
                "markevery": _marked(len(a), k),
            }  # fmt: skip
            if len(self.curves) == 1 and len(a) > 1:
                chosen["marker"] = ""
            chosen |= normalize_kwargs(options, Line2D)
            self.lines_ += ax.plot(a, b, label=label or _ALONE, **chosen)
        ends = [a for a, _ in self.curves.values() if len(a)]
        if self.constant is not None and ends:
            t = np.geomspace(min(a.min() for a in ends), max(a.max() for a in ends), 50)
            self.bound_ = ax.plot(
                t, self.constant / np.sqrt(t), ls=(0, (1, 3)), lw=1.2, color="0.4", label=r"$c/\sqrt{t}$"
            )[0]
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(_X[self.x][1])
        ax.set_ylabel(_Y[self.y])
        n = len(self.curves)
        titled(ax, f"Convergence of {n} runs" if n > 1 else "Convergence")
        self.legend_ = legend_beside(ax) if legend else None
        return self


def _name(estimator: Any) -> str:
    """The class of the model in an estimator."""
    model = last_step(getattr(estimator, "best_estimator_", estimator))
    return type(model).__name__


def _check_axes(x: str, y: str) -> None:
    for name, value, known in (("x", x, _X), ("y", y, _Y)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}.")


def _marked(n: int, k: int) -> list[int]:
    """Indices of about eight markers among n records, shifted from line to line, and of the last record."""
    step = max(1, n // 8)
    return sorted({*range(k * step // 3 % step, n, step), n - 1}) if n else []


def _objectives(records: Sequence[Record]) -> Floats:
    return np.array([record.objective for record in records], np.float64)


def _traced(estimator: Any) -> Any:
    """The model inside a fitted estimator; raises TypeError if it has no trace."""
    model = last_step(refitted(estimator))
    if not hasattr(model, "trace_"):
        raise TypeError(
            f"{type(model).__name__} has no trace_ of its training: use an estimator of maxmargin that has "
            "one, such as SVC."
        )
    return model


def _binary_problem(fitted: list[Any], index: int | None) -> int:
    """Index of the binary problem that is plotted."""
    counts = {len(one.trace_) for one in fitted}
    if len(counts) > 1:
        raise ValueError(
            f"The estimators have different numbers of binary problems, {sorted(counts)}: compare estimators "
            "that were trained on the same classes."
        )
    n = counts.pop()
    if index is None:
        steps = [sum(one.trace_[k][-1].n_iter for one in fitted if one.trace_[k]) for k in range(n)]
        return int(np.argmax(steps))
    if not 0 <= index < n:
        raise ValueError(f"machine must be one of 0 to {n - 1}, got {index!r}.")
    return index


def _in_units_of_the_gap(model: Any, objectives: Floats) -> Floats:
    """Objectives of a model's records on the scale of its `dual_gap_`.

    Some models are solved as an equivalent problem whose solution is a multiple of theirs; the objective is
    then the least value over all multiples of a record's solution.
    """
    with np.errstate(divide="ignore"):
        if isinstance(model, SVC) and (objectives > 0).all():
            # The nearest points of two hulls, w between them: -2 / ||w||^2. One hull: -1 / (2 ||W||^2).
            return (-1.0 if model.bias == "free" else -0.25) / objectives
        if isinstance(model, L2OneClassSVM):
            return -0.25 / objectives  # the minimum is -1 / (2 rho), and rho is twice the objective
    if isinstance(model, OneClassSVM):
        return objectives * float(model.dual_coef_.sum()) ** 2  # the coefficients are not scaled to one
    return objectives
