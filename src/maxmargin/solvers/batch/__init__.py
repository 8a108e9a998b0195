"""The default solver: a working set, shrinking, Newton steps, and whole problems in one compiled call."""

from maxmargin.solvers.batch.batch import Batch

__all__ = ["Batch"]
