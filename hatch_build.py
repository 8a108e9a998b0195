"""Puts compiled code into a wheel, so that the first fit does not compile (`maxmargin._compiled.ready_code`).

MAXMARGIN_BUILD_CODE says for which CPUs: ``host`` (the default) for this one, ``all``, a list of levels such
as ``x86-64-v4,x86-64-v3``, or ``none`` for a wheel of pure Python. MAXMARGIN_BUILD_PLATFORM overrides the
platform tag. Editable installations have no code: they use the cache of the user.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CodeHook(BuildHookInterface[Any]):
    """Adds ``maxmargin/_code`` to the wheel; without it the wheel is pure Python."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Packages that compiling needs: the dependencies of the package."""
        return [] if self._wanted() == "none" else list(self.metadata.core.dependencies)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, unless nobody wants it."""
        wanted = self._wanted() if version != "editable" else "none"
        if wanted == "none":
            return
        self._folder = Path(tempfile.mkdtemp(prefix="maxmargin-code-"))
        self._say(
            f"compiling for {wanted}, about two minutes on two cores (MAXMARGIN_BUILD_CODE=none skips it)"
        )
        began = time.monotonic()
        try:
            self._compile(wanted)
        except Exception as error:  # a wheel without code is a good wheel
            shutil.rmtree(self._folder, ignore_errors=True)
            if os.environ.get("MAXMARGIN_BUILD_CODE", "").strip():
                raise
            self._say(f"no compiled code in this wheel, the first fit compiles: {error}")
            return
        files = sorted(self._folder.glob("*.bin"))
        if not files:
            self._say("no compiled code in this wheel: there is no level for this CPU")
            return
        for file in files:
            build_data["force_include"][str(file)] = f"maxmargin/_code/{file.name}"
        python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        build_data["pure_python"] = False
        build_data["tag"] = f"{python}-{python}-{self._platform()}"
        self._say(f"compiled in {time.monotonic() - began:.0f} s")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what is in the wheel now."""
        if hasattr(self, "_folder"):
            shutil.rmtree(self._folder, ignore_errors=True)

    def _wanted(self) -> str:
        if self.target_name != "wheel":
            return "none"
        given = os.environ.get("MAXMARGIN_BUILD_CODE", "").lower().replace(" ", "")
        return "none" if given == "0" else given or "host"

    def _compile(self, wanted: str) -> None:
        sources = str(Path(self.root) / "src")
        # pip passes the packages of an isolated build in PYTHONPATH.
        path = os.pathsep.join([sources, *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-P", "-m", "maxmargin._warmup.build", str(self._folder), wanted],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise RuntimeError(lines[-1])
        for line in done.stdout.splitlines():
            self._say(line)

    @staticmethod
    def _platform() -> str:
        platform = os.environ.get("MAXMARGIN_BUILD_PLATFORM") or sysconfig.get_platform()
        return platform.replace("-", "_").replace(".", "_")

    def _say(self, text: str) -> None:
        """Show a line: in the log of the build, and in the terminal from which pip hides that log."""
        self.app.display_info(f"maxmargin: {text}")
        with contextlib.suppress(OSError), open("CON" if os.name == "nt" else "/dev/tty", "w") as terminal:
            terminal.write(f"\n  maxmargin: {text}\n")
