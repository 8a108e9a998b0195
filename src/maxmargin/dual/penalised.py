r"""The bias as one more weight, which is penalised like all others.

With a constant feature s the decision function is :math:`\langle w, \phi(x)\rangle + s v` and the penalty
:math:`\tfrac12(\|w\|^2 + v^2)`: the kernel becomes :math:`K + s^2`, and no sum is prescribed. The bias is
:math:`b = s v = s^2 \sum_i u_i`.

**As a problem with one sum.** All solvers move pairs within a sum. One more variable
:math:`u_0 = -\sum_i u_i` gives them one again:

.. math::

    \tfrac12 u^\top (K + s^2) u = \tfrac12 u^\top K u + \tfrac12 s^2 u_0^2,\qquad \sum_i u_i + u_0 = 0.

It has no bounds, no kernel values (its class is coupled with none) and the ridge :math:`s^2`. A pair step
with :math:`u_0` is a step of coordinate descent; the multiplier of the sum is the gradient of :math:`u_0`,
that is, -b. Certificates need no other formulas.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import numpy as np

from maxmargin._types import Floats
from maxmargin.dual._build import squared_scale
from maxmargin.dual.problem import Dual


def penalised_bias(problem: Dual, scale: float = 1.0) -> Dual:
    """The same problem with the penalised bias of a constant feature `scale`, in place of a free one.

    Parameters
    ----------
    problem : Dual
        A problem with the sum 0 and without classes that are coupled: `c_svc`, `squared_c_svc`,
        `epsilon_svr` or `squared_epsilon_svr`.
    scale : float, default=1.0
        The constant feature, LIBLINEAR's ``bias`` and scikit-learn's ``intercept_scaling``. The larger it is,
        the less the bias is penalised.

    Returns
    -------
    Dual
        The problem with one more variable, the last: see `maxmargin.dual.penalised`.

    Examples
    --------
    >>> from maxmargin import dual
    >>> from maxmargin.gram import Gram
    >>> from maxmargin.solvers import Batch
    >>> problem = dual.penalised_bias(dual.c_svc([-1, -1, 1], C=10.0))
    >>> gram = Gram([[0.0], [1.0], [3.0]], kernel="linear", dtype="float64")
    >>> solution = Batch().solve(problem, gram)
    >>> solution.u.round(1), -solution.offset.round(1)  # the bias is the sum of all but the last
    (array([ 0. , -3.5,  1.5,  2. ]), array([-2.]))
    """
    square = squared_scale(scale)
    if problem.n_groups != 1 or problem.sums[0] != 0 or problem.coupling.shape != (1, 1) or problem.shift:
        raise ValueError(
            f"A bias can be penalised in a problem with one sum, which is 0: {problem.name!r} is another one."
        )
    first = problem.row[:1]
    return replace(
        problem,
        name=f"penalised_{problem.name}",
        p=np.append(problem.p, 0.0),
        lo=np.append(problem.lo, -np.inf),
        hi=np.append(problem.hi, np.inf),
        ridge=np.append(problem.ridge, square),
        group=np.append(problem.group, 0),
        row=np.append(problem.row, first if len(first) else 0),
        label=np.append(problem.label, 1),
        coupling=np.array([[float(problem.coupling[0, 0]), 0.0], [0.0, 0.0]]),
    )


def of_samples(problem: Dual, values: Floats) -> Floats:
    """The entries that belong to samples: without the one of a penalised bias."""
    return values[:-1] if problem.penalised else values


def with_bias(problem: Dual, u: Floats) -> Floats:
    """The variables of samples and of the bias, if it is penalised: the reverse of `of_samples`."""
    return np.append(u, -fsum(u)) if problem.penalised else u
