"""A warm-up: one file from several processes, made once."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from maxmargin._compiled import cpu, ready_code
from maxmargin._compiled.code_file import CodeFile, write_code
from maxmargin._warmup import compile as warm
from maxmargin._warmup import warmup, workloads
from maxmargin._warmup.entries import Entries

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not cpu.suitable_levels(), reason="no common set of instructions on this CPU"),
]


def keep(monkeypatch, *names):
    monkeypatch.setattr(workloads, "workloads", lambda: dict.fromkeys(names))


@pytest.fixture
def apart(tmp_path, monkeypatch):
    """No code but that of the test: whoever runs the tests may have compiled all of it.

    In this process, and in those that it starts.
    """
    monkeypatch.setattr(ready_code, "SHIPPED", tmp_path / "none")
    monkeypatch.setattr(ready_code, "user_folder", lambda: None)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


@pytest.fixture
def folder(tmp_path, monkeypatch, apart):
    """A folder for the file, and two workloads instead of all."""
    monkeypatch.setenv(ready_code.VARIABLE, str(tmp_path / "code"))
    keep(monkeypatch, "SVC, laplacian, 200 rows, dense", "SVC, 200 rows, dense")
    ready_code.choice.cache_clear()
    yield tmp_path / "code"
    ready_code.choice.cache_clear()


def test_functions_of_all_processes_are_in_one_file_that_is_used_at_once(folder):
    seen = []
    path = warmup(2, progress=lambda done, total: seen.append((done, total)))
    file = CodeFile(path)
    assert path.parent == folder and seen == [(1, 2), (2, 2)]
    assert any("dense_l1" in key for key in file.names) and any("solve_whole" in key for key in file.names)
    assert ready_code.choice().file.path == path
    assert [name for name in os.listdir(folder) if not name.endswith(".lock")] == [path.name]
    assert warmup(progress=lambda done, total: pytest.fail("nothing was missing")) == path


def test_a_function_that_another_process_has_compiled_is_read(tmp_path):
    entries = Entries(tmp_path)
    assert "f()" not in entries and len(entries) == 0
    entries["f()"], entries["g(int64)"] = b"code", b"\0 more"
    assert dict(Entries(tmp_path)) == {"f()": b"code", "g(int64)": b"\0 more"}
    del entries["f()"]
    assert list(entries) == ["g(int64)"]


def test_of_several_calls_at_once_one_compiles_and_the_others_wait(folder, monkeypatch, caplog):
    made = []

    def write(level, path, n_jobs, progress):
        made.append(threading.get_ident())
        threading.Event().wait(0.5)
        write_code(path, ready_code.made_for(level), {})

    monkeypatch.setattr(warm, "write_level", write)
    monkeypatch.setattr(warm, "PATIENCE", 0.1)
    found = []
    with caplog.at_level("WARNING", logger="maxmargin"):
        threads = [threading.Thread(target=lambda: found.append(warmup())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(made) == 1 and len(set(found)) == 1
    assert "waiting for another process" in caplog.text


def test_a_lock_file_that_nobody_holds_is_no_obstacle(folder, monkeypatch):
    monkeypatch.setattr(
        warm, "write_level", lambda level, path, *_: write_code(path, ready_code.made_for(level), {})
    )
    folder.mkdir()
    path = folder / ready_code.file_name(cpu.suitable_levels()[0])
    path.with_name(path.name + ".lock").touch()
    assert warmup() == path and path.exists()


@pytest.mark.parametrize("fault", ["stale", "damaged", "empty"])
def test_a_file_that_cannot_be_used_is_made_again(fault, folder, monkeypatch):
    level = cpu.suitable_levels()[0]
    path, good = folder / ready_code.file_name(level), ready_code.made_for(level)
    if fault == "stale":
        write_code(path, {**good, "sources": "others"}, {"f()": b"x"})
    elif fault == "damaged":
        write_code(path, good, {"f()": b"some code"})
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    else:
        folder.mkdir()
        path.touch()
    monkeypatch.setattr(warm, "write_level", lambda level, path, *_: write_code(path, good, {"f()": b"new"}))
    assert warmup() == path
    assert ready_code.choice().file.read("f()") == b"new"


def test_sources_that_change_while_they_are_compiled_give_no_file(folder, monkeypatch):
    keep(monkeypatch, "SVC, laplacian, 200 rows, dense")
    monkeypatch.setattr(ready_code, "changed_since_import", iter([False, False, True]).__next__)
    with pytest.raises(RuntimeError, match="changed while they were compiled"):
        warmup()
    assert not list(folder.glob("*.bin"))


def test_modules_in_the_current_folder_are_not_run(folder, monkeypatch, tmp_path):
    (tmp_path / "secrets.py").write_text("raise SystemExit('a module of the current folder ran')")
    monkeypatch.chdir(tmp_path)
    keep(monkeypatch, "SVC, laplacian, 200 rows, dense")
    assert warmup().is_file()


@pytest.mark.skipif(not hasattr(os, "getppid") or sys.platform == "win32", reason="POSIX signals")
def test_a_warm_up_that_is_terminated_leaves_no_process_and_no_temporary_folder(tmp_path, apart):
    environment = {**os.environ, ready_code.VARIABLE: str(tmp_path / "code"), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "maxmargin", "warmup", "--jobs", "1"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE) as process:
        while not list(tmp_path.glob("maxmargin-code-*")):
            assert process.poll() is None
            time.sleep(0.1)
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 128 + signal.SIGTERM
    assert not list(tmp_path.glob("maxmargin-code-*"))


def test_a_process_that_fails_is_an_error_with_its_message(folder, monkeypatch):
    keep(monkeypatch, "no such workload")
    with pytest.raises(RuntimeError, match="no such workload"):
        warmup()
    assert not list(folder.glob("*.bin"))


def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_variable(tmp_path, monkeypatch, apart):
    (tmp_path / "file").touch()
    monkeypatch.setenv(ready_code.VARIABLE, str(tmp_path / "file" / "code"))
    ready_code.choice.cache_clear()
    with pytest.raises(OSError, match=ready_code.VARIABLE):
        warmup()
    ready_code.choice.cache_clear()
