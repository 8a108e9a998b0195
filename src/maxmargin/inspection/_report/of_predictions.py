"""Sections on predictions: confusion matrix, ROC, calibration, residuals, decision values, importance."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxmargin.inspection._report import figures
from maxmargin.inspection._report.evaluation import Evaluation, Sample
from maxmargin.inspection._report.markup import (
    bar,
    boxed,
    name_of,
    number,
    paragraph,
    percent,
    picture,
    table,
    text,
)
from maxmargin.inspection._report.measures import (
    ClassScores,
    Curve,
    calibration,
    class_scores,
    finite_rows,
    regression_scores,
    roc_curves,
)
from maxmargin.inspection._report.page import Section
from maxmargin.inspection._report.refits import Importance, Skipped
from maxmargin.inspection._report.subject import CLASSES, NUMBERS, OUTLIERS, Subject

# Classes up to which the matrix is shown, and up to which its cells are large.
_MOST_CLASSES, _LARGE_CELLS = 40, 12
# ROC curves of so many classes are drawn, those with the smallest areas.
_MOST_CURVES = 5
_MOST_CONFUSIONS = 8


def confusion_section(subject: Subject, sample: Sample, curves: list[Curve]) -> Section:
    """Confusion matrix, and scores by class."""
    title = "Confusion matrix"
    if subject.task == NUMBERS:
        return Section("confusion", title, absent="A regression has no classes; see the residuals.")
    if sample.y is None:
        return Section("confusion", title, absent="There are no labels y to compare the predictions with.")
    classes = subject.classes if subject.task == CLASSES else np.array([-1, 1])
    names = [str(c) for c in classes] if subject.task == CLASSES else ["outlier (−1)", "inlier (1)"]
    scores = class_scores(sample.y, sample.predicted, classes)
    parts = [_matrix(scores, names)] if len(names) <= _MOST_CLASSES else []
    confused = _confused(scores, names)
    lines = [[name_of(a, 19), name_of(b, 19), number(n), percent(share)] for a, b, n, share in confused]
    if lines and (len(names) > 2 or not parts):
        head = ["true class", "predicted", "rows", "of the class"]
        parts.append(table("Most frequent confusions", head, lines))
    if len(names) > _MOST_CLASSES:
        parts.insert(
            0, paragraph(f"With {len(names)} classes the matrix is not shown, only its largest errors.")
        )
    areas = {curve.name: curve.area for curve in curves}
    show = np.arange(len(names))
    caption = "Scores by class"
    if len(names) > _MOST_CLASSES:
        show = np.sort(np.argsort(scores.recall, kind="stable")[:20])
        caption = "Scores of the 20 classes with the lowest recall"
    rows = []
    for k in show.tolist():
        row = [name_of(names[k], 19), number(int(scores.support[k]))]
        row += [percent(v[k]) for v in (scores.precision, scores.recall, scores.f1)]
        if len(names) > 2:
            row.append(number(areas.get(classes[k], float("nan")), 4))
        rows.append(row)
    head = ["class", "rows", "precision", "recall", "F1", *(["ROC area"] if len(names) > 2 else [])]
    by_class = table(caption, head, rows)
    small = len(names) <= 6
    if not small and len(parts) > 1:
        by_class = f'<div class="two"><div>{by_class}</div><div>{parts.pop()}</div></div>'
    body = f'<div class="two"><div>{"".join(parts)}</div><div>{by_class}</div></div>'
    return Section(
        "confusion", title, body if small else "".join(parts) + by_class, sample.rows,
        facts={
            "available": True, "classes": list(classes), "matrix": scores.matrix, "f1": scores.f1,
            "precision": scores.precision, "recall": scores.recall, "rows": int(np.sum(scores.support)),
            "confused": confused[:3],
        },
    )  # fmt: skip


def _matrix(scores: ClassScores, names: list[str]) -> str:
    """The matrix as a table, shaded by the shares of each true class."""
    k = len(names)
    share = scores.matrix / np.maximum(scores.matrix.sum(axis=1, keepdims=True), 1)
    lines = []
    for i, name in enumerate(names):
        cells = []
        for j in range(k):
            count, part = int(scores.matrix[i, j]), float(share[i, j])
            deep = part >= 0.5
            kinds = [w for w, on in (("right", i == j), ("deep", deep), ("zero", not count)) if on]
            shade = 0.8 + 0.4 * (part - 0.5) if deep else 0.08 * bool(count) + 0.6 * part
            kind = f' class="{" ".join(kinds)}"' if kinds else ""
            hint = f"{percent(part)} of the rows of {name} are predicted as {names[j]}"
            style = f' style="--p:{shade:.2f}"' if count else ""
            cells.append(f'<td{kind}{style} title="{text(hint)}">{f"{count:,}" if count else "·"}</td>')
        lines.append(f'<tr><th scope="row">{name_of(name)}</th>{"".join(cells)}</tr>')
    kinds = ["matrix"]
    if k > _LARGE_CELLS:
        kinds.append("many")
    if k > 5 and max(map(len, names)) > 4:
        kinds.append("tall")
    caption = "True classes in rows, predicted classes in columns; outlined cells are right"
    heads = "".join(f'<th scope="col">{name_of(name)}</th>' for name in names)
    content = f'<thead><tr><th scope="col">true</th>{heads}</tr></thead><tbody>{"".join(lines)}</tbody>'
    return boxed(caption, content, " ".join(kinds))


def _confused(scores: ClassScores, names: list[str]) -> list[tuple[str, str, int, float]]:
    """The largest errors: true class, predicted class, rows, and their share of the class."""
    wrong = scores.matrix.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_CONFUSIONS]
    out = []
    for i, j in zip(*np.unravel_index(order, wrong.shape), strict=True):
        if wrong[i, j]:
            share = float(wrong[i, j] / scores.matrix[i].sum())
            out.append((names[i], names[j], int(wrong[i, j]), share))
    return out


def curves_of(subject: Subject, sample: Sample) -> list[Curve]:
    """ROC curves of the sample, if there can be any."""
    if subject.task == NUMBERS or sample.values is None or sample.y is None:
        return []
    if sample.values.ndim == 2 and subject.task == CLASSES and sample.values.shape[1] != len(subject.classes):
        return []
    return roc_curves(
        sample.y, sample.values, subject.classes if subject.task == CLASSES else np.array([-1, 1])
    )


def roc_section(subject: Subject, sample: Sample, curves: list[Curve], pictures: dict[str, str]) -> Section:
    """ROC curves."""
    title = "ROC curve"
    if not curves:
        why = "The rows have a single class, or no decision values, so there is no curve."
        if subject.task == NUMBERS:
            why = "A regression has no ROC curve; see the residuals."
        elif sample.y is None:
            why = "There are no labels y to compare the decision values with."
        return Section("roc", title, absent=why, facts={"available": False})
    single = len(curves) == 1
    worst = sorted(curves, key=lambda curve: curve.area)[:_MOST_CURVES]
    mean = None if single else float(np.mean([curve.area for curve in curves]))
    prefix = "inliers" if subject.task == OUTLIERS else None
    names = [prefix or (f"class {c.name}" if not isinstance(c.name, str) else c.name) for c in worst]
    figures.roc(worst, names, mean, pictures)
    if single:
        words = (
            f"The area is {curves[0].area:.4f}: the probability that a row of {text(names[0])} has a larger "
            "decision value than another row. 0.5 is chance, 1 is perfect."
        )
    else:
        drawn = "" if len(worst) == len(curves) else f" The {len(worst)} with the smallest areas are drawn."
        words = (
            f"Each class against all others; the mean area of {len(curves)} classes is {mean:.4f}.{drawn} "
            "0.5 is chance, 1 is perfect."
        )
    caption = "True over false positive rate for all limits of the decision value; dotted: chance."
    body = (
        f'<div class="two"><div>{picture(pictures["roc"], caption)}</div><div>{paragraph(words)}</div></div>'
    )
    areas = {str(curve.name): curve.area for curve in curves}
    facts = {"available": True, "areas": areas, "mean_area": curves[0].area if single else mean}
    return Section("roc", title, body, sample.rows, facts=facts)


def calibration_section(subject: Subject, sample: Sample, pictures: dict[str, str]) -> Section:
    """Calibration curve with Brier score and logarithmic loss."""
    title = "Calibration of probabilities"
    if subject.task != CLASSES:
        return Section("calibration", title, absent=f"A model for {subject.task} has no probabilities.")
    if sample.proba is None:
        why = (
            "The model has no probabilities: SVCCV, NuSVCCV and maxmargin tune make some, and so does "
            "SVMSearchCV(calibrate='sigmoid')."
        )
        if hasattr(subject.fitted, "predict_proba"):
            why = "No fold has all classes among its training rows, so no held-out row has probabilities."
        return Section("calibration", title, absent=why, facts={"available": False})
    found = calibration(sample.y, sample.proba, subject.classes)
    if found is None:
        return Section("calibration", title, absent="There are too few rows.", facts={"available": False})
    figures.calibration(found, pictures)
    several = len(subject.classes) > 2
    rows = [
        ["Brier score", number(found.brier), f"0 is perfect, {'2' if several else '1'} the worst"],
        [
            "log loss",
            number(found.log_loss),
            f"{np.log(len(subject.classes)):.3g} if all classes are equally likely",
        ],
        ["mean distance", number(found.difference, 3), f"from the diagonal, {found.n_bins} bins"],
    ]
    words = (
        f"Probabilities {text(found.of)}: of the rows with a probability of about 0.8, about 80 % should be "
        "right. Bins hold equally many rows."
    )
    if sample.kind == "held-out":
        words += " The probabilities of each fold come from a calibrator that has not seen it."
    caption = "Observed share over mean predicted probability; bars show how often a probability occurs."
    body = (
        f'<div class="two"><div>{picture(pictures["calibration"], caption)}</div><div>{paragraph(words)}'
        f"{table('Quality of the probabilities', ['', '', ''], rows, kind='words')}</div></div>"
    )
    facts = {
        "available": True, "brier": found.brier, "log_loss": found.log_loss, "difference": found.difference,
        "predicted": found.predicted, "observed": found.observed,
    }  # fmt: skip
    return Section("calibration", title, body, sample.rows, facts=facts)


def residual_section(subject: Subject, sample: Sample, seed: int, pictures: dict[str, str]) -> Section:
    """Predictions and residuals of a regression."""
    title = "Residuals"
    y, predicted = sample.y, np.asarray(sample.predicted, dtype=np.float64)
    found = regression_scores(y, predicted)
    n = figures.fitted_targets(y, predicted, seed, pictures)
    last = subject.last
    epsilon = getattr(last, "epsilon_", getattr(last, "epsilon", None))
    figures.residuals(y, predicted, float(epsilon) if epsilon else None, seed, pictures)
    rows = [
        ["R²", number(found["r2"])],
        ["mean absolute error", number(found["mean_absolute_error"])],
        ["root mean squared error", number(found["root_mean_squared_error"])],
        ["mean residual", number(found["mean_residual"], 2)],
        ["standard deviation of the targets", number(found["std_of_targets"])],
    ]
    quantiles = np.quantile(y - predicted, [0.05, 0.25, 0.5, 0.75, 0.95])
    line = ["residual", *(number(float(q), 3) for q in quantiles)]
    drawn = "" if n == len(y) else f" {n:,} rows chosen at random are drawn."
    left = picture(pictures["predictions"], "Predicted over true values; on the line they agree." + drawn)
    right = picture(pictures["residuals"], "A pattern means that something is left to learn." + drawn)
    body = (
        f'<div class="two"><div>{left}</div><div>{right}</div>'
        f"<div>{table('Errors', ['measure', 'value'], rows)}</div>"
        f"<div>{table('Quantiles', ['', '5 %', '25 %', '50 %', '75 %', '95 %'], [line])}</div></div>"
    )
    return Section("residuals", title, body, sample.rows, facts={"available": True, **found})


def values_section(sample: Sample, pictures: dict[str, str]) -> Section:
    """Decision values of an outlier detector."""
    title = "Decision values"
    assert sample.values is not None
    known = finite_rows(sample.values)
    values = sample.values[known].ravel()
    y = None if sample.y is None else sample.y[known]
    figures.outlier_values(values, y, pictures)
    share = float(np.mean(np.asarray(sample.predicted) < 0))
    words = f"{percent(share)} of the rows are predicted to be outliers."
    lines = [
        ["decision value", *(number(float(q), 3) for q in np.quantile(values, [0.01, 0.05, 0.25, 0.5, 0.95]))]
    ]
    caption = "How often decision values occur; rows left of the dashed limit are outliers."
    body = (
        f'<div class="two"><div>{picture(pictures["values"], caption)}</div><div>{paragraph(words)}'
        f"{table('Quantiles', ['', '1 %', '5 %', '25 %', '50 %', '95 %'], lines)}</div></div>"
    )
    return Section("values", title, body, sample.rows, facts={"available": True, "share_of_outliers": share})


def importance_section(found: Importance | Skipped) -> Section:
    """Features in the order of their importance."""
    title = "Importance of features"
    if isinstance(found, Skipped):
        return Section("importance", title, absent=found.reason, facts={"available": False})
    largest = max(float(found.mean.max()), 1e-12)
    rows = [
        [
            name_of(name, 24),
            bar(max(mean, 0.0) / largest, f"{number(float(mean), 3)} ± {number(float(std), 2)}"),
        ]
        for name, mean, std in zip(found.names, found.mean, found.std, strict=True)
    ]
    shown = (
        ""
        if found.n_features <= len(found.names)
        else f" The first {len(found.names)} of {found.n_features}."
    )
    words = (
        f"Loss of {text(found.score)} if the values of a feature are permuted, so that they say nothing."
        f"{shown} Features that say the same share their importance, and may all look unimportant."
    )
    body = paragraph(words) + table(
        "Features: mean ± standard deviation of the repetitions", ["", ""], rows, kind="bars"
    )
    facts = {"available": True, "names": found.names, "mean": found.mean, "std": found.std}
    return Section("importance", title, body, found.rows, facts=facts)


def score_of(subject: Subject, whole: Evaluation, curves: list[Curve]) -> dict[str, Any]:
    """The main score, with an interval where there is one."""
    from maxmargin.inspection._report.measures import wilson

    sample = whole.predictions
    if sample.y is None:
        return {}
    if subject.task == NUMBERS:
        return regression_scores(sample.y, np.asarray(sample.predicted, dtype=np.float64))
    right, n = int(np.sum(np.asarray(sample.predicted) == sample.y)), len(sample.y)
    low, high = wilson(right, n)
    counts = np.unique(sample.y, return_counts=True)[1]
    out = {"accuracy": right / n, "low": low, "high": high, "n": n, "largest_class": float(counts.max() / n)}
    if curves:
        out["roc_area"] = float(np.mean([curve.area for curve in curves]))
    return out
