"""Models on cells: a partition of the rows by k-means, and one exact model for each part.

`maxmargin.CellSVC` and `maxmargin.CellSVR` are the estimators; their `cost_` is a `Cost`.
"""

from maxmargin.cells.cost import Candidate, Cost

__all__ = ["Candidate", "Cost"]
