"""`--help` loads little and reads well in a terminal of 80 columns."""

from __future__ import annotations

import subprocess
import sys

import pytest

from maxmargin.cli.app import app

COMMANDS = sorted(command.name or command.callback.__name__ for command in app.registered_commands)
# Packages that take long to import.
HEAVY = {"numpy", "scipy", "sklearn", "pandas", "joblib", "numba", "matplotlib"}


def modules_after(*arguments: str) -> set[str]:
    """The modules that a run of the command line leaves loaded."""
    script = (
        "import sys; from maxmargin.cli import app; app.run(sys.argv[1:]); "
        "print('MODULES', *sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60
    )
    return set(done.stderr.rpartition("MODULES")[2].split())


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_loads_few_modules(command):
    loaded = modules_after(*command.split(), "--help")
    assert "maxmargin.cli.app" in loaded and not HEAVY & loaded
    # Python's own, typer's and rich's. With those of scikit-learn there would be more than a thousand.
    assert len(loaded) < 550
    assert len([name for name in loaded if name.startswith("maxmargin")]) < 30


@pytest.mark.parametrize("arguments", [("--version",), ("train",), ("train", "--colour"), ("trian", "x")])
def test_version_and_usage_errors_load_as_little_as_help(arguments):
    assert not HEAVY & modules_after(*arguments)


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_flags_are_shown_without_a_type_and_lines_fit_the_terminal(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    got = run(*command.split(), "--help")
    assert got.code == 0 and "--help" in got.out
    assert "<bool>" not in got.out and "BOOLEAN" not in got.out
    assert max(map(len, got.out.splitlines())) <= 80
