"""The units of parallel work of a search, and the settings that they have in common."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sklearn import get_config

from maxmargin._compiled.memo import Memo
from maxmargin._types import Index
from maxmargin.model_selection.counts import Counts
from maxmargin.model_selection.folds import Folds
from maxmargin.model_selection.starts import Starts

#: Scores and times of a node on a fold, as scikit-learn's `cv_results_` is made of, and its trainer.
Result = dict[str, Any]
#: A fold and a node.
Key = tuple[int, int]


@dataclass(frozen=True)
class Job:
    """Folds, nodes in the order in which they are trained, and the node that each starts from, or -1.

    `setting` is the number of the setting of the steps before the last, which all nodes have in common.
    """

    folds: tuple[int, ...]
    nodes: tuple[int, ...]
    parents: tuple[int, ...]
    setting: int = 0

    @property
    def keys(self) -> list[Key]:
        """All pairs of a fold and a node."""
        return [(fold, node) for fold in self.folds for node in self.nodes]


@dataclass(frozen=True)
class SearchSetup:
    """The settings that all jobs of a search have in common, and the folds that they share in a process."""

    estimator: Any
    candidates: list[dict[str, Any]]
    splits: list[tuple[Index, Index]]
    scorers: Any
    fit_params: dict[str, Any]
    score_params: dict[str, Any]
    return_train_score: bool
    error_score: Any
    folds: Folds
    workers: int = 1
    # Nodes that running jobs have finished, for the progress bar.
    counts: Counts = field(default_factory=Counts)
    # Values that are the same in several jobs: labels of folds, classes and weights.
    memo: Memo = field(default_factory=Memo)
    # Solutions of earlier jobs; None if no job follows that could start from them.
    starts: Starts | None = None
    # Whether results have the values of class pairs for held-out rows, as "values".
    keep_values: bool = False
    # scikit-learn's configuration, of which every thread has its own.
    config: dict[str, Any] = field(default_factory=get_config)
