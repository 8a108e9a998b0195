"""Step 3, from rows and targets to one problem: the dual that all estimators solve, and its certificate.

>>> from maxmargin import dual
>>> dual.c_svc([-1, 1], C=1.0).name
'c_svc'
"""

from maxmargin.dual.certificate import middles, relative_to_value, widest
from maxmargin.dual.classification import c_svc, minimum_norm, nearest_points, reduced_hulls, squared_c_svc
from maxmargin.dual.multiclass import all_distances, crammer_singer, squared_all_distances
from maxmargin.dual.one_class import one_class, one_class_l2
from maxmargin.dual.penalised import penalised_bias
from maxmargin.dual.problem import Dual
from maxmargin.dual.regression import epsilon_svr, nu_svr, quantile_svr, squared_epsilon_svr

__all__ = [
    "Dual",
    "all_distances",
    "c_svc",
    "crammer_singer",
    "epsilon_svr",
    "middles",
    "minimum_norm",
    "nearest_points",
    "nu_svr",
    "one_class",
    "one_class_l2",
    "penalised_bias",
    "quantile_svr",
    "reduced_hulls",
    "relative_to_value",
    "squared_all_distances",
    "squared_c_svc",
    "squared_epsilon_svr",
    "widest",
]
