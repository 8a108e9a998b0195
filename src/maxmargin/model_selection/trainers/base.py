"""The interface of the trainers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from maxmargin.model_selection.jobs import Key, Result
from maxmargin.model_selection.refusal import Refused
from maxmargin.model_selection.work import Work


class Trainer(Protocol):
    """One way to train and score the nodes of a job."""

    #: For the report of the search.
    name: str

    def can_take(self, work: Work) -> str | None:
        """None if this trainer can train the job, else the reason why it cannot."""

    def train(self, work: Work, keys: Sequence[Key]) -> dict[Key, Result | Refused]:
        """Train and score nodes on folds; Refused for each that is left to the next trainer."""
