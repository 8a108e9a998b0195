"""Compile in advance everything that fits may need, and keep it in a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def warmup(n_jobs: int | None = None, *, progress: Callable[[int, int], object] | None = None) -> Path | None:
    """Compile everything that is missing, so that no fit has to.

    For Dockerfiles, continuous integration and clusters: the result is a file in the cache folder of the
    user, or in the folder that the environment variable ``MAXMARGIN_CODE`` names (a shared one serves a whole
    cluster). It is used by every later process with the same Python, Numba and version of this package, on
    any CPU that has the instructions of this one. Where the package was installed with compiled code there is
    nothing to do.

    Several calls at once (from the workers of a cluster) do the work once: the others wait for it.

    Parameters
    ----------
    n_jobs : int, default=None
        Number of processes; None for one per core.
    progress : callable, default=None
        Called with the number of finished steps and their total.

    Returns
    -------
    path : Path or None
        The file that is used from now on; None where this CPU has no common set of instructions: functions
        are then kept in Numba's cache.

    Examples
    --------
    In a Dockerfile::

        RUN maxmargin warmup

    On the workers of a dask cluster::

        client.run(maxmargin.warmup)
    """
    from maxmargin._warmup.compile import compile_all

    return compile_all(n_jobs, progress)
