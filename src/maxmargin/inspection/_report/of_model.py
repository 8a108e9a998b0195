"""Sections on the model itself: support vectors, certificate, timings, versions."""

from __future__ import annotations

import platform
import time
from importlib import metadata
from typing import Any

import numpy as np

from maxmargin._sklearn import num_samples, safe_indexing
from maxmargin.estimators._outcome import ADVICE
from maxmargin.inspection._fitted import at_known_bound
from maxmargin.inspection._report.markup import bar, name_of, number, paragraph, percent, table, text
from maxmargin.inspection._report.origin import Origin
from maxmargin.inspection._report.page import Section
from maxmargin.inspection._report.subject import CLASSES, Subject

# Class pairs up to which all gaps are listed; of more, the largest.
_MOST_PAIRS, _WORST_PAIRS = 15, 8
# Classes whose support vectors are listed, and rows whose prediction is timed.
_MOST_CLASSES, _TIMED_ROWS = 40, 1_000
_PACKAGES = ("maxmargin", "scikit-learn", "numpy", "scipy", "numba", "matplotlib")


def support_section(subject: Subject, y: Any, origin: Origin) -> Section:
    """How many rows are support vectors, overall and by class."""
    last = subject.last
    n_vectors, n = len(last.support_), subject.n_trained
    bounded = at_known_bound(last)
    n_bounded = None if bounded is None else int(bounded.sum())
    share = n_vectors / n if n else float("nan")
    facts: dict[str, Any] = {
        "available": True, "support_vectors": n_vectors, "training_rows": n, "share": share,
        "at_bound": n_bounded,
    }  # fmt: skip
    head = f"{n_vectors:,} support vectors"
    words = (
        f"{head} of {n:,} training rows ({percent(share)})."
        if n
        else f"{head}; the number of training rows is not known."
    )
    if n_bounded is not None:
        words += (
            f" The coefficients of {n_bounded:,} ({percent(n_bounded / max(n_vectors, 1))} of them) are at "
            "their bound: these rows are within the margin or on its wrong side, or outside the tube."
        )
    else:
        words += " This model has no bound on its coefficients, or it is not known for several classes."
    rows: list[list[str]] = []
    total = max(n or n_vectors, 1)
    label = f"{percent(n_vectors / total)} of {total:,}" if n else f"{n_vectors:,}"
    rows.append(["all rows", bar(n_vectors / total, label, (n_bounded or 0) / total)])
    if subject.task == CLASSES and len(getattr(last, "n_support_", ())) == len(subject.classes):
        rows += _by_class(subject, y, origin, bounded, facts)
    note = (
        "Solid: support vectors; hatched: those at their bound." if n_bounded else "Solid: support vectors."
    )
    body = paragraph(text(words)) + table(note, ["", ""], rows, kind="bars")
    few = "Shares near 100 % mean that the rows are noisy or few, or that C or nu is far from its best value."
    return Section(
        "support", "Support vectors", body + paragraph(few), "Rows that have trained the model.", facts=facts
    )


def _by_class(
    subject: Subject, y: Any, origin: Origin, bounded: Any, facts: dict[str, Any]
) -> list[list[str]]:
    """Lines of the classes; shares are known only if the rows are the training rows."""
    of_class = np.asarray(subject.last.n_support_, dtype=int)
    classes = subject.classes
    counts = np.array([np.sum(y == c) for c in classes]) if origin.in_order else None
    starts = np.append(0, np.cumsum(of_class))
    rows = []
    order = np.arange(len(classes))
    if len(classes) > _MOST_CLASSES:
        order = np.sort(np.argsort(-of_class, kind="stable")[:_MOST_CLASSES])
    for k in order.tolist():
        total = int(counts[k]) if counts is not None else int(of_class.max())
        part = 0 if bounded is None else int(bounded[starts[k] : starts[k + 1]].sum())
        label = (
            f"{percent(of_class[k] / max(total, 1))} of {total:,}"
            if counts is not None
            else f"{of_class[k]:,}"
        )
        rows.append([name_of(classes[k]), bar(of_class[k] / max(total, 1), label, part / max(total, 1))])
    facts["by_class"] = {str(c): int(v) for c, v in zip(classes, of_class, strict=True)}
    return rows


def certificate_section(subject: Subject) -> Section:
    """Status and certified gaps."""
    title = "Certificate"
    last = subject.last
    if not hasattr(last, "dual_gap_"):
        why = f"{type(last).__name__} of {_package(last)} does not certify its solution."
        return Section("certificate", title, absent=why, facts={"available": False})
    status = str(getattr(last, "status_", "not stored"))
    gaps, relative = (
        np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in (last.dual_gap_, last.relative_gap_)
    )
    worst = float(relative.max())
    tol = float(last.tol) if hasattr(last, "tol") else None
    facts = {
        "available": True, "status": status, "relative_gap": worst, "dual_gap": float(gaps.sum()),
        "tol": tol, "problems": len(gaps),
    }  # fmt: skip
    if status == "solved":
        words = "Training has reached its tolerance." if tol else "Training is exact up to rounding."
    else:
        advice = {str(key): value for key, value in ADVICE.items()}.get(
            status, "the solution is not known to be good"
        )
        words = f"Training ended with the status {status!r}: {advice}."
    words += (
        f" The objective is within {_distance(worst)} of its optimum"
        if np.isfinite(worst)
        else " There is no bound on the distance to the optimum"
    )
    words += f" (relative duality gap{', the largest of all class pairs' if len(gaps) > 1 else ''})."
    rows = [
        ["status", text(status)],
        ["relative gap" + (", largest" if len(gaps) > 1 else ""), number(worst, 3)],
        *([["relative gap, median", number(float(np.median(relative)), 3)]] if len(gaps) > 1 else []),
        ["duality gap" + (", sum" if len(gaps) > 1 else ""), number(float(gaps.sum()), 3)],
        ["KKT tolerance", number(tol, 3) if tol else "rounding"],
        ["binary problems" if len(gaps) > 1 else "problems", number(len(gaps))],
        ["iterations", number(int(np.sum(last.n_iter_))) if hasattr(last, "n_iter_") else "not stored"],
        ["solver", text(getattr(last, "solver", "auto"))],
    ]
    body = paragraph(text(words), "" if status == "solved" else "caution")
    left = table("Certificate of the final fit", ["", ""], rows)
    pairs = _pairs(subject, gaps, relative)
    body += f'<div class="two"><div>{left}</div><div>{pairs}</div></div>' if pairs else left
    return Section("certificate", title, body, "Rows that have trained the model.", facts=facts)


def _distance(gap: float) -> str:
    """A relative gap in percent."""
    if gap < 5e-7:
        return "0.0001 %"
    return percent(gap, 4) if gap < 10 else f"{100 * gap:,.0f} %"


def _package(estimator: Any) -> str:
    return {"sklearn": "scikit-learn"}.get(found := type(estimator).__module__.split(".")[0], found)


def _pairs(subject: Subject, gaps: Any, relative: Any) -> str:
    """Gaps by class pair; the largest if there are many."""
    classes = subject.classes
    if len(gaps) < 2 or classes is None or len(gaps) != len(classes) * (len(classes) - 1) // 2:
        return ""
    first, second = np.triu_indices(len(classes), 1)
    many = len(gaps) > _MOST_PAIRS
    order = np.argsort(-relative, kind="stable")[:_WORST_PAIRS] if many else np.arange(len(gaps))
    rows = [
        [
            f"{name_of(classes[first[k]], 19)} – {name_of(classes[second[k]], 19)}",
            number(float(relative[k]), 2),
            number(float(gaps[k]), 2),
        ]
        for k in order.tolist()
    ]
    caption = f"The {len(order)} largest of {len(gaps)} class pairs" if many else "Class pairs"
    return table(caption, ["pair", "relative gap", "gap"], rows)


def timing_section(subject: Subject, X: Any, parts: dict[str, float]) -> Section:
    """Seconds of tuning, of the final fit, of predictions now, and of the parts of this report."""
    given = subject.given
    rows: list[list[str]] = []
    facts: dict[str, Any] = {"available": True}
    known: list[tuple[str, str, float | None]] = [
        ("tuning", "tuning_seconds", getattr(given, "tuning_time_", None)),
        ("final fit", "fit_seconds", getattr(given, "refit_time_", None)),
    ]
    results = subject.results
    if results is not None and known[0][2] is None and "mean_fit_time" in results:
        n_splits = getattr(given, "n_splits_", 1)
        total = float(np.nansum(results["mean_fit_time"]) * n_splits)
        known.insert(0, ("fits of the search, added up", "search_fit_seconds", total))
    for name, key, value in known:
        if value is not None:
            rows.append([name, f"{number(float(value), 3)} s"])
            facts[key] = float(value)
    some = safe_indexing(X, np.arange(min(num_samples(X), _TIMED_ROWS)))
    subject.fitted.predict(some)  # the first call may have to prepare
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        subject.fitted.predict(some)
        taken.append(time.perf_counter() - began)
    seconds = float(np.median(taken)) * 1000 / num_samples(some)
    facts["predict_seconds_per_1000_rows"] = seconds
    rows.append(["prediction of 1,000 rows, measured now", f"{number(1e3 * seconds, 3)} ms"])
    rows += [[f"this report: {name}", f"{number(value, 2)} s"] for name, value in parts.items()]
    note = ""
    if not any(key in facts for key in ("tuning_seconds", "fit_seconds", "search_fit_seconds")):
        note = paragraph(
            "The times of training are known for a search or tuner only; a model does not keep them."
        )
    where = f"Prediction: the first {num_samples(some):,} given rows."
    body = note + table(
        "Seconds on the computer that made this report, or trained the model", ["", "time"], rows
    )
    return Section("timings", "Timings", body, where, facts=facts, narrow=True)


def version_section() -> Section:
    """Versions of what has made the report."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    from maxmargin import __version__

    found["maxmargin"] = __version__
    rows = [[text(name), text(version)] for name, version in found.items()]
    body = table("Packages that made this report", ["package", "version"], rows)
    return Section("versions", "Versions", body, facts={"available": True, **found}, narrow=True)
