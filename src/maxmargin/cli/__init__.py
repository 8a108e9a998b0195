"""The command line: ``maxmargin --help``.

Each command is one file. Shared parts are `options` (options that several commands have), `estimators`
(estimators by name), `training_data` (reading and checking), `models` (loading and scoring),
`cross_validation`, and `output` (tables, JSON, warnings). Commands import what is slow to import only when
they run, so ``--help`` and usage errors appear at once.
"""

from maxmargin.cli.app import main

__all__ = ["main"]
