"""Columns of a mixed table as numbers, texts or days: the first step for each of them in a pipeline."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from maxmargin._sklearn import StrOptions, feature_names_of, fit_context
from maxmargin.data.table import DataError, brief
from maxmargin.data.values import DATES, days, missing_cells, numbers, texts

__all__ = ["ColumnValues"]


class ColumnValues(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Read the cells of columns as numbers, categories, dates or text.

    It makes columns of files, data frames and arrays equal: the number 3, the text "3" and the text " 3 "
    are one category; "?", "NA", None and an empty cell are missing.

    Parameters
    ----------
    kind : {"number", "category", "date", "text"}, default="number"
        "number" gives floats, NaN where there is no value, and 0 and 1 for truth values. "category" gives
        texts, NaN where there is no value. "date" gives days since the beginning of 1970 as floats.
        "text" is for a single column, and gives a one-dimensional array of texts, "" where there is no value.
    date_form : str or None, default=None
        Of dates that are text: None for ISO 8601 (2024-12-31), or another of `maxmargin.data.values.DATES`.
    missing : bool, default=True
        Whether cells may be empty; otherwise an empty one is an error.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of str
        Their names, if they have names.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.data.columns import ColumnValues
    >>> X = np.array([["3", "1e2"], [True, "?"]], dtype=object)
    >>> ColumnValues().fit_transform(X)
    array([[  3., 100.],
           [  1.,  nan]])
    >>> ColumnValues("date").fit_transform(np.array([["1970-01-02 12:00"]], dtype=object))
    array([[1.5]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kind": [StrOptions({"number", "category", "date", "text"})],
        "date_form": [StrOptions(set(DATES)), None],
        "missing": ["boolean"],
    }

    def __init__(self, kind: str = "number", *, date_form: str | None = None, missing: bool = True) -> None:
        self.kind = kind
        self.date_form = date_form
        self.missing = missing

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = tags.input_tags.categorical = True
        tags.requires_fit = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> ColumnValues:
        """Count the columns; nothing is learned from them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The columns.
        y : None
            Ignored.

        Returns
        -------
        self : object
            The transformer.
        """
        names = feature_names_of(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.n_features_in_ = len(_columns(X))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """The values of the columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The columns.

        Returns
        -------
        ndarray of shape (n_samples, n_features), or (n_samples,) for the kind "text"
            Floats or texts.
        """
        check_is_fitted(self, "n_features_in_")
        columns = _columns(X)
        if len(columns) != self.n_features_in_:
            raise ValueError(f"X has {len(columns)} columns, but was fitted with {self.n_features_in_}.")
        names = getattr(self, "feature_names_in_", [str(k) for k in range(len(columns))])
        if not self.missing:
            for name, column in zip(names, columns, strict=True):
                empty = np.flatnonzero(missing_cells(column))
                if len(empty):
                    raise DataError(f"row {empty[0] + 1}, column {brief(str(name))} is empty.")
        read = [self._values(column, str(name)) for name, column in zip(names, columns, strict=True)]
        if self.kind == "text":
            if len(read) != 1:
                raise ValueError(f"Text is read from one column at a time, got {len(read)}.")
            return np.array([found if isinstance(found, str) else "" for found in read[0]], dtype=object)
        return np.column_stack(read)

    def _values(self, column: Any, name: str) -> NDArray[Any]:
        if self.kind == "number":
            return numbers(column, name)
        return days(column, self.date_form, name) if self.kind == "date" else texts(column)


def _columns(X: Any) -> list[Any]:
    """The columns of a table; a single series is one."""
    if hasattr(X, "iloc"):
        return [X] if X.ndim == 1 else [X.iloc[:, k] for k in range(X.shape[1])]
    X = np.asarray(X) if hasattr(X, "dtype") else np.asarray(X, dtype=object)
    return [X] if X.ndim == 1 else list(X.T)
