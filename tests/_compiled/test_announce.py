"""The line that a long compilation prints."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import logging, sys, time
{before}
from maxmargin._compiled import announce
from maxmargin._compiled.jit import compiled
announce.PATIENCE = {patience}
def double(x):
    return 2 * x
double.__module__ = "maxmargin.somewhere"
f = compiled()(double)
f(1), f(1.0), f(1j)
print(len(announce.compiled_here))
"""


def run(tmp_path, patience, before=""):
    script = SCRIPT.format(patience=patience, before=before)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "MAXMARGIN_CODE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3"]
    return done.stderr.splitlines()


def test_a_long_compilation_is_announced_once(tmp_path):
    (line,) = run(tmp_path, 0.0)
    assert line.startswith("maxmargin: compiling") and "once per installation" in line


def test_a_short_one_is_not(tmp_path):
    assert run(tmp_path, 60.0) == []


@pytest.mark.parametrize(
    "before",
    [
        "logging.getLogger('maxmargin').setLevel('WARNING')",
        "logging.basicConfig(level='WARNING')",
        "logging.getLogger('maxmargin').addHandler(logging.NullHandler()); "
        "logging.getLogger('maxmargin').propagate = False",
    ],
)
def test_a_program_can_silence_it(tmp_path, before):
    assert run(tmp_path, 0.0, before) == []


def test_it_goes_where_a_program_sends_its_log(tmp_path):
    (line,) = run(tmp_path, 0.0, "logging.basicConfig(level='INFO', format='LOG %(message)s')")
    assert line.startswith("LOG compiling")
