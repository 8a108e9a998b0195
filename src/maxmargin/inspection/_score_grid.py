"""The grid of a search: which parameters span it, the simplest good node, and the range of its scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from maxmargin._types import Floats

# Whether a larger value makes a model that follows the rows more closely, or less.
_CLOSER = {"C": 1.0, "gamma": 1.0, "degree": 1.0, "nu": -1.0}


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Parameters without the names of pipeline steps, where that is not ambiguous."""
    short = [name.split("__")[-1] for name in names]
    return {name: s if short.count(s) == 1 else name for name, s in zip(names, short, strict=True)}


def two_parameters(nodes: list[dict[str, Any]], x: str | None, y: str | None) -> tuple[str, str]:
    """The names of the parameters to draw over; those of a pipeline may be given without its steps."""
    names = sorted({name for node in nodes for name in node})
    numeric = [name for name in names if _varies(nodes, name)]
    full = {short: name for name, short in short_names(names).items()}
    x, y = (name if name is None or name in names else full.get(name, name) for name in (x, y))
    for name in (x, y):
        if name is not None and name not in numeric:
            raise ValueError(
                f"{name!r} is not a numeric parameter with several values in every node of the search: use "
                f"two of {', '.join(numeric) or '(none)'}."
            )
    if x is not None and x == y:
        raise ValueError(f"param_x and param_y are both {x!r}.")
    left = [name for name in numeric if name not in (x, y)]
    if len(left) < (x is None) + (y is None):
        raise ValueError(
            "Two numeric parameters with several values are needed, the search has "
            f"{', '.join(numeric) or 'none'}."
        )
    y = y if y is not None else left.pop(0)
    return x if x is not None else left.pop(0), y


def _varies(nodes: list[dict[str, Any]], name: str) -> bool:
    values = [node.get(name) for node in nodes]
    if not all(isinstance(v, Real) and not isinstance(v, bool | np.bool_) for v in values):
        return False
    return len(set(values)) > 1


def standard_errors(results: Mapping[str, Any], metric: str) -> Floats | None:
    """The standard error of each mean score: the standard deviation of the folds by the root of their number.

    None where the results do not have the scores of at least two folds.
    """
    folds = [name for name in results if name.startswith("split") and name.endswith(f"_test_{metric}")]
    spread = results.get(f"std_test_{metric}")
    if spread is None or len(folds) < 2:
        return None
    return np.asarray(spread, dtype=np.float64) / np.sqrt(len(folds))


def simplest_within_error(
    nodes: list[dict[str, Any]], scores: Floats, errors: Floats | None, best: int
) -> int | None:
    """The node within one standard error of the best that follows the rows least closely.

    Nodes are ordered by C times gamma, as by the tuners. Returns None where they cannot be ordered: there are
    no errors, or a parameter that differs is not one whose effect is known.
    """
    if errors is None or not np.isfinite(errors[best]):
        return None
    varied = [name for name in nodes[best] if _varies(nodes, name)]
    known = {name: _CLOSER.get(name.split("__")[-1]) for name in varied}
    if not varied or None in known.values() or any(node[name] <= 0 for node in nodes for name in varied):
        return None
    fixed = [name for name in nodes[best] if name not in varied]  # such as the kernel
    near = [
        k for k, node in enumerate(nodes)
        if scores[k] >= scores[best] - errors[best]
        and all(repr(node.get(name)) == repr(nodes[best][name]) for name in fixed)
    ]  # fmt: skip

    def closeness(k: int) -> tuple[float, float]:
        size = sum(float(known[name] or 0.0) * np.log(float(nodes[k][name])) for name in varied)
        return round(size, 9), -float(scores[k])

    return min(near, key=closeness)


def robust_range(scores: Floats) -> tuple[float, float]:
    """The range of colours in which the good scores differ, even if a few are very bad.

    Evenly spread scores with the same best quarter would have a certain range; it reaches 1.5 times as far
    down, but not below the lowest score. So scores that are nearly evenly spread have the whole range.
    """
    finite = scores[np.isfinite(scores)]
    if not len(finite):
        return 0.0, 1.0
    high = float(finite.max())
    low = float(finite.min())
    for share in (0.25, 0.5, 0.75):  # more of them where the best ones are equal
        reach = high - float(np.quantile(finite, 1.0 - share))
        if reach > 1e-9 * max(abs(high), abs(low)):
            return max(low, high - 1.5 * reach / share), high
    return low, high


def evenly_spaced_in_logs(values: Floats) -> bool:
    """Whether the values are spaced more evenly in their logarithms than as they are."""
    if len(values) < 2 or values[0] <= 0:
        return False
    if len(values) == 2:
        return bool(values[1] >= 10 * values[0])

    def unevenness(steps: Floats) -> float:
        return float(np.ptp(steps) / steps.mean())

    return unevenness(np.diff(np.log(values))) < unevenness(np.diff(values))


def cell_edges(values: Floats, log: bool) -> Floats:
    """The borders of the cells around the values."""
    at = np.log(values) if log else values
    if len(at) == 1:
        edges = np.array([at[0] - 0.5, at[0] + 0.5])
    else:
        middle = (at[1:] + at[:-1]) / 2
        edges = np.concatenate([[2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]])
    return np.asarray(np.exp(edges) if log else edges)
