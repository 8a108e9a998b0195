"""Run the workloads in several processes and put what they compiled into one file."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from maxmargin._compiled import ready_code
from maxmargin._compiled.announce import logger
from maxmargin._compiled.code_file import CodeFile, write_code
from maxmargin._compiled.cpu import Level, suitable_levels
from maxmargin._compiled.threads import effective_n_jobs
from maxmargin._warmup import workloads

Progress = Callable[[int, int], object]
#: Seconds without a sign of life after which another process's lock is ignored.
ABANDONED = 120.0


def compile_all(n_jobs: int | None = None, progress: Progress | None = None) -> Path | None:
    """See `maxmargin.warmup`."""
    found = ready_code.choice().file
    if found is not None:
        return found.path
    levels = suitable_levels()
    if not levels or ready_code.changed_settings() or os.environ.get(ready_code.VARIABLE) == "0":
        workloads.run(report=_counter(len(workloads.workloads()), progress))
        return None
    path = ready_code.user_folder() / ready_code.file_name(levels[0])
    with _alone(path) as first:
        if first or not path.is_file():
            write_level(levels[0], path, n_jobs, progress)
    ready_code.choice.cache_clear()
    return path


def write_level(
    level: Level, path: Path, n_jobs: int | None = None, progress: Progress | None = None
) -> None:
    """Compile everything for one level of CPU, which this one must have, into a file.

    Raises
    ------
    RuntimeError
        If a process failed.
    """
    parts = workloads.shares(effective_n_jobs(n_jobs))
    report = _counter(sum(len(part) for part in parts), progress)
    with tempfile.TemporaryDirectory(prefix="maxmargin-code-") as folder:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "maxmargin._warmup.record", level.name, f"{folder}/{k}", str(k)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=_environment(),
            )
            for k in range(len(parts))
        ]  # fmt: skip
        try:
            errors = _talk(processes, parts, report)
        finally:
            for process in processes:
                process.kill()
                process.wait()
        for process, error in zip(processes, errors, strict=True):
            if process.returncode:
                raise RuntimeError(f"a process that compiles has failed: {error.strip()[-2000:]}")
            if error.strip():
                logger.warning("%s", error.strip())
        entries: dict[str, bytes] = {}
        for k in range(len(parts)):
            file = CodeFile(Path(folder) / str(k))
            entries.update((name, file.read(name) or b"") for name in file.names if name not in entries)
    write_code(path, ready_code.made_for(level), entries)


def _talk(
    processes: list[subprocess.Popen[str]], parts: list[list[str]], report: Callable[[str], None]
) -> list[str]:
    """Send each process its workloads, and read what it says until it ends; its errors."""
    errors = [""] * len(processes)

    def listen(k: int) -> None:
        process = processes[k]
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write("\n".join(parts[k]))
        process.stdin.close()
        complaints = threading.Thread(target=lambda: errors.__setitem__(k, process.stderr.read()))  # type: ignore[union-attr]
        complaints.start()
        for line in process.stdout:
            report(line.strip())
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
def _alone(path: Path) -> Iterator[bool]:
    """Hold a lock beside a file; False if another process held it and has ended its work meanwhile."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = path.with_name(path.name + ".lock")
        waited = False
        while True:
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                break
            except FileExistsError:
                waited = True
                with contextlib.suppress(FileNotFoundError):
                    if time.time() - lock.stat().st_mtime > ABANDONED:
                        lock.unlink(missing_ok=True)
                time.sleep(0.2)
    except OSError as error:
        raise PermissionError(
            f"Compiled code cannot be written to {path.parent} ({error.strerror}). Set the environment "
            f"variable {ready_code.VARIABLE} to a folder that all processes that train can read."
        ) from error
    stop = threading.Event()

    def live() -> None:
        while not stop.wait(ABANDONED / 4):
            with contextlib.suppress(OSError):
                os.utime(lock)

    threading.Thread(target=live, daemon=True).start()
    try:
        yield not waited
    finally:
        stop.set()
        lock.unlink(missing_ok=True)
