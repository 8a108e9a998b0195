"""More tables of the pages, see page_tables.py: those of the pages about papers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from figures import mean, rows_of
from page_tables import LONG, g
from report import markdown

FORMS = {"published": "published", "pair": "same pair", "cycles": "same vector"}
_SIMPLE = {
    "spirals": (0.03, 1, 10, 1000), "wisconsin": (0.03, 1, 10, 500), "adult-1": (0.03, 1, 10, 1000),
    "adult-4": (0.03, 1, 10, 1000), "adult-7": (1, 10, 50),
}  # fmt: skip
_RIVALS = {
    "Gilbert(sweep=False)": "Gilbert",
    "NPA()": "NPA",
    "MDM(accelerate=False, selection='margin')": "MDM",
    "SMO(selection='first-order')": "first-order SMO",
    "MDM(accelerate=True, selection='margin')": "accelerated MDM",
    "MDM(accelerate=False, selection='second-order')": "MDM, second order",
    "MDM(accelerate=True, selection='second-order')": "accelerated MDM, second order",
    "Batch(working_set=None, finish='auto')": "`Batch`",
}
_READINGS = {"s^2": "[-1, 1], σ²", "s": "[-1, 1], σ", "s, standardised": "standardised, σ"}
_WAYS = {
    "heuristic": "heuristic", "upwards": "up in C", "tree": "tree", "tree_capped": "tree, capped",
    "heuristic_doubled": "heuristic, doubling", "tree_doubled": "tree, doubling",
}  # fmt: skip


def mdm() -> str:
    lines = []
    for r in rows_of("accelerated_mdm"):
        if r["gamma"] != 1e-3:
            continue
        kos, iters, quick = r["paper"][0], r["paper"][1], r["paper"][2]
        forms = [form for form in FORMS if form in r]
        titles = " / ".join(["paper", *(FORMS[form] for form in forms)])
        ours = {form: r[form]["kos"] / 1e3 for form in ("plain", *forms)}
        less = [100 * (1 - quick / kos), *(100 * (1 - ours[form] / ours["plain"]) for form in forms)]
        mine = r["plain"]["iterations"] / 1e3
        digits = 0 if iters > 100 else 2
        lines.append(
            {
                "set": LONG[r["set"]],
                "plain KOs: paper / ours": f"{kos:,.0f} / {ours['plain']:,.0f}",
                "plain iterations: paper / ours": f"{iters:,.{digits}f} / {mine:,.{digits}f}",
                f"accelerated KOs: {titles}": " / ".join(
                    f"{v:,.0f}" for v in (quick, *(ours[form] for form in forms))
                ),
                f"KOs less: {titles}": " / ".join(f"{v:.1f}" for v in less) + " %",
            }
        )
    return markdown(lines).replace("-0.0", "0.0")


def mdm_cycles() -> str:
    rows = rows_of("accelerated_mdm_grid")
    ranges = {"0 to 3": (0, 3), "3 to 10": (3, 10), "10 to 100": (10, 100), "more": (100, float("inf"))}
    found = {
        title: mean([r["ratio"] for r in rows if low <= r["steps per SV"] < high])
        for title, (low, high) in ranges.items()
    }
    line = {"plain iterations per support vector": "kernel operations relative to plain MDM"}
    return markdown([line | {title: f"{value:.3f}" for title, value in found.items()}])


def mdm_smo() -> str:
    rows = rows_of("accelerated_mdm_smo")
    lines = []
    for name in dict.fromkeys(r["set"] for r in rows):
        line = {"set": LONG[name]}
        for r in rows:
            if r["set"] == name:
                saved = 100 * (1 - r["cycles"]["kos"] / r["plain"]["kos"])
                line[f"{r['loss']}, {r['selection'].replace('-', ' ')}"] = f"{saved:.1f} %"
        lines.append(line)
    return markdown(lines).replace("-0.0 %", "0.0 %")


def batch_cycles() -> str:
    lines = []
    for r in rows_of("cycles"):
        if not r["pairs: steps"]:
            continue  # solved in one compiled call
        line = {"problem": r["problem"], "pair steps": f"{r['pairs: steps']:,}"}
        for what in ("steps", "loop", "fit"):
            title = {"steps": "with cycles", "loop": "time of the pair loop", "fit": "time of the fit"}[what]
            line[title] = f"{r[f'{what}, ratio']:.2f}"
        lines.append(line)
    return markdown(lines)


def mdm_rivals() -> str:
    of = {(r["problem"], r["solver"]): r for r in rows_of("accelerated_mdm_rivals") if r["set"] == "GCr"}

    def steps(problem: str, solver: str) -> str:
        r = of[problem, solver]
        gap = float(r["gap"])
        unsolved = f" (gap {100 * gap:.0f} %)" if gap > 0.01 else f" (gap {gap:.0e})".replace("e-0", "e-")
        return f"{r['iterations']:,.0f}" + ("" if r["status"] == "solved" else unsolved)

    return markdown(
        [
            {
                "solver": title,
                "one hull: iterations": steps("one hull", solver),
                "ms": f"{1e3 * of['one hull', solver]['seconds']:,.0f}",
                "two hulls: iterations": steps("two hulls", solver),
                "ms, two hulls": f"{1e3 * of['two hulls', solver]['seconds']:,.0f}",
            }
            for solver, title in _RIVALS.items()
        ]
    )


def simple() -> str:
    lines = []
    for r in rows_of("simple_svm"):
        if r["C"] not in _SIMPLE[r["set"]]:
            continue
        _, itr, svs, evals, _, npa = r["paper"]
        f = r["found"]
        one, exact = f["simple"], f["exact"]["svs"]
        other = g(f["npa"]["evals"] / 1e6) if "npa" in f else "-"
        lines.append(
            {
                "set": r["set"],
                "n": f"{r['n']:,}",
                "C'": f"{r['C']:g}",
                "iterations": f"{itr} / {one['steps']}",
                "SVs": f"{svs} / {one['svs']}",
                "evaluations": f"{evals:g} / {g(one['evals'] / 1e6)}",
                "SVs of an exact solution": exact,
                "evaluations / (n SVs)": f"{one['evals'] / (r['n'] * exact):.2f}",
                "backtracked": f"{one['backtracked'] / max(1, one['steps']):.0%}",
                "NPA evaluations": f"{npa:g} / {other}",
                "block: rounds": f["block"]["steps"],
                "seconds: one by one / block / Batch": " / ".join(
                    g(f[k]["seconds"]) for k in ("simple", "block", "batch")
                ),
            }
        )
    return markdown(lines)


def all_distances() -> str:
    rows = [r for r in rows_of("all_distances") if r["machine"] == "AD"]
    lines = []
    for name in dict.fromkeys(r["set"] for r in rows):
        mine = {r["reading"]: r for r in rows if r["set"] == name}
        last = mine[list(mine)[-1]]
        _, _, accuracy, calls = last["paper"]
        line: dict[str, Any] = {"": name, "paper": f"{accuracy:.2f}"}
        for reading, title in _READINGS.items():
            line[title] = f"{mine[reading]['accuracy']:.2f}" if reading in mine else "-"
        line["kernel calls: paper"] = f"{calls:.2e}"
        for tag, title in (("SMO", "to the letter"), ("cooled", "cooled"), ("Batch", "`Batch`")):
            line[title] = f"{last['calls'][tag]:.2e}"
        lines.append(line)
    return markdown(lines)


def protocol() -> str:
    lines = []
    for r in rows_of("all_distances_protocol"):
        differ = r["most_test"] - r["least_test"] > 0.005
        tied = f" ({r['least_test']:.2f} to {r['most_test']:.2f})" if differ else ""
        lines.append(
            {
                "": r["set"],
                "rows, folds": f"{r['rows']:,}, {r['folds']}",
                "paper": f"{r['paper']:.2f}" if "paper" in r else "-",
                "ours (all nodes with the best score)": f"{r['test']:.2f}{tied}",
                "σ, μ chosen": f"{r['sigma']:.3g}, {r['mu']:.3g}",
                "cross-validated": f"{r['cv']:.2f}",
                "paper's σ, μ": f"{r['paper_sigma']:g}, {r['paper_mu']:g}" if "paper" in r else "-",
                "there: test, training": (
                    f"{r['test_at_paper']:.2f}, {r['training_at_paper']:.2f}" if "paper" in r else "-"
                ),
            }
        )
    return markdown(lines)


def chosen() -> str:
    rows = rows_of("all_distances-chosen")
    lines = []
    for name in dict.fromkeys(r["set"] for r in rows):
        of = {r["machine"]: r for r in rows if r["set"] == name}
        three = [of[m] for m in ("AD", "MC", "1v1")]
        cut = [" (cut)" if r["status"] == "max_time" else "" for r in three]
        papers = [f"{of[m]['paper']:.2f}" if of[m]["paper"] else "-" for m in ("AD", "MC")]
        lines.append(
            {
                "": name,
                "accuracy AD / MC / 1v1": " / ".join(f"{r['accuracy']:.2f}" for r in three),
                "paper AD / MC": " / ".join(papers),
                "train (s)": " / ".join(g(r["seconds"]) + c for r, c in zip(three, cut, strict=True)),
                "predict (s)": " / ".join(g(r["predict"], 2) for r in three),
                "support vectors": " / ".join(str(r["vectors"]) for r in three),
                "MB": " / ".join(g(r["mb"]) for r in three),
            }
        )
    return markdown(lines)


def cooling() -> str:
    rows = rows_of("all_distances-cooling")
    titles = {
        "0": "to the letter", "0.1": "cooled, 0.1", "0.5": "cooled, 0.5 (kept)", "1": "all variables at once",
    }  # fmt: skip
    return markdown([{"": title} | {r["set"]: f"{r[c]:,}" for r in rows} for c, title in titles.items()])


def maxminover() -> str:
    rows = rows_of("one_class_maxminover")
    edges = ("C up", "C down", "sigma up", "sigma down")
    lines = []
    for name in dict.fromkeys(r["set"] for r in rows):
        both = [r for r in rows if r["set"] == name]
        cold = sum(r["cold"]["seconds"] for r in both)
        line = {"set": name, "without warm starts, s": f"{cold:.1f}"}
        line |= {t: f"{100 * sum(r[w]['seconds'] for r in both) / cold:.1f}" for w, t in _WAYS.items()}
        line["edges C up / C down / σ up / σ down"] = _edges(both, edges)
        lines.append(line)
    seconds = sum(r["cold"]["seconds"] for r in rows) / len(rows)
    line = {"set": "mean of the classes", "without warm starts, s": f"{seconds:.1f}"}
    for way, title in _WAYS.items():
        share = 100 * sum(r[way]["seconds"] / r["cold"]["seconds"] for r in rows) / len(rows)
        line[title] = f"**{share:.1f}**" if way == "heuristic" else f"{share:.1f}"
    line["edges C up / C down / σ up / σ down"] = _edges(rows, edges)
    return markdown([*lines, line])


def _edges(rows: list[dict[str, Any]], edges: tuple[str, ...]) -> str:
    return " / ".join(f"{100 * sum(r['shares'][e] for r in rows) / len(rows):.0f}" for e in edges)


TABLES: dict[str, Callable[[], str]] = {
    "mdm": mdm,
    "mdm_cycles": mdm_cycles,
    "mdm_smo": mdm_smo,
    "mdm_rivals": mdm_rivals,
    "batch_cycles": batch_cycles,
    "simple": simple,
    "all_distances": all_distances,
    "protocol": protocol,
    "chosen": chosen,
    "cooling": cooling,
    "maxminover": maxminover,
}
