"""The command line: ``maxmargin --help``.

Each command is one file. Shared parts are `options` (options that several commands have), `checks` (of
options and files, before anything is trained), `estimators` (estimators by name), `training_data` (reading
and checking), `tables` (mixed tables), `models` (loading and scoring), `cross_validation`, and `output`
(tables, JSON, warnings).
Commands import what is slow to import only when they run, so ``--help`` and usage errors appear at once.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line."""
    try:
        from maxmargin.cli import app

        code = app.main(arguments)
    except KeyboardInterrupt:  # before there is anything that could handle it
        print("maxmargin: interrupted", file=sys.stderr)
        code = 130
    # An interrupt that passed through code made by `exec`, as that of dataclasses is, would make Python end
    # with the signal in place of the code, although it was handled: the next `exec` clears that mark.
    exec("")
    sys.exit(code)


__all__ = ["main"]
