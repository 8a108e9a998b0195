"""Private names and attributes of scikit-learn, and what differs between its versions, in this module only.

A name that a release moves or renames is repaired in this file. ``tests/test_sklearn_names.py`` resolves all
of them, with the oldest supported scikit-learn as well as the newest.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.base import _fit_context as fit_context
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import Hidden, Interval, StrOptions
from sklearn.utils.multiclass import _ovr_decision_function as ovr_decision_function
from sklearn.utils.validation import _check_method_params as check_method_params
from sklearn.utils.validation import _check_sample_weight as check_sample_weight
from sklearn.utils.validation import _get_feature_names as feature_names_of
from sklearn.utils.validation import _num_samples as num_samples

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # pragma: no cover  (depends on the installed version)

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Callbacks came with scikit-learn 1.9."""

    def with_callbacks(method: Any) -> Any:
        """Nothing to tear down before scikit-learn 1.9."""
        return method


__all__ = [
    "CallbackSupportMixin",
    "Hidden",
    "Interval",
    "ParametersCheckedOnce",
    "StrOptions",
    "begin_callbacks",
    "best_index",
    "callbacks_of",
    "check_method_params",
    "check_refit",
    "check_sample_weight",
    "feature_counts",
    "feature_names_of",
    "fit_context",
    "fitted_gamma",
    "infrequent_of",
    "is_default_score",
    "num_samples",
    "output_of",
    "ovr_decision_function",
    "parameter_constraints",
    "parameter_names",
    "response_methods",
    "results_of_search",
    "routed_parameters",
    "safe_indexing",
    "scorer_parts",
    "scorers_by_name",
    "scorers_of_search",
    "set_categories",
    "set_column_parts",
    "set_statistics",
    "set_words",
    "share_callbacks",
    "statistics_of",
    "validate_parameters",
    "validate_step_names",
    "with_callbacks",
]

# Names for searches, in modules that take too long to import for a fit.
_ON_DEMAND = {
    "MultimetricScorer": ("sklearn.metrics._scorer", "_MultimetricScorer"),
    "fit_and_score": ("sklearn.model_selection._validation", "_fit_and_score"),
    "insert_error_scores": ("sklearn.model_selection._validation", "_insert_error_scores"),
    "safe_split": ("sklearn.utils.metaestimators", "_safe_split"),
    "warn_or_raise_about_fit_failures": (
        "sklearn.model_selection._validation",
        "_warn_or_raise_about_fit_failures",
    ),
}


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _ON_DEMAND[name]
    return getattr(import_module(module), attribute)


def validate_parameters(estimator: Any) -> None:
    """Check the parameters of an estimator, as its `fit` does first."""
    estimator._validate_params()


class ParametersCheckedOnce(BaseEstimator):
    """An estimator whose parameters are checked once per set of values.

    The outcome depends on the values alone, and checking takes as long as a small training.
    """

    def _validate_params(self) -> None:
        values, valid = _simple_parameters(self), self._parameter_constraints
        if values is not None and _checked.get(values) is valid:
            return
        super()._validate_params()
        if values is not None:
            if len(_checked) >= _MOST_CHECKED:
                _checked.clear()
            _checked[values] = valid


# The constraints that values of parameters, with their types, have met.
_checked: dict[tuple[Any, ...], Any] = {}
_MOST_CHECKED = 1000


def _simple_parameters(estimator: Any) -> tuple[Any, ...] | None:
    """The class of an estimator, and the types and values of its parameters, if none of them can change."""
    kind = type(estimator)
    if kind.get_params is not BaseEstimator.get_params:
        return None
    values = [getattr(estimator, name) for name in parameter_names(kind)]  # type: ignore[arg-type]
    types = tuple(map(type, values))
    return (kind, types, *values) if _SIMPLE.issuperset(types) else None


_SIMPLE = frozenset({bool, int, float, str, type(None)})


@lru_cache(maxsize=100)
def parameter_names(kind: Any) -> list[str]:
    """The names of the parameters of a class of estimators."""
    return list(kind._get_param_names())


def validate_step_names(pipeline: Any) -> None:
    """Check the names of the steps of a pipeline, as its `fit` does."""
    pipeline._validate_names([name for name, _ in pipeline.steps])


def callbacks_of(estimator: Any) -> Any:
    """The callbacks set on an estimator; None without, or before scikit-learn 1.9."""
    set_here = getattr(estimator, "_skl_callbacks", None)
    return set_here if set_here and hasattr(estimator, "_init_callback_context") else None


def share_callbacks(estimator: Any, other: Any) -> None:
    """Let another estimator have the callbacks of one, where these are supported."""
    if (callbacks := callbacks_of(estimator)) is not None:
        other._skl_callbacks = callbacks


def output_of(estimator: Any) -> str | None:
    """The container that `set_output` has asked a transformer for."""
    found = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    return None if found is None else str(found)


def infrequent_of(encoder: Any) -> list[Any] | None:
    """Positions of the rare categories of each column, of an encoder that groups them; None otherwise."""
    return encoder._infrequent_indices if getattr(encoder, "_infrequent_enabled", False) else None


def set_categories(encoder: Any, categories: list[Any], infrequent: list[Any] | None) -> None:
    """Make an encoder of categories a fitted one, as its `fit` does for these categories."""
    encoder.categories_ = categories
    encoder._check_infrequent_enabled()
    if encoder._infrequent_enabled:
        encoder._infrequent_indices = infrequent
        encoder._default_to_infrequent_mappings = []
        for known, rare in zip(categories, infrequent or [], strict=True):
            mapping = None
            if rare is not None:
                mapping = np.full(len(known), len(known) - len(rare), dtype=np.int64)
                mapping[np.setdiff1d(np.arange(len(known)), rare)] = np.arange(len(known) - len(rare))
            encoder._default_to_infrequent_mappings.append(mapping)
    if hasattr(encoder, "_set_drop_idx"):  # OneHotEncoder
        encoder._set_drop_idx()
        encoder._n_features_outs = encoder._compute_n_features_outs()
    else:
        missing = {k: len(known) - 1 for k, known in enumerate(categories) if known[-1] != known[-1]}
        encoder._missing_indices = missing


def feature_counts(encoder: Any) -> list[int]:
    """Numbers of features that an encoder of categories makes of each column."""
    return list(getattr(encoder, "_n_features_outs", [1] * encoder.n_features_in_))


def statistics_of(imputer: Any) -> Any:
    """The values that an imputer fills in: floats for columns of numbers, even if it is a constant."""
    kind = getattr(imputer, "_fill_dtype", imputer._fit_dtype).kind  # the first from scikit-learn 1.7 on
    numbers = kind in "biuf"
    return imputer.statistics_.astype(np.float64) if numbers else imputer.statistics_


def set_statistics(imputer: Any, statistics: Any) -> None:
    """Make an imputer a fitted one that fills in these values."""
    imputer.statistics_ = statistics
    imputer.indicator_ = None
    imputer._fit_dtype = imputer._fill_dtype = statistics.dtype


def set_words(vectorizer: Any, words: list[str], weights: Any) -> None:
    """Make a TfidfVectorizer a fitted one with this vocabulary; `weights` are None where it has none."""
    import scipy.sparse as sp
    from sklearn.feature_extraction.text import TfidfTransformer

    vectorizer.fixed_vocabulary_ = False
    vectorizer.vocabulary_ = {word: k for k, word in enumerate(words)}
    if weights is not None:
        vectorizer.idf_ = weights
        return
    names = ("norm", "use_idf", "smooth_idf", "sublinear_tf")
    vectorizer._tfidf = TfidfTransformer(**{name: getattr(vectorizer, name) for name in names})
    vectorizer._tfidf.fit(sp.csr_array((1, len(words))))


def set_column_parts(
    transformer: Any, fitted: list[tuple[str, Any, Any]], places: dict[str, list[int]], rest: Any,
    widths: dict[str, int], sparse: bool,
) -> None:  # fmt: skip
    """Make a ColumnTransformer a fitted one of these parts.

    `places` has the columns of each part by position, `rest` the columns that remain, as the parts name
    theirs, `widths` the numbers of features that come out of parts.
    """
    transformer._columns = [columns for _, _, columns in transformer.transformers]
    transformer._transformer_to_input_indices = places
    transformer._remainder = ("remainder", transformer.remainder, rest)
    transformer.transformers_ = fitted
    transformer.sparse_output_ = sparse
    transformer.output_indices_ = dict.fromkeys([*places], slice(0, 0))
    at = 0
    for name, _, _ in fitted:
        if name in widths:
            transformer.output_indices_[name] = slice(at, at + widths[name])
            at += widths[name]


def begin_callbacks(estimator: Any, n_tasks: int) -> Any:
    """The context of the callbacks of an estimator that has some, for a fit of `n_tasks` tasks."""
    return estimator._init_callback_context(max_subtasks=n_tasks)


# -- scorers ---------------------------------------------------------------------------------------


class ScorerParts(NamedTuple):
    """A scorer made of a function of labels and predictions."""

    function: Any
    sign: int
    options: dict[str, Any]


def scorer_parts(scorer: Any) -> ScorerParts | None:
    """The parts of a scorer that `make_scorer` has made; None for another."""
    if type(scorer).__name__ != "_Scorer":
        return None
    return ScorerParts(scorer._score_func, scorer._sign, scorer._kwargs)


def is_default_score(scorer: Any) -> bool:
    """Whether a scorer calls the method `score` of the estimator."""
    return type(scorer).__name__ == "_PassthroughScorer"


def response_methods(scorer: Any) -> tuple[str, ...]:
    """The methods of which a scorer calls the first that an estimator has; empty if it does not say."""
    wanted = getattr(scorer, "_response_method", None)
    return (wanted,) if isinstance(wanted, str) else tuple(wanted or ())


def scorers_by_name(scorers: Any) -> dict[str, Any] | None:
    """The scorers of a search with several; None if it has one."""
    several = isinstance(scorers, __getattr__("MultimetricScorer"))
    return dict(scorers._scorers) if several else None


def fitted_gamma(svm: Any) -> float:
    """Gamma of a fitted SVM of scikit-learn; 1 for kernels that are functions."""
    return float(getattr(svm, "_gamma", 1.0))


# -- steps of `GridSearchCV.fit` -------------------------------------------------------------------


def parameter_constraints(kind: Any) -> dict[str, list[Any]]:
    """The valid parameters of a class of scikit-learn."""
    return dict(kind._parameter_constraints)


def scorers_of_search(search: Any) -> tuple[Any, str]:
    """The scorers of a search, and the name of the one that chooses the best."""
    scorers, refit_metric = search._get_scorers()
    return scorers, refit_metric


def routed_parameters(search: Any, params: dict[str, Any]) -> Any:
    """The parameters of `fit`, by the object that gets them."""
    return search._get_routed_params_for_fit(params)


def results_of_search(search: Any, candidates: list[Any], n_splits: int, out: list[Any]) -> Any:
    """`cv_results_` from the results of all fits."""
    return search._format_results(candidates, n_splits, out, {})


def check_refit(search: Any, scores: Any) -> None:
    """Raise if `refit` does not name one of several scores."""
    search._check_refit_for_multimetric(scores)


def best_index(search: Any, refit_metric: str, results: Any) -> int:
    """The number of the best candidate, by `refit`."""
    return search._select_best_index(search.refit, refit_metric, results)
