"""Run a job: the first trainer that can take it trains it, and the next ones what it leaves over."""

from __future__ import annotations

import re
import traceback
from typing import Any

from sklearn import config_context

from maxmargin.model_selection.jobs import Job, Key, Result, SearchSetup
from maxmargin.model_selection.refusal import Refused
from maxmargin.model_selection.trainers import TRAINERS
from maxmargin.model_selection.work import Work


def run_job(X: Any, y: Any, setup: SearchSetup, job: Job) -> list[list[Result]]:
    """Results of a job, for each fold those of its nodes, as scikit-learn's `cv_results_` is made of.

    Each has, as "trainer", the name of its trainer and the reason why the trainer before did not take it.
    """
    with config_context(**setup.config):
        found = _run(Work(X, y, setup, job))
    return [[found[fold, node] for node in job.nodes] for fold in job.folds]


def _run(work: Work) -> dict[Key, Result]:
    done: dict[Key, Result] = {}
    pending: dict[Key, Refused | None] = dict.fromkeys(work.job.keys)
    for trainer in TRAINERS:
        is_last = trainer is TRAINERS[-1]
        keys = [key for key, why in pending.items() if is_last or why is None or not why.final]
        if not keys:
            continue
        reason = trainer.can_take(work)
        if reason is not None:
            pending.update(dict.fromkeys(keys, Refused(reason)))
            continue
        for key, found in trainer.train(work, keys).items():
            if isinstance(found, Refused):
                pending[key] = found
                continue
            why = pending.pop(key)
            if why is not None:
                _confirm(why, found)
            done[key] = {**found, "trainer": trainer.name if why is None else f"{trainer.name}: {why.reason}"}
    return done


def _confirm(why: Refused, found: Result) -> None:
    """Raise the exception of a fit that scikit-learn's own way does not reproduce: a bug of the search.

    The two must agree in type and message; `fit_error` is a traceback, which ends with both.
    """
    if why.error is None:
        return
    here = _without_addresses("".join(traceback.format_exception_only(why.error)))
    there = _without_addresses(found["fit_error"] or "")
    if there == here or there.endswith("\n" + here):
        return
    alone = there.rpartition("\n")[2]
    why.error.add_note(
        "It occurred in a search only: the same estimator, fitted on its own, "
        + (f"raises {alone}" if alone else "can be fitted.")
    )
    raise why.error


def _without_addresses(text: str) -> str:
    """The text of an error without the addresses of objects, which differ between two runs."""
    return re.sub(r"0x[0-9a-fA-F]+", "0x", text.strip())
