"""A hundred damaged and hostile files of each format; benchmarks/fuzz_data.py tries many thousands."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "fuzz_data.py"


@pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process")
def test_nothing_but_a_data_error_comes_of_a_mutated_file_in_little_memory(tmp_path):
    pytest.importorskip("pyarrow")
    options = ["--mutations", "400", "--seed", "1", "--jobs", "1", "--out", str(tmp_path / "fuzz")]
    run = subprocess.run([sys.executable, str(PROGRAM), *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "| all | 400 |" in run.stdout
