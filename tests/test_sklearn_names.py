"""Private names of scikit-learn are used through one module, and exist in the installed version."""

import ast
import re
from pathlib import Path

import pytest

from maxmargin import _sklearn

SOURCE = Path(__file__).parents[1] / "src" / "maxmargin"
MODULES = sorted(path for path in SOURCE.rglob("*.py") if path.name != "_sklearn.py")


def private_names(text: str) -> set[str]:
    """What a module imports from private modules of scikit-learn, or under private names."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sklearn"):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name for name in names if re.search(r"\._(?!_)", name)}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_does_not_import_private_names_of_scikit_learn(path):
    assert not private_names(path.read_text())


def test_the_search_for_private_names_finds_them():
    assert private_names("from sklearn.utils import _safe_indexing, shuffle") == {
        "sklearn.utils._safe_indexing"
    }
    assert private_names("from sklearn.utils._tags import Tags") == {"sklearn.utils._tags.Tags"}


@pytest.mark.parametrize("name", [*_sklearn.__all__, *_sklearn._ON_DEMAND])
def test_a_name_exists_in_the_installed_scikit_learn(name):
    assert callable(getattr(_sklearn, name))
