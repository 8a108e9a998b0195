"""Results of a search in a file, chain by chain, so that it can be resumed.

One line of JSON per chain, written as soon as it is done; the first line says of which search. A line that
was cut off when the process ended is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from maxmargin.model_selection.chains import Chain, Result


class Checkpoint:
    """The file of a search.

    Parameters
    ----------
    path : str or path-like
        The file; made if it is not there.
    fingerprint : str
        Of estimator, candidates, folds, scores and data: results of another search are refused.
    """

    def __init__(self, path: Any, fingerprint: str) -> None:
        self.path = Path(os.fspath(path))
        self.fingerprint = fingerprint

    def load(self) -> dict[tuple[int, int], Result]:
        """Results by (fold, node)."""
        if not self.path.exists() or self.path.stat().st_size == 0:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps({"maxmargin search": self.fingerprint}) + "\n")
            return {}
        lines = self.path.read_text().splitlines()
        try:
            header = json.loads(lines[0])["maxmargin search"]
        except (ValueError, KeyError, TypeError, IndexError):
            raise ValueError(f"{self.path} is not a checkpoint of a search: name another file.") from None
        if header != self.fingerprint:
            raise ValueError(
                f"{self.path} belongs to another search (other data, folds, parameters or scores): name "
                "another file, or delete it to start anew."
            )
        found: dict[tuple[int, int], Result] = {}
        whole = len(lines[0]) + 1
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                for fold, results in zip(entry["folds"], entry["results"], strict=True):
                    for node, result in zip(entry["nodes"], results, strict=True):
                        found[int(fold), int(node)] = result
            except (ValueError, KeyError, TypeError):
                break  # cut off
            whole += len(line) + 1
        with self.path.open("r+") as file:
            file.truncate(whole)
        return found

    def add(self, chain: Chain, results: list[list[Result]]) -> None:
        """Append the results of a chain."""
        if any(result.get("fit_error") is not None for of_fold in results for result in of_fold):
            return  # to be tried again
        entry = {"folds": chain.folds, "nodes": chain.nodes, "results": results}
        line = json.dumps(entry, default=_plain)
        with self.path.open("a") as file:
            file.write(line + "\n")


def fingerprint(*parts: Any) -> str:
    """A digest of what makes a search."""
    return hashlib.sha256(joblib.hash([repr(p) if callable(p) else p for p in parts]).encode()).hexdigest()[
        :32
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a score of type {type(value).__name__} cannot be kept in a checkpoint")
