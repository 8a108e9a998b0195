"""Cases in processes of their own, with a watchdog: a crash or a hang is a failure of the case alone."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from attacks.outcome import Outcome, generator

PARTS = {
    "certificates": "fits", "unique": "unique", "optimum": "optimum", "searches": "searches",
    "limits": "limits", "files": "files",
}  # fmt: skip
HANG = {
    "certificates": 60.0,
    "unique": 60.0,
    "optimum": 60.0,
    "searches": 180.0,
    "limits": 120.0,
    "files": 60.0,
}
ATTEMPTS = 5  # fits with a limit that seem to take too long; the shortest counts
FIRST = 6.0  # the first cases of a process compile: so many times the limit
MEMORY = 1024  # megabytes that damaged files may take beyond what sound ones do


def run_case(part: str, seed: int, quick: bool) -> Outcome:
    """One case, here and now."""
    module = import_module(f"attacks.{PARTS[part]}")
    if part == "limits":
        return module.run(seed, quick)
    if part == "certificates" and quick:
        return module.run(seed, 700)
    return module.run(seed)


def describe(part: str, seed: int, quick: bool) -> Outcome:
    """The case before it is run, for what does not come to an end."""
    if part == "certificates":
        from attacks.problems import random_problem

        problem = random_problem(generator(part, seed), 700 if quick else 2600)
        return Outcome(problem.difficulty, problem.describe())
    if part == "searches":
        from attacks.searches import Case

        case = Case(seed)
        return Outcome(case.kind, case.describe())
    return Outcome(part)


def _serve(part: str, quick: bool, pipe: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    if part == "files":
        from attacks import files

        for form, of_form in files.model_files().items():
            for content in of_form.values():
                files.outcome(form, content)
        for content in files.data_files().values():
            files.io.BytesIO(content)
        files._search_file()
        status = Path("/proc/self/statm")
        if status.exists():
            now = int(status.read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY * 2**20, resource.RLIM_INFINITY))
    pipe.send("ready")
    while True:
        seed = pipe.recv()
        if seed is None:
            return
        try:
            outcome = run_case(part, seed, quick)
        except BaseException as error:
            import traceback

            outcome = Outcome("attack", "", "error")
            last = traceback.extract_tb(error.__traceback__)[-1]
            outcome.faults.append(f"the attack itself failed: {error!r} ({last.filename}:{last.lineno})")
        pipe.send(outcome)


def _cpu(pid: int) -> float:
    """Seconds of processor time of a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return float("inf")  # not Linux: wall time alone counts


class Worker:
    """A process that runs cases of one part."""

    def __init__(self, part: str, quick: bool) -> None:
        self.part, self.quick = part, quick
        self.process: Any = None

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, end = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.part, self.quick, end), daemon=True)
        self.process.start()
        end.close()
        self.fresh = True
        if self._answer(900.0) != "ready":
            raise RuntimeError(f"the process for {self.part} did not start")

    def _answer(self, limit: float) -> Any:
        """The answer of the process; None if it died or took too long, in wall time and in processor time."""
        began, used = time.perf_counter(), _cpu(self.process.pid)
        while True:
            try:
                if self.pipe.poll(0.2):
                    return self.pipe.recv()
            except (EOFError, OSError):
                return None
            wall = time.perf_counter() - began
            if wall > 10 * limit or (wall > limit and _cpu(self.process.pid) - used > limit):
                return None
            if not self.process.is_alive() and not self.pipe.poll(0):
                return None

    def run(self, seed: int, again: bool = True) -> Outcome:
        """One case."""
        if self.process is None or not self.process.is_alive():
            self._start()
        limit = HANG[self.part]
        began = time.perf_counter()
        self.pipe.send(seed)
        answer = self._answer(limit * (FIRST if self.fresh else 2.0))
        self.fresh = False
        if isinstance(answer, Outcome):
            return answer
        seconds, alive = time.perf_counter() - began, self.process.is_alive()
        code = self.process.exitcode
        self.stop(kill=True)
        if again:  # compiled by now, or a computer that was busy
            return self.run(seed, again=False)
        outcome = describe(self.part, seed, self.quick)
        outcome.answer = "hang" if alive else "crash"
        outcome.faults.append(
            f"hang: no end after {seconds:.0f} s" if alive else f"crash: the process died ({code})"
        )
        return outcome

    def stop(self, kill: bool = False) -> None:
        """End the process."""
        if self.process is None:
            return
        if not kill and self.process.is_alive():
            try:
                self.pipe.send(None)
                self.process.join(5)
            except OSError:
                pass
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.process = None
