"""Estimators that train on the workers of a dask cluster, with lazy predictions of dask collections.

The parameters are those of the estimators of the same names in `maxmargin`, with two more: `client` and
`distribute`. ``pip install "maxmargin[dask]"`` installs what is needed.
"""

from importlib.util import find_spec

_MISSING = [name for name in ("dask", "distributed") if find_spec(name) is None]
if _MISSING:
    raise ImportError(
        f'maxmargin.dask needs {" and ".join(_MISSING)}, not installed here: pip install "maxmargin[dask]".'
    )

from maxmargin.dask.cells import CellSVC, CellSVR  # noqa: E402
from maxmargin.dask.estimators import SVC, SVR, NuSVC, NuSVR, OneClassSVM  # noqa: E402

__all__ = ["SVC", "SVR", "CellSVC", "CellSVR", "NuSVC", "NuSVR", "OneClassSVM"]
