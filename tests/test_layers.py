"""Imports point one way: along the pipeline from data to estimators, and without cycles."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
# Each folder may import from itself and from those before it. Those after `model_selection` use the pipeline.
LAYERS = [
    "_types", "_sklearn", "_files", "_compiled", "kernels", "gram", "dual", "solvers", "estimators",
    "model_selection", "data", "persistence", "inspection", "cli",
]  # fmt: skip
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


def imported(path: Path) -> set[str]:
    """Modules of the library that a file imports, at its beginning or later."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("maxmargin")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maxmargin"):
            assert node.module is not None
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in MODULES else node.module)
    return found


def layer(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("module", sorted(MODULES))
def test_a_module_imports_only_what_is_upstream(module):
    if layer(module) in ("", "__main__"):
        return
    own = LAYERS.index(layer(module))
    against = {
        other
        for other in imported(MODULES[module])
        if layer(other) and LAYERS.index(layer(other)) > own and (module, other) not in AGAINST
    }
    assert not against


def test_there_are_no_cycles():
    graph = {
        name: imported(path) - {name} for name, path in MODULES.items() if name not in CYCLES
    }  # a package is what its `__init__` imports
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_exception_is_kept_that_is_not_needed():
    for module, other in AGAINST:
        assert other in imported(MODULES[module])
    assert set(MODULES) >= CYCLES
