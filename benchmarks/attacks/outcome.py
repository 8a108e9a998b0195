"""The result of a case, and how code is run such that warnings and exceptions are recorded."""

from __future__ import annotations

import traceback
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

# Warnings of this class are answers where the documentation says so; any other is arithmetic gone wrong.
DOCUMENTED = (
    "The margins could not be made exact",
    "SimpleSVM: the factor of",
    "overflow encountered in cast",
)


@dataclass
class Outcome:
    """One case: what it was, how it ended, and what was wrong with it."""

    label: str  # the difficulty, or what was attacked
    what: str = ""  # one line that describes the case
    answer: str = ""  # the status, or "refused"
    checks: int = 0
    ratio: float = 0.0  # the largest true gap over the claimed one
    faults: list[str] = field(default_factory=list)


def generator(part: str, seed: int) -> np.random.Generator:
    """The random numbers of one case."""
    return np.random.default_rng([zlib.crc32(part.encode()), seed])


def place(error: BaseException) -> str:
    """The exception in one line, with the place it comes from."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "maxmargin" in f.filename] or list(frames)
    where = f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}{where}"


@contextmanager
def recorded(outcome: Outcome) -> Iterator[list[Any]]:
    """Collect warnings; RuntimeWarnings that no page mentions are faults."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    seen = set()
    for one in caught:
        text = str(one.message)
        # A search that leaves out candidates says so, as GridSearchCV does.
        expected = issubclass(one.category, FitFailedWarning) or text.startswith(DOCUMENTED)
        if not issubclass(one.category, RuntimeWarning) or expected:
            continue
        where = f"{Path(one.filename).name}:{one.lineno}"
        if where not in seen:
            seen.add(where)
            outcome.faults.append(f"RuntimeWarning: {text[:150]} ({where})")


def refused(outcome: Outcome, error: Exception) -> None:
    """A ValueError or TypeError with a message is an answer; anything else is a fault."""
    outcome.answer = "refused"
    if type(error).__module__.startswith("numpy") or not isinstance(error, ValueError | TypeError):
        outcome.faults.append(f"crash: {place(error)}")
    elif not str(error).strip():
        outcome.faults.append(f"an exception without a message: {place(error)}")
    else:
        outcome.what += f" -> {' '.join(str(error).split())[:150]}"
