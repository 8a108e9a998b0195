"""Docstrings of estimators with a client, from those of the ordinary ones."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_NOTES = """
Rows stay where they are: `fit` converts each chunk on a worker to an array or CSR matrix of float32 or
float64, and checks it there. Only `y` and `sample_weight` come to this process as a whole. With
``distribute=True`` workers keep their chunks, the rows that change in a round are sent to all of them,
and each answers with the best candidates for the next. On one worker all chunks are brought together
there. Ctrl-C ends either fit as it does one in this process. Local data are cut into blocks and sent.
Predictions of dask collections are lazy: each worker gets one copy of the model. Predictions of local
data are made in this process.
"""
_PARAMETERS = """
client : distributed.Client, default=None
    The cluster to train on; None for the current client. It is not pickled. Within a task only a client that
    is given is used.
distribute : bool or "auto", default="auto"
    Whether to train on all workers; False trains in this process. "auto" trains on one worker if there
    are fewer than 200,000 rows, and says so on stderr in a terminal or if `verbose`, and in the log
    "maxmargin.dask". Local data are trained in this process if there is no client.
"""
_ATTRIBUTES = """
distributed_ : bool
    Whether all workers took part in the training.
traffic_ : Traffic or None
    Counts of rounds, bytes and seconds if they did, see `maxmargin.dask.session.Traffic`.
"""
_EXAMPLES = """
>>> import dask.array as da
>>> from sklearn.datasets import {data}
>>> from maxmargin.dask import {name}
>>> X, y = {data}(return_X_y=True)
>>> X = da.from_array(X, chunks=(100, -1))
>>> model = {name}(distribute=False).fit(X{targets})
>>> model.status_, model.predict(X).chunks
('solved', (({chunks}),))
>>> type(model.to_local())
<class '{kind}'>
"""


def documented(**example: str) -> Callable[[Any], Any]:
    """Complete the docstring of a class, which is a summary, by those of its ordinary estimator.

    Parameters
    ----------
    **example : str
        What the example differs in: data, targets, chunks.

    Returns
    -------
    callable
        A decorator of classes.
    """

    def complete(cls: Any) -> Any:
        local = cls._local_class
        sections, name = _sections(inspect.getdoc(local) or ""), local.__name__
        text = {
            "": f"{cls.__doc__}\n{_NOTES}",
            "Parameters": sections.get("Parameters", "") + _PARAMETERS,
            "Attributes": _ATTRIBUTES + sections.get("Attributes", ""),
            "See Also": f"maxmargin.{name} : The ordinary estimator, with the problem that is solved.",
            "Examples": _EXAMPLES.format(name=name, kind=f"{local.__module__}.{name}", **example),
        }
        cls.__doc__ = "\n\n".join(
            (f"{title}\n{'-' * len(title)}\n" if title else "") + body.strip() for title, body in text.items()
        )
        return cls

    return complete


def _sections(doc: str) -> dict[str, str]:
    """The sections of a numpydoc docstring by their titles."""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", doc, flags=re.MULTILINE)
    return {title: body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}
