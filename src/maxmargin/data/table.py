"""A table of numbers with its names and its target."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A column of one of these names is the target unless another is named.
TARGETS = ("target", "label", "class", "y")
# Characters of a text that a message shows, and names among which a similar one is looked for.
_LONGEST, _MOST_NEAR = 60, 1000


class DataError(ValueError):
    """Something is wrong with a data file; the message says what, where, and what to do."""


@dataclass(frozen=True)
class Table:
    """Samples, and what a file said of them.

    Attributes
    ----------
    X : ndarray or csr_array of shape (n_samples, n_features)
        The features.
    y : ndarray of shape (n_samples,) or None
        The target, if there is one: integers, numbers or text.
    names : list of str or None
        Names of the features, where the file has some.
    target : str or None
        Name of the target.
    guessed : bool
        Whether the target was chosen by its name or place, because nobody named it.
    """

    X: Any
    y: NDArray[Any] | None = None
    names: list[str] | None = None
    target: str | None = None
    guessed: bool = False


@dataclass(frozen=True)
class Wanted:
    """Which columns are asked for.

    `target`: a name, a number, None for a guess or "" for none. `features`: the names of the features, where
    they are known; `width`: their number, where it is; `drop`: columns to leave out.
    """

    target: str | int | None = None
    features: Sequence[str] | None = None
    width: int | None = None
    drop: Sequence[str] = ()

    def split(self, names: list[str], where: str) -> tuple[list[int], int | None, bool]:
        """Places of the features and of the target among the columns `names`; whether it was guessed."""
        left_out = {find(name, names, where, "column to drop") for name in self.drop}
        if self.target not in (None, ""):
            target: int | None = find(self.target, names, where, "target column")
            if target in left_out:
                raise DataError(
                    f"{where}: the target column {brief(names[target or 0])} is also to be dropped."
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
                    f"{where}: no column {quoted(missing)}, which the model was trained with; there are "
                    f"{quoted(names)}."
                )
            return [place[name] for name in self.features], target, guessed
        places = [k for k in range(len(names)) if k != target and k not in left_out]
        if not places:
            raise DataError(f"{where}: no column is left for the features; there are {quoted(names)}.")
        return places, target, guessed

    def _guess(self, names: list[str], rest: list[int]) -> int | None:
        if self.features is not None:  # what a model does not need may be the target, if it is one column
            known = set(self.features)
            rest = [k for k in rest if names[k] not in known]
            return rest[0] if len(rest) == 1 else None
        if self.width is not None and len(rest) == self.width:
            return None
        called = [k for k in rest if names[k].strip().lower() in TARGETS]
        return called[0] if len(called) == 1 else (rest[-1] if rest else None)


def find(column: str | int | None, names: list[str], where: str, what: str) -> int:
    """The place of a column given by its name or its number."""
    text = str(column)
    if text in names:
        return names.index(text)
    if len(text) < 20 and text.lstrip("-").isdecimal() and -len(names) <= int(text) < len(names):
        return int(text) % len(names)
    near = difflib.get_close_matches(text, names[:_MOST_NEAR], n=1)
    hint = f" Did you mean {brief(near[0])}?" if near else ""
    raise DataError(f"{where}: there is no {what} {brief(text)}.{hint} The columns are {quoted(names)}.")


def quoted(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, not too many of them."""
    shown = ", ".join(map(brief, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def brief(text: str) -> str:
    """A text in quotes for a message, not too much of it."""
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
    """Text as integers or numbers, where all of it can be read so."""
    for dtype in (np.int64, np.float64):
        try:
            return text.astype(dtype)
        except (ValueError, OverflowError):
            continue
    return text
