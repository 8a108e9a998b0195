"""Results of the nodes in the form of scikit-learn's `cv_results_`."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from maxmargin.model_selection.jobs import Key, Result


def in_order(found: dict[Key, Result], n_candidates: int, n_splits: int) -> list[Result]:
    """Results in scikit-learn's order; NaN for nodes that were not trained."""
    template = next(iter(found.values()))

    def empty(scores: Any) -> Any:
        return dict.fromkeys(scores, np.nan) if isinstance(scores, dict) else np.nan

    missing = {
        key: empty(value) if key.endswith("_scores") else (None if key == "fit_error" else np.nan)
        for key, value in template.items()
    }
    missing["n_test_samples"] = template["n_test_samples"]
    results = [found.get((fold, node), missing) for node in range(n_candidates) for fold in range(n_splits)]
    return [{key: value for key, value in result.items() if key != "trainer"} for result in results]


def trainers_of(found: dict[Key, Result], n_candidates: int, n_splits: int) -> list[str]:
    """For each candidate the trainers of its folds; an empty text if none is known."""
    out = []
    for node in range(n_candidates):
        results = [found.get((fold, node), {}) for fold in range(n_splits)]
        out.append("; ".join(dict.fromkeys(r["trainer"] for r in results if "trainer" in r)))
    return out


def average_finished_folds(results: dict[str, Any]) -> None:
    """Means, deviations and ranks of an interrupted search over the folds that were trained."""
    for key in [key for key in results if key.startswith(("mean_test_", "mean_train_"))]:
        _, part, metric = key.split("_", 2)
        folds = np.array(
            [results[k] for k in results if k.startswith("split") and k.endswith(f"_{part}_{metric}")]
        )
        done = np.isfinite(folds)
        count = np.maximum(done.sum(axis=0), 1)
        mean = np.where(done, folds, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(done, (folds - mean) ** 2, 0.0).sum(axis=0) / count)
        known = done.any(axis=0)
        results[key] = np.where(known, mean, np.nan)
        results[f"std_{part}_{metric}"] = np.where(known, spread, np.nan)
        if part == "test":
            results[f"rank_test_{metric}"] = _ranks(np.where(known, mean, -np.inf), done.all(axis=0))


def _ranks(mean: Any, whole: Any) -> Any:
    """Ranks of means, those of all folds first: the mean of a few folds is high by chance sometimes."""
    rank = np.zeros(len(mean), np.int32)
    rank[whole] = rankdata(-mean[whole], method="min")
    rank[~whole] = whole.sum() + rankdata(-mean[~whole], method="min")
    return rank
