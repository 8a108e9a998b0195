"""One place states the version, and everything that reports a version takes it from there."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import maxmargin

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import report  # noqa: E402


def test_the_build_reads_the_version_from_the_package():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in settings["project"]["dynamic"] and "version" not in settings["project"]
    source = (ROOT / settings["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE) == [maxmargin.__version__]


def test_the_version_has_the_form_of_a_release_or_a_development_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+|\.dev\d+)?", maxmargin.__version__)


def test_the_command_line_shows_the_version():
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", "--version"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == f"maxmargin {maxmargin.__version__}\n"


def test_benchmark_reports_state_the_version():
    assert report.run(threads=1, repetitions=1)["versions"]["maxmargin"] == maxmargin.__version__


def test_onnx_files_state_the_version():
    pytest.importorskip("onnx")
    from maxmargin.persistence import to_onnx

    graph = to_onnx(maxmargin.SVC(kernel="linear").fit(np.eye(2), [0, 1]))
    assert (graph.producer_name, graph.producer_version) == ("maxmargin", maxmargin.__version__)


def test_the_citation_names_a_version_of_the_changelog():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version = re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1]
    date = re.search(r"^date-released: (\S+)$", citation, re.MULTILINE)[1]
    assert f"\n## [{version}] - {date}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if "dev" not in maxmargin.__version__:
        assert version == maxmargin.__version__
