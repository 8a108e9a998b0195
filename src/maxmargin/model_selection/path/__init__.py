r"""The grid of a search as a graph, and the path along which its nodes are trained.

Paper: F. Timm, S. Klement, T. Martinetz, "Fast Model Selection for MaxMinOver-based Training of Support
Vector Machines", sections 2 and 3.2.

Neighbouring nodes of a grid have similar solutions, so a node is trained from the solution of a neighbour.
Let :math:`c_{ij}` be the cost of training node j from the solution of its neighbour i, itself trained cold,
and :math:`c_j` that of training j cold. A search trains along a forest that spans the grid, where node j
has the parent :math:`\pi(j)`, or none. The cheapest one,

.. math:: \min_\pi \sum_{j:\, \pi(j) \ne \emptyset} c_{\pi(j) j} + \sum_{j:\, \pi(j) = \emptyset} c_j,

is a minimum spanning arborescence of the grid with one node more, above it, from which an edge of cost
:math:`c_j` leads to every node j (Edmonds 1967). The paper takes the best of the arborescences from every
root; with a constant on top of all :math:`c_j` that is large enough for a single cold start, one run finds
it. (The paper's text has i and j the other way round in its definition of the cost.)

Costs cannot be known before the search. They are measured on a pilot, a part of the data, or replaced by
rules learned from other data: `heuristic`, `up`.
"""

from maxmargin.model_selection.path.arborescence import arborescence, cost_matrix
from maxmargin.model_selection.path.forest import Chain, Path
from maxmargin.model_selection.path.grid import Grid
from maxmargin.model_selection.path.heuristics import heuristic, up

__all__ = ["Chain", "Grid", "Path", "arborescence", "cost_matrix", "heuristic", "up"]
