"""Every example runs, quickly, and writes the picture that it says it writes."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))
NEEDS = {"dask_search": "distributed", "pipeline_and_pandas": "pandas"}


def run(script, folder, *arguments):
    done = subprocess.run(
        [sys.executable, str(script), *arguments], cwd=folder, capture_output=True, text=True, timeout=240,
        env={**os.environ, "MPLBACKEND": "Agg"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def test_there_are_examples():
    names = (
        "boundary", "explanations", "hulls", "incremental", "kernels", "quantiles", "regression", "search",
        "solvers", "targets",
    )  # fmt: skip
    pictures = {f"plot_{name}" for name in names}
    assert pictures <= {path.stem for path in EXAMPLES}


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_says_what_it_shows(script):
    text = ast.get_docstring(ast.parse(script.read_text()))
    assert text is not None and len(text.split("\n\n")) >= 2


@pytest.mark.parametrize("script", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_without_warnings_and_writes_its_picture_only(script, tmp_path):
    pytest.importorskip(NEEDS.get(script.stem, "matplotlib"))
    pytest.importorskip("matplotlib")
    done = run(script, tmp_path)
    assert done.stdout.strip()
    assert "Warning" not in done.stderr
    if '"--out"' not in script.read_text():
        assert not list(tmp_path.iterdir())
        return
    picture = tmp_path / f"{script.stem}.png"
    assert list(tmp_path.iterdir()) == [picture]
    assert f"The picture is in {picture.name}." in done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 10_000


def test_a_picture_is_written_where_it_is_asked_for(tmp_path):
    pytest.importorskip("matplotlib")
    script = next(path for path in EXAMPLES if path.stem == "plot_hulls")
    run(script, tmp_path, "--out", "other.png")
    assert [path.name for path in tmp_path.iterdir()] == ["other.png"]


def test_without_dask_the_search_says_so(tmp_path):
    (tmp_path / "distributed.py").write_text("raise ImportError\n")
    script = next(path for path in EXAMPLES if path.stem == "dask_search")
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=240,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
    )  # fmt: skip
    assert done.returncode == 0 and "pip install 'maxmargin[dask]'" in done.stdout
