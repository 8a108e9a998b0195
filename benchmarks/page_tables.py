"""Tables of the pages, made from the result files; quote.py puts them between their marks.

Each function is a table by its name: ``<!-- table: peers -->`` stands before it in a page.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from figures import Rows, by_library, mean, rows_of
from report import markdown

MACHINES = ("scikit-learn", "intelex", "maxmargin")
# Rivals of variety.py, and how many of its rows the README shows.
VARIETY = ("scikit-learn", "intelex", "LinearSVC")
_WORST = 8
# Names of the papers' sets as the pages write them.
LONG = {
    "BCW": "breast cancer", "HD": "heart", "GCr": "german", "PID": "diabetes", "Ban": "banana",
    "Thy": "thyroid", "Spl": "splice", "cancer": "breast cancer",
}  # fmt: skip


def g(value: float | None, digits: int = 3, missing: str = "-") -> str:
    """Significant digits, without an exponent where that is short."""
    if value is None:
        return missing
    return f"{value:.0f}" if abs(value) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def ratio(a: float | None, b: float | None, digits: int = 1) -> str:
    return f"{a / b:.{digits}f}" if a and b else "-"


def _peers(rows: Rows) -> dict[str, dict[str, Any]]:
    by: dict[str, dict[str, Any]] = {}
    for r in rows:
        by.setdefault(r["problem"], {})[r["machine"]] = r
    return by


def peers() -> str:
    lines = []
    for regression in (False, True):
        some = [r for r in rows_of("peers") if (not r["classes"]) == regression]
        for problem, of in _peers(some).items():
            theirs, intel, ours = (of.get(m, {}) for m in MACHINES)
            lines.append(
                {
                    "problem": problem,
                    "rows": f"{ours['n']:,}",
                    "classes": ours["classes"] or "regression",
                    "scikit-learn": g(theirs.get("fit_s")),
                    "intelex": g(intel.get("fit_s")),
                    "**maxmargin**": f"**{g(ours['fit_s'])}**",
                    "with 1 thread": g(ours["fit_1_s"]),
                    "x scikit-learn": ratio(theirs.get("fit_s"), ours["fit_s"]),
                    "x scikit-learn, 1 thread each": ratio(theirs.get("fit_s"), ours["fit_1_s"]),
                    "x intelex": ratio(intel.get("fit_s"), ours["fit_s"]),
                }
            )
        pairs = [of for of in _peers(some).values() if all(m in of for m in MACHINES)]

        def over(rival: str, key: str, pairs: list[dict[str, Any]] = pairs) -> str:
            found = mean([of[rival]["fit_s"] / of["maxmargin"][key] for of in pairs if of["maxmargin"][key]])
            return f"**{found:.1f}**" if found else "-"

        name = "geometric mean, " + ("regression" if regression else "classification")
        lines.append(
            {
                "problem": name,
                "x scikit-learn": over("scikit-learn", "fit_s"),
                "x scikit-learn, 1 thread each": over("scikit-learn", "fit_1_s"),
                "x intelex": over("intelex", "fit_s"),
            }
        )
    return markdown(lines)


def peers_regression() -> str:
    lines = []
    for problem, of in _peers([r for r in rows_of("peers") if not r["classes"]]).items():
        theirs, intel, ours = (of.get(m, {}) for m in MACHINES)
        lines.append(
            {
                "problem": problem,
                "rows": f"{ours['n']:,}",
                "C": f"{ours['C']:g}",
                "scikit-learn (s)": g(theirs.get("fit_s")),
                "intelex (s)": g(intel.get("fit_s")),
                "maxmargin (s)": g(ours["fit_s"]),
                "with 1 thread (s)": g(ours["fit_1_s"]),
                "x scikit-learn": ratio(theirs.get("fit_s"), ours["fit_s"]),
                "x scikit-learn, 1 thread each": ratio(theirs.get("fit_s"), ours["fit_1_s"]),
                "x intelex": ratio(intel.get("fit_s"), ours["fit_s"]),
            }
        )
    return markdown(lines)


def selection() -> str:
    lines = []
    for r in rows_of("selection"):
        tilde = "~" if r["sampled"] else ""
        one, ours = r.get("scikit-learn, 1 worker"), r.get("ours, 1 worker")
        # Of the earlier form of the program scikit-learn was timed on a part of the nodes, too.
        mark = tilde if one is None else ""
        lines.append(
            {
                "set": r["set"] + (" (SVR)" if r["machine"] == "SVR" else ""),
                "rows": f"{r['rows']:,}",
                "runs": r["runs"],
                "scikit-learn (s)": mark + g(r["scikit-learn"]),
                "intelex (s)": tilde + g(r.get("intelex")),
                "maxmargin (s)": g(r["ours"]),
                "x scikit-learn": ratio(r["scikit-learn"], r["ours"], 0),
                "x intelex": ratio(r.get("intelex"), r["ours"], 0),
                "1 worker: scikit-learn (s)": tilde + g(one) if one else "-",
                "maxmargin, 1 worker (s)": g(ours),
                "x scikit-learn, 1 worker": ratio(one, ours, 0),
                "nodes whose score differs": f"{r['nodes that differ']} of {r['nodes compared']}"
                if "nodes compared" in r
                else "-",
                "largest difference": f"{r['largest difference of a score']:.4f}"
                if "nodes compared" in r
                else "-",
            }
        )
    return markdown(lines)


def variety() -> str:
    """All rows of variety.py, the slowest relative to a rival first."""
    lines = []
    for name, of in by_library(rows_of("variety")).items():
        ours = of["maxmargin"]
        ratios = {rival: of[rival]["seconds"] / ours["seconds"] for rival in VARIETY if rival in of}
        line = {
            "input": name,
            "rows": f"{ours['n']:,}",
            "**maxmargin**": f"**{g(ours['seconds'])}**",
            "with 1 thread": g(ours["one_thread"]),
            **{
                f"x {rival}": _ratio(ratios[rival], of[rival]) if rival in ratios else "" for rival in VARIETY
            },
        }
        lines.append((min(ratios.values()), line))
    return markdown([line for _, line in sorted(lines, key=lambda pair: pair[0])])


def _ratio(ratio: float, rival: dict[str, Any]) -> str:
    """A ratio of seconds, and whether the rival's model is worse."""
    number = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"
    return number if rival.get("reached", True) else f"{number} (not as good)"


def variety_worst() -> str:
    """The first rows of the table above."""
    return "\n".join(variety().splitlines()[: 2 + _WORST])


def liquidsvm() -> str:
    return markdown(
        [
            {
                "set": r["set"],
                "rows": f"{r['rows']:,}",
                "liquidSVM (s)": g(r["liquidSVM"]),
                "maxmargin (s)": g(r["ours"]),
                "x liquidSVM": ratio(r["liquidSVM"], r["ours"]),
                "`SVCCV` (s)": g(r["SVCCV"]),
                "`SVCCV` x liquidSVM": ratio(r["liquidSVM"], r["SVCCV"]),
                "test error, liquidSVM": f"{r['liquidSVM error']:.3f}",
                "`SVCCV`": f"{r['SVCCV error']:.3f}",
            }
            for r in rows_of("selection_liquidsvm")
        ]
    )


def leave_one_out() -> str:
    lines = []
    for r in rows_of("leave_one_out"):
        tilde = "" if r["trainings"] == r["n"] else "~"

        def times(key: str, r: dict[str, Any] = r, tilde: str = tilde) -> str:
            return f"{tilde}{g(r[key])} s ({r[key] / r['seconds']:.0f} times)" if r[key] else "-"

        lines.append(
            {
                "set": r["set"],
                "rows": f"{r['n']:,}",
                "SVs": f"{r['svs']:,}",
                "seconds, fit included": g(r["seconds"]),
                "trainings run": f"{r['trainings']:,}",
                "n trainings of our SVC": times("svc"),
                "of LIBSVM, the same model": times("libsvm_same"),
                "of LIBSVM's hinge model": times("libsvm_hinge"),
            }
        )
    return markdown(lines)


_PROBLEMS = {
    "a9a": "a9a, C=100", "covtype": "covtype, 20,000 rows", "german": "german", "splice": "splice",
    "breast_cancer": "breast_cancer, unscaled, C=1e4",
}  # fmt: skip


def _seconds() -> dict[tuple[str, str, float], float]:
    return {
        (r["problem"], r["machine"], r["target"]): r["seconds"] for r in rows_of("precision") if r["reached"]
    }


def precision() -> str:
    took = _seconds()
    lines = []
    for problem, title in _PROBLEMS.items():
        for machine in MACHINES:
            line = {"problem": title if machine == MACHINES[0] else "", "library": machine}
            for target in (1e-3, 1e-6, 1e-8):
                line[f"{target:.0e}".replace("e-0", "e-")] = g(took.get((problem, machine, target)))
            own = took.get((problem, "maxmargin", 1e-6))
            theirs = took.get((problem, machine, 1e-6)) if machine != "maxmargin" else None
            line["x ours at 1e-6"] = f"{theirs / own:.1f}" if own and theirs else ""
            lines.append(line)
    return markdown(lines)


def precision_short() -> str:
    took = _seconds()
    lines = []
    for problem, title in _PROBLEMS.items():
        line = {"problem": title}
        for target, name in (
            (1e-3, "1e-3: maxmargin, intelex, scikit-learn (s)"),
            (1e-6, "1e-6 (s)"),
            (1e-8, "1e-8 (s)"),
        ):
            line[name] = ", ".join(
                g(took.get((problem, m, target)), 3, "not reached") for m in MACHINES[::-1]
            )
        lines.append(line)
    return markdown(lines)


def finishes() -> str:
    took = _seconds()
    titles = {
        "maxmargin": "auto", "Newton": "Newton", "conjugate": "conjugate", "Rosen": "steepest",
        "no finish": "none",
    }  # fmt: skip
    return markdown(
        [
            {"problem": name} | {title: g(took.get((p, m, 1e-6))) for m, title in titles.items()}
            for p, name in _PROBLEMS.items()
        ]
    )


def _rosen() -> Rows:
    return [r for r in rows_of("rosen") if r["tol"] == 1e-6]


def rosen_steps() -> str:
    return markdown(
        [
            {
                "set": LONG.get(r["set"], r["set"]),
                "SVs, paper: SMO / Rosen": f"{r['paper'][4]} / {r['paper'][6]}",
                "SVs, ours: SMO / steepest / conjugate": " / ".join(
                    f"{r[s]['svs']:.1f}" for s in ("SMO", "steepest", "conjugate")
                ),
                "SMO iterations: paper / ours": f"{r['paper'][5]:,.0f} / {r['SMO']['steps']:,.0f}",
                "Rosen: paper's iterations / our faces": f"{r['paper'][7]} / {r['steepest']['faces']:.1f}",
                "our steps: steepest / conjugate": (
                    f"{r['steepest']['steps']:,.0f} / {r['conjugate']['steps']:,.0f}"
                ),
            }
            for r in _rosen()
        ]
    )


def rosen_costs() -> str:
    def over(r: dict[str, Any], form: str, key: str) -> str:
        return g(r[form][key] / r["SMO"][key]) if key in r["SMO"] else "-"

    return markdown(
        [
            {
                "set": LONG.get(r["set"], r["set"]),
                "reads relative to SMO: steepest / conjugate": " / ".join(
                    over(r, s, "reads") for s in ("steepest", "conjugate")
                ),
                "computed values relative to SMO: steepest / conjugate": " / ".join(
                    over(r, s, "computed") for s in ("steepest", "conjugate")
                ),
                "ms: SMO / steepest / conjugate": " / ".join(
                    f"{r[s]['ms']:.2f}" for s in ("SMO", "steepest", "conjugate")
                ),
                "time relative to SMO: conjugate": over(r, "conjugate", "ms"),
            }
            for r in _rosen()
        ]
    )


def paths() -> str:
    """One line per estimator and parameter; sets side by side."""
    by: dict[tuple[str, str], Rows] = {}
    for row in rows_of("paths"):
        by.setdefault((row["machine"], row["parameter"]), []).append(row)
    lines = []
    for (machine, parameter), rows in by.items():
        named = machine.replace(", ", "`, ") if ", " in machine else f"{machine}`"
        line = {"estimator": f"`{named}", "parameter": parameter, "sets": " / ".join(r["set"] for r in rows)}
        ways = ("up", "down", "auto")
        lines.append(
            line | {way: " / ".join(f"{r[way]:.2f}" if r[way] != "" else "-" for r in rows) for way in ways}
        )
    return markdown(lines)


def first_fit() -> str:
    """One line per call: the first and the second of a process, without and with compiled code."""
    by: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows_of("first_fit"):
        by.setdefault(row["call"], {})[row["installation"]] = row
    lines = []
    for call, rows in by.items():
        if "pure Python" not in rows:
            continue
        line = {"call": call}
        for name, row in rows.items():
            line |= {f"first, {name}": g(row["first"], 2), f"second, {name}": g(row.get("second"), 2)}
        lines.append(line)
    return markdown(lines)


def tuner() -> str:
    """One line per set: seconds of both, ratios, and test errors."""
    lines = []
    for r in (r for r in rows_of("tuner") if r["kind"] in ("SVC", "SVR")):
        theirs, ours = ([pair[k] for pair in r["errors"]] for k in (0, 1))
        lines.append(
            {
                "set": r["set"],
                "rows": f"{r['rows']:,}",
                "classes": r["classes"] or "regression",
                "GridSearchCV (s)": g(r["grid_s"]),
                "maxmargin (s)": g(r["ours_s"]),
                "x, 1 thread each": ratio(r["grid_s"], r["ours_s"], 0),
                "x, 2 threads each": ratio(r.get("grid_s_2"), r.get("ours_s_2"), 0),
                "test error, GridSearchCV": f"{sum(theirs) / len(theirs):.4f}",
                "maxmargin": f"{sum(ours) / len(ours):.4f}",
            }
        )
    return markdown(lines)


TABLES: dict[str, Callable[[], str]] = {
    "tuner": tuner,
    "peers": peers,
    "peers_regression": peers_regression,
    "selection": selection,
    "variety": variety,
    "variety_worst": variety_worst,
    "liquidsvm": liquidsvm,
    "leave_one_out": leave_one_out,
    "paths": paths,
    "first_fit": first_fit,
    "precision": precision,
    "precision_short": precision_short,
    "finishes": finishes,
    "rosen_steps": rosen_steps,
    "rosen_costs": rosen_costs,
}
