"""Imports point one way: along the pipeline from data to estimators, and without cycles."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
# Each folder may import from itself and from those before it. Those after `model_selection` use the pipeline.
LAYERS = [
    "_types", "_costs", "_sklearn", "_files", "_compiled", "kernels", "gram", "dual", "solvers", "estimators",
    "model_selection", "cells", "_warmup", "data", "persistence", "inspection", "dask", "cli",
]  # fmt: skip
# The same within solvers, after the files that are directly in it.
SOLVERS = ["c_path", "batch", "papers", "incremental"]
# The root package has the names of the estimators: to import it is to import them.
ROOT = "estimators"
# Modules that import others by a name that is only known at run time, and why.
BY_NAME = {
    "maxmargin": "estimators when they are first used: `maxmargin --help` needs none",
    "maxmargin._sklearn": "modules of scikit-learn that take long to import, when they are first used",
    "maxmargin.solvers": "public classes of solvers, whose compiled loops take long to import",
    "maxmargin.solvers.registry": "solvers by the names that users give",
    "maxmargin.persistence.models": "classes by the names that model files have",
}
# Imports against the direction that are still there.
AGAINST: set[tuple[str, str]] = set()
# Modules on cycles that are still there.
CYCLES: set[str] = set()


def modules() -> dict[str, Path]:
    found = {}
    for path in (SOURCE / "maxmargin").rglob("*.py"):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()


def names_of_root() -> dict[str, str]:
    """The modules in which the names of the root package are defined."""
    tree = ast.walk(ast.parse(MODULES["maxmargin"].read_text()))  # with the imports for type checkers
    imports = [node for node in tree if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: str(node.module) for node in imports for alias in node.names}


def lazy_names_of_solvers() -> dict[str, str]:
    from maxmargin.solvers import _CLASSES

    return {name: f"maxmargin.solvers.{module}" for name, module in _CLASSES.items()}


# Names that are not defined in the package from which they are imported.
ELSEWHERE = {"maxmargin": names_of_root(), "maxmargin.solvers": lazy_names_of_solvers()}


def imported(text: str) -> set[str]:
    """Modules of the library that a file imports, at its beginning or later."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "maxmargin"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "maxmargin":
            assert node.module is not None
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                defined = ELSEWHERE.get(node.module, {}).get(alias.name, node.module)
                found.add(whole if whole in MODULES else defined)
    return found


def unseen(text: str) -> set[str]:
    """Imports in a file that `imported` does not see: relative ones, and those by name."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            found.add("." * node.level + (node.module or ""))
        name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
        if name in ("import_module", "__import__"):
            found.add(name)
    return found


def place(module: str) -> tuple[int, int]:
    """The layer of a module, and within solvers the folder, as numbers that ascend along the pipeline."""
    parts = [*module.split("."), "", ""]
    layer = parts[1] or ROOT
    folder = parts[2] if layer == "solvers" and parts[2] in SOLVERS else ""
    return LAYERS.index(layer), 1 + SOLVERS.index(folder) if folder else 0


def against(module: str, text: str) -> set[str]:
    """What a module imports from downstream."""
    return {other for other in imported(text) if place(other) > place(module)}


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"maxmargin", "maxmargin.__main__"}))
def test_a_module_imports_only_what_is_upstream(module):
    found = against(module, MODULES[module].read_text())
    assert not {other for other in found if (module, other) not in AGAINST}


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_in_a_way_that_can_be_seen(module):
    found = unseen(MODULES[module].read_text())
    assert found == ({"import_module"} if module in BY_NAME else set())


def test_folders_of_solvers_have_a_place():
    folders = {path.parent.name for path in (SOURCE / "maxmargin" / "solvers").glob("*/__init__.py")}
    assert folders == set(SOLVERS)


@pytest.mark.parametrize(
    ("module", "text", "found"),
    [
        ("maxmargin.gram.gram", "from maxmargin import SVC", {"maxmargin.estimators.svc"}),
        ("maxmargin.gram.gram", "import maxmargin", {"maxmargin"}),
        ("maxmargin.gram.gram", "from maxmargin import __version__", {"maxmargin"}),
        ("maxmargin.model_selection.search", "import maxmargin\nfrom maxmargin import SVC", set()),
        ("maxmargin.gram.gram", "def f():\n from maxmargin.dual import Dual", {"maxmargin.dual"}),
        ("maxmargin.solvers.pairs", "from maxmargin.solvers import Batch", {"maxmargin.solvers.batch"}),
        ("maxmargin.solvers.batch.batch", "import maxmargin.solvers.papers", {"maxmargin.solvers.papers"}),
        ("maxmargin.solvers.papers.smo", "from maxmargin.solvers.batch import Batch", set()),
        ("maxmargin.solvers.batch.batch", "from maxmargin.solvers import costs", set()),
    ],
)  # fmt: skip
def test_an_import_against_the_direction_is_found(module, text, found):
    assert against(module, text) == found


@pytest.mark.parametrize(
    "text",
    [
        "from . import gram",
        "from ..solvers.base import Solver",
        "import importlib\nimportlib.import_module(name)",
        "from importlib import import_module\nimport_module(name)",
        "__import__(name)",
    ],
)
def test_an_import_that_cannot_be_seen_is_found(text):
    assert unseen(text)


def test_there_are_no_cycles():
    graph = {
        name: imported(path.read_text()) - {name} for name, path in MODULES.items() if name not in CYCLES
    }  # a package is what its `__init__` imports
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_exception_is_kept_that_is_not_needed():
    for module, other in AGAINST:
        assert other in imported(MODULES[module].read_text())
    assert set(MODULES) >= CYCLES | set(BY_NAME)
