"""Links to the documentation of other projects, which also work where a site is built without a network.

Intersphinx loads the list of all names of a project from its site. Where that is not possible it takes the
list that is made here, which has the names that our pages and docstrings mention.
"""

from __future__ import annotations

import zlib
from pathlib import Path

_SITES = {
    "python": "https://docs.python.org/3",
    "numpy": "https://numpy.org/doc/stable",
    "scipy": "https://docs.scipy.org/doc/scipy",
    "sklearn": "https://scikit-learn.org/stable",
    "joblib": "https://joblib.readthedocs.io/en/stable",
    "matplotlib": "https://matplotlib.org/stable",
    "pandas": "https://pandas.pydata.org/docs",
}
# The page of a name on each site; "$" stands for the name.
_SKLEARN, _NUMPY = "modules/generated/$.html#$", "reference/generated/$.html#$"
_NAMES = {
    "numpy": {
        ("function", "numpy.log1p"): _NUMPY,
        ("function", "numpy.linalg.solve"): _NUMPY,
    },
    "sklearn": {
        **{
            ("class", name): _SKLEARN
            for name in (
                "sklearn.svm.SVC", "sklearn.svm.NuSVC", "sklearn.svm.SVR", "sklearn.svm.NuSVR",
                "sklearn.svm.OneClassSVM", "sklearn.svm.LinearSVC", "sklearn.svm.LinearSVR",
                "sklearn.ensemble.IsolationForest", "sklearn.model_selection.GridSearchCV",
                "sklearn.model_selection.RandomizedSearchCV",
            )
        },
        **{
            ("function", name): _SKLEARN
            for name in ("sklearn.metrics.d2_pinball_score", "sklearn.model_selection.cross_val_score")
        },
    },
    "joblib": {("class", "joblib.parallel_config"): "generated/$.html#$"},
}  # fmt: skip


def inventory(project: str) -> bytes:
    """The list of a project in the format of ``objects.inv``.

    >>> inventory("joblib").splitlines()[1]
    b'# Project: joblib'
    """
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    rows = [
        f"{name} py:{kind} 1 {page.replace('$', name)} -\n"
        for (kind, name), page in _NAMES.get(project, {}).items()
    ]
    return head.encode() + zlib.compress("".join(rows).encode())


def mapping(folder: Path) -> dict[str, tuple[str, tuple[str | None, str]]]:
    """The setting ``intersphinx_mapping``; lists for builds without a network are written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    out: dict[str, tuple[str, tuple[str | None, str]]] = {}
    for project, site in _SITES.items():
        path = folder / f"{project}.inv"
        path.write_bytes(inventory(project))
        out[project] = (site, (None, str(path)))
    return out
