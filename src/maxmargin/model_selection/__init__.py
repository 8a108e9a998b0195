"""Search for the parameters of support vector machines, and the order in which a grid is trained.

>>> from maxmargin.model_selection import SVMSearchCV
"""

from maxmargin.model_selection._held_out import leave_one_out
from maxmargin.model_selection.evaluator import Evaluation, Evaluator
from maxmargin.model_selection.path import Grid, Path, arborescence, cost_matrix, heuristic, up
from maxmargin.model_selection.search import SVMSearchCV

__all__ = [
    "Evaluation",
    "Evaluator",
    "Grid",
    "Path",
    "SVMSearchCV",
    "arborescence",
    "cost_matrix",
    "heuristic",
    "leave_one_out",
    "up",
]
