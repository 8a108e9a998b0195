r"""SVMs that are exact after every change: they learn and forget rows, and have leave-one-out values.

For each pair of classes, and for a regression, with the hinge or its square,

.. math:: \min_u \tfrac12 u^\top (K + D) u - p^\top u,\quad l_i \le u_i \le h_i,\ \sum_i u_i = 0.

* hinge: p = y, D = 0, and :math:`y_i u_i` from 0 to :math:`C_i`;
* squared hinge: p = y, :math:`D_{ii} = 1 / (2C_i)`, and :math:`y_i u_i \ge 0`;
* epsilon-insensitive: :math:`p_i = y_i - \varepsilon\,\mathrm{sign}(u_i)`, D = 0, and :math:`|u_i| \le C_i`;
* its square: the same p, :math:`D_{ii} = 1 / (2C_i)`, and no bounds.

In regression u is the difference of the two multipliers of a row. It is zero, or on one side of zero, where
the problem is that of a classification; a row whose multiplier is zero may change its side.

Rows are learnt and forgotten by the steps of `maxmargin.solvers.papers._active_set`: the rows S between their
bounds keep their margin of 1, or their residual of epsilon, exactly while a row is added or removed. Then the
margins of the other rows are checked, and the violators are learnt in turn. Where very many rows are added at
once, `Batch` solves first, and the exact steps follow. Without squared slacks S may be empty: then the
constant of the decision function is the middle of the interval that is left to it, as elsewhere in maxmargin.
And the matrix of S may be singular: then only independent columns are factored, and the others move until
they meet a bound.

**All or nothing.** Margins are exact as far as float64 allows for the sizes of the kernel values
(`exactness`). Where that may not be enough, with distant rows, the duality gap is computed from new sums. If
it is too large, or a factor fails, the model is retrained; if that does not help, the change is refused
with an error, and the model is restored to its state before.

The modules, in the order in which they build on each other:

* `samples`: the samples and the kernel values between them, which all pairs of classes share;
* `rows`: the rows of a problem, their multipliers and gradient;
* `margins`: exact steps until every margin is right;
* `checked`: whether the result is exact enough, and retraining if not;
* `leave_one_out`: the value of each row by a model trained without it;
* `exact_svm`: `ExactSVM`, the interface: one problem per pair of classes, or a regression.

Papers: G. Cauwenberghs, T. Poggio, "Incremental and Decremental Support Vector Machine Learning"; S. V. N.
Vishwanathan, M. N. Murty, "SSVM: A Simple SVM Algorithm"; J. Ma, J. Theiler, S. Perkins, "Accurate On-line
Support Vector Regression".

**Leave-one-out.** A row without a multiplier can go without any change, unless S is empty and the row is at
an end of the interval for the constant. The others are unlearnt, one after the other, and the model restored.
With the squared hinge they need not be: let S be the support vectors, N the rest, and T the matrix of all n
rows after the unknowns of S have been solved for,

.. math:: T = \begin{pmatrix} M & W \\ -W^\top & V \end{pmatrix},\quad
          h = H_{SS}^{-1}e,\ \tau = e^\top h,\quad M = H_{SS}^{-1} - \tfrac1\tau hh^\top,\quad
          W = MH_{SN} + \tfrac1\tau he^\top,

.. math:: V = H_{NN} - H_{NS}MH_{SN} - le^\top - el^\top + \tfrac1\tau ee^\top,\quad
          l = \tfrac1\tau H_{NS}h,

in which every row stands for its multiplier (in S) or its slack (in N). Without row k the solution has
some rows Z on the other side: k, which is removed; others that leave S; and some of N that enter it. Their
values v solve the small system :math:`T_{ZZ}v = q_Z`, and :math:`q - T_{\cdot Z}v` are the values of all
the others, which determine Z: rows of the wrong sign change sides, all of them at once, or, where that does
not reduce their number, one by one (the rule of Júdice and Pires, which terminates). The held-out value of k
is :math:`y_k - v_k`. So after one matrix inversion each row costs a few products of n by |Z|.
"""

from maxmargin.solvers.incremental.exact_svm import ExactSVM

__all__ = ["ExactSVM"]
