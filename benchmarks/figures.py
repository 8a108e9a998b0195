"""Figures that the pages quote, computed from the result files.

`figures(name)` gives those of benchmarks/results/NAME.json by their keys; None stands for what the stored
run did not measure. See quote.py for how a page names one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from report import RESULTS, geometric_mean

Values = dict[str, float | None]
Rows = list[dict[str, Any]]


@cache
def result(name: str) -> dict[str, Any]:
    """The content of a result file."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def rows_of(name: str) -> Rows:
    return result(name)["rows"]


@cache
def figures(name: str) -> Values:
    """All figures of one result file."""
    return _SOURCES[name](rows_of(name))


def names() -> tuple[str, ...]:
    """The result files that pages may quote."""
    return tuple(_SOURCES)


def mean(ratios: Sequence[float]) -> float | None:
    return geometric_mean(ratios) if ratios else None


def spread(key: str, values: Sequence[float]) -> Values:
    """The least and the largest of some values, as KEY.least and KEY.most."""
    return {f"{key}.least": min(values, default=None), f"{key}.most": max(values, default=None)}


def numbers_in_notes(name: str, patterns: dict[str, str]) -> Values:
    """Numbers that a program states in its notes only."""
    text = "\n".join(result(name)["notes"])
    out: Values = {}
    for key, pattern in patterns.items():
        match = re.search(pattern, text)
        assert match, f"{name}: {pattern}"
        out[key] = float(match.group(1).replace(",", ""))
    return out


def peers(rows: Rows) -> Values:
    """Ratios of seconds, rival / maxmargin: geometric means, SVC and SVR (svr.)."""
    ours = {r["problem"]: r for r in rows if r["machine"] == "maxmargin"}
    out: Values = {"svc.problems": sum(bool(r["classes"]) for r in ours.values())}
    out["svr.problems"] = len(ours) - (out["svc.problems"] or 0)
    for kind in ("svc", "svr"):
        for rival in ("scikit-learn", "intelex"):
            some = [r for r in rows if r["machine"] == rival and bool(r["classes"]) == (kind == "svc")]
            pairs = [(r, ours[r["problem"]]) for r in some]
            ratios = {
                f"{kind}.{what}.{rival}": [r[f"{what}_s"] / m[f"{what}_s"] for r, m in pairs]
                for what in ("fit", "predict")
            }
            if rival == "scikit-learn":
                alone = [r["fit_s"] / m["fit_1_s"] for r, m in pairs if m["fit_1_s"]]
                ratios[f"{kind}.fit.scikit-learn.1"] = alone
            for key, values in ratios.items():
                out[key], out[f"{key}.least"] = mean(values), min(values, default=None)
    both = [r["fit_1_s"] / r["fit_s"] for r in ours.values() if r["fit_1_s"] and r["n"] >= 5000]
    out |= spread("speedup", both)
    diabetes = ours.get("diabetes")
    out["diabetes.ms"] = 1e3 * diabetes["fit_s"] if diabetes else None
    return out


def growth(rows: Rows) -> Values:
    """Seconds, support vectors and GB of maxmargin on the covtype-like data, by the number of rows."""
    out: Values = {}
    for r in rows:
        if r["data"] == "covtype-like" and r["machine"] == "maxmargin":
            out |= {f"{r['n']}.s": r["fit_s"], f"{r['n']}.svs": r["n_sv"], f"{r['n']}.gb": r["peak_mb"] / 1e3}
    return out


def cluster(rows: Rows) -> Values:
    """Ratios dask / one process, ms of overhead and MB by the number of rows; scaling by workers."""
    out: Values = {}
    times = [r for r in rows if r["part"] == "time"]
    for r in times:
        n, rounds = r["rows"], r["rounds"]
        out |= {f"{n}.ratio": min(r["dask"]) / min(r["one"]), f"{n}.s": min(r["dask"]), f"{n}.rounds": rounds}
        out |= {f"{n}.overhead": 1e3 * r["overhead_s"], f"{n}.sent": r["sent"] / 1e6}
    ratios = [min(r["dask"]) / min(r["one"]) for r in times]
    out |= spread("ratio", ratios) | {"ratio": mean(ratios)}
    scaled = {r["workers"]: r["s"] for r in rows if r["part"] == "scaling"}
    return out | {f"workers.{k}": scaled[1] / seconds for k, seconds in scaled.items()}


def growth_cells(rows: Rows) -> Values:
    """Seconds, accuracy and memory without file pages in GB of cells, by the number of rows."""
    out: Values = {}
    for r in rows:
        if r["model"] == "cells":
            gb = r["peak_mb"] / 1e3
            out |= {f"{r['n']}.s": r["fit_s"], f"{r['n']}.score": 100 * r["score"], f"{r['n']}.gb": gb}
    return out


def selection(rows: Rows) -> Values:
    """Ratios of seconds, GridSearchCV / SVMSearchCV, by estimator and number of workers."""
    out: Values = {}
    for kind in ("svc", "svr"):
        some = [r for r in rows if r["machine"].lower() == kind]
        for rival, ours, key in (
            ("scikit-learn", "ours", "scikit-learn"),
            ("scikit-learn, 1 worker", "ours, 1 worker", "scikit-learn.1"),
            ("intelex", "ours", "intelex"),
        ):
            ratios = [r[rival] / r[ours] for r in some if rival in r]
            out[f"{kind}.{key}"] = mean(ratios)
            out[f"{kind}.{key}.least"] = min(ratios, default=None)
        out[f"{kind}.sets"] = len(some) or None
    one = next((r for r in rows if r["set"] == "friedman1 1,000"), None)
    out["svr.s"] = one["ours"] if one else None
    out["svr.scikit-learn.s"] = one["scikit-learn"] if one else None
    for kind in ("svc", "svr"):
        found = [r for r in rows if "nodes compared" in r and r["machine"].lower() == kind]
        out[f"{kind}.nodes"] = sum(r["nodes compared"] for r in found) or None
        out[f"{kind}.nodes.differ"] = sum(r["nodes that differ"] for r in found) if found else None
        out[f"{kind}.difference"] = max((r["largest difference of a score"] for r in found), default=None)
    return out


def by_library(rows: Rows) -> dict[str, dict[str, dict[str, Any]]]:
    """Rows of variety.py by their names and libraries."""
    by: dict[str, dict[str, dict[str, Any]]] = {}
    for r in rows:
        by.setdefault(r["row"], {})[r["library"]] = r
    return by


def variety(rows: Rows) -> Values:
    """Ratios of seconds, rival / maxmargin: geometric means and least, and one thread / two.

    Rows on which LinearSVC was not as good at any tolerance do not count: its time is that of a worse model.
    """
    by = [of for of in by_library(rows).values() if "maxmargin" in of]
    out: Values = {"rows": len(by)}
    for rival in ("scikit-learn", "intelex", "LinearSVC"):
        some = [of for of in by if rival in of and of[rival].get("reached", True)]
        ratios = [of[rival]["seconds"] / of["maxmargin"]["seconds"] for of in some]
        out[rival] = mean(ratios)
        out[f"{rival}.rows"] = len(ratios)
        out[f"{rival}.least"] = min(ratios, default=None)
        out[f"{rival}.slower"] = sum(ratio < 1.0 for ratio in ratios)
    ours = [of["maxmargin"] for of in by]
    out["threads"] = mean([r["one_thread"] / r["seconds"] for r in ours if r["one_thread"]])
    return out


def selection_variety(rows: Rows) -> Values:
    """Ratios of seconds, GridSearchCV / SVMSearchCV, by row and number of workers."""
    out: Values = {}
    for r in rows:
        name = r["set"].removeprefix("pipeline, ")
        out[name] = r["scikit-learn"] / r["ours"]
        out[f"{name}.1"] = r["scikit-learn, 1 worker"] / r["ours, 1 worker"]
    return out


def threads(rows: Rows) -> Values:
    """Seconds with one thread / seconds with two: by problem, and geometric means of all but the largest."""
    out: Values = {r["problem"]: r["ratio"] for r in rows}
    some = [r for r in rows if r["rows"] < 200_000]
    out["mean"] = mean([r["ratio"] for r in some])
    out["intelex"] = mean([r["intelex"] for r in some if r["intelex"]])
    return out


def tuner(rows: Rows) -> Values:
    """Ratios to GridSearchCV with one thread each and with two, and differences of test errors in points."""
    out: Values = {}
    for kind in ("SVC", "SVR"):
        some = [r for r in rows if r["kind"] == kind]
        for key, suffix in (("", ".1"), ("_2", ".2")):
            ratios = [r[f"grid_s{key}"] / r[f"ours_s{key}"] for r in some if f"ours_s{key}" in r]
            out[f"{kind}{suffix}"], out[f"{kind}{suffix}.least"] = mean(ratios), min(ratios, default=None)
        two = [r["grid_s"] / r["ours_s"] for r in some if r["classes"] == 2]
        out[f"{kind}.two"] = min(two, default=None)
        points = [100.0 * (ours - theirs) for r in some for theirs, ours in r["errors"]]
        average = sum(points) / max(1, len(points))
        spread_of = (sum((p - average) ** 2 for p in points) / max(1, len(points))) ** 0.5
        out[f"{kind}.points"], out[f"{kind}.error"] = average, spread_of / max(1, len(points)) ** 0.5
        out[f"{kind}.sets"], out[f"{kind}.splits"] = len(some), len(points)
        out[f"{kind}.nodes"] = sum(r["nodes"] for r in some) / max(1, len(some))
    for r in (r for r in rows if r["kind"] == "hard"):
        points = [100.0 * (ours - theirs) for theirs, ours in r["errors"]]
        out[f"{r['set']}.points"] = sum(points) / len(points)
    large = [r["tuning_s"] for r in rows if r["kind"] == "large"]
    return out | {"large.most": max(large, default=None), "large.sets": len(large)}


def selection_liquidsvm(rows: Rows) -> Values:
    ratios = [r["liquidSVM"] / r["ours"] for r in rows]
    tuned = [r["liquidSVM"] / r["SVCCV"] for r in rows]
    points = [100.0 * (r["SVCCV error"] - r["liquidSVM error"]) for r in rows]
    return {
        "ratio": mean(ratios), "ratio.least": min(ratios), "tuner": mean(tuned), "tuner.least": min(tuned),
        "tuner.points": sum(points) / len(points), "sets": len(rows),
    }  # fmt: skip


def fuzz_models(rows: Rows) -> Values:
    """Mutated files by what became of them, and all."""
    total = next(r for r in rows if r["format"] == "all")
    names = {
        "refused": "refused",
        "predicts": "predicts",
        "refuses to predict": "refuses",
        "too wide": "wide",
    }
    return {"mutations": total["mutation"]} | {key: total[name] for name, key in names.items()}


def leave_one_out(rows: Rows) -> Values:
    out: Values = {}
    for r in rows:
        name = r["set"]
        out |= {f"{name}.{k}": r[k] for k in ("n", "svs", "seconds", "trainings", "first_ms", "middle_ms")}
        out[f"{name}.last_us"] = 1e3 * r["last_ms"]
        out["difference"] = max(r["difference"], out.get("difference") or 0.0)
        for rival in ("svc", "libsvm_same", "libsvm_hinge"):
            out[f"{name}.{rival}"] = r[rival]
            out[f"{name}.{rival}.ratio"] = None if r[rival] is None else r[rival] / r["seconds"]
    return out


def precision(rows: Rows) -> Values:
    """Seconds to a gap (PROBLEM.MACHINE.TARGET) and geometric means of ratios to maxmargin."""
    took = {(r["problem"], r["machine"], r["target"]): r["seconds"] for r in rows if r["reached"]}
    out: Values = {f"{p}.{m}.{t:g}": s for (p, m, t), s in took.items()}
    problems = list(dict.fromkeys(r["problem"] for r in rows))
    for rival in ("intelex", "scikit-learn"):
        pairs = [(took.get((p, rival, 1e-6)), took.get((p, "maxmargin", 1e-6))) for p in problems]
        out[f"{rival}.1e-06"] = mean([a / b for a, b in pairs if a and b])
    out["cost"] = mean([took[p, "maxmargin", 1e-6] / took[p, "maxmargin", 1e-3] for p in problems])
    missed = [
        r["gap"] for r in rows if r["machine"] == "scikit-learn" and r["target"] == 1e-6 and not r["reached"]
    ]
    return out | spread("scikit-learn.gap", missed)


def rosen(rows: Rows) -> Values:
    """Conjugate (and steepest) form relative to SMO: reads, computed values, processor time."""
    out: Values = {}
    for tol, tag in ((1e-3, "1e-3"), (1e-6, "1e-6"), (None, "all")):
        some = [r for r in rows if tol is None or r["tol"] == tol]
        # SMO needs a million steps on titanic: a set of its own kind.
        others = [r for r in some if r["set"] != "titanic"]
        for form in ("conjugate", "steepest"):
            for what in ("reads", "computed", "ms"):
                for chosen, suffix in (
                    (others, ""),
                    ([r for r in some if r["set"] == "titanic"], ".titanic"),
                ):
                    ratios = [r[form][what] / r["SMO"][what] for r in chosen if what in r["SMO"]]
                    out |= spread(f"{form}.{what}.{tag}{suffix}", ratios)
    grown = {
        a["set"]: 100 * (b["steepest"]["steps"] / a["steepest"]["steps"] - 1)
        for a, b in zip(rows[::2], rows[1::2], strict=True)
    }
    out |= {f"growth.{name}": value for name, value in grown.items()}
    out["p.least"] = min(p for r in rows for p in r["p"].values())
    faces = [
        b["steepest"]["faces"] / a["steepest"]["faces"] for a, b in zip(rows[::2], rows[1::2], strict=True)
    ]
    out["faces.growth"] = 100 * (max(faces) - 1)
    return out


def simple_svm(rows: Rows) -> Values:
    """Ranges over all rows, and over those of each set (SET.)."""
    out: Values = {}
    for name in ("", *dict.fromkeys(r["set"] for r in rows)):
        some = [r for r in rows if name in ("", r["set"])]
        tag = f"{name}." if name else ""
        found = [r["found"] for r in some]
        out |= spread(f"{tag}block", [f["block"]["seconds"] / f["batch"]["seconds"] for f in found])
        out |= spread(f"{tag}rounds", [f["block"]["steps"] for f in found])
        out |= spread(f"{tag}more", [r["found"]["simple"]["steps"] - r["paper"][1] for r in some])
        out |= spread(f"{tag}block.s", [f["block"]["seconds"] for f in found])
        out |= spread(f"{tag}simple.min", [f["simple"]["seconds"] / 60 for f in found])
    everything = [r["found"] for r in rows]
    values = [
        f["simple"]["evals"] / (r["n"] * f["exact"]["svs"]) for r, f in zip(rows, everything, strict=True)
    ]
    out |= spread("evals", values)
    npa = [
        r["found"]["npa"]["evals"] / (r["n"] * r["found"]["exact"]["svs"])
        for r in rows
        if "npa" in r["found"]
    ]
    out |= spread("npa", npa)
    share = [100 * f["simple"]["backtracked"] / max(1, f["simple"]["steps"]) for f in everything]
    out |= {"backtracked": sum(share) / len(share), "backtracked.most": max(share)}
    different = [abs(f["simple"]["svs"] - f["exact"]["svs"]) for f in everything]
    out |= {"same": sum(d == 0 for d in different), "rows": len(rows), "different": max(different)}
    out["wisconsin.fewer"] = -(out.get("wisconsin.more.least") or 0)
    more = {r["C"]: r["found"]["simple"]["steps"] - r["paper"][1] for r in rows if r["set"] == "adult-4"}
    out["adult-4.more.small"] = max((m for C, m in more.items() if C <= 10), default=None)
    out |= spread("adult-4.more.large", [m for C, m in more.items() if C > 10])
    for rival in ("direct", "incremental"):
        used = [f[rival]["evals"] / f["simple"]["evals"] for f in everything if rival in f]
        out |= spread(rival, used)
    out["direct.wrong"] = max((f["direct"]["wrong"] for f in everything if "direct" in f), default=None)
    return out


def chosen(rows: Rows) -> Values:
    """Accuracy, seconds, MB and support vectors by set and estimator, and ratios to one-vs-one."""
    out: Values = {}
    of = {(r["set"], r["machine"]): r for r in rows}
    for (name, machine), r in of.items():
        for key in ("accuracy", "seconds", "predict", "mb", "vectors"):
            out[f"{name}.{machine}.{key}"] = r[key]
    sets = list(dict.fromkeys(r["set"] for r in rows))
    solved = [s for s in sets if of[s, "MC"]["status"] == "solved"]
    out |= spread("mc.train", [of[s, "MC"]["seconds"] / of[s, "1v1"]["seconds"] for s in solved])
    fewer = [s for s in sets if s != "vowel"]
    out |= spread("ad.vectors", [of[s, "AD"]["vectors"] / of[s, "1v1"]["vectors"] for s in fewer])
    for s in sets:
        out[f"{s}.1v1-mc"] = of[s, "1v1"]["accuracy"] - of[s, "MC"]["accuracy"]
    others = [
        abs(of[s, "1v1"]["accuracy"] - of[s, "MC"]["accuracy"]) for s in sets if s not in ("glass", "vowel")
    ]
    return out | {"mc.accuracy.most": max(others)}


def protocol(rows: Rows) -> Values:
    """Results of the paper's protocol, by set."""
    keys = ("test", "training", "cv", "least_test", "most_test", "test_at_paper", "training_at_paper")
    sets = ("glass", "vowel", "satimage", "shuttle small", "letter small", "mnist small", "usps")
    out: Values = {f"{name}.{key}": None for name in sets for key in keys}
    for r in rows:
        out |= {f"{r['set']}.{key}": r.get(key) for key in keys}
    return out


def cooling(rows: Rows) -> Values:
    """How many times the steps of the kept form the paper's form takes, and all variables at once."""
    out = spread("paper", [r["0"] / r["0.5"] for r in rows])
    return out | spread("all", [r["1"] / r["0.5"] for r in rows])


def maxminover(rows: Rows) -> Values:
    """% of the cold time and steps, means over the classes; and what the notes say of figure 1."""
    ways = ("heuristic", "upwards", "tree", "tree_capped", "heuristic_doubled", "tree_doubled")
    out: Values = {}
    for way in ways:
        for kind in ("seconds", "steps"):
            shares = [100 * r[way][kind] / r["cold"][kind] for r in rows]
            out[f"{way}.{kind}"] = sum(shares) / len(shares)
            for name in dict.fromkeys(r["set"] for r in rows):
                both = [r for r in rows if r["set"] == name]
                total = sum(r[way][kind] for r in both) / sum(r["cold"][kind] for r in both)
                out[f"{name}.{way}.{kind}"] = 100 * total
    names = list(dict.fromkeys(r["set"] for r in rows))
    for name in names:
        both = [r for r in rows if r["set"] == name]
        out[f"{name}.estimate"] = (
            100 * sum(r["estimate"] for r in both) / sum(r["cold"]["steps"] for r in both)
        )
    out |= spread("estimate", [out[f"{n}.estimate"] or 0.0 for n in names])
    out |= spread("tree.seconds", [out[f"{n}.tree.seconds"] or 0.0 for n in names])
    for way, key in (("tree", "tree"), ("tree_capped", "capped")):
        ratios = [(out[f"{n}.{way}.seconds"] or 0.0) / (out[f"{n}.heuristic.seconds"] or 1.0) for n in names]
        out[f"{key}.cheaper"] = sum(x < 1 for x in ratios)
        out[f"{key}.slower"] = sum(x >= 1.1 for x in ratios) if key == "tree" else max(ratios)
    along = [r["shares"]["C up"] + r["shares"]["C down"] for r in rows]
    out["edges.C"] = 100 * sum(along) / len(along)
    out["cold.unfinished"] = sum(r["cold"]["unfinished"] for r in rows)
    out["cold.trainings"] = sum(r["nodes"] for r in rows)
    patterns = {
        "steps": r"after ([\d,]+) steps",
        "svs": r"(\d+) support vectors",
        "bound": r"below ([\d.]+)/sqrt",
    }
    patterns["slope"] = r"falling as t\^(-[\d.]+)"
    return out | numbers_in_notes("one_class_maxminover", patterns)


def mdm(rows: Rows) -> Values:
    """% of the kernel operations that cycles save, by set and gamma; how far plain MDM is from the paper."""
    out: Values = {
        f"{r['set']}.{r['gamma']:g}": 100 * (1 - r["cycles"]["kos"] / r["plain"]["kos"]) for r in rows
    }
    table = [r for r in rows if r["gamma"] == 1e-3]
    apart = [r["cycles"]["accuracy"] - r["plain"]["accuracy"] for r in table]
    out["accuracy"] = 100 * max(abs(a) for a in apart)
    out["iterations"] = 100 * max(abs(r["plain"]["iterations"] / 1e3 / r["paper"][1] - 1) for r in table)
    return out


def mdm_smo(rows: Rows) -> Values:
    """The most that cycles cost in SMO, in % of the kernel operations."""
    return {"most": 100 * (max(r["cycles"]["kos"] / r["plain"]["kos"] for r in rows) - 1)}


def cycles(rows: Rows) -> Values:
    """Steps and times with cycles, relative to pair steps alone, by the names of the problems."""
    found: Values = {
        f"{row['problem']}.{what}": row[f"{what}, ratio"]
        for row in rows
        for what in ("steps", "loop", "fit")
        if row[f"{what}, ratio"] is not None
    }
    fits = [row["fit, ratio"] for row in rows if row["loop, ratio"] is not None]
    return found | {"mean": mean(fits)} | spread("fit", fits)


def mdm_grid(rows: Rows) -> Values:
    ratios = [r["ratio"] for r in rows]
    german = max(r["steps per SV"] for r in rows if r["set"] == "raetsch_german")
    out: Values = {"mean": mean(ratios), "least": min(ratios), "most": max(ratios), "nodes": len(rows)}
    return out | {"german.steps": german}


def mdm_rivals(rows: Rows) -> Values:
    """Milliseconds by set, number of hulls and solver."""
    short = {
        "MDM(accelerate=False, selection='margin')": "MDM",
        "MDM(accelerate=True, selection='margin')": "accelerated",
        "Batch(working_set=None, finish='auto')": "Batch",
    }
    return {
        f"{r['set']}.{'1' if r['problem'] == 'one hull' else '2'}.{short[r['solver']]}": 1e3 * r["seconds"]
        for r in rows
        if r["solver"] in short
    }


def paths(rows: Rows) -> Values:
    """Steps of the 20 x 20 grids of one-class SVMs, in % of cold ones: maxminover, auto."""
    out: Values = {}
    for solver in ("maxminover", "auto"):
        some = [r for r in rows if r["machine"] == f"L2OneClassSVM, {solver}"]
        for path in ("down", "auto"):
            out |= spread(f"{solver}.{path}", [100 * r[path] for r in some])
    return out


_SOURCES: dict[str, Callable[[Rows], Values]] = {
    "peers": peers,
    "growth": growth,
    "cluster": cluster,
    "growth_cells": growth_cells,
    "selection": selection,
    "selection_variety": selection_variety,
    "threads": threads,
    "variety": variety,
    "selection_liquidsvm": selection_liquidsvm,
    "tuner": tuner,
    "fuzz_models": fuzz_models,
    "leave_one_out": leave_one_out,
    "paths": paths,
    "precision": precision,
    "rosen": rosen,
    "simple_svm": simple_svm,
    "all_distances-chosen": chosen,
    "all_distances_protocol": protocol,
    "all_distances-cooling": cooling,
    "one_class_maxminover": maxminover,
    "accelerated_mdm": mdm,
    "accelerated_mdm_grid": mdm_grid,
    "accelerated_mdm_smo": mdm_smo,
    "accelerated_mdm_rivals": mdm_rivals,
    "cycles": cycles,
}
