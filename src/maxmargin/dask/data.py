"""Training data on the workers of a cluster, checked."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._types import Floats
from maxmargin.dask.inputs import blocks_of
from maxmargin.dask.parts import check, check_parts, join, joined, summarize_kept
from maxmargin.dask.statistics import Summary, pool
from maxmargin.dask.tasks import Work
from maxmargin.dask.vectors import check_lengths, joined_vector, known_sizes, vector_blocks
from maxmargin.dask.waiting import gather
from maxmargin.estimators._validation import any_weights

# Rows of the sample for the scales of features, as `maxmargin.estimators._scales` has.
_SAMPLE = 256
# Rows of which chunks are merged that have fewer: about what a task takes as long for as for its own way.
_FEW_ROWS = 2_000


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Rows on the workers, and targets and weights in this process.

    Parameters
    ----------
    client : distributed.Client or None
        None if everything is in this process.
    parts : list of Future, or of arrays if there is no client
        Consecutive rows: arrays in C order of float32 or float64, or CSR matrices. None is empty. The tasks
        can be repeated by dask if a worker is lost.
    sizes : ndarray of int
        Rows of each part.
    shape : tuple of int
        Rows and columns of all of them.
    dtype : dtype
        float32 or float64.
    sparse : bool
        Whether the parts are CSR matrices.
    y : ndarray of shape (n_samples,) or None
        Targets as the user gave them: numbers, strings or objects.
    weight : ndarray of float64 of shape (n_samples,) or None
        Sample weights.
    feature_names : ndarray of str or None
        Names of the columns of a data frame.
    summary : Summary
        Statistics of the rows with a positive weight.
    """

    client: Any
    parts: list[Any]
    sizes: NDArray[np.intp]
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    sparse: bool
    y: Any
    weight: Floats | None
    feature_names: Any
    summary: Summary

    @classmethod
    def load(cls, client: Any, X: Any, y: Any = None, sample_weight: Any = None) -> TrainingData:
        """Convert and check training data where they are.

        Parameters
        ----------
        client : distributed.Client or None
            Without a client dask collections are computed in this process.
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Training data.
        y, sample_weight : dask or local vectors of shape (n_samples,), optional
            Targets and weights.

        Returns
        -------
        TrainingData
        """
        blocks = blocks_of(X)
        vectors = {
            name: each for name, each in (("y", y), ("sample_weight", sample_weight)) if each is not None
        }
        if isinstance(sample_weight, Number):
            del vectors["sample_weight"]
        pieces = {name: vector_blocks(vector, name) for name, vector in vectors.items()}
        for name, vector in vectors.items():  # before anything is computed
            if blocks.sizes is not None and (lengths := known_sizes(vector)) is not None:
                check_lengths(lengths, blocks.sizes, name)
        work = Work(client)
        parts, chunks = work.start(blocks, pieces)
        n_sample = max(1, _SAMPLE // len(parts))
        checked = work.each(check, "check", parts, [(n_sample,)] * len(parts), "checking X")
        sizes = check_parts(checked, blocks.feature_names)
        n = sum(sizes)
        known = blocks.sizes is not None
        found = {
            name: joined_vector(work.results(each, name), sizes, name, known=known)
            for name, each in chunks.items()
        }
        weight = None
        if sample_weight is not None:
            weight = any_weights(found.get("sample_weight", sample_weight), np.empty((n, 0)))
            if not (weight > 0).any():
                raise ValueError("Invalid input - all samples have zero or negative weights.")
        filled = [i for i, size in enumerate(sizes) if size]
        parts, kept_sizes = [parts[i] for i in filled], np.array([sizes[i] for i in filled], dtype=np.intp)
        summaries: list[Any] = [checked[i].summary for i in filled]
        if weight is not None and not (weight > 0).all():
            masks = np.split(weight > 0, np.cumsum(kept_sizes)[:-1])
            arguments = [(mask, n_sample) for mask in masks]
            summaries = work.each(summarize_kept, "summarize", parts, arguments, "summarizing X")
        if client is not None:
            parts, kept_sizes = _merged(work, parts, kept_sizes)
        return cls(
            client,
            parts,
            kept_sizes,
            (n, checked[filled[0]].shape[1]),
            blocks.dtype,
            checked[filled[0]].sparse,
            found.get("y"),
            weight,
            blocks.feature_names,
            pool(summaries),
        )

    def pieces(self, k: int) -> list[list[tuple[Any, int, int]]]:
        """Cut the rows into k nearly equal consecutive chunks.

        Parameters
        ----------
        k : int
            Number of chunks; fewer if there are not as many rows.

        Returns
        -------
        list of list of tuple of (part, start, stop)
            The rows ``part[start:stop]`` of each chunk, in order.
        """
        k = max(1, min(k, self.shape[0]))
        ends = np.linspace(0, self.shape[0], k + 1).round().astype(np.intp)
        begins = np.concatenate([[0], np.cumsum(self.sizes)])
        pieces = []
        for a, b in zip(ends[:-1], ends[1:], strict=True):
            first, last = np.searchsorted(begins, [a, b - 1], side="right") - 1
            pieces.append(
                [
                    (
                        self.parts[i],
                        int(max(a, begins[i]) - begins[i]),
                        int(min(b, begins[i + 1]) - begins[i]),
                    )
                    for i in range(first, last + 1)
                ]
            )
        return pieces

    def here(self) -> Any:
        """All rows in this process, as one array or CSR matrix."""
        if self.client is None:
            return joined(self.parts)
        return joined(gather(self.client, self.parts, what="gathering X"))


def _merged(work: Work, parts: list[Any], sizes: NDArray[np.intp]) -> tuple[list[Any], NDArray[np.intp]]:
    """The same rows with parts of fewer than `_FEW_ROWS` rows merged: each part takes several tasks."""
    groups: list[list[int]] = []
    rows = _FEW_ROWS
    for i, size in enumerate(sizes):
        if max(rows, size) >= _FEW_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(i)
        rows += size
    several = [group for group in groups if len(group) > 1]
    merged = iter(work.merge(join, [[parts[i] for i in group] for group in several]))
    parts = [next(merged) if len(group) > 1 else parts[group[0]] for group in groups]
    return parts, np.array([sizes[group].sum() for group in groups], dtype=np.intp)


def rows_known(X: Any) -> int | None:
    """Number of rows of a dask collection, if it is known without computing anything."""
    n = X.shape[0] if hasattr(X, "chunks") else np.nan
    return None if np.isnan(n) else int(n)
