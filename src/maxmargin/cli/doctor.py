"""``maxmargin doctor``: what this installation uses, and why a first fit compiles."""

from __future__ import annotations

import os
import platform
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from maxmargin.cli import options as o
from maxmargin.cli.output import emit, facts

_PACKAGES = ("maxmargin", "numpy", "scipy", "scikit-learn", "numba", "llvmlite", "joblib")


def doctor(json: o.Json = False) -> None:
    """Show versions, CPU, threads, BLAS, folders and compiled code; fit once and say what was compiled."""
    found = {
        "Versions": _versions(),
        "Computer": _computer(),
        "Compiled code": _code(),
        "First fit": _first_fit(),
    }
    if json:
        emit(found)
        return
    for title, values in found.items():
        facts(title, {f"  {name}": _text(value) for name, value in values.items()})
        print()
    print(_advice(found))


def _versions() -> dict[str, str]:
    found = {"python": f"{platform.python_version()} ({sys.executable})"}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def _computer() -> dict[str, Any]:
    from llvmlite import binding
    from threadpoolctl import threadpool_info

    from maxmargin._compiled.cpu import suitable_levels
    from maxmargin._compiled.threads import effective_n_jobs

    blas = {
        f"{pool.get('internal_api')} {pool.get('version') or ''} ({pool.get('num_threads')} threads)"
        for pool in threadpool_info()
        if pool.get("user_api") == "blas"
    }
    return {
        "platform": platform.platform(),
        "CPU": f"{binding.get_host_cpu_name()}, {os.cpu_count()} cores",
        "CPU levels": [level.name for level in suitable_levels()],
        "threads of a fit": effective_n_jobs(None),
        "BLAS": sorted(blas),
    }


def _code() -> dict[str, Any]:
    from maxmargin._compiled import ready_code

    choice = ready_code.choice()
    found: dict[str, Any] = {
        "file": str(choice.file.path) if choice.file else None,
        "functions in it": len(choice.file) if choice.file else None,
        "why not": choice.reasons or None,
        "folders": [str(folder) for folder in ready_code.folders()],
        "cache of this user": _numba_cache(),
    }
    return found


def _numba_cache() -> str:
    from maxmargin.solvers import pairs

    try:
        path = Path(pairs.move_pair._cache.cache_path)
    except Exception:
        return "not available: no folder can be written"
    return f"{path} ({len(list(path.glob('*.nbc')))} functions of this module)"


def _first_fit() -> dict[str, Any]:
    import numpy as np

    from maxmargin import SVC
    from maxmargin._compiled import announce, code_cache

    X = np.random.default_rng(0).normal(size=(100, 3))
    y = X[:, 0] > 0
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        try:
            SVC().fit(X, y)
        except Exception as error:  # whatever it is, this command shows it
            return {"failed": f"{type(error).__name__}: {error}"}
        seconds.append(time.perf_counter() - began)
    return {
        "seconds": seconds[0],
        "seconds of the second": seconds[1],
        "functions read from the file": len(code_cache.loaded),
        "functions compiled": [name for name, _ in announce.compiled_here] or "none",
        "failures to read": code_cache.failed or None,
    }


def _advice(found: dict[str, dict[str, Any]]) -> str:
    if "failed" in found["First fit"]:
        disabled = "; NUMBA_DISABLE_JIT is set" if os.environ.get("NUMBA_DISABLE_JIT") else ""
        return f"A fit fails{disabled}."
    if found["First fit"]["functions compiled"] == "none":
        return "All is well: fits do not compile."
    if found["Compiled code"]["file"] is None:
        return "Fits compile, once per installation: `maxmargin warmup` does it now, for all of them."
    if found["First fit"]["failures to read"]:
        return "The file with compiled code is damaged: `maxmargin warmup` says what to do, or does it."
    return "The file with compiled code misses functions: please report this with the output of --json."


def _text(value: Any) -> Any:
    return "\n".join(map(str, value)) if isinstance(value, list) else value
