"""Tables of the benchmarks: printed, and written to benchmarks/results."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


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
) -> None:
    """Print a table and write it as Markdown and JSON."""
    text = f"# {title}\n\n{markdown(rows)}\n\n" + "".join(f"- {note}\n" for note in notes)
    text += f"\n{_setting()}\n"
    print(text)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text)
    (RESULTS / f"{name}.json").write_text(
        json.dumps({"rows": raw or list(rows), "notes": list(notes)}, indent=1)
    )


def _setting() -> str:
    packages = []
    for package in ("maxmargin", "scikit-learn", "scikit-learn-intelex", "numba", "numpy"):
        try:
            packages.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, " + ", ".join(
        packages
    )
