"""The files for contributors name files that exist, and load as their formats demand."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import markdown_blocks as markdown

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import lower_bounds  # noqa: E402

PAGES = ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"]
YAML = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / ".github").rglob("*.yml"))
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def loaded(name):
    return pytest.importorskip("yaml").safe_load(read(name))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_to_files_and_headings_that_exist(page):
    for line, target in markdown.links(read(page)):
        if not target.startswith("https:"):
            path, _, anchor = target.partition("#")
            assert (ROOT / path).exists(), f"{page}, line {line}: {target}"
            assert not anchor or anchor in markdown.anchors(read(path)), f"{page}, line {line}: {target}"


@pytest.mark.parametrize("page", PAGES)
def test_paths_in_the_text_exist(page):
    paths = re.findall(r"`((?:\.ci|\.github|benchmarks|docs|examples|src|tests|tools)/[^`<\s]*)`", read(page))
    assert [path for path in paths if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", [*YAML, ".pre-commit-config.yaml"])
def test_yaml_files_load(name):
    assert isinstance(loaded(name), dict)


def test_the_citation_has_the_required_keys_and_the_five_papers():
    citation = loaded("CITATION.cff")
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert {"message", "title", "authors", "version", "date-released"} <= set(citation)
    assert len(citation["references"]) == 5
    for paper in citation["references"]:
        assert {"type", "title", "authors", "year"} <= set(paper)
        assert all({"given-names", "family-names"} == set(author) for author in paper["authors"])


def test_classifiers_and_workflows_name_the_same_pythons():
    settings = tomllib.loads(read("pyproject.toml"))["project"]
    named = [c.rsplit(" ", 1)[1] for c in settings["classifiers"] if re.search(r":: 3\.\d+$", c)]
    assert named == PYTHONS and settings["requires-python"] == f">={PYTHONS[0]}"
    assert loaded(".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]["python"] == PYTHONS


def test_every_dependency_has_a_lower_bound_that_ci_installs():
    dependencies = tomllib.loads(read("pyproject.toml"))["project"]["dependencies"]
    assert len(lower_bounds.lowest(dependencies)) == len(dependencies)
    with pytest.raises(ValueError, match="lower bound"):
        lower_bounds.lowest(["numpy"])
