r"""The dual problem that all estimators of the library solve.

.. math::

    \min_u\; f(u) = \tfrac12 u^\top (A \circ (K + c) + \mathrm{diag}(r))\, u - p^\top u
    \quad\text{with}\quad lo \le u \le hi,\quad \sum_{i \in g} u_i = s_g \text{ for each group } g

`K` is the plain kernel matrix, the constant `c` is 1 where the bias is folded into the kernel, and
`A` couples classes only: :math:`A_{ij} = a[class_i, class_j]`. Variable i uses kernel row
``row[i]``, so a problem may have fewer variables than there are rows (a class pair) or more
(regression). The state of every solver includes the pair (u, gradient), from which everything here is
computed without a kernel call: objective, KKT violation, offsets and a certified duality gap.

===========================  =================  =====================  =====================  =========
A bias that is penalised is one more variable of a problem with one sum, see `maxmargin.dual.penalised`.

**The gap.** Linearise the kernel part at u and keep the separable part exact. With
:math:`h = (A\circ(K+c))u` convexity gives, for every feasible v,

.. math:: f(u) - f(v) \le h^\top(u - v) + \tfrac12 \textstyle\sum r_i (u_i^2 - v_i^2) - p^\top (u - v),

and the largest value of the right side over v is the gap: a sum of one-dimensional concave
problems joined by one multiplier per group. For `c_svc` it equals primal minus dual value with the
best possible bias. For problems without slacks see `Dual.gap`.
"""

from __future__ import annotations

from maxmargin.dual.certificate import Certificate
from maxmargin.dual.feasible import FeasiblePoints
from maxmargin.dual.matrix import Matrix


class Dual(FeasiblePoints, Matrix, Certificate):
    """One problem: its parts (see `Description`), feasible points, products with its matrix, certificates."""
