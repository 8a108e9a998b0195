"""Plots of models, solvers and searches, in scikit-learn's Display convention, and reports on models.

They need matplotlib: ``pip install 'maxmargin[plot]'``. Every plot can be read without colours.
"""

from maxmargin.inspection._report import Report, report
from maxmargin.inspection.boundary import BoundaryDisplay
from maxmargin.inspection.hulls import HullDisplay
from maxmargin.inspection.score_map import SearchDisplay
from maxmargin.inspection.trace import TraceDisplay
from maxmargin.solvers.watched import Watched

__all__ = [
    "BoundaryDisplay",
    "HullDisplay",
    "Report",
    "SearchDisplay",
    "TraceDisplay",
    "Watched",
    "report",
]
