"""Tasks for the parts of training data: on workers, or as calls in this process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any
from uuid import uuid4

from maxmargin.dask.inputs import Blocks
from maxmargin.dask.parts import as_rows
from maxmargin.dask.waiting import gather, large_messages


class Work:
    """Tasks of a client, or calls in this process if it is None."""

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
            # Embedded in tasks, which can be repeated: data that are scattered are lost with a worker.
            with large_messages():
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
        lazy = [each for each in chain(parts, *vectors.values()) if isinstance(each, Delayed)]
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
        self, function: Any, name: str, parts: list[Any], arguments: Sequence[tuple[Any, ...]], what: str
    ) -> list[Any]:
        """The results of a function of each part and its arguments."""
        if self._client is None:
            return [function(part, *rest) for part, rest in zip(parts, arguments, strict=True)]

        def submit(i: int) -> Any:
            key = f"{name}-{uuid4().hex[:12]}"
            return self._client.submit(function, parts[i], *arguments[i], key=key, pure=False)

        futures = [submit(i) for i in range(len(parts))]
        return self._gathered(futures, parts, "X", what=what, resubmit=submit)

    def merge(self, function: Any, groups: Sequence[list[Any]]) -> list[Any]:
        """A part for each group of parts: what the function returns for them, which stays on workers."""
        if self._client is None:
            return [function(*group) for group in groups]
        token = uuid4().hex[:12]
        return [
            self._client.submit(function, *group, key=f"merge-{token}-{i}", pure=False)
            for i, group in enumerate(groups)
        ]

    def results(self, chunks: list[Any], name: str) -> list[Any]:
        """The data of the chunks of a vector, which may be futures."""
        if self._client is None or not any(hasattr(each, "key") for each in chunks):
            return chunks
        return self._gathered(chunks, chunks, name, what=f"reading {name}")

    def _gathered(self, futures: list[Any], parts: list[Any], name: str, **options: Any) -> list[Any]:
        """Results; an error of the user's own tasks says which chunk it is about."""
        try:
            return gather(self._client, futures, **options)
        except Exception as error:
            failed = [i for i, part in enumerate(parts) if getattr(part, "status", None) == "error"]
            if failed:
                error.add_note(f"This was raised while chunk {failed[0]} of {name} was computed.")
            raise
