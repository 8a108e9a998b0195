"""A file with compiled code of these sources."""

import os
import subprocess
import sys

import pytest

from maxmargin._compiled import ready_code


@pytest.fixture(scope="session")
def code(tmp_path_factory):
    """The folder with the file; made once for all processes of a test run."""
    found = ready_code.choice().file
    if found is not None:
        return found.path.parent
    folder = tmp_path_factory.getbasetemp().parent / "maxmargin-code"
    environment = {**os.environ, ready_code.VARIABLE: str(folder)}
    subprocess.run([sys.executable, "-m", "maxmargin", "warmup"], check=True, env=environment)
    return folder
