"""CPU levels: sets of instructions for which code can be compiled in advance.

Code for a level runs on every CPU that has the level's features, whatever its name. The levels of x86-64 are
those of its psABI; level 4 has AVX-512, level 3 AVX2.
"""

from __future__ import annotations

import platform
from dataclasses import dataclass

from llvmlite import binding

_V2 = ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")


@dataclass(frozen=True)
class Level:
    """One set of instructions."""

    name: str
    #: LLVM's name of a CPU of this level, and features to add or remove.
    cpu: str
    features: str
    #: Features that a CPU needs to run the code.
    needs: tuple[str, ...] = ()


# Best first. LLVM prefers vectors of 256 bits at level 4, which costs 10 to 15 % in searches.
_X86 = (
    Level("x86-64-v4", "x86-64-v4", "-prefer-256-bit", _V4),
    Level("x86-64-v3", "x86-64-v3", "", _V3),
    Level("x86-64-v2", "x86-64-v2", "", _V2),
)
_LEVELS = {
    "x86_64": _X86,
    "amd64": _X86,
    "aarch64": (Level("armv8-a", "generic", "+neon"),),
    "arm64": (Level("apple-m1", "apple-m1", ""),),
}


def levels() -> tuple[Level, ...]:
    """Levels of this architecture, best first."""
    return _LEVELS.get(platform.machine().lower(), ())


def suitable_levels() -> list[Level]:
    """Levels whose code this CPU can run, best first."""
    try:
        has = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this CPU
        has = {}
    return [level for level in levels() if all(has.get(name, False) for name in level.needs)]


def level_named(name: str) -> Level:
    """The level of this architecture with a name."""
    for level in levels():
        if level.name == name:
            return level
    known = ", ".join(level.name for level in levels()) or "none on this architecture"
    raise ValueError(f"{name!r} is not a CPU level; known levels: {known}.")
