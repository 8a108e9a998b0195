"""Plots of models, solvers and searches in scikit-learn's Display convention, reports, and explanations.

Plots need matplotlib: ``pip install 'maxmargin[plot]'``. Every plot can be read without colours.
"""

from maxmargin.inspection._report import Report, report
from maxmargin.inspection.band import BandDisplay
from maxmargin.inspection.beeswarm import BeeswarmDisplay
from maxmargin.inspection.boundary import BoundaryDisplay
from maxmargin.inspection.explanation import ShapleyValues, shapley
from maxmargin.inspection.hulls import HullDisplay
from maxmargin.inspection.score_map import SearchDisplay
from maxmargin.inspection.trace import TraceDisplay
from maxmargin.inspection.waterfall import WaterfallDisplay
from maxmargin.solvers.watched import Watched

__all__ = [
    "BandDisplay",
    "BeeswarmDisplay",
    "BoundaryDisplay",
    "HullDisplay",
    "Report",
    "SearchDisplay",
    "ShapleyValues",
    "TraceDisplay",
    "Watched",
    "WaterfallDisplay",
    "report",
    "shapley",
]
