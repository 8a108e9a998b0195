"""Write code for levels of CPU while a wheel is built: ``python -m maxmargin._warmup.build FOLDER LEVELS``.

LEVELS is a list of names with commas, ``host`` for the best level of this CPU, or ``all`` for all that it can
run and that are worth shipping (x86-64-v2 is not: 10 to 50 % slower than what the compiler makes).
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from maxmargin._compiled import ready_code
from maxmargin._compiled.cpu import Level, suitable_levels
from maxmargin._warmup.compile import write_level

NOT_SHIPPED = ("x86-64-v2",)


def chosen_levels(wanted: str) -> list[Level]:
    """The levels that a list of names stands for; ValueError for those that this CPU cannot run."""
    able = [level for level in suitable_levels() if level.name not in NOT_SHIPPED]
    if wanted in ("host", "all"):
        return able[:1] if wanted == "host" else able
    names = [level.name for level in able]
    unknown = [name for name in wanted.split(",") if name not in names]
    if unknown:
        raise ValueError(f"This CPU cannot run code for {', '.join(unknown)}; it can run {', '.join(names)}.")
    return [level for level in able if level.name in wanted.split(",")]


def main(folder: str, wanted: str) -> None:
    """Write the files."""
    for level in chosen_levels(wanted):
        began = time.perf_counter()
        path = Path(folder) / ready_code.file_name(level)
        write_level(level, path)
        size = path.stat().st_size / 1e6
        print(f"{level.name}: {size:.1f} MB in {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
