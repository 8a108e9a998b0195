"""Links to the documentation of other projects, for builds without a network.

Intersphinx usually loads the list of all names of a project from its site. Here the lists are made from the
installed packages, whose sites have one page for each name, at an address that follows from it. So a site is
the same wherever it is built.
"""

from __future__ import annotations

import inspect
import zlib
from importlib import import_module
from pathlib import Path

# The site of each project, the address of a name's page ("$"), and the modules whose names have pages.
PROJECTS = {
    "numpy": (
        "https://numpy.org/doc/stable",
        "reference/generated/$.html#$",
        ("numpy", "numpy.linalg"),
    ),
    "scipy": (
        "https://docs.scipy.org/doc/scipy",
        "reference/generated/$.html#$",
        ("scipy.sparse",),
    ),
    "sklearn": (
        "https://scikit-learn.org/stable",
        "modules/generated/$.html#$",
        (
            "sklearn.calibration", "sklearn.compose", "sklearn.datasets", "sklearn.ensemble",
            "sklearn.impute", "sklearn.inspection", "sklearn.linear_model", "sklearn.metrics",
            "sklearn.model_selection", "sklearn.multiclass", "sklearn.pipeline", "sklearn.preprocessing",
            "sklearn.svm",
        ),
    ),
    "joblib": (
        "https://joblib.readthedocs.io/en/stable",
        "generated/$.html#$",
        ("joblib",),
    ),
}  # fmt: skip


def names(module: str) -> dict[str, str]:
    """The kinds of the public classes and functions of a module, by full name.

    >>> names("sklearn.svm")["sklearn.svm.LinearSVC"]
    'class'
    """
    found = {}
    owner = import_module(module)
    for name in getattr(owner, "__all__", dir(owner)):
        thing = vars(owner).get(name)  # without what is imported on demand
        if not name.startswith("_") and callable(thing):
            found[f"{module}.{name}"] = "class" if inspect.isclass(thing) else "function"
    return found


def inventory(project: str) -> bytes:
    """The list of a project in the format of ``objects.inv``."""
    _, page, modules = PROJECTS[project]
    head = f"# Sphinx inventory version 2\n# Project: {project}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    rows = [
        f"{name} py:{kind} 1 {page.replace('$', name)} -\n"
        for module in modules
        for name, kind in sorted(names(module).items())
    ]
    return head.encode() + zlib.compress("".join(rows).encode())


def mapping(folder: Path) -> dict[str, tuple[str, str]]:
    """The setting ``intersphinx_mapping``; the lists are written to `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for project in PROJECTS:
        (folder / f"{project}.inv").write_bytes(inventory(project))
    return {project: (site, str(folder / f"{project}.inv")) for project, (site, *_) in PROJECTS.items()}
