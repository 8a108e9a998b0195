"""``maxmargin doctor`` and ``maxmargin warmup``."""

import json

import pytest

from maxmargin._compiled import cpu, ready_code
from maxmargin._warmup import workloads
from maxmargin.cli.app import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files are looked for in an empty folder."""
    monkeypatch.setenv(ready_code.VARIABLE, str(tmp_path / "code"))
    monkeypatch.setattr(ready_code, "SHIPPED", tmp_path / "none")
    monkeypatch.setattr(ready_code, "user_folder", lambda: None)
    ready_code.choice.cache_clear()
    yield tmp_path / "code"
    ready_code.choice.cache_clear()


def test_doctor_names_versions_machine_and_the_reason_for_compiling(folder, capsys):
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    for word in ("numba", "scikit-learn", "CPU levels", "threads of a fit", "BLAS", "there is no file"):
        assert word in out


def test_doctor_as_json_has_the_same_facts(folder, capsys):
    assert run(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == {"Versions", "Computer", "Compiled code", "First fit"}
    assert found["Compiled code"]["file"] is None and str(folder) in found["Compiled code"]["why not"][0]
    assert found["First fit"]["seconds"] > 0


def test_doctor_says_that_files_are_turned_off(folder, capsys, monkeypatch):
    monkeypatch.setenv(ready_code.VARIABLE, "0")
    assert run(["doctor"]) == 0
    assert f"{ready_code.VARIABLE} is 0" in capsys.readouterr().out


@pytest.mark.skipif(not cpu.suitable_levels(), reason="no common set of instructions on this CPU")
@pytest.mark.timeout(300)
def test_warmup_writes_a_file_once_and_doctor_finds_it(folder, capsys, monkeypatch):
    monkeypatch.setattr(workloads, "workloads", lambda: {"SVC, hard margin": None})
    assert run(["warmup", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["compiled"] and found["file"].startswith(str(folder))
    assert run(["warmup"]) == 0
    assert "Nothing to compile" in capsys.readouterr().out
    assert run(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["Compiled code"]["file"] == found["file"]


def test_a_folder_that_cannot_be_written_is_one_line_and_exit_code_2(tmp_path, capsys, monkeypatch, folder):
    (tmp_path / "file").touch()
    monkeypatch.setenv(ready_code.VARIABLE, str(tmp_path / "file" / "code"))
    assert run(["warmup"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and ready_code.VARIABLE in error
