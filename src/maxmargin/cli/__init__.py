"""The command line: ``maxmargin --help``.

Every command is a file; what several of them need stands in `options` (what can be asked for), `machines`
(estimators by name) and `output` (tables, JSON, warnings). Heavy imports happen inside the commands, so that
``--help`` and errors come at once.
"""

from maxmargin.cli.app import main

__all__ = ["main"]
