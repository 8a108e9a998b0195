"""A warm-up: one file from several processes, made once."""

import os
import threading

import pytest

from maxmargin._compiled import cpu, ready_code
from maxmargin._compiled.code_file import CodeFile
from maxmargin._warmup import compile as warm
from maxmargin._warmup import warmup, workloads

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(not cpu.suitable_levels(), reason="no common set of instructions on this CPU"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for the file, and two workloads instead of all."""
    monkeypatch.setenv(ready_code.VARIABLE, str(tmp_path / "code"))
    monkeypatch.setattr(ready_code, "SHIPPED", tmp_path / "none")
    monkeypatch.setattr(
        workloads, "shares", lambda n: [["SVC, laplacian, 200 rows, dense"], ["SVC, 200 rows, dense"]][:n]
    )
    ready_code.choice.cache_clear()
    yield tmp_path / "code"
    ready_code.choice.cache_clear()


def test_shares_are_all_workloads_once():
    everything = list(workloads.workloads())
    for n in (1, 2, 3, 64):
        parts = workloads.shares(n)
        assert len(parts) <= n and sorted(name for part in parts for name in part) == sorted(everything)


def test_functions_of_all_processes_are_in_one_file_that_is_used_at_once(folder):
    seen = []
    path = warmup(2, progress=lambda done, total: seen.append((done, total)))
    file = CodeFile(path)
    assert path.parent == folder and seen == [(1, 2), (2, 2)]
    assert any("dense_l1" in key for key in file.names) and any("solve_whole" in key for key in file.names)
    assert ready_code.choice().file.path == path
    assert sorted(os.listdir(folder)) == [path.name]
    assert warmup(progress=lambda done, total: pytest.fail("nothing was missing")) == path


def test_of_several_calls_at_once_one_compiles_and_the_others_wait(folder, monkeypatch):
    made = []

    def write(level, path, n_jobs, progress):
        made.append(threading.get_ident())
        threading.Event().wait(0.5)
        path.write_bytes(b"")

    monkeypatch.setattr(warm, "write_level", write)
    found = []
    threads = [threading.Thread(target=lambda: found.append(warmup())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and len(set(found)) == 1


def test_a_lock_that_nobody_holds_any_more_is_ignored(folder, monkeypatch):
    monkeypatch.setattr(warm, "ABANDONED", 0.3)
    monkeypatch.setattr(warm, "write_level", lambda level, path, n_jobs, progress: path.write_bytes(b""))
    folder.mkdir()
    path = folder / ready_code.file_name(cpu.suitable_levels()[0])
    path.with_name(path.name + ".lock").touch()
    assert warmup() == path and path.exists()


def test_a_process_that_fails_is_an_error_with_its_message(folder, monkeypatch):
    monkeypatch.setattr(workloads, "shares", lambda n: [["no such workload"]])
    with pytest.raises(RuntimeError, match="no such workload"):
        warmup()
    assert os.listdir(folder) == []


def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_variable(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv(ready_code.VARIABLE, str(tmp_path / "file" / "code"))
    monkeypatch.setattr(ready_code, "SHIPPED", tmp_path / "none")
    ready_code.choice.cache_clear()
    with pytest.raises(OSError, match=ready_code.VARIABLE):
        warmup()
    ready_code.choice.cache_clear()
