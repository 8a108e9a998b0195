"""Training in scikit-learn's own way, which takes any job and reports errors as `GridSearchCV` does."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.base import clone

from maxmargin._sklearn import fit_and_score
from maxmargin.model_selection.jobs import Key, Result
from maxmargin.model_selection.refusal import Refused
from maxmargin.model_selection.work import Work


class ScikitLearn:
    """Each node on its own by scikit-learn's `fit_and_score`."""

    name = "scikit-learn"

    def can_take(self, work: Work) -> str | None:
        """It takes every job."""
        return None

    def train(self, work: Work, keys: Sequence[Key]) -> dict[Key, Result | Refused]:
        """Train and score nodes on folds."""
        out: dict[Key, Result | Refused] = {}
        work.counts.training = True
        for fold, node in keys:
            out[fold, node] = self._result(work, fold, node)
            work.counts.add()
        return out

    @staticmethod
    def _result(work: Work, fold: int, node: int) -> Result:
        setup = work.setup
        train, test = setup.splits[fold]
        result: Result = fit_and_score(
            clone(setup.estimator), work.X, work.y, scorer=setup.scorers, train=train, test=test, verbose=0,
            parameters=setup.candidates[node], fit_params=setup.fit_params, score_params=setup.score_params,
            return_train_score=setup.return_train_score, return_parameters=False, return_n_test_samples=True,
            return_times=True, error_score=setup.error_score,
        )  # fmt: skip
        return result
