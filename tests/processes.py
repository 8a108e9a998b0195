"""Python processes of their own."""

import subprocess
import sys
import textwrap


def run_python(script: str, *arguments: str) -> str:
    """Run a script in a new process, which has to succeed; what it prints."""
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout
