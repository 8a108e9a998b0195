"""The reason why something cannot be done, as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Refused:
    """The reason why a trainer, or a step before it, leaves a chain or a node to the next trainer.

    Parameters
    ----------
    reason : str
        For the report of the search (`SVMSearchCV.trainers_`).
    final : bool
        Whether no other trainer but scikit-learn's own way is left.
    error : Exception, optional
        An exception of the estimator's `fit`. It must occur in scikit-learn's own way too, with the same type
        and message; scikit-learn then reports it as `error_score` asks. If it does not, it is raised.
    """

    reason: str
    final: bool = False
    error: Exception | None = None


def because(error: Exception) -> str:
    """An exception as part of a reason: its type and the first line of its message."""
    line = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {line}" if line else type(error).__name__
