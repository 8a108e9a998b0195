"""The hook that puts compiled code into a wheel."""

import importlib.util
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
pytest.importorskip("hatchling")


@pytest.fixture
def hook(monkeypatch, tmp_path):
    """The hook of a wheel, whose messages are kept; nothing is compiled."""
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    said = []
    app = SimpleNamespace(display_info=said.append)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(module.tempfile, "tempdir", None)
    monkeypatch.delenv("MAXMARGIN_BUILD_CODE", raising=False)
    made = module.CodeHook(str(ROOT), {}, None, None, str(tmp_path), "wheel", app=app)
    made.said = said
    return made


def answer(monkeypatch, code=0, error="", writes=True):
    """Replace the process that compiles; returns its calls."""
    calls = []

    def run(command, env, **options):
        calls.append((command, env))
        if writes:
            (Path(command[-2]) / "level.bin").touch()
        return SimpleNamespace(returncode=code, stderr=error, stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    return calls


def built(hook, version="standard"):
    data = {"force_include": {}}
    hook.initialize(version, data)
    return data


def test_the_packages_of_an_isolated_build_reach_the_process_that_compiles(hook, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "packages of the build")
    calls = answer(monkeypatch)
    data = built(hook)
    path = calls[0][1]["PYTHONPATH"].split(os.pathsep)
    assert path == [str(ROOT / "src"), "packages of the build"]
    assert list(data["force_include"].values()) == ["maxmargin/_code/level.bin"] and not data["pure_python"]


@pytest.mark.parametrize("given", ["none", " NONE ", "0"])
def test_nothing_is_compiled_if_nobody_wants_it(given, hook, monkeypatch):
    calls = answer(monkeypatch)
    monkeypatch.setenv("MAXMARGIN_BUILD_CODE", given)
    assert built(hook) == {"force_include": {}} and not calls
    monkeypatch.delenv("MAXMARGIN_BUILD_CODE")
    assert built(hook, "editable") == {"force_include": {}} and not calls


@pytest.mark.parametrize(
    ("given", "levels"), [("", "host"), ("x86-64-v4, x86-64-v3", "x86-64-v4,x86-64-v3"), ("ALL", "all")]
)
def test_levels_can_be_chosen(given, levels, hook, monkeypatch):
    calls = answer(monkeypatch)
    monkeypatch.setenv("MAXMARGIN_BUILD_CODE", given)
    built(hook)
    assert calls[0][0][-1] == levels


def test_a_failure_gives_a_wheel_of_pure_python_and_says_why(hook, monkeypatch, tmp_path):
    answer(monkeypatch, code=1, error="Traceback\nMemoryError: too little")
    assert built(hook) == {"force_include": {}}
    assert "MemoryError: too little" in hook.said[-1]
    assert not list(tmp_path.iterdir())


def test_a_failure_is_an_error_where_code_was_asked_for(hook, monkeypatch):
    answer(monkeypatch, code=1, error="This CPU cannot run code for x.")
    monkeypatch.setenv("MAXMARGIN_BUILD_CODE", "x")
    with pytest.raises(RuntimeError, match="cannot run code for x"):
        built(hook)


def test_a_wheel_without_files_is_pure_python(hook, monkeypatch):
    answer(monkeypatch, writes=False)
    assert built(hook) == {"force_include": {}}
    assert "no level for this CPU" in hook.said[-1]
