"""The cost of an approximation, measured: scores of cells, of the exact model, and of one on fewer rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats, Index

# Share of the sample that is held out, and rows of it at most.
_HELD_OUT, _MOST_HELD_OUT = 0.25, 10_000
# Ratio of the times of cells and of a fit on a subsample that count as equal; fits to find its size.
_EQUAL, _FITS = 1.25, 3
# Rows of a subsample at least.
_FEWEST = 50


@dataclass(frozen=True)
class Candidate:
    """One way to train: its score on held-out rows, its training time, and the rows it was trained on."""

    score: float
    seconds: float
    rows: int


@dataclass(frozen=True)
class Cost:
    """The cost of cells on a sample of the training rows, see `CellSVC`.

    All candidates are trained on the same rows of the sample, or on some of them, and scored on the same
    held-out rows.

    Attributes
    ----------
    cells, exact, subsample : Candidate
        Cells of the same size as in the model; the exact model; and the exact model on random rows, as many
        as take the time of the cells.
    error : float
        Standard error of the difference between the scores of cells and exact model.
    held_out : int
        Number of held-out rows.
    measure : str
        "accuracy" or "R²".
    seconds : float
        Time that the statement took.

    Examples
    --------
    >>> from maxmargin.cells.cost import Candidate, Cost
    >>> exact, few = Candidate(0.9, 5.0, 9000), Candidate(0.85, 1.0, 4000)
    >>> print(Cost(Candidate(0.89, 1.0, 9000), exact, few, 0.002, 3000, "accuracy", 9.0))
    On 3,000 held-out rows of a sample of the training rows:
      cells of the model's size   accuracy 0.8900  1.00 s  9,000 rows
      exact model                 accuracy 0.9000  5.00 s  9,000 rows
      exact model, equal time     accuracy 0.8500  1.00 s  4,000 rows
    Cells: -0.0100 ± 0.0020 against the exact model.
    """

    cells: Candidate
    exact: Candidate
    subsample: Candidate
    error: float
    held_out: int
    measure: str
    seconds: float

    def __str__(self) -> str:
        names = ("cells of the model's size", "exact model", "exact model, equal time")
        lines = [
            f"  {name:26}  {self.measure} {each.score:.4f}  {each.seconds:.2f} s  {each.rows:,} rows"
            for name, each in zip(names, (self.cells, self.exact, self.subsample), strict=True)
        ]
        difference = self.cells.score - self.exact.score
        return "\n".join(
            [
                f"On {self.held_out:,} held-out rows of a sample of the training rows:",
                *lines,
                f"Cells: {difference:+.4f} ± {self.error:.4f} against the exact model.",
            ]
        )


#: Predicts the classes or targets of rows.
Predictor: TypeAlias = Callable[[Any], NDArray[Any]]
#: Trains on rows ``(X, y, weight)``.
Trainer: TypeAlias = Callable[[Any, NDArray[Any], Floats], Predictor]


def measured_cost(
    cells: Trainer, exact: Trainer, X: Any, y: NDArray[Any], weight: Floats, classify: bool, seed: int
) -> Cost:
    """Train all candidates on a part of the rows X, and score them on the rest.

    Parameters
    ----------
    cells, exact : callable
        The two ways to train.
    X, y, weight : arrays
        A random sample of the training rows.
    classify : bool
        Whether the score is the accuracy, or R².
    seed : int
        Chooses the held-out rows and the subsample.

    Returns
    -------
    Cost
    """
    start, rng = time.perf_counter(), np.random.default_rng(seed)
    order = rng.permutation(X.shape[0])
    held = np.sort(order[: min(_MOST_HELD_OUT, int(_HELD_OUT * len(order)))])
    rest = order[len(held) :]
    truth = y[held]

    def tried(train: Trainer, rows: Index) -> tuple[Candidate, Floats]:
        rows = np.sort(rows)
        began = time.perf_counter()
        predict = train(X[rows], y[rows], weight[rows])
        seconds = time.perf_counter() - began
        losses = _losses(truth, predict(X[held]), classify)
        return Candidate(1.0 - float(losses.mean()), seconds, len(rows)), losses

    by_cells, cell_losses = tried(cells, rest)
    by_exact, exact_losses = tried(exact, rest)
    tries = [by_exact]
    while len(tries) <= _FITS and _ratio(tries[-1], by_cells) > _EQUAL:
        # Training time grows about as the square of the rows.
        size = int(tries[-1].rows * np.sqrt(by_cells.seconds / max(tries[-1].seconds, 1e-9)))
        if size >= len(rest):
            break
        tries.append(tried(exact, rest[: max(size, _FEWEST)])[0])
    few = min(tries, key=lambda each: _ratio(each, by_cells))
    difference = cell_losses - exact_losses
    error = float(difference.std() / np.sqrt(max(1, len(held))))
    measure = "accuracy" if classify else "R²"
    return Cost(by_cells, by_exact, few, error, len(held), measure, time.perf_counter() - start)


def _ratio(a: Candidate, b: Candidate) -> float:
    """How many times as long one took as the other; at least 1."""
    first, second = max(a.seconds, 1e-9), max(b.seconds, 1e-9)
    return max(first / second, second / first)


def _losses(truth: NDArray[Any], predicted: NDArray[Any], classify: bool) -> Floats:
    """Losses whose mean is 1 minus the score."""
    if classify:
        return np.asarray(predicted != truth, dtype=np.float64)
    spread = float(np.var(truth)) or 1.0
    return np.asarray((predicted - truth) ** 2 / spread, dtype=np.float64)
