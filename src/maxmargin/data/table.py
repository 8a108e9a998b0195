"""A table of numbers with its names and its target."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A column with one of these names is the target unless another is given.
TARGETS = ("target", "label", "class", "y")
# Characters of a text that a message shows, and names that are searched for a similar one.
_LONGEST, _MOST_NEAR = 60, 1000


class DataError(ValueError):
    """An error in a data file; the message says where it is and how to correct it."""


class NotNumbers(DataError):
    """Cells that are not numbers, or empty: a table that `maxmargin.data.mixed` can read."""


@dataclass(frozen=True)
class Table:
    """Samples with their names and targets.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        The features.
    y : ndarray of shape (n_samples,) or None
        The target, if there is one: integers, numbers or text.
    names : list of str or None
        Names of the features, if the file has names.
    target : str or None
        Name of the target.
    guessed : bool
        Whether the target was chosen by its name or position, because none was given.
    """

    X: Any
    y: NDArray[Any] | None = None
    names: list[str] | None = None
    target: str | None = None
    guessed: bool = False


@dataclass(frozen=True)
class Wanted:
    """The columns that are requested.

    `target`: a name, a number, None for a guess or "" for none. `features`: the names of the features, if
    known; `width`: their number, if known; `drop`: columns to leave out; `labels_as_text`: whether targets
    that are text stay text, even if all of them are numbers.
    """

    target: str | int | None = None
    features: Sequence[str] | None = None
    width: int | None = None
    drop: Sequence[str] = ()
    labels_as_text: bool = False

    def labels(self, text: NDArray[Any]) -> NDArray[Any]:
        """The target from its text."""
        return text if self.labels_as_text else as_labels(text)

    def split(self, names: list[str], where: str) -> tuple[list[int], int | None, bool]:
        """Positions of the features and of the target in `names`, and whether the target was guessed."""
        left_out = {find(name, names, where, "column to drop") for name in self.drop}
        if self.target not in (None, ""):
            target: int | None = find(self.target, names, where, "target column")
            if target in left_out:
                raise DataError(
                    f"{where}: the target column {brief(names[target or 0])} is among the columns to drop."
                )
            guessed = False
        else:
            rest = [k for k in range(len(names)) if k not in left_out]
            target = None if self.target == "" else self._guess(names, rest)
            guessed = target is not None
        if self.features is not None:
            place = {name: k for k, name in enumerate(names)}
            missing = [name for name in self.features if name not in place]
            if missing:
                raise DataError(
                    f"{where}: there is no column {quoted(missing)}, which the model was trained with; the "
                    f"columns are {quoted(names)}."
                )
            return [place[name] for name in self.features], target, guessed
        places = [k for k in range(len(names)) if k != target and k not in left_out]
        if not places:
            raise DataError(f"{where}: no column is left for the features; the columns are {quoted(names)}.")
        return places, target, guessed

    def _guess(self, names: list[str], rest: list[int]) -> int | None:
        if self.features is not None:  # the only column that is not a feature may be the target
            known = set(self.features)
            rest = [k for k in rest if names[k] not in known]
            return rest[0] if len(rest) == 1 else None
        if self.width is not None and len(rest) == self.width:
            return None
        called = [k for k in rest if names[k].strip().lower() in TARGETS]
        return called[0] if len(called) == 1 else (rest[-1] if rest else None)


def find(column: str | int | None, names: list[str], where: str, what: str) -> int:
    """The position of a column given by its name or its number."""
    text = str(column)
    if text in names:
        return names.index(text)
    if len(text) < 20 and text.lstrip("-").isdecimal() and -len(names) <= int(text) < len(names):
        return int(text) % len(names)
    near = difflib.get_close_matches(text, names[:_MOST_NEAR], n=1)
    hint = f" Did you mean {brief(near[0])}?" if near else ""
    raise DataError(f"{where}: there is no {what} {brief(text)}.{hint} The columns are {quoted(names)}.")


def quoted(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, at most `most` of them."""
    shown = ", ".join(map(brief, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def brief(text: str) -> str:
    """A text in quotes for a message, shortened if necessary."""
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}..."


def first_repeated(names: Sequence[str]) -> str | None:
    """A name that occurs twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def as_labels(text: NDArray[Any]) -> NDArray[Any]:
    """Convert text to integers or numbers if all of it can be converted."""
    for dtype in (np.int64, np.float64):
        try:
            return text.astype(dtype)
        except (ValueError, OverflowError):
            continue
    return text
