"""Files and plots depend on the public side of estimators."""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "maxmargin"
USERS = sorted(path for folder in ("persistence", "inspection") for path in (SOURCE / folder).glob("*.py"))


def private_attributes(text):
    """Private attributes of other objects than a method's own."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own:
                found.add(ast.unparse(node))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "setattr", "hasattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and str(name.value).startswith("_"):
                found.add(ast.unparse(node))
    return found


@pytest.mark.parametrize("path", USERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_module_reads_no_private_attributes_of_estimators(path):
    assert not private_attributes(path.read_text())


def test_the_search_for_private_attributes_finds_them():
    found = private_attributes("model._gamma; self._own; setattr(model, '_sparse', True); model.__dict__")
    assert found == {"model._gamma", "setattr(model, '_sparse', True)"}
