"""`report`: one page about a fitted model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning, UndefinedMetricWarning

from maxmargin._files import File, writing
from maxmargin._sklearn import num_samples
from maxmargin.estimators._scales import UnscaledDataWarning
from maxmargin.inspection._report.budget import Budget
from maxmargin.inspection._report.evaluation import evaluate
from maxmargin.inspection._report.markup import text
from maxmargin.inspection._report.of_model import (
    certificate_section,
    support_section,
    timing_section,
    version_section,
)
from maxmargin.inspection._report.of_predictions import (
    calibration_section,
    confusion_section,
    curves_of,
    importance_section,
    residual_section,
    roc_section,
    score_of,
    values_section,
)
from maxmargin.inspection._report.of_search import learning_section, search_section
from maxmargin.inspection._report.origin import origin_of
from maxmargin.inspection._report.page import Section, page
from maxmargin.inspection._report.refits import importance, learning_curve
from maxmargin.inspection._report.subject import NUMBERS, OUTLIERS, Subject, checked
from maxmargin.inspection._report.summary import summary
from maxmargin.inspection._style import pyplot

# Shares of the time that is left, for predictions of held-out rows and for permutations.
_FOR_FOLDS, _FOR_PERMUTATIONS = 0.5, 0.4


class Report:
    """A page about a model, made by `report`.

    Attributes
    ----------
    html : str
        The page: one document without references to others.
    facts : dict
        The numbers of the page, by section.
    figures : dict of str
        The figures as SVG, by name. They take their colours from the page.

    Examples
    --------
    See `report`.
    """

    def __init__(self, html: str, facts: dict[str, Any], figures: dict[str, str]) -> None:
        self.html, self.facts, self.figures = html, facts, figures

    def save(self, file: File) -> None:
        """Write the page; a file that is there is replaced when all is written, or not at all.

        Parameters
        ----------
        file : path or binary file object
            The file to write.
        """
        with writing(file) as stream:
            stream.write(self.html.encode("utf-8"))

    def _repr_html_(self) -> str:
        """The page in a frame of a notebook, whose style it does not change."""
        return (
            f'<iframe srcdoc="{text(self.html)}" title="Report" width="100%" height="800" '
            'style="border:0" sandbox=""></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Report on {self.facts['model']['estimator']}: {len(self.html):,} characters>"


def report(
    model: Any,
    X: Any,
    y: Any = None,
    file: File | None = None,
    *,
    rows: str = "auto",
    max_time: float | None = 15.0,
    random_state: int = 0,
    title: str | None = None,
    progress: Callable[[str], Any] | None = None,
) -> Report:
    """Write a page about a fitted model: scores, curves, support vectors, certificate, timings.

    The page is one HTML file that needs no network and no scripts. Each section says which rows it was
    computed on, or why it is absent.

    Parameters
    ----------
    model : estimator
        A fitted `SVCCV`, `NuSVCCV`, `SVRCV`, `OneClassSVMCV`, `SVMSearchCV` or `GridSearchCV`; a fitted
        support vector machine of this library or of scikit-learn; or a pipeline that ends in one. Scores of a
        search are shown if the search or tuner itself is given.
    X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
        Rows: those of the training, or new ones.
    y : array-like of shape (n_samples,), default=None
        Labels or targets; for outlier detectors 1 for inliers and -1 for outliers, or None.
    file : path or binary file object, default=None
        Where to write the page; it can be written later by `Report.save`.
    rows : {"auto", "training", "new"}, default="auto"
        Whether the rows have trained the model. "auto" looks for the support vectors among them: the rows are
        training rows if at least half of the vectors are there.
    max_time : float or None, default=15
        Seconds for the parts that train or predict many times: folds, importance of features, learning curve.
        They take fewer rows, or are left out, if they would take longer. None for no limit.
    random_state : int, default=0
        Chooses rows, folds and permutations.
    title : str, default=None
        Title of the page.
    progress : callable, default=None
        Is called with the name of each part before it begins.

    Returns
    -------
    Report
        The page, its numbers and its figures.

    Raises
    ------
    ValueError
        If the model is not a fitted support vector machine, or X and y do not suit it.

    Notes
    -----
    New rows are predicted by the model itself. Training rows are not, as this would look too good: a tuner
    has kept the predictions of held-out rows, and otherwise up to 5,000 rows are predicted by models with the
    same parameters that were trained without their fold (the folds of the search, or five). Their
    probabilities come from calibrators that have not seen the fold. Where folds are not possible, the page
    says that its values are those of training rows. The learning curve takes up to 3,000 rows, permutations
    up to 1,000. Models are trained again without sample weights.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import SVC
    >>> from maxmargin.inspection import report
    >>> X, y = load_iris(return_X_y=True)
    >>> page = report(SVC(C=10).fit(X, y), X, y)
    >>> page.facts["rows"]["kind"], round(page.facts["score"]["accuracy"], 2)
    ('held-out', 0.97)
    >>> page.save("report.html")  # doctest: +SKIP
    """
    pyplot("A report")
    subject = Subject.of(model)
    max_time = np.inf if max_time is None else max_time
    if not max_time >= 0:
        raise ValueError(f"max_time must be a number of seconds, got {max_time!r}.")
    X, y = checked(subject, X, y)
    begin = progress or (lambda part: None)
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, FitFailedWarning, UnscaledDataWarning, UndefinedMetricWarning):
            warnings.simplefilter("ignore", category)
        warnings.filterwarnings("ignore", message=".*probability", category=FutureWarning)
        _stop_if_interrupted()
        warnings.filterwarnings("ignore", message="X (does not have|has) (valid )?feature names")
        warnings.filterwarnings("ignore", message="The (least populated class|number of unique classes)")
        warnings.filterwarnings("ignore", message="Scoring failed|One or more of the", category=UserWarning)
        warnings.filterwarnings("ignore", module="sklearn.*", category=FutureWarning)
        made = _build(subject, X, y, rows, Budget(max_time), int(random_state), title, begin)
    if file is not None:
        made.save(file)
    return made


def _stop_if_interrupted() -> None:
    """Let Ctrl-C end the report: a fit only warns, and its unfinished model would count as a good one.

    To be called where warnings are caught.
    """
    show = warnings.showwarning

    def stop(message: Any, category: Any, *where: Any, **more: Any) -> None:
        if issubclass(category, ConvergenceWarning) and "status 'interrupted'" in str(message):
            raise KeyboardInterrupt
        show(message, category, *where, **more)

    warnings.filterwarnings("always", message=".*status 'interrupted'", category=ConvergenceWarning)
    warnings.showwarning = stop


def _build(
    subject: Subject, X: Any, y: Any, rows: str, budget: Budget, seed: int, title: str | None,
    begin: Callable[[str], Any],
) -> Report:  # fmt: skip
    parts: dict[str, float] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        begin(name)
        began = time.perf_counter()
        yield
        parts[name] = time.perf_counter() - began

    with timed("predictions"):
        origin = origin_of(subject, X, y, rows)
        whole = evaluate(subject, X, y, origin, budget.part(_FOR_FOLDS), seed)
    with timed("importance of features"):
        names = subject.feature_names(X)
        permuted = importance(subject, names, whole, budget.part(_FOR_PERMUTATIONS), seed)
    with timed("learning curve"):
        curve = learning_curve(subject, X, y, whole, origin, budget, seed)
    begin("figures")
    pictures: dict[str, str] = {}
    roc_curves = curves_of(subject, whole.values)
    sections = [search_section(subject, pictures), learning_section(curve, pictures)]
    if subject.task == NUMBERS:
        sections.append(residual_section(subject, whole.predictions, seed, pictures))
    if subject.task == OUTLIERS and whole.values.values is not None:
        sections.append(values_section(whole.values, pictures))
    sections += [
        confusion_section(subject, whole.predictions, roc_curves),
        roc_section(subject, whole.values, roc_curves, pictures),
        calibration_section(subject, whole.values, pictures),
        importance_section(permuted),
        support_section(subject, y, origin),
        certificate_section(subject),
        timing_section(subject, X, parts),
        version_section(),
    ]
    score = score_of(subject, whole, roc_curves)
    n, d = num_samples(X), X.shape[1]
    top, advice = summary(subject, whole, origin, score, sections, n, d)
    name = title or f"Report on {type(subject.given).__name__}"
    foot = "Made by maxmargin. The page is complete: it loads nothing from elsewhere."
    facts: dict[str, Any] = {
        "title": name,
        "model": {
            "estimator": type(subject.last).__name__, "given": type(subject.given).__name__,
            "task": subject.task, **subject.chosen(),
        },
        "rows": {
            "n": n, "features": d, "kind": whole.predictions.kind, "trained": origin.trained,
            "reason": origin.reason, "caution": whole.caution,
        },
        "score": score,
        "advice": advice,
        **{section.name: _facts(section) for section in sections},
    }  # fmt: skip
    return Report(page(name, top, sections, foot), facts, pictures)


def _facts(section: Section) -> dict[str, Any]:
    found = {"available": not section.absent, **section.facts}
    if section.absent:
        found["reason"] = section.absent
    if section.rows:
        found["rows_in_words"] = section.rows
    return found
