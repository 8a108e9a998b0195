"""Training data on the workers of a cluster, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from maxmargin._types import Floats
from maxmargin.dask.inputs import Blocks, blocks_of, is_lazy, joined_vector, vector_blocks
from maxmargin.dask.parts import Checked, as_rows, check, joined, summarize_kept
from maxmargin.dask.statistics import Summary, pool
from maxmargin.dask.waiting import gather
from maxmargin.estimators._validation import any_weights

# Rows of the sample for the scales of features, as `maxmargin.estimators._scales` has.
_SAMPLE = 256


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
        _check_lengths(blocks, vectors)
        work = _Work(client)
        parts, chunks = work.start(blocks, {name: vector_blocks(v, name) for name, v in vectors.items()})
        n_sample = max(1, _SAMPLE // len(parts))
        checked = work.each(check, "check", parts, [(n_sample,)] * len(parts), "checking X")
        sizes = _sizes(checked)
        n = sum(sizes)
        found = {
            name: joined_vector(
                work.results(each, f"reading {name}"), sizes, name, known=blocks.sizes is not None
            )
            for name, each in chunks.items()
        }
        if found.get("y") is not None and found["y"].dtype.kind in "fc":
            assert_all_finite(found["y"], input_name="y")
        weight = None
        if "sample_weight" in found:
            weight = any_weights(found["sample_weight"], np.empty((n, 0)))
            if not (weight > 0).any():
                raise ValueError("Invalid input - all samples have zero or negative weights.")
        filled = [i for i, size in enumerate(sizes) if size]
        parts, kept_sizes = [parts[i] for i in filled], np.array([sizes[i] for i in filled], dtype=np.intp)
        summaries: list[Any] = [checked[i].summary for i in filled]
        if weight is not None and not (weight > 0).all():
            masks = np.split(weight > 0, np.cumsum(kept_sizes)[:-1])
            arguments = [(mask, n_sample) for mask in masks]
            summaries = work.each(summarize_kept, "summarize", parts, arguments, "summarizing X")
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


def _check_lengths(blocks: Blocks, vectors: dict[str, Any]) -> None:
    """Refuse vectors whose length is known to differ from that of X, before anything is read."""
    n = None if blocks.sizes is None else sum(blocks.sizes)
    for name, vector in vectors.items():
        length = vector.shape[0] if hasattr(vector, "shape") and len(vector.shape) else None
        if n is not None and isinstance(length, (int, np.integer)) and length != n:
            raise ValueError(f"{name} has {length:,} values and X {n:,} rows.")


def _sizes(checked: Sequence[Checked]) -> list[int]:
    """Rows of each chunk; errors name the chunk that is wrong."""
    sizes = [each.shape[0] for each in checked]
    start = np.concatenate([[0], np.cumsum(sizes)]).tolist()
    filled = [i for i, size in enumerate(sizes) if size]
    if not filled:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows.")
    first = checked[filled[0]]
    if not first.shape[1]:
        raise ValueError("Found array with 0 feature(s) while a minimum of 1 is required: X has no columns.")
    for i in filled:
        each = checked[i]
        where = f"chunk {i} (rows {start[i]:,} to {start[i + 1] - 1:,}) of X"
        if each.shape[1] != first.shape[1]:
            raise ValueError(
                f"{where} has {each.shape[1]:,} features, and chunk {filled[0]} has {first.shape[1]:,}."
            )
        if each.sparse != first.sparse:
            kinds = [("sparse" if c.sparse else "dense") for c in (each, first)]
            raise ValueError(
                f"{where} is {kinds[0]}, and chunk {filled[0]} is {kinds[1]}: convert one of them."
            )
        if each.bad is not None:
            kind, row, column = each.bad
            raise ValueError(
                f"{where} contains {kind}, first in row {start[i] + row:,}, column {column:,}: impute or drop "
                "such values, for example with sklearn.impute.SimpleImputer."
            )
    return sizes


class _Work:
    """Tasks on workers, or calls in this process if there is no client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def start(self, blocks: Blocks, vectors: dict[str, list[Any]]) -> tuple[list[Any], dict[str, list[Any]]]:
        """The converted parts, and the chunks of the vectors: futures, or data if there is no client."""
        import dask
        from dask.delayed import Delayed

        token = uuid4().hex[:12]
        rows = blocks.rows
        if not blocks.lazy and self._client is None:
            parts = [as_rows(row, blocks.dtype, i) for i, row in enumerate(rows)]
        elif not blocks.lazy:
            # Embedded in the task, which can then be repeated: data that are scattered are lost with a worker.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
                parts = [
                    self._client.submit(as_rows, row, blocks.dtype, i, key=f"rows-{token}-{i}", pure=False)
                    for i, row in enumerate(rows)
                ]
        else:
            task = dask.delayed(as_rows, pure=False)
            parts = [
                task(row, blocks.dtype, i, dask_key_name=f"rows-{token}-{i}") for i, row in enumerate(rows)
            ]
        # Together, so that what X and y have in common is computed once.
        lazy = [each for each in (*parts, *sum(vectors.values(), [])) if isinstance(each, Delayed)]
        done = iter(self._computed(lazy))
        parts = [next(done) if isinstance(each, Delayed) else each for each in parts]
        return parts, {
            name: [next(done) if isinstance(each, Delayed) else each for each in chunks]
            for name, chunks in vectors.items()
        }

    def _computed(self, lazy: list[Any]) -> list[Any]:
        import dask

        if not lazy:
            return []
        return list(dask.compute(*lazy) if self._client is None else self._client.compute(lazy))

    def each(
        self, function: Any, name: str, parts: list[Any], arguments: list[tuple[Any, ...]], what: str
    ) -> list[Any]:
        """The results of a function of each part and its arguments."""
        if self._client is None:
            return [function(part, *rest) for part, rest in zip(parts, arguments, strict=True)]

        def submit(i: int) -> Any:
            key = f"{name}-{uuid4().hex[:12]}"
            return self._client.submit(function, parts[i], *arguments[i], key=key, pure=False)

        return gather(self._client, [submit(i) for i in range(len(parts))], what=what, resubmit=submit)

    def results(self, chunks: list[Any], what: str) -> list[Any]:
        """The data of chunks that may be futures."""
        if self._client is None or not any(hasattr(each, "key") for each in chunks):
            return chunks
        return gather(self._client, chunks, what=what)


def rows_known(X: Any) -> int | None:
    """Number of rows of X, if it is known without computing anything."""
    if is_lazy(X):
        n = X.shape[0] if hasattr(X, "chunks") else np.nan
        return None if np.isnan(n) else int(n)
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)
