"""The contents of model files of scikit-learn's transformers of mixed tables: imputers, encoders, words.

Categories and words are in the header, as JSON; statistics of numbers are arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._sklearn import infrequent_of, set_categories, set_statistics, set_words, statistics_of
from maxmargin.persistence.schema import ArrayField, Entry, Fields, NumberField, Sizes, Stored, Values
from maxmargin.persistence.values import Refused, decode_labels, encode_labels

_NAN = {"float": "nan"}
# Words per feature that a vectorizer of text may join.
_LONGEST_GRAM = 10


# -- fields ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _StatisticsField(NumberField):
    """The values that an imputer fills in: an array of numbers, or a list of texts and NaN."""

    def put(self, name: str, value: Any, values: dict[str, Any], arrays: Stored) -> None:
        """Store the statistics."""
        if value.dtype.kind in "fiu":
            values[name], arrays[name] = None, value.astype(np.float64)
            return
        texts = value.tolist()
        if not all(isinstance(text, str) or text != text for text in texts):
            raise ValueError("An imputer that fills in values other than numbers and texts cannot be stored.")
        values[name] = [text if isinstance(text, str) else _NAN for text in texts]

    def get(self, name: str, values: Mapping[str, Any], arrays: Stored, sizes: Sizes) -> Any:
        """The statistics, checked."""
        stored = values.get(name)
        if stored is None:
            out = ArrayField(("features",), finite=False).get(name, values, arrays, sizes)
            if np.isinf(out).any():
                raise Refused(f"infinity in the array {name!r}")
            return out
        if not isinstance(stored, list) or len(stored) != sizes["features"]:
            raise Refused("values to fill in that are not a list with one for each column")
        if not all(type(text) is str or text == _NAN for text in stored):
            raise Refused("values to fill in that are neither texts nor NaN")
        texts = np.empty(len(stored), dtype=object)
        texts[:] = [text if type(text) is str else math.nan for text in stored]
        return texts


@dataclass(frozen=True)
class _CategoriesField(NumberField):
    """The categories of each column: labels, and at their end None and NaN if these are categories."""

    def put(self, name: str, value: Any, values: dict[str, Any], arrays: Stored) -> None:
        """Store the categories."""
        values[name] = [_encode_categories(categories) for categories in value]

    def get(self, name: str, values: Mapping[str, Any], arrays: Stored, sizes: Sizes) -> Any:
        """The categories, checked."""
        stored = values.get(name)
        if not isinstance(stored, list) or len(stored) != sizes["features"]:
            raise Refused("categories that are not a list with an entry for each column")
        return [_decode_categories(entry) for entry in stored]


def _encode_categories(categories: NDArray[Any]) -> dict[str, Any]:
    known, missing = categories, []
    if categories.dtype.kind in "Of":
        empty = np.array([value is None or value != value for value in categories.tolist()])
        missing = ["None" if value is None else "nan" for value in categories[empty].tolist()]
        known = categories[~empty]
    if not len(known):
        raise ValueError("A column of missing categories only cannot be stored: leave it out.")
    return {**encode_labels(known), "missing": missing}


def _decode_categories(entry: Any) -> NDArray[Any]:
    if not isinstance(entry, dict) or set(entry) != {"dtype", "values", "missing"}:
        raise Refused("categories without exactly the keys 'dtype', 'values' and 'missing'")
    missing = entry["missing"]
    known = decode_labels({key: entry[key] for key in ("dtype", "values")})
    if known.dtype.kind == "f" and not np.isfinite(known).all():
        raise Refused("categories that are not finite")
    allowed = {"O": ([], ["None"], ["nan"], ["None", "nan"]), "f": ([], ["nan"])}
    if missing not in allowed.get(known.dtype.kind, ([],)):
        raise Refused("missing values among the categories that do not suit them")
    if not missing:
        return known
    end = np.array([None if word == "None" else math.nan for word in missing], dtype=known.dtype)
    return np.concatenate([known, end])


@dataclass(frozen=True)
class _InfrequentField(NumberField):
    """Positions of the rare categories of each column, or None; None for all if they are not grouped."""

    def put(self, name: str, value: Any, values: dict[str, Any], arrays: Stored) -> None:
        """Store the positions."""
        values[name] = None if value is None else [None if rare is None else rare.tolist() for rare in value]

    def get(self, name: str, values: Mapping[str, Any], arrays: Stored, sizes: Sizes) -> Any:
        """The positions; whether they fit the categories is checked later."""
        stored = values.get(name)
        if stored is None:
            return None
        if not isinstance(stored, list) or len(stored) != sizes["features"]:
            raise Refused("rare categories that are not a list with an entry for each column")
        return [None if rare is None else _positions(rare) for rare in stored]


def _positions(rare: Any) -> NDArray[np.int64]:
    fits = isinstance(rare, list) and rare and all(type(k) is int and 0 <= k < 2**31 for k in rare)
    if not fits or any(a >= b for a, b in zip(rare, rare[1:], strict=False)):
        raise Refused("rare categories that are not ascending positions")
    return np.array(rare, dtype=np.int64)


@dataclass(frozen=True)
class _WordsField(NumberField):
    """The words of a vocabulary, in the order of their features."""

    def put(self, name: str, value: Any, values: dict[str, Any], arrays: Stored) -> None:
        """Store the words."""
        values[name] = value

    def get(self, name: str, values: Mapping[str, Any], arrays: Stored, sizes: Sizes) -> Any:
        """The words, checked."""
        stored = values.get(name)
        if not isinstance(stored, list) or not stored or any(type(word) is not str for word in stored):
            raise Refused("a vocabulary that is not a list of words")
        if len(set(stored)) < len(stored):
            raise Refused("a vocabulary with a word that comes twice")
        return stored


# -- classes -----------------------------------------------------------------------------------------


def _no_sizes(estimator: Any, sizes: Sizes, arrays: Stored) -> None:
    """No sizes beside the number of features."""


def _nothing(estimator: Any, found: Values, sizes: Sizes) -> None:
    """Nothing is learned from data."""


def _begin_imputer(imputer: Any) -> Values:
    if imputer.add_indicator:
        raise ValueError("A SimpleImputer with add_indicator=True cannot be stored: use False.")
    return {"statistics_": statistics_of(imputer)}


def _finish_imputer(imputer: Any, found: Values, sizes: Sizes) -> None:
    statistics, mark = found["statistics_"], imputer.missing_values
    if imputer.add_indicator:
        raise Refused("an imputer with an indicator")
    of_numbers = statistics.dtype.kind == "f"
    if not of_numbers and imputer.strategy not in ("most_frequent", "constant"):
        raise Refused("an imputer that fills in means of texts")
    suits = (
        isinstance(mark, int | float) if of_numbers else mark is None or isinstance(mark, str) or mark != mark
    )
    if not suits or (isinstance(mark, float) and math.isinf(mark)):
        raise Refused("an imputer whose missing values are not of the kind of its columns")
    set_statistics(imputer, statistics)


def _begin_encoder(encoder: Any) -> Values:
    if not isinstance(encoder.categories, str):
        raise ValueError(
            f"{type(encoder).__name__} with given categories cannot be stored: use categories='auto'."
        )
    rare = infrequent_of(encoder)
    if rare is not None and type(encoder).__name__ == "OrdinalEncoder":
        raise ValueError("An OrdinalEncoder that groups rare categories cannot be stored: use OneHotEncoder.")
    return {"_infrequent": rare}


def _finish_encoder(encoder: Any, found: Values, sizes: Sizes) -> None:
    categories, rare = found["categories_"], found.get("_infrequent")
    if not isinstance(encoder.categories, str):
        raise Refused("an encoder with given categories")
    _check_dtype(encoder)
    groups = encoder.max_categories is not None or encoder.min_frequency is not None
    if (rare is not None) != groups:
        raise Refused("rare categories of an encoder that does not group them, or the other way round")
    for known, positions in zip(categories, rare or (), strict=False):
        if positions is not None and positions[-1] >= len(known):
            raise Refused("a rare category that is not among the categories")
    if type(encoder).__name__ == "OrdinalEncoder":
        _check_codes(encoder)
    set_categories(encoder, categories, rare)


def _check_dtype(transformer: Any) -> None:
    if transformer.dtype not in (np.float64, np.float32) or not isinstance(transformer.dtype, type):
        raise Refused("a parameter 'dtype' that is not a type of numbers")


def _check_codes(encoder: Any) -> None:
    """Whether the codes of unknown and missing categories are numbers."""
    unknown, missing = encoder.unknown_value, encoder.encoded_missing_value
    if encoder.handle_unknown == "use_encoded_value":
        if type(unknown) is not int and not (type(unknown) is float and unknown != unknown):
            raise Refused("an unknown_value that is neither a whole number nor NaN")
    elif unknown is not None:
        raise Refused("an unknown_value that is not used")
    if type(missing) not in (int, float) or (type(missing) is float and math.isinf(missing)):
        raise Refused("an encoded_missing_value that is not a number")
    for value in (unknown, missing):
        if type(value) is int and abs(value) > 2**53:
            raise Refused("a code of categories that is too large")


def _vectorizer_problem(vectorizer: Any) -> str:
    """The setting of a vectorizer of text that cannot be stored; "" if there is none."""
    standard = type(vectorizer)()
    for name in ("input", "encoding", "tokenizer", "preprocessor", "vocabulary", "token_pattern"):
        if getattr(vectorizer, name) != getattr(standard, name):
            return f"{name}, which must have its default"  # a pattern could take any time
    if vectorizer.analyzer not in ("word", "char", "char_wb"):
        return "analyzer"
    words = vectorizer.stop_words
    if words not in (None, "english") and not (
        isinstance(words, list) and all(isinstance(word, str) for word in words)
    ):
        return "stop_words"
    low, high = vectorizer.ngram_range
    if type(low) is not int or type(high) is not int or not 1 <= low <= high <= _LONGEST_GRAM:
        return f"ngram_range, which must be within 1 and {_LONGEST_GRAM}"
    return ""


def _begin_words(vectorizer: Any) -> Values:
    problem = _vectorizer_problem(vectorizer)
    if problem:
        raise ValueError(f"A TfidfVectorizer cannot be stored with this {problem}.")
    words = sorted(vectorizer.vocabulary_, key=vectorizer.vocabulary_.__getitem__)
    return {"vocabulary_": words, "idf_": vectorizer.idf_ if vectorizer.use_idf else None}


def _word_sizes(vectorizer: Any, sizes: Sizes, arrays: Stored) -> None:
    sizes["words"] = arrays.get("idf_", np.empty(0)).size


def _finish_words(vectorizer: Any, found: Values, sizes: Sizes) -> None:
    problem = _vectorizer_problem(vectorizer)
    if problem:
        raise Refused(f"a TfidfVectorizer with another {problem}")
    _check_dtype(vectorizer)
    words, weights = found["vocabulary_"], found["idf_"]
    if sizes["features"] != 1 or (weights is not None) != vectorizer.use_idf:
        raise Refused("a TfidfVectorizer of several columns, or weights that it does not use")
    if weights is not None and len(weights) != len(words):
        raise Refused("a vocabulary with another number of weights")
    del vectorizer.n_features_in_  # which vectorizers do not have
    set_words(vectorizer, words, weights)


_CATEGORIES: Fields = {"categories_": _CategoriesField(str)}
_CODES = frozenset({"encoded_missing_value", "unknown_value"})
_PREPROCESSING = "sklearn.preprocessing"

TABLES: dict[str, Entry] = {
    "ColumnValues": Entry("maxmargin.data.columns", {}, _no_sizes, _nothing),
    "SimpleImputer": Entry(
        "sklearn.impute", {"statistics_": _StatisticsField(str)}, _no_sizes, _finish_imputer, None,
        _begin_imputer, may_be_nan=frozenset({"missing_values", "fill_value"}),
    ),
    "OneHotEncoder": Entry(
        _PREPROCESSING, {**_CATEGORIES, "_infrequent": _InfrequentField(str)}, _no_sizes, _finish_encoder,
        None, _begin_encoder,
    ),
    "OrdinalEncoder": Entry(
        _PREPROCESSING, _CATEGORIES, _no_sizes, _finish_encoder, None, _begin_encoder, may_be_nan=_CODES,
    ),
    "TfidfVectorizer": Entry(
        "sklearn.feature_extraction.text",
        {
            "vocabulary_": _WordsField(str),
            "idf_": ArrayField(("words",), ("f4", "f8"), low=0.0, optional=True),
        },
        _word_sizes, _finish_words, None, _begin_words,
    ),
}  # fmt: skip
