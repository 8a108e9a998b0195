"""One process of a warm-up: ``python -m maxmargin._warmup.record LEVEL FILE NUMBER`` with workloads as input.

Prints the name of each workload that is done. Nothing is read from caches or written to them.
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
from maxmargin._compiled.code_file import write_code
from maxmargin._compiled.cpu import level_named

# Names of compiled functions contain a number that Numba counts from 1 in every process. Names from several
# processes stand together in a file, and beside those of functions that are compiled later.
_APART = 10_000_000


def main(level_name: str, path: str, number: str) -> None:
    """Compile for a level and write the file."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    logger.setLevel("ERROR")  # that it compiles is known
    level = level_named(level_name)
    made_for = ready_code.made_for(level)  # of the sources before the first function is compiled
    config.CPU_NAME, config.CPU_FEATURES = level.cpu, level.features
    bytecode.FunctionIdentity._unique_ids = itertools.count(_APART * (int(number) + 1))
    code_cache.recorded = {}
    from maxmargin._warmup import workloads

    workloads.run(sys.stdin.read().splitlines(), lambda name: print(name, flush=True))
    write_code(Path(path), made_for, code_cache.recorded)


def _end_with(parent: int) -> None:
    """End this process if its parent was killed; on Windows a parent keeps its number."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
