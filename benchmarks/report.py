"""Tables of the benchmarks: printed, and written to benchmarks/results with the run that made them."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"
PACKAGES = ("scikit-learn", "scikit-learn-intelex", "numba", "numpy")
# The keys of the description of a run in every result file.
RUN_KEYS = ("command", "commit", "date", "versions", "python", "machine", "threads", "repetitions")


def geometric_mean(values: Sequence[float]) -> float:
    """exp of the mean logarithm."""
    return float(np.exp(np.mean(np.log(values))))


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A table with one line per dict."""
    if not rows:
        return "(no rows)"
    titles = list(rows[0])
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    lines += ["| " + " | ".join(str(row.get(t, "")) for t in titles) + " |" for row in rows]
    return "\n".join(lines)


def write(
    name: str,
    title: str,
    rows: Sequence[dict[str, Any]],
    notes: Sequence[str] = (),
    raw: Any = None,
    *,
    threads: int | str,
    repetitions: int | str,
    keep: bool = False,
) -> None:
    """Print a table and write it as Markdown and JSON.

    `threads` and `repetitions` say how the figures were taken ("best of 3"). With `keep`, rows of earlier
    runs are among the rows: these runs stay on record.
    """
    path = RESULTS / f"{name}.json"
    this = run(threads, repetitions)
    earlier: list[dict[str, Any]] = []
    if keep and path.exists():
        before = json.loads(path.read_text())
        earlier = [*before.get("earlier_runs", []), *([before["run"]] if "run" in before else [])]
    text = f"# {title}\n\n{markdown(rows)}\n\n" + "".join(f"- {note}\n" for note in notes)
    text += f"\n{described(this)}\n"
    text += "".join(f"\nSome rows are of an earlier run. {described(e)}\n" for e in earlier)
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    content = {"rows": raw or list(rows), "notes": list(notes), "run": this}
    path.write_text(json.dumps({**content, "earlier_runs": earlier} if earlier else content, indent=1))


def run(threads: int | str, repetitions: int | str) -> dict[str, Any]:
    """The run that is under way: command, commit, date, versions, computer, threads and repetitions."""
    import maxmargin  # not above: programs that time other libraries do not import it

    # The version of the tree that is imported; the metadata may be those of another one.
    versions = {"maxmargin": maxmargin.__version__}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "command": command(sys.argv),
        "commit": commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "versions": versions,
        "python": platform.python_version(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}",
        "threads": threads,
        "repetitions": repetitions,
    }


def command(argv: Sequence[str]) -> str:
    """The command line, with the program's path in the repository."""
    program = Path(argv[0]).resolve()
    shown = program.relative_to(ROOT).as_posix() if program.is_relative_to(ROOT) else program.name
    return "python " + shlex.join([shown, *argv[1:]])


def commit() -> str:
    """The commit that is checked out, and whether the code differs from it."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        name = git("rev-parse", "--short", "HEAD")
        changed = git("status", "--porcelain", "--", "src", "benchmarks", ":!benchmarks/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown (no repository)"
    return f"{name} with uncommitted changes" if changed else name


def described(this: dict[str, Any]) -> str:
    """Two sentences about a run, for the end of a table."""
    packages = ", ".join(f"{name} {number}" for name, number in this["versions"].items())
    note = f" {this['note']}." if "note" in this else ""
    return (
        f"`{this['command']}`, commit {this['commit']}, {this['date']}; threads: {this['threads']}; "
        f"repetitions: {this['repetitions']}.{note} {this['machine']}, Python {this['python']}, {packages}."
    )
