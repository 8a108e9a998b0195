"""One process of a warm-up: ``python -m maxmargin._warmup.record LEVEL FOLDER NUMBER SOURCES``.

Reads names of workloads, one by one, and prints each when it is done. Compiled functions go to the folder,
and those that another process has put there are read; caches are not used.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from pathlib import Path

from numba.core import bytecode, config

from maxmargin._compiled import code_cache, ready_code
from maxmargin._compiled.announce import logger
from maxmargin._compiled.cpu import level_named
from maxmargin._warmup.entries import Entries

# Names of compiled functions contain a number that Numba counts from 1 in every process. Names from several
# processes stand together in a file, and beside those of functions that are compiled later.
_APART = 10_000_000


def main(level_name: str, folder: str, number: str, sources: str) -> None:
    """Compile for a level."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    logger.setLevel("ERROR")  # that it compiles is known
    if ready_code.sources() != sources:
        sys.exit("The sources of maxmargin have changed while they were compiled.")
    level = level_named(level_name)
    config.CPU_NAME, config.CPU_FEATURES = level.cpu, level.features
    bytecode.FunctionIdentity._unique_ids = itertools.count(_APART * (int(number) + 1))
    code_cache.recorded = Entries(Path(folder))
    from maxmargin._warmup import workloads

    for line in sys.stdin:
        workloads.run([line.strip()])
        print(line.strip(), flush=True)


def _end_with(parent: int) -> None:
    """End this process if its parent was killed; on Windows a parent keeps its number."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
