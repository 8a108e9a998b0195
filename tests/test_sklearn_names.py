"""What is private in scikit-learn is used through one module, and exists in the installed version."""

import ast
import re
from pathlib import Path

import pytest
from sklearn.metrics import accuracy_score, check_scoring, f1_score, get_scorer, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, _sklearn

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


SCORER = make_scorer(accuracy_score)
# Objects of the kinds that the library works with.
OBJECTS = [
    GridSearchCV, Pipeline, StandardScaler(), SCORER, check_scoring(SVC()),
    check_scoring(SVC(), scoring=["accuracy", "f1"]),
]  # fmt: skip
PRIVATE = {"_estimator_type", "_response_method", "_skl_callbacks", "_init_callback_context"} | {
    name for thing in OBJECTS for name in dir(thing) if re.match(r"_(?!_)", name)
}
# scikit-learn reads it from the classes of this library, which inherit it from each other.
DECLARED = "_parameter_constraints"


def private_attributes(text: str) -> set[str]:
    """Private attributes of scikit-learn's objects that a module reads, unless they are its own."""
    nodes = list(ast.walk(ast.parse(text)))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    foreign = {a.asname or a.name for node in imports if "sklearn" in (node.module or "") for a in node.names}
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in PRIVATE]
    own |= {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    found = {
        node.value for node in nodes if isinstance(node, ast.Constant) and node.value in PRIVATE - {DECLARED}
    }
    for node in attributes:
        of = node.value.id if isinstance(node.value, ast.Name) else ""
        if node.attr == DECLARED and of not in foreign:
            continue
        if of != "self" or node.attr not in own:
            found.add(node.attr)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_does_not_read_private_attributes_of_scikit_learn(path):
    assert not private_attributes(path.read_text())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("scorer._score_func is f", {"_score_func"}),
        ("scorers._scorers", {"_scorers"}),
        ("class A(GridSearchCV):\n def fit(self): self._get_scorers()", {"_get_scorers"}),
        ("getattr(model, '_estimator_type', None)", {"_estimator_type"}),
        ("from sklearn.svm import SVC\nSVC._parameter_constraints", {"_parameter_constraints"}),
        ("from maxmargin import SVC\nSVC._parameter_constraints", set()),
        ("class A:\n def __init__(self, s): self._sign = s\n def get(self): return self._sign", set()),
    ],
)
def test_the_search_for_private_attributes_finds_them(text, names):
    assert private_attributes(text) == names


def test_parts_of_scorers_are_read_in_the_installed_scikit_learn():
    assert _sklearn.scorer_parts(SCORER) == (accuracy_score, 1, {})
    assert _sklearn.scorer_parts(make_scorer(f1_score, average="macro")).options == {"average": "macro"}
    assert _sklearn.scorer_parts(check_scoring(SVC())) is None
    assert _sklearn.is_default_score(check_scoring(SVC())) and not _sklearn.is_default_score(SCORER)
    assert _sklearn.response_methods(SCORER) == ("predict",)
    assert set(_sklearn.response_methods(get_scorer("roc_auc"))) == {"decision_function", "predict_proba"}
    assert _sklearn.response_methods(len) == ()
    assert set(_sklearn.scorers_by_name(OBJECTS[-1])) == {"accuracy", "f1"}
    assert _sklearn.scorers_by_name(SCORER) is None


@pytest.mark.parametrize("name", [*_sklearn.__all__, *_sklearn._ON_DEMAND])
def test_a_name_exists_in_the_installed_scikit_learn(name):
    assert callable(getattr(_sklearn, name))
