"""Run the workloads in several processes and put what they compiled into one file."""

from __future__ import annotations

import collections
import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import filelock
import numba

from maxmargin._compiled import ready_code
from maxmargin._compiled.announce import logger
from maxmargin._compiled.code_file import write_code
from maxmargin._compiled.cpu import Level, suitable_levels
from maxmargin._compiled.threads import effective_n_jobs
from maxmargin._warmup import workloads
from maxmargin._warmup.entries import Entries

Progress = Callable[[int, int], object]
#: Seconds after which it is said that another process compiles.
PATIENCE = 1.0


def compile_all(n_jobs: int | None = None, progress: Progress | None = None) -> Path | None:
    """See `maxmargin.warmup`."""
    if numba.config.DISABLE_JIT:
        raise ValueError("Nothing can be compiled: the environment variable NUMBA_DISABLE_JIT is set.")
    found = _usable()
    if found is not None:
        return found
    levels = suitable_levels()
    if not levels or ready_code.changed_settings() or os.environ.get(ready_code.VARIABLE) == "0":
        workloads.run(report=_counter(len(workloads.workloads()), progress))
        return None
    folder = ready_code.chosen_folder() or ready_code.user_folder()
    if folder is None:
        raise PermissionError(f"There is no home folder for compiled code. {_ADVICE}")
    path = folder / ready_code.file_name(levels[0])
    with _alone(path):
        found = _usable()  # of another process, for which this one has waited
        if found is None:
            write_level(levels[0], path, n_jobs, progress)
    ready_code.choice.cache_clear()
    return found or path


_ADVICE = (
    f"Set the environment variable {ready_code.VARIABLE} to a folder that all processes that train can read."
)


def _usable() -> Path | None:
    """The file that fits use, if there is one and all of it can be read."""
    ready_code.choice.cache_clear()
    file = ready_code.choice().file
    if file is None:
        return None
    if not file.damaged():
        return file.path
    if file.path.parent == ready_code.SHIPPED:
        raise RuntimeError(f"{file.path} is damaged: install maxmargin again.")
    return None


def write_level(
    level: Level, path: Path, n_jobs: int | None = None, progress: Progress | None = None
) -> None:
    """Compile everything for one level of CPU, which this one must have, into a file.

    Raises
    ------
    RuntimeError
        If a process failed.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: remove it.")
    made_for = ready_code.made_for(level)  # of the sources before anything is compiled
    names = list(workloads.workloads())
    report = _counter(len(names), progress)
    with tempfile.TemporaryDirectory(prefix="maxmargin-code-") as folder:
        processes = [
            subprocess.Popen(
                [sys.executable, "-P", "-m", "maxmargin._warmup.record", level.name, folder, str(k),
                 made_for["sources"]],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=_environment(),
            )
            for k in range(min(effective_n_jobs(n_jobs), len(names)))
        ]  # fmt: skip
        try:
            errors = _talk(processes, names, report)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        for process, error in zip(processes, errors, strict=True):
            if process.returncode:
                raise RuntimeError(f"a process that compiles has failed: {error.strip()[-2000:]}")
            if error.strip():
                logger.warning("%s", error.strip())
        if ready_code.changed_since_import():
            raise RuntimeError(
                "The sources of maxmargin have changed while they were compiled: run it again."
            )
        write_code(path, made_for, dict(Entries(Path(folder))))


def _talk(
    processes: list[subprocess.Popen[str]], names: list[str], report: Callable[[str], None]
) -> list[str]:
    """Send each process a workload whenever it has done one; returns what they wrote to standard error.

    Every other process takes them from the end: neighbours use the same functions, which one is to compile.
    """
    errors = [""] * len(processes)
    todo = collections.deque(names)

    def next_name(k: int) -> str | None:
        try:
            return todo.pop() if k % 2 else todo.popleft()
        except IndexError:
            return None

    def listen(k: int) -> None:
        process = processes[k]
        assert process.stdin and process.stdout and process.stderr
        complaints = threading.Thread(target=lambda: errors.__setitem__(k, process.stderr.read()))  # type: ignore[union-attr]
        complaints.start()
        with contextlib.suppress(OSError):  # a process that has failed does not read
            name = next_name(k)
            while name is not None:
                process.stdin.write(f"{name}\n")
                process.stdin.flush()
                if not process.stdout.readline():
                    break
                report(name)
                name = next_name(k)
            process.stdin.close()
        complaints.join()
        process.wait()

    threads = [threading.Thread(target=listen, args=(k,), daemon=True) for k in range(len(processes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():  # a join without a limit would not let Ctrl-C through
            thread.join(0.2)
    return errors


def _environment() -> dict[str, str]:
    """For code that does not depend on settings of this user, with this copy of the package."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    sources = str(ready_code.PACKAGE.parent)
    path = os.pathsep.join([sources, *filter(None, [kept.get("PYTHONPATH")])])
    return {
        **kept,
        "PYTHONPATH": path,
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }


def _counter(total: int, progress: Progress | None) -> Callable[[str], None]:
    done = 0
    lock = threading.Lock()

    def report(name: str) -> None:
        nonlocal done
        with lock:
            done += 1
            if progress is not None:
                progress(done, total)

    return report


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock beside a file; the system releases that of a process that was killed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(path.with_name(path.name + ".lock"))
        try:
            lock.acquire(timeout=PATIENCE)
        except filelock.Timeout:
            logger.warning("waiting for another process that compiles into %s", path)
            lock.acquire(poll_interval=0.2)
    except OSError as error:
        raise PermissionError(
            f"Compiled code cannot be written to {path.parent} ({error.strerror}). {_ADVICE}"
        ) from error
    try:
        yield
    finally:
        lock.release()
