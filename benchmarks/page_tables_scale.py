"""Tables of the pages about many rows, made from the result files; quote.py puts them between their marks."""

from __future__ import annotations

from collections.abc import Callable

from figures import rows_of
from page_tables import g, ratio
from report import RESULTS, markdown


def cluster() -> str:
    lines = [
        {
            "rows": f"{r['rows']:,}",
            "support vectors": f"{r['svs']:,}",
            "one process, 2 threads": g(min(r["one"])),
            "dask, 2 workers": g(min(r["dask"])),
            "dask / one process": ratio(min(r["dask"]), min(r["one"]), 2),
            "rounds": r["rounds"],
            "overhead of a round, ms": f"{1e3 * r['overhead_s']:.0f}",
            "MB sent": g(r["sent"] / 1e6),
            "MB received": g(r["received"] / 1e6),
        }
        for r in rows_of("cluster")
        if r["part"] == "time"
    ]
    return markdown(lines)


def cluster_scaling() -> str:
    lines = [r for r in rows_of("cluster") if r["part"] == "scaling"]
    return markdown(
        [
            {
                "workers of half a core": r["workers"],
                "seconds": g(r["s"]),
                "times as fast as one": ratio(lines[0]["s"], r["s"], 2),
            }
            for r in lines
        ]
    )


def cluster_model() -> str:
    return markdown(rows_of("cluster_model"))


def growth() -> str:
    lines = [
        {
            "rows": f"{r['n']:,}",
            "library": r["machine"],
            "seconds": g(r["fit_s"]),
            "support vectors": f"{r['n_sv']:,}",
            "memory of the process, GB": f"{r['peak_mb'] / 1e3:.1f}",
        }
        for r in rows_of("growth")
        if r["data"] == "covtype-like"
    ]
    return markdown(lines)


def growth_cells() -> str:
    lines = [
        {
            "rows": f"{r['n']:,}",
            "model": r["model"],
            "seconds": g(r["fit_s"]),
            "accuracy": f"{r['score']:.4f}",
            "memory without file pages, GB": f"{r['peak_mb'] / 1e3:.1f}",
        }
        for r in rows_of("growth_cells")
    ]
    return markdown(lines)


def linear() -> str:
    """The accuracy 1e-3 only; a sentence until the program has been run."""
    if not (RESULTS / "linear.json").exists():
        return "(not recorded yet: `python benchmarks/linear.py`)"
    lines = []
    for r in rows_of("linear"):
        models = r["models"]
        times = {name: of["seconds"]["0.001"] for name, of in models.items()}
        theirs, ours = times["LinearSVC"], times["SVC"]
        row = {"data": r["data"], "rows": f"{r['n']:,}", "features": f"{r['d']:,}", "loss": r["loss"]}
        row["C"] = f"{r['C']:g}"
        for name, of in models.items():
            late = f"{g(of['tightest'])} (not reached)"
            row[f"`{name}`" if name != "SVC, penalised" else '`bias="penalised"`'] = (
                late if times[name] is None else g(times[name])
            )
        row["LinearSVC / SVC"] = ratio(theirs, ours, 2)
        lines.append(row)
    return markdown(lines) + (
        "\n\n[With 1e-4, and the run](../../benchmarks/results/linear.md). Where a time says that it was not "
        "reached, LIBLINEAR has ended after its default of 1,000 passes, and ours after 10 seconds."
    )


TABLES: dict[str, Callable[[], str]] = {
    "cluster": cluster,
    "cluster_scaling": cluster_scaling,
    "cluster_model": cluster_model,
    "growth": growth,
    "growth_cells": growth_cells,
    "linear": linear,
}
