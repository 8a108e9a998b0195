"""The choice of a file of compiled code for this process: shipped with the package, or made by a warm-up.

A file is used only if everything its code depends on is the same here: Python, Numba, LLVM, the platform and
the sources of the package. Otherwise functions are compiled, and `choice` has the reasons.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import llvmlite
import numba
import platformdirs
from llvmlite import binding
from numba.core import config

from maxmargin._compiled.code_file import CodeFile
from maxmargin._compiled.cpu import Level, suitable_levels

PACKAGE = Path(__file__).parents[1]
#: Files that were installed with the package.
SHIPPED = PACKAGE / "_code"
#: Variable with a folder for code (shared by a cluster, say) that is used before others; 0: use no files.
VARIABLE = "MAXMARGIN_CODE"


@dataclass
class Choice:
    """The file in use, if any, and why others are not."""

    file: CodeFile | None = None
    reasons: list[str] = field(default_factory=list)


def made_for(level: Level) -> dict[str, str]:
    """Everything that code for a level depends on."""
    return {
        "level": level.name,
        "python": f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}",
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "platform": binding.get_process_triple(),
        "sources": sources(),
    }


@functools.cache
def sources() -> str:
    """A digest of all sources of the package: functions of one module are inlined into those of others."""
    return _digest(PACKAGE.rglob("*.py"))


@functools.cache
def sources_of(module: str) -> str:
    """A digest of what functions of a module can be compiled from: its source, and that of all it imports.

    While the package is developed, an edit leaves the code of modules upstream of it in the cache.

    Raises
    ------
    RuntimeError
        If one of these sources has changed since it was imported.
    """
    found: set[str] = set()
    paths: set[Path] = set()
    todo = [module]
    while todo:
        name = todo.pop()
        if name in found or name not in sys.modules:
            continue
        found.add(name)
        path = Path(sys.modules[name].__file__ or "")
        if path.stat().st_mtime_ns != _IMPORTED.get(path):
            raise RuntimeError(f"{path} has changed since it was imported.")
        paths.add(path)
        for key, value in vars(sys.modules[name]).items():
            origin = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
            if isinstance(origin, str) and origin.startswith("maxmargin."):
                todo.append(origin)
            elif isinstance(value, int | float | tuple):  # a constant, perhaps of another module
                found.add(f"{name}.{key} {value!r}")
    return hashlib.sha256("\n".join([_digest(paths), *sorted(found)]).encode()).hexdigest()


def _digest(paths: Iterable[Path]) -> str:
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(path.name.encode() + b"\0")
        total.update(hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).digest())
    return total.hexdigest()


def _dates() -> dict[Path, int]:
    """When the sources were last changed."""
    return {path: path.stat().st_mtime_ns for path in PACKAGE.rglob("*.py")}


#: The sources that this process imports.
_IMPORTED = _dates()


def changed_since_import() -> bool:
    """Whether the sources are no longer those that this process has imported.

    An editor, or an upgrade while a program runs: code of the old sources must not be kept for the new ones.
    """
    try:
        return _dates() != _IMPORTED
    except OSError:
        return True


def file_name(level: Level) -> str:
    """Name of the file of a level for the running Python and Numba."""
    return f"{level.name}.{sys.implementation.cache_tag}.numba-{numba.__version__}.bin"


def chosen_folder() -> Path | None:
    """The folder that the environment variable names."""
    chosen = os.environ.get(VARIABLE, "")
    return Path(chosen).expanduser().absolute() if chosen not in ("", "0") else None


def user_folder() -> Path | None:
    """The cache folder of the user; None without a home folder."""
    try:
        folder = Path(platformdirs.user_cache_dir("maxmargin", False))
    except RuntimeError:
        return None
    return folder if folder.is_absolute() else None


def folders() -> list[Path]:
    """Where files are looked for, in this order."""
    return [folder for folder in (chosen_folder(), SHIPPED, user_folder()) if folder is not None]


def changed_settings() -> list[str]:
    """Settings of Numba that differ from those that code is made with."""
    expected = {
        "CPU_NAME": None, "CPU_FEATURES": None, "ENABLE_AVX": 1, "OPT": 3, "BOUNDSCHECK": None,
        "DEBUGINFO_DEFAULT": 0, "DISABLE_JIT": 0, "LOOP_VECTORIZE": 1, "SLP_VECTORIZE": 0,
    }  # fmt: skip
    found = {name: getattr(config, name, value) for name, value in expected.items()}
    return [
        f"NUMBA_{name.removesuffix('_DEFAULT')}"
        for name, value in found.items()
        if (int(value) if value is not None and name == "OPT" else value or None) != (expected[name] or None)
    ]


@functools.cache
def choice() -> Choice:
    """The file for this process; looked for once."""
    found = Choice()
    if os.environ.get(VARIABLE) == "0":
        found.reasons.append(f"{VARIABLE} is 0")
        return found
    changed = changed_settings()
    if changed:
        found.reasons.append(f"Numba's settings are not its defaults: {', '.join(changed)}")
        return found
    if changed_since_import():
        found.reasons.append("the sources of the package have changed since they were imported")
        return found
    suitable = suitable_levels()
    for level in suitable:
        for folder in folders():
            path = folder / file_name(level)
            file = _open(path, level, found.reasons)
            if file is not None:
                found.file = file
                return found
    if not found.reasons:
        names = ", ".join(level.name for level in suitable) or "this CPU"
        found.reasons.append(
            f"there is no file for {names}, {sys.implementation.cache_tag} and Numba {numba.__version__} in "
            + " or ".join(str(folder) for folder in folders())
        )
    return found


def _open(path: Path, level: Level, reasons: list[str]) -> CodeFile | None:
    """The file, if it can be used; the reason is noted otherwise."""
    try:
        if not path.is_file():
            if os.path.lexists(path):
                reasons.append(f"{path}: it is not a file")
            return None
        file = CodeFile(path)
        here = made_for(level)
        other = [name for name, value in here.items() if file.made_for.get(name) != value]
    except Exception as error:  # damaged in whatever way: a fit compiles instead
        reasons.append(f"{path}: {error}")
        return None
    if other:
        reasons.append(f"{path}: it was made for other {' and '.join(other)}")
        return None
    return file
