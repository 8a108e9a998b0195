"""Results of a search in a file, job by job, so that it can be resumed.

One line of JSON per job, written as soon as it is done; the first line identifies the search. Every line
begins with a checksum of the rest, so that a damaged line is never read as a result. There are two kinds of
damage:

* a last line without a line end, left by a process that was killed while it wrote: it is removed, and its job
  is trained again;
* anything else is an error that names the file and the line.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import zlib
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from maxmargin.model_selection.jobs import Job, Key, Result

_TITLE, _FORMAT = "maxmargin search", 2
_START = '{"crc32": "'


class CheckpointError(ValueError):
    """A file from which a search cannot be resumed; the message says why and what to do."""


class Checkpoint:
    """The file of a search.

    Parameters
    ----------
    path : str or path-like
        The file; created if it does not exist, in a folder that must exist.
    fingerprint : str
        Of estimator, candidates, folds, scores and data: results of another search are refused.
    """

    def __init__(self, path: Any, fingerprint: str) -> None:
        self.path = Path(os.fspath(path))
        self.fingerprint = fingerprint

    def load(self) -> dict[Key, Result]:
        """Results by (fold, node); a new file gets its first line.

        Raises
        ------
        CheckpointError
            If the file is damaged, belongs to another search or is not a checkpoint.
        FileNotFoundError
            If its folder does not exist.
        """
        if not self.path.parent.is_dir():
            raise FileNotFoundError(
                errno.ENOENT,
                "the folder of the checkpoint does not exist: make it first",
                str(self.path.parent),
            )
        header = _sealed({_TITLE: self.fingerprint, "format": _FORMAT}, "")
        data = self.path.read_bytes() if self.path.exists() else b""
        if header.startswith(data):  # empty, or cut off in the first line
            self.path.write_bytes(header)
            return {}
        *lines, rest = data.split(b"\n")
        self._check_header(lines[0] if lines else rest)
        found: dict[Key, Result] = {}
        for number, line in enumerate(lines[1:], start=2):
            try:
                found.update(self._results(line))
            except (ValueError, KeyError, TypeError):
                raise CheckpointError(
                    f"{self.path}, line {number}: damaged. Remove this line to train its nodes again, or "
                    "delete the file to start over."
                ) from None
        if rest:
            with self.path.open("r+b") as file:
                file.truncate(len(data) - len(rest))
        return found

    def add(self, job: Job, results: list[list[Result]]) -> None:
        """Append the results of a job."""
        if any(result.get("fit_error") is not None for of_fold in results for result in of_fold):
            return  # to be tried again
        entry = {"folds": job.folds, "nodes": job.nodes, "results": results}
        with self.path.open("ab") as file:
            file.write(_sealed(entry, self.fingerprint))

    def _check_header(self, line: bytes) -> None:
        other = f"{self.path} is not a checkpoint of a search: name another file."
        if line.startswith(_START.encode()):
            try:
                header = _opened(line, "")
            except ValueError:
                raise CheckpointError(
                    f"{self.path}, line 1: damaged. Delete the file to start over, or name another."
                ) from None
        else:
            try:
                header = json.loads(line)
            except ValueError:
                raise CheckpointError(other) from None
        if not isinstance(header, dict) or _TITLE not in header:
            raise CheckpointError(other)
        version = header.get("format", 1)
        if version != _FORMAT:
            age = "an older version of maxmargin, without checksums" if version == 1 else "a newer version"
            raise CheckpointError(
                f"{self.path} was written by {age} (format {version}, this one reads {_FORMAT}): name "
                "another file, or delete it to start over."
            )
        if header[_TITLE] != self.fingerprint:
            raise CheckpointError(
                f"{self.path} belongs to another search (other data, folds, parameters or scores): name "
                "another file, or delete it to start over."
            )

    def _results(self, line: bytes) -> dict[Key, Result]:
        entry = _opened(line, self.fingerprint)
        return {
            (fold, node): result
            for fold, results in zip(entry["folds"], entry["results"], strict=True)
            for node, result in zip(entry["nodes"], results, strict=True)
        }


def _sealed(entry: dict[str, Any], seed: str) -> bytes:
    """A line that holds an entry and the checksum of it and of `seed`."""
    text = json.dumps(entry, default=_plain)
    return f'{_START}{_checksum(text, seed)}", {text[1:]}\n'.encode()


def _opened(line: bytes, seed: str) -> Any:
    """The entry of a line, without its line end; ValueError if its checksum does not match."""
    text = line.decode("ascii")
    end = len(_START) + 8
    body = "{" + text[end + 3 :]
    if text[: end + 3] != f'{_START}{_checksum(body, seed)}", ':
        raise ValueError("the checksum does not match")
    return json.loads(body)


def _checksum(text: str, seed: str) -> str:
    return f"{zlib.crc32(text.encode(), zlib.crc32(seed.encode())):08x}"


def fingerprint(*parts: Any) -> str:
    """A digest of the settings and data of a search."""
    return hashlib.sha256(joblib.hash([repr(p) if callable(p) else p for p in parts]).encode()).hexdigest()[
        :32
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a score of type {type(value).__name__} cannot be kept in a checkpoint")
