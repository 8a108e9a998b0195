"""The top of a report in plain words: what the model is, how good it is, what to look at."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.inspection._report.evaluation import Evaluation
from maxmargin.inspection._report.markup import counted, number, paragraph, percent, text, tiles
from maxmargin.inspection._report.origin import Origin
from maxmargin.inspection._report.page import Section
from maxmargin.inspection._report.subject import CLASSES, NUMBERS, Subject

_KIND = {"new": "new rows", "held-out": "held-out rows", "training": "training rows (too good)"}
_KERNELS = {"rbf": "RBF", "poly": "polynomial"}


def parameters_in_words(subject: Subject) -> str:
    """Such as: RBF kernel, C = 10, gamma = 0.02."""
    chosen = dict(subject.chosen())
    kernel = chosen.pop("kernel")
    parts = [f"{_KERNELS.get(kernel, kernel)} kernel"]
    parts += [
        f"{name} = {number(value) if not isinstance(value, str) else text(value)}"
        for name, value in chosen.items()
    ]
    return ", ".join(parts)


def summary(
    subject: Subject,
    whole: Evaluation,
    origin: Origin,
    score: dict[str, Any],
    sections: list[Section],
    n: int,
    d: int,
) -> tuple[str, list[str]]:
    """HTML of the summary, and its advice as plain text."""
    facts = {section.name: section.facts for section in sections}
    last = subject.last
    name = type(last).__name__
    kind = {
        CLASSES: f"classifies rows into {len(subject.classes)} classes" if subject.task == CLASSES else "",
        NUMBERS: "predicts a number",
    }.get(subject.task, "finds outliers")
    trained = f", trained on {subject.n_trained:,} rows" if subject.n_trained else ""
    first = (
        f"{text(name)} with {parameters_in_words(subject)}, {kind}{trained}. Given: {counted(n, 'row')} with "
        f"{counted(d, 'feature')}."
    )
    results = subject.results
    if results is not None:
        tried = counted(len(results["params"]), "combination")
        first += f" {text(type(subject.given).__name__)} has chosen its parameters among {tried}."
    rows = _KIND[whole.predictions.kind]
    shown: list[tuple[str, str, str]] = []
    if "accuracy" in score:
        low, high = percent(score["low"]), percent(score["high"])
        shown.append(
            ("Accuracy", percent(score["accuracy"]), f"95 % interval {low} to {high}; {score['n']:,} {rows}")
        )
    if "r2" in score:
        shown.append(("R²", number(score["r2"], 3), f"{len(whole.predictions.y):,} {rows}"))
        shown.append(
            ("Mean absolute error", number(score["mean_absolute_error"], 3), "in the units of the target")
        )
    if "roc_area" in score:
        area = (
            "mean over the classes"
            if subject.task == CLASSES and len(subject.classes) > 2
            else "0.5 is chance"
        )
        shown.append(("ROC area", f"{score['roc_area']:.3f}", f"{area}; {_KIND[whole.values.kind]}"))
    if facts.get("calibration", {}).get("available"):
        shown.append(
            ("Brier score", number(facts["calibration"]["brier"], 3), "of the probabilities; 0 is perfect")
        )
    if "values" in facts:
        shown.append(("Outliers", percent(facts["values"]["share_of_outliers"]), f"of the {rows}"))
    support = facts["support"]
    of = (
        f"{support['support_vectors']:,} of {support['training_rows']:,} rows"
        if support["training_rows"]
        else "rows"
    )
    value = percent(support["share"], 0) if support["training_rows"] else number(support["support_vectors"])
    shown.append(("Support vectors", value, of))
    if facts["certificate"].get("available"):
        shown.append(
            (
                "Relative gap",
                number(facts["certificate"]["relative_gap"], 2),
                text(facts["certificate"]["status"]),
            )
        )
    advice = _advice(subject, score, facts)
    listed = "".join(f"<li>{text(line)}</li>" for line in advice)
    caution = paragraph(text(whole.caution), "caution") if whole.caution else ""
    top = paragraph(first) + caution + tiles(shown)
    body = f"<ul>{listed}</ul>" if listed else paragraph("Nothing stands out.")
    return (
        top + f'<p class="rows"><b>Rows:</b> {text(origin.reason)}</p><h2>What to look at</h2>{body}',
        advice,
    )


def _advice(subject: Subject, score: dict[str, Any], facts: dict[str, dict[str, Any]]) -> list[str]:
    """Remarkable results, the most important first."""
    out = []
    certificate, support = facts["certificate"], facts["support"]
    if certificate.get("available") and certificate["status"] != "solved":
        out.append(f"Training ended with the status {certificate['status']!r}: see the certificate.")
    if "accuracy" in score and score["low"] <= score["largest_class"] and subject.task == CLASSES:
        out.append(
            f"The model may be no better than the answer with the largest class, which is right for "
            f"{percent(score['largest_class'])} of the rows."
        )
    if "r2" in score and score["r2"] < 0.05:
        out.append("The model is hardly better than the mean of the targets.")
    confusion = facts.get("confusion", {})
    if confusion.get("available") and confusion["confused"]:
        a, b, n, share = confusion["confused"][0]
        of_class = f"{percent(share)} of that class"
        out.append(f"The most frequent error: {counted(n, 'row')} of {a} taken for {b}, {of_class}.")
        recall = np.asarray(confusion["recall"])
        k = int(recall.argmin())
        if len(recall) > 2 and recall[k] < 0.9:
            out.append(
                f"The class {confusion['classes'][k]} is found least: {percent(recall[k])} of its rows."
            )
    if facts.get("calibration", {}).get("difference", 0.0) > 0.05:
        off = facts["calibration"]["difference"]
        out.append(f"Probabilities are off by {off:.2f} on average: see their calibration.")
    learning = facts.get("learning", {})
    if learning.get("available"):
        if learning["rising"]:
            out.append("The learning curve still rises: more rows would probably help.")
        elif learning["own"][-1] - learning["held_out"][-1] > 0.1:
            out.append(
                "Training rows are predicted much better than held-out ones: a smaller C or gamma may help."
            )
    out += facts["search"].get("at_the_edge", [])
    if support["training_rows"] and support["share"] > 0.8:
        out.append(
            "Most rows are support vectors: the rows are noisy or few, or the parameters do not suit them."
        )
    importance = facts.get("importance", {})
    if importance.get("available"):
        names = [
            n
            for n, mean, std in zip(*(importance[k] for k in ("names", "mean", "std")), strict=True)
            if mean > 2 * std
        ]
        if names:
            out.append(f"The most important features: {', '.join(names[:3])}.")
    return out
