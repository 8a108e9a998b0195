"""Sections on how the parameters were chosen: scores of combinations, learning curve."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from maxmargin._types import Floats
from maxmargin.inspection._report import figures
from maxmargin.inspection._report.markup import number, paragraph, picture, table, text
from maxmargin.inspection._report.page import Section
from maxmargin.inspection._report.refits import LearningCurve, Skipped
from maxmargin.inspection._report.subject import Subject

# Combinations that the table has.
_SHOWN = 10
# Parameters that are drawn if there are several, in this order.
_FIRST = ("C", "nu", "gamma", "epsilon", "degree", "coef0")


def search_section(subject: Subject, pictures: dict[str, str]) -> Section:
    """Scores of the combinations that a search has tried."""
    title = "Scores of the search"
    results = subject.results
    if results is None:
        why = (
            "The model was trained with given parameters, or comes from a model file, which does not keep "
            "the scores of a search: pass the fitted search or tuner itself, or use maxmargin tune --report."
        )
        return Section("search", title, absent=why, facts={"available": False})
    nodes: list[dict[str, Any]] = [dict(node) for node in results["params"]]
    scores = np.asarray(results[f"mean_test_{subject.metric}"], dtype=np.float64)
    spread = np.asarray(results.get(f"std_test_{subject.metric}", np.zeros(len(nodes))), dtype=np.float64)
    chosen = _chosen(subject, nodes, scores)
    stages = np.asarray(results.get("stage", np.ones(len(nodes), int)))
    last = stages == stages.max()
    rank = results.get(f"rank_test_{subject.metric}")
    order = np.argsort(rank if rank is not None else -scores, kind="stable")
    short = _short_names(nodes)
    varied = [name for name in short if len({repr(node.get(name)) for node in nodes}) > 1]
    head = ["rank", *(text(short[name]) for name in varied), text(subject.score_name), "std of folds"]
    if "stage" in results:
        head += ["stage", "rows"]
    rows, marked = [], []
    for place in order[:_SHOWN].tolist() + ([chosen] if chosen not in order[:_SHOWN] else []):
        mark = "★ " if place == chosen else ""
        row = [f"{mark}{int(np.flatnonzero(order == place)[0]) + 1}"]
        row += [number(nodes[place].get(name)) for name in varied]
        row += [number(scores[place]), number(spread[place], 2)]
        if "stage" in results:
            row += [number(int(stages[place])), number(int(results["n_rows"][place]))]
        rows.append(row)
        marked.append(place == chosen)
    caption = f"The best {min(_SHOWN, len(nodes))} of {len(nodes)} combinations (★ chosen)"
    figure, note = _draw(subject, nodes, scores, spread, chosen, last, short, pictures)
    edge = _at_the_edge(subject, nodes, chosen, short)
    notes = note + "".join(paragraph(text(line)) for line in edge)
    best = {short[name]: nodes[chosen][name] for name in nodes[chosen]}
    listed = notes + table(caption, head, rows, marked=marked)
    body = f'<div class="two"><div>{figure}</div><div>{listed}</div></div>' if figure else listed
    return Section(
        "search", title, body, _rows(subject, results, stages),
        facts={
            "available": True, "tried": len(nodes), "best_score": float(scores[chosen]), "best_params": best,
            "score": subject.score_name, "at_the_edge": edge,
        },
    )  # fmt: skip


def _rows(subject: Subject, results: dict[str, Any], stages: Any) -> str:
    n_splits = getattr(subject.given, "n_splits_", None)
    folds = f"{n_splits} folds" if n_splits else "the folds of the search"
    if "stage" not in results:
        return f"Training rows of the search; each score is the mean of {folds} that were held out."
    parts = [f"{int(results['n_rows'][stages == s][0]):,} in stage {s}" for s in np.unique(stages)]
    return (
        f"Training rows, {', '.join(parts)}; each score is the mean of {folds} that were held out. Scores of "
        "different stages are not comparable."
    )


def _chosen(subject: Subject, nodes: list[dict[str, Any]], scores: Floats) -> int:
    """The index of the combination that was chosen."""
    found = getattr(subject.given, "best_index_", None)
    if found is not None:
        return int(found)
    best = getattr(subject.given, "best_params_", None)
    same = [k for k, node in enumerate(nodes) if node == best]
    return same[-1] if same else int(np.nanargmax(scores))


def _short_names(nodes: list[dict[str, Any]]) -> dict[str, str]:
    """Parameters without the names of pipeline steps, where that is not ambiguous."""
    names = list(dict.fromkeys(name for node in nodes for name in node))
    short = [name.split("__")[-1] for name in names]
    return {name: s if short.count(s) == 1 else name for name, s in zip(names, short, strict=True)}


def _numeric(nodes: list[dict[str, Any]], short: dict[str, str]) -> list[str]:
    """Numeric parameters with several values, the usual ones first."""
    found = []
    for name in short:
        values = [node.get(name) for node in nodes]
        numbers = all(isinstance(v, Real) and not isinstance(v, bool | np.bool_) for v in values)
        if numbers and all(np.isfinite(float(v)) for v in values) and len(set(values)) > 1:  # type: ignore[arg-type]
            found.append(name)
    place = {name: k for k, name in enumerate(_FIRST)}
    return sorted(found, key=lambda name: place.get(short[name], len(_FIRST)))


def _draw(
    subject: Subject, nodes: list[dict[str, Any]], scores: Floats, spread: Floats, chosen: int, last: Any,
    short: dict[str, str], pictures: dict[str, str],
) -> tuple[str, str]:  # fmt: skip
    """The figure, and sentences about it."""
    known = np.isfinite(scores)
    note = ""
    kernels = [name for name in short if short[name] == "kernel"]
    if kernels and len({node.get(kernels[0]) for node in nodes}) > 1:
        best = nodes[chosen].get(kernels[0])
        known &= np.array([node.get(kernels[0]) == best for node in nodes])
        note = paragraph(
            f"The figure has the combinations with the kernel {text(best)}; the table has all kernels."
        )
    at = np.flatnonzero(known)
    if not known[chosen] or len(at) < 2:
        return "", note or paragraph("There are too few finite scores for a figure.")
    some = [nodes[k] for k in at]
    names = _numeric(some, short)
    if not names:
        return "", note
    place = int(np.flatnonzero(at == chosen)[0])
    x = np.array([float(node[names[0]]) for node in some])
    if len(names) == 1:
        labels = (short[names[0]], subject.score_name)
        figures.scores_line(x, scores[at], spread[at], place, labels, pictures)
        caption = f"Scores over {text(short[names[0]])}; the star is the chosen value."
    else:
        y = np.array([float(node[names[1]]) for node in some])
        three = (short[names[0]], short[names[1]], subject.score_name)
        figures.scores_map(x, y, scores[at], place, last[at], three, pictures)
        caption = (
            f"Combinations of {text(short[names[0]])} and {text(short[names[1]])}; the star is the chosen "
            "one. If the colour bar has an arrow, its first shade also stands for all lower scores."
        )
    return picture(pictures["search"], caption), note


def _at_the_edge(
    subject: Subject, nodes: list[dict[str, Any]], chosen: int, short: dict[str, str]
) -> list[str]:
    """Sentences on parameters of a grid whose best value is its first or last."""
    if subject.results is not None and "stage" in subject.results:
        return []  # a tuner goes on until scores fall
    out = []
    for name in _numeric(nodes, short):
        values = sorted({float(node[name]) for node in nodes})
        if len(values) > 2 and float(nodes[chosen][name]) in (values[0], values[-1]):
            out.append(
                f"The best {short[name]} is at the edge of the search: a wider range may have a better one."
            )
    return out


def learning_section(curve: LearningCurve | Skipped, pictures: dict[str, str]) -> Section:
    """Scores over the number of training rows."""
    title = "Learning curve"
    if isinstance(curve, Skipped):
        return Section("learning", title, absent=curve.reason, facts={"available": False})
    figures.learning(curve, pictures)
    test, train = curve.means()
    spread = np.nanstd(curve.test, axis=1)
    rows = [
        [number(int(n)), number(a), number(s, 2), number(b)]
        for n, a, s, b in zip(curve.sizes, test, spread, train, strict=True)
    ]
    head = ["training rows", "held-out rows", "std of folds", "their own rows"]
    rise = float(test[-1] - test[-2])
    rising = bool(rise > max(0.5 * spread[-1], 0.002 * abs(test[-1])))
    words = (
        "The score of held-out rows still rises with the number of rows: more data would probably help."
        if rising
        else "The score of held-out rows hardly changes with more rows: more of them would help little."
    )
    text_of = paragraph(text(words)) + (paragraph(text(curve.note)) if curve.note else "")
    caption = f"Mean {text(curve.score)}; bands are one standard deviation of the folds."
    body = (
        f'<div class="two"><div>{picture(pictures["learning"], caption)}</div>'
        f"<div>{text_of}{table(f'Mean {curve.score} by number of rows', head, rows)}</div></div>"
    )
    facts = {"available": True, "sizes": curve.sizes, "held_out": test, "own": train, "rising": rising}
    return Section("learning", title, body, curve.rows, facts=facts)
