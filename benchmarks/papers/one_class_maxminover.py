"""Timm, Klement, Martinetz: "Fast Model Selection for MaxMinOver-based Training of SVMs", figures 1 and 2.

    python benchmarks/papers/one_class_maxminover.py               # 13 sets; needs MAXMARGIN_DATA
    python benchmarks/papers/one_class_maxminover.py --quick       # bundled data, seconds
    python benchmarks/papers/one_class_maxminover.py --draw docs/images

**Figure 1.** Banana, 500 rows of class +1, C = 1000, sigma = 0.4, k = exp(-||x - x'||^2 / (2 sigma^2)), the
feasibility gap looked at in every step until it is 1e-5, with two intermediate boundaries.

**Figure 2.** Each class of each set on its own, at most `--rows` random rows of it, scaled to unit mean
norm; a 20 x 20 logarithmic grid, C in [1, 1e5], sigma in [0.1, 5], gap 1e-4. Every node is trained

- cold: from a single count (at most `--max-iter` steps),
- along the paper's heuristic path: the nodes of the largest C from the largest sigma down, and from each of
  these down in C,
- the other way round, for comparison: the nodes of the smallest C from the largest sigma down, then up in C,
- along the minimum spanning arborescence of cost(i, j), the steps that node j takes from the counters of its
  neighbour i, itself trained cold. An edge that takes more than the steps of node j trained cold is left out.

Warm starts take the unscaled counters, as in the paper. Then the inertia of the counters is limited: at a
warm start they are scaled down so that they add up to no more than those of the parent trained cold, which
has to be known. Last, `MaxMinOver(doubling=True)`, which needs to know nothing: cold, along the heuristic
path, and along the tree of its own costs.

The cost is in steps, and in seconds of the processor in training (one core; kernel matrices, one exponential
of the squared distances per sigma, are not counted). The gap is looked at every 100 steps.

Ctrl-C ends with the sets that are done.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path as File
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import make_moons

sys.path.insert(0, str(File(__file__).parent.parent))
from datasets import MissingData, whole
from maxmargin.model_selection import Grid, Path, arborescence, cost_matrix, heuristic, up
from maxmargin.solvers.papers._hull import Hulls, Turn
from maxmargin.solvers.papers.maxminover import (
    CounterRule,
    apportion,
    counter_steps,
    feasibility_gap,
    fitting_total,
)
from report import geometric_mean, write

Floats = NDArray[np.float64]
Start = Callable[
    [int, Floats], Floats
]  # from a node and its counters to those that its neighbours start from

SETS = (
    "banana", "breast-cancer", "diabetis", "flare-solar", "german", "heart", "image", "ringnorm", "splice",
    "thyroid", "titanic", "twonorm", "waveform",
)  # fmt: skip
GAP, LOOK_EVERY = 1e-4, 100
DIRECTIONS = {"C up": ("C", 1), "C down": ("C", -1), "sigma up": ("sigma", 1), "sigma down": ("sigma", -1)}
WAYS = {
    "heuristic": "heuristic",
    "upwards": "up in C",
    "tree": "tree",
    "tree_capped": "tree, counters capped",
    "cold_doubled": "cold, doubling",
    "heuristic_doubled": "heuristic, doubling",
    "tree_doubled": "tree, doubling",
}


class Training:
    """OneClassMaxMinOver over a kernel matrix, with the library's compiled steps."""

    def __init__(
        self,
        K: Floats,
        C: float,
        counts: Floats | None = None,
        refresh: int = LOOK_EVERY,
        doubling: bool = False,
    ) -> None:
        m = len(K)
        self.ridge, self.refresh, self.doubling, self.steps = np.full(m, 1.0 / C), refresh, doubling, 0
        self.hulls = Hulls(
            np.array([0, m]), np.ones(m), self.ridge, np.diag(K) + self.ridge, 0.0, K, np.arange(m),
            np.ones(m, bool), np.arange(m), True, np.zeros(m, np.intp), np.ones((1, 1)),
        )  # fmt: skip
        self.counts = np.eye(1, m)[0] if counts is None else counts.copy()
        self.margins = self._margins(K)
        if doubling and counts is not None:
            total = float(counts.sum())
            fitting = fitting_total(self.hulls, self.counts / total, self.margins / total)
            if fitting < total:
                self.counts = apportion(counts, fitting)
                self.margins = self._margins(K)
        # As if the last look were long ago: a start that is good enough takes no step.
        self._progress = np.array([self.counts.sum(), float(refresh), 0.0])
        self._report, self._need = np.zeros(4, np.int64), np.zeros(4, np.int64)

    def _margins(self, K: Floats) -> Floats:
        used = np.flatnonzero(self.counts)
        return np.asarray(self.counts[used] @ K[used] + self.ridge * self.counts)

    def run(self, gap: float, max_iter: int) -> Training:
        """On until the gap or the number of steps (in all) is reached."""
        rule = CounterRule(self.refresh, True, True, gap, 0.0, self.doubling)
        turn = Turn(max_iter, self._need, self._report, np.zeros(1, np.int64))
        counter_steps(self.hulls, self.counts, self.margins, self._progress, rule, turn)
        self.steps = int(self._report[0])
        return self

    def gap(self) -> float:
        """The feasibility gap now."""
        total = self.counts.sum()
        return float(feasibility_gap(self.hulls.starts, self.ridge, self.counts, self.margins, total, 0.0))

    def alpha(self) -> Floats:
        """The paper's scaling: least margin 1."""
        return np.asarray(self.counts / self.margins.min())


class Cost(NamedTuple):
    """The cost of a training."""

    steps: int
    seconds: float
    counts: Floats
    reached: bool


def squared_distances(A: Floats, B: Floats) -> Floats:
    return np.maximum((A**2).sum(axis=1)[:, None] + (B**2).sum(axis=1) - 2.0 * A @ B.T, 0.0)


# -- figure 1 --------------------------------------------------------------------------------


class Moment(NamedTuple):
    """An intermediate solution."""

    step: int
    gap: float
    alpha: Floats
    score: Floats


def figure_1(X: Floats, C: float, sigma: float, gap: float, moments: tuple[float, float]) -> dict[str, Any]:
    """The gap in the course of training, and the solutions where it first falls below `moments`."""
    K = np.exp(-squared_distances(X, X) / (2.0 * sigma**2))
    training = Training(K, C, refresh=1)
    began = time.perf_counter()
    steps: list[int] = []
    gaps: list[float] = []
    kept: list[Moment] = []
    at, last = 1, np.inf
    while last > gap and at < 10**8:
        last = training.run(gap, at).gap()
        steps.append(training.steps)
        gaps.append(last)
        if len(kept) < len(moments) and last <= moments[len(kept)]:
            kept.append(Moment(training.steps, last, training.alpha(), K @ training.alpha() - 1.0))
        at = max(at + 1, int(1.02 * at))
    constant = float(np.max(np.array(gaps) * np.sqrt(steps)))
    tail = np.array(steps) > 0.01 * steps[-1]
    slope = float(np.polyfit(np.log(np.array(steps)[tail]), np.log(np.array(gaps)[tail]), 1)[0])
    return {
        "X": X, "sigma": sigma, "C": C, "steps": steps, "gaps": gaps, "moments": kept, "constant": constant,
        "slope": slope, "seconds": time.perf_counter() - began,
        "support": int(np.count_nonzero(training.counts)),
    }  # fmt: skip


def draw_figure_1(found: dict[str, Any], path: File) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
    steps = np.array(found["steps"])
    axes[0].loglog(steps, found["gaps"], color="black", lw=1.2, label="feasibility gap")
    axes[0].loglog(steps, found["constant"] / np.sqrt(steps), "--", color="0.5", label=r"$c/\sqrt{t}$")
    for name, moment in zip("bc", found["moments"], strict=False):
        axes[0].plot(moment.step, moment.gap, "o", color="black", ms=6)
        axes[0].annotate(f"({name})", (moment.step, moment.gap), xytext=(6, 4), textcoords="offset points")
    axes[0].set_xlabel("step t")
    axes[0].set_title("(a) feasibility gap")
    axes[0].legend(frameon=False)
    X, sigma = found["X"], found["sigma"]
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    grid = np.stack(np.meshgrid(*(np.linspace(a, b, 220) for a, b in zip(low, high, strict=True))), axis=-1)
    for axis, name, moment in zip(axes[1:], "bc", found["moments"], strict=False):
        kernel = np.exp(-squared_distances(grid.reshape(-1, 2), X) / (2.0 * sigma**2))
        field = (kernel @ moment.alpha - 1.0).reshape(grid.shape[:2])
        axis.contourf(grid[..., 0], grid[..., 1], field, levels=24, cmap="Greys_r", alpha=0.6)
        for colour, width in (("black", 3.6), ("white", 2.0)):  # a white line with a black rim
            axis.contour(grid[..., 0], grid[..., 1], field, levels=[0.0], colors=colour, linewidths=width)
        support = moment.alpha > 0
        outside, inside = support & (moment.score < 0), support & (moment.score >= 0)
        axis.plot(*X[~support].T, ".", color="#444444", ms=2)
        axis.plot(*X[outside].T, "o", color="black", ms=5, label=f"{outside.sum()} SVs outside")
        axis.plot(
            *X[inside].T, "*", mfc="white", mec="black", mew=0.7, ms=8, label=f"{inside.sum()} SVs inside"
        )
        axis.set_title(f"({name}) step {moment.step:,}, gap {moment.gap:.1e}")
        axis.legend(loc="upper left", fontsize=8)
        axis.set_xticks([])
        axis.set_yticks([])
    figure.savefig(path, dpi=120)
    plt.close(figure)


# -- figure 2 --------------------------------------------------------------------------------


class Pilot:
    """One class of one set: its kernel matrices and its trainings."""

    def __init__(self, X: Floats, grid: Grid, max_iter: int) -> None:
        X = X / np.linalg.norm(X, axis=1).mean()
        distances = squared_distances(X, X)
        self.grid, self.max_iter = grid, max_iter
        self._kernels = {
            s: np.exp(-distances / (2.0 * s**2)) for s in {grid[node]["sigma"] for node in range(len(grid))}
        }
        self.cold = [self.train(node, None) for node in range(len(grid))]
        self.cold_doubled = [self.train(node, None, doubling=True) for node in range(len(grid))]

    def train(
        self, node: int, counts: Floats | None, max_iter: int | None = None, doubling: bool = False
    ) -> Cost:
        """From the given counters, or cold."""
        values = self.grid[node]
        began = time.thread_time()
        training = Training(self._kernels[values["sigma"]], values["C"], counts, doubling=doubling)
        training.run(GAP, self.max_iter if max_iter is None else max_iter)
        seconds = time.thread_time() - began
        return Cost(training.steps, seconds, training.counts, training.gap() <= GAP)

    def along(self, path: Path, start: Start, doubling: bool = False) -> list[Cost]:
        """The cost of the nodes, each from the counters of its parent."""

        def train(node: int, before: tuple[int, Cost] | None) -> tuple[int, Cost]:
            counts = None if before is None else start(before[0], before[1].counts)
            return node, self.train(node, counts, doubling=doubling)

        return [cost for _, (_, cost) in path.follow(train)]

    def costs(self, doubling: bool = False) -> Any:
        """cost(i, j); infinite where a cold training takes fewer steps."""
        alone = self.cold_doubled if doubling else self.cold

        def warm(node: int, counts: Floats) -> float:
            most = alone[node].steps
            cost = self.train(node, counts, max(1, most), doubling)
            return cost.steps if cost.reached and cost.steps <= most else np.inf

        return cost_matrix(self.grid, lambda node: (alone[node].steps, alone[node].counts), warm)

    def kept(self, node: int, counts: Floats) -> Floats:
        """As in the paper."""
        return counts

    def capped(self, node: int, counts: Floats) -> Floats:
        """No more counts than the node has when it is trained cold."""
        return with_total(counts, min(float(counts.sum()), float(self.cold[node].counts.sum())))


def with_total(counts: Floats, total: float) -> Floats:
    return apportion(counts, max(total, float(np.count_nonzero(counts))))


def one_class(X: Floats, grid: Grid, max_iter: int) -> dict[str, Any]:
    """All trainings of one class."""
    pilot = Pilot(X, grid, max_iter)
    out: dict[str, Any] = {"rows": len(X), "nodes": len(grid), "cold": summary(pilot.cold)}
    spine = heuristic(grid, spine="sigma")
    costs, cold = pilot.costs()
    tree = arborescence(costs, cold, cold_starts="any")
    doubled, cold_doubled = pilot.costs(doubling=True)
    doubled_tree = arborescence(doubled, cold_doubled, cold_starts="any")
    for name, path, start in (
        ("heuristic", spine, pilot.kept),
        ("upwards", up(grid, "C", spine={"sigma": "down"}), pilot.kept),
        ("tree", tree, pilot.kept),
        ("tree_capped", tree, pilot.capped),
    ):
        out[name] = summary(pilot.along(path, start))
    out["cold_doubled"] = summary(pilot.cold_doubled)
    for name, path in (("heuristic_doubled", spine), ("tree_doubled", doubled_tree)):
        out[name] = summary(pilot.along(path, pilot.kept, doubling=True))
    taken = [(parent, node) for parent, node in tree.pairs() if parent >= 0]
    out["shares"] = {
        kind: sum(grid.step(parent, *way) == node for parent, node in taken) / len(taken)
        for kind, way in DIRECTIONS.items()
    }
    out["estimate"] = float(tree.node_costs(costs, cold).sum())
    out["estimate_doubled"] = float(doubled_tree.node_costs(doubled, cold_doubled).sum())
    out["no_better"] = float(np.isinf(costs.data).mean())
    out["cold_in_tree"] = len(tree.roots)
    out["path"] = tree
    return out


def summary(costs: list[Cost]) -> dict[str, Any]:
    return {
        "steps": sum(c.steps for c in costs),
        "seconds": sum(c.seconds for c in costs),
        "unfinished": sum(not c.reached for c in costs),
    }


def share(found: list[dict[str, Any]], way: str, unit: str) -> float:
    return sum(f[way][unit] for f in found) / sum(f["cold"][unit] for f in found)


def row_of(name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    """A line of the table: both classes together."""
    mean = {kind: float(np.mean([f["shares"][kind] for f in found])) for kind in DIRECTIONS}
    cold_steps = sum(f["cold"]["steps"] for f in found)
    return {
        "set": name,
        "rows": " + ".join(str(f["rows"]) for f in found),
        "cold: million steps": f"{cold_steps / 1e6:.2f}",
        "cold: s": f"{sum(f['cold']['seconds'] for f in found):.2f}",
        **{
            f"{label}: % of steps (time)": f"{100 * share(found, way, 'steps'):.2f} "
            f"({100 * share(found, way, 'seconds'):.1f})"
            for way, label in WAYS.items()
        },
        "tree by its costs": f"{100 * sum(f['estimate'] for f in found) / cold_steps:.1f}",
        "tree by its costs, doubling": f"{100 * sum(f['estimate_doubled'] for f in found) / cold_steps:.2f}",
        "edges " + " / ".join(DIRECTIONS) + " %": " / ".join(f"{100 * v:.0f}" for v in mean.values()),
        "cold nodes in the tree": " + ".join(str(f["cold_in_tree"]) for f in found),
        "unfinished cold / heuristic / tree / capped / doubling: cold, heuristic, tree": " / ".join(
            str(sum(f[way]["unfinished"] for f in found))
            for way in (
                "cold",
                "heuristic",
                "tree",
                "tree_capped",
                "cold_doubled",
                "heuristic_doubled",
                "tree_doubled",
            )
        ),
    }


def draw_figure_2(found: dict[str, list[dict[str, Any]]], grid: Grid, path: File) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2, figsize=(11, 10), layout="constrained")
    first = next(iter(found))
    for axis, tree, title in (
        (axes[0, 0], found[first][0]["path"], f"(a) cheapest tree, {first}"),
        (axes[0, 1], heuristic(grid, spine="sigma"), "(b) heuristic path"),
    ):
        for parent, node in tree.pairs():
            ends = [(grid.rank(k, "sigma"), grid.rank(k, "C")) for k in (node, parent) if k >= 0]
            if parent < 0:
                axis.plot(*ends[0], "s", color="black", ms=6, zorder=3)
            else:
                arrow = {"arrowstyle": "-|>,head_width=.15,head_length=.3", "color": "black", "lw": 0.7}
                axis.annotate(
                    "", xy=ends[0], xytext=ends[1], arrowprops={**arrow, "shrinkA": 1, "shrinkB": 1}
                )
        for name, bounds in (("x", grid.shape[1]), ("y", grid.shape[0])):
            getattr(axis, f"set_{name}lim")(-0.7, bounds - 0.3)
            getattr(axis, f"set_{name}ticks")([])
        axis.set_xlabel(r"$\sigma$, ascending")
        axis.set_ylabel("C, ascending")
        axis.set_title(title + " (square: cold)")
    everything = [f for both in found.values() for f in both]
    values = [[100 * f["shares"][kind] for f in everything] for kind in DIRECTIONS]
    means, spread = [np.mean(v) for v in values], [np.std(v) for v in values]
    axes[1, 0].bar(list(DIRECTIONS), means, 0.6, yerr=spread, color="0.75", edgecolor="black", capsize=4)
    axes[1, 0].set_ylabel("% of the tree's edges")
    axes[1, 0].set_title("(c) directions in the cheapest trees")
    names, shown = list(found), ("heuristic", "tree", "tree_capped", "tree_doubled")
    for k, (way, shade, hatch) in enumerate(
        zip(shown, ("0.25", "0.65", "1", "1"), ("", "", "", "////"), strict=True)
    ):
        heights = [100 * share(found[name], way, "steps") for name in names]
        places = np.arange(len(names)) + 0.2 * (k - 1.5)
        axes[1, 1].bar(
            places, heights, 0.2, color=shade, hatch=hatch, edgecolor="black", lw=0.6, label=WAYS[way]
        )
    axes[1, 1].axhline(11, color="black", ls="--", lw=1, label="heuristic in the paper (time)")
    axes[1, 1].set_yscale("log")
    axes[1, 1].set_xticks(range(len(names)), names, rotation=50, ha="right", rotation_mode="anchor")
    axes[1, 1].set_ylabel("% of the steps without warm starts")
    axes[1, 1].set_title("(d) cost of the whole grid")
    axes[1, 1].set_ylim(top=1000)
    axes[1, 1].legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    figure.savefig(path, dpi=120)
    plt.close(figure)


# --------------------------------------------------------------------------------------------


def banana(quick: bool) -> Floats:
    """500 random rows of class +1."""
    if quick:
        X, y = make_moons(600, noise=0.15, random_state=0)
        X = X[y == 1] * 2.0
    else:
        X, y = whole("raetsch_banana", raw=True)
        X = X[y > 0]
    return np.asarray(X[np.random.default_rng(0).permutation(len(X))[: 200 if quick else 500]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="use bundled data and a 6 x 6 grid")
    parser.add_argument("--only", nargs="*", help="run these sets only")
    parser.add_argument("--rows", type=int, default=200, help="largest number of rows of a class")
    parser.add_argument(
        "--max-iter", type=int, default=1_000_000, help="largest number of steps of a training"
    )
    parser.add_argument(
        "--out", default="one_class_maxminover", help="name of the result files in benchmarks/results"
    )
    parser.add_argument("--draw", default=None, help="folder for the figures (needs matplotlib)")
    args = parser.parse_args()
    names = ["breast_cancer"] if args.quick else [name for name in SETS if not args.only or name in args.only]
    size = 6 if args.quick else 20
    rows_kept = min(args.rows, 100) if args.quick else args.rows
    grid = Grid({"C": np.geomspace(1.0, 1e5, size).tolist(), "sigma": np.geomspace(0.1, 5.0, size).tolist()})
    try:
        first = figure_1(banana(args.quick), 1000.0, 0.4, 1e-4 if args.quick else 1e-5, (1e-1, 1e-3))
        data = {name: whole(name if args.quick else f"raetsch_{name}", raw=not args.quick) for name in names}
    except MissingData as missing:
        sys.exit(str(missing))
    gap_note = (
        f"Figure 1: gap {first['gaps'][-1]:.1e} after {first['steps'][-1]:,} steps and "
        f"{first['seconds']:.1f} s (looked at in every step), {first['support']} support vectors; always "
        f"below {first['constant']:.3g}/sqrt(t), and falling as t^{first['slope']:.2f} at the end."
    )
    print(gap_note, flush=True)
    found: dict[str, list[dict[str, Any]]] = {}
    try:
        for name in names:
            X, y = data[name]
            both = []
            for label in (1.0, -1.0):
                mine = X[y == label]
                mine = mine[np.random.default_rng(0).permutation(len(mine))[:rows_kept]]
                both.append(one_class(mine, grid, args.max_iter))
            found[name] = both
            print(row_of(name, both), flush=True)
    except KeyboardInterrupt:
        print("Interrupted.")
    table = [row_of(name, both) for name, both in found.items()]
    everything = [f for both in found.values() for f in both]

    def means(kind: str, average: Callable[[list[float]], Any]) -> str:
        figures = {w: 100 * float(average([share([f], w, kind) for f in everything])) for w in WAYS}
        return ", ".join(f"{WAYS[way]} {figure:.2f}" for way, figure in figures.items())

    notes = [
        gap_note,
        f"{size} x {size} nodes, gap {GAP:g}, at most {rows_kept} random rows of a class.",
        f"Mean over the classes, % of the cold time: {means('seconds', np.mean)}. The paper's heuristic "
        "takes 11 %.",
        f"% of the cold steps: {means('steps', np.mean)}.",
        f"Geometric means, % of the cold steps: {means('steps', geometric_mean)}.",
        f"A training ends after {args.max_iter:,} steps at the latest; those that it ended are counted as "
        "unfinished, so that the cold cost is a lower bound where there are any.",
        "The tree is the cheapest by its costs, which are measured from cold neighbours; trained along it, "
        "each node starts from one that was itself started warm, with the counts of the whole path: where "
        "these are many, a step moves little, and the tree may take far more than its costs. Capped: at a "
        "warm start the counters are scaled down to the total that the parent has when trained cold. "
        "Doubling: MaxMinOver(doubling=True), also where the costs are measured.",
        f"{100 * np.mean([f['no_better'] for f in everything]):.0f} % of the grid's edges take more steps "
        "than a cold training.",
    ]
    raw = [
        {"set": name, "class": label, **{k: v for k, v in f.items() if k != "path"}}
        for name, both in found.items()
        for label, f in zip((1, -1), both, strict=True)
    ]
    title = "OneClassMaxMinOver, figures 1 and 2: warm starts on a grid"
    write(args.out, title, table, notes, raw, threads=1, repetitions=1)
    if args.draw:
        folder = File(args.draw)
        draw_figure_1(first, folder / "maxminover-gap.png")
        draw_figure_2(found, grid, folder / "maxminover-grid.png")


if __name__ == "__main__":
    main()
