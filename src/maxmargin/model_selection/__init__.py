"""Model selection: in which order the nodes of a grid are trained, and from where."""

from maxmargin.model_selection.path import Chain, Grid, Path, arborescence, cost_matrix, heuristic, up

__all__ = ["Chain", "Grid", "Path", "arborescence", "cost_matrix", "heuristic", "up"]
