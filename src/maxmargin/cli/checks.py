"""Checks of options before anything is trained: names, scores, output files."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from maxmargin.cli.output import BadInput

# Scores that a message names; there are some sixty.
_COMMON = {
    "classification": "accuracy, balanced_accuracy, f1_macro, roc_auc",
    "regression": "r2, neg_mean_absolute_error, neg_root_mean_squared_error",
}
# Endings of scores of classifiers that can be computed for any number of classes.
_ENDINGS = ("_macro", "_weighted", "_micro", "_ovr")


def check_writable(*files: Any, data: Any = None, content: str = "data") -> None:
    """Raise `BadInput` before the work is done if a result file cannot be written, or is that of the data.

    `content` says in a word what that file holds.
    """
    for file in files:
        if file is None:
            continue
        path = Path(file)
        if path.is_dir():
            raise BadInput(f"{file} is a folder: name a file in it")
        if not path.parent.is_dir():
            raise BadInput(f"{file}: there is no folder {path.parent}; create it first")
        if not os.access(path.parent, os.W_OK) and not path.exists():
            raise BadInput(f"{file}: no file can be written to the folder {path.parent}; name another one")
        if path.exists() and not os.access(path, os.W_OK):
            raise BadInput(f"{file} cannot be written: name another file")
        if data is not None and path.exists() and Path(data).exists() and path.samefile(data):
            raise BadInput(f"{file} holds the {content}, and would be overwritten: name another file")


def check_different(files: Mapping[str, Any]) -> None:
    """Raise `BadInput` if two of the files, given with the names of their options, are the same."""
    known: dict[Path, str] = {}
    for name, file in files.items():
        if file is None:
            continue
        path = Path(file).resolve()
        if path in known:
            raise BadInput(f"{known[path]} and {name} are the same file {file}: name another one")
        known[path] = name


def check_picture(file: Any, option: str = "--plot") -> None:
    """Raise `BadInput` if matplotlib is missing, or cannot write the format of the file."""
    if file is None:
        return
    need_matplotlib(option)
    from matplotlib.backend_bases import FigureCanvasBase

    suffix, known = Path(file).suffix[1:].lower(), FigureCanvasBase.get_supported_filetypes()
    if suffix and suffix not in known:
        raise BadInput(f"{option} {file}: figures cannot be written as .{suffix}: use .png, .svg or .pdf")


def need_matplotlib(user: str = "--plot") -> None:
    """Raise `BadInput` early if matplotlib is missing, and select a backend that opens no window."""
    try:
        import matplotlib
    except ImportError as error:
        raise BadInput(f"{user} needs matplotlib: pip install 'maxmargin[plot]'") from error
    matplotlib.use("Agg")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint for a misspelt word, or an empty text."""
    by_key = {re.sub(r"[^a-z0-9]", "", name.lower()): name for name in known}
    near = difflib.get_close_matches(re.sub(r"[^a-z0-9]", "", word.lower()), by_key, n=1)
    return f"did you mean {by_key[near[0]]!r}?" if near else ""


def unknown(what: str, word: str, known: Iterable[str]) -> BadInput:
    """The error for a word that is not among those that are known."""
    known = list(known)
    return BadInput(f"{what} {word!r} is unknown: {did_you_mean(word, known) or 'use ' + ', '.join(known)}")


def check_parameters(model: Any) -> None:
    """Raise `BadInput` for a parameter that the estimator does not accept."""
    from maxmargin import solvers
    from maxmargin._sklearn import Interval, StrOptions, parameter_constraints, validate_parameters

    values = model.get_params(deep=False)
    for name, constraints in parameter_constraints(type(model)).items():
        value = values.get(name)
        kinds = list(constraints) if isinstance(constraints, list | tuple) else []
        options = sorted({str(o) for kind in kinds if isinstance(kind, StrOptions) for o in kind.options})
        if isinstance(value, str) and options and value not in options:
            number = any(isinstance(kind, Interval) for kind in kinds)
            raise unknown(_option(name), value, [*options, "or a number"] if number else options)
    solver = values.get("solver")
    if isinstance(solver, str) and solver not in solvers.names():
        raise unknown("--solver", solver, solvers.names())
    try:
        validate_parameters(model)
    except (ValueError, TypeError) as error:
        raise BadInput(str(error)) from None


def _option(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name.replace('_', '-')}"


def check_scoring(scoring: str | None, estimator: Any, y: Any, tuned: bool = False) -> None:
    """Raise `BadInput` for a score that is unknown, or cannot be computed for this estimator and target.

    `tuned`: the command calibrates its models, which have probabilities.
    """
    from sklearn.base import is_regressor
    from sklearn.metrics import get_scorer, get_scorer_names

    if scoring is None:
        return
    kind = "regression" if is_regressor(estimator) else "classification"
    known = get_scorer_names()
    if scoring not in known:
        hint = did_you_mean(scoring, known) or f"common scores are {_COMMON[kind]}"
        raise BadInput(f"--scoring {scoring!r} is unknown: {hint}")
    reason = _trial(get_scorer(scoring), estimator, y, tuned)
    if reason is None:
        return
    if reason == "proba":
        raise BadInput(
            f"--scoring {scoring} needs predict_proba, which this model does not have: use `maxmargin tune`, "
            f"whose models have probabilities, or choose a score such as {_common(kind, scoring)}"
        )
    others = [
        name for name in (scoring + ending for ending in _ENDINGS)
        if name in known and _trial(get_scorer(name), estimator, y, tuned) is None
    ]  # fmt: skip
    raise BadInput(f"--scoring {scoring}: {reason}: use {', '.join(others) or _common(kind, scoring)}")


def _common(kind: str, refused: str) -> str:
    """Common scores, but for the one that is refused."""
    return ", ".join(name for name in _COMMON[kind].split(", ") if name != refused)


def _trial(scorer: Any, estimator: Any, y: Any, tuned: bool) -> str | None:
    """The reason why a score cannot be computed for right predictions; None if it can."""
    import warnings

    import numpy as np

    from maxmargin._sklearn import response_methods

    methods = response_methods(scorer)
    if not tuned and methods and not any(hasattr(estimator, name) for name in methods):
        return "proba" if any("proba" in name for name in methods) else f"it needs {methods[0]}"
    if y is None:
        return None
    y = np.asarray(y)
    known = _Right(estimator, y, tuned)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = scorer(known, np.zeros((len(y), 1)), y)
    except Exception as error:  # whatever scikit-learn raises, the score would be nan
        return re.split(r"\. |, one of", " ".join(str(error).split()))[0].rstrip(".")
    return None if np.isfinite(value) else f"it is {value} for right predictions"


class _Right:
    """A fitted estimator whose predictions are right."""

    def __init__(self, estimator: Any, y: Any, tuned: bool) -> None:
        from sklearn.base import is_classifier

        self._estimator, self._y = estimator, y
        self.n_features_in_ = 1
        if is_classifier(estimator):
            import numpy as np

            self.classes_, self._label = np.unique(y, return_inverse=True)
            self.decision_function = self._values
            if tuned or hasattr(estimator, "predict_proba"):
                self.predict_proba = self._shares

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import get_tags

        return get_tags(self._estimator)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any) -> _Right:
        """Nothing to do."""
        return self

    def predict(self, X: Any) -> Any:
        """The targets."""
        return self._y

    def _shares(self, X: Any) -> Any:
        import numpy as np

        return np.eye(len(self.classes_))[self._label]

    def _values(self, X: Any) -> Any:
        return self._shares(X) if len(self.classes_) > 2 else 2.0 * self._label - 1.0
