r"""A binary SVM that is exact after every change: it learns and forgets rows, and has leave-one-out values.

Squared hinge: :math:`\min_{w,b,\xi} \tfrac12\|w\|^2 + \sum_i C_i\xi_i^2`, whose dual has a unique solution
and no upper bounds:

.. math:: \min_u \tfrac12 u^\top (K + D) u - y^\top u,\quad D_{ii} = \tfrac{1}{2C_i},\quad
          y_i u_i \ge 0,\ \sum_i u_i = 0.

Rows are learnt and forgotten by the steps of `maxmargin.solvers.papers._active_set`: the support vectors S
keep their margin of 1 exactly while a row is added or removed. Then the margins of the other rows are
checked, and the violators are learnt in turn. Where very many rows are added at once, `Batch` solves first,
and the exact steps follow.

**All or nothing.** Margins are exact as far as float64 allows for the sizes of the kernel values
(`exactness`). Where that may not be enough, with distant rows, the duality gap is computed from new sums. If
it is too large, or a factor fails, the model is retrained; if that does not help, the change is refused
with an error, and the model is restored to its state before.

The modules, in the order in which they build on each other:

* `rows`: the rows, their multipliers and gradient, and the kernel values between them;
* `margins`: exact steps until every margin is right;
* `checked`: whether the result is exact enough, and retraining if not;
* `leave_one_out`: the value of each row by a model trained without it;
* `exact_svm`: `ExactSVM`, the interface.

Papers: G. Cauwenberghs, T. Poggio, "Incremental and Decremental Support Vector Machine Learning"; S. V. N.
Vishwanathan, M. N. Murty, "SSVM: A Simple SVM Algorithm".

**Leave-one-out.** A row without a multiplier can go without any change. For the others let S be the support
vectors, N the rest, and T the matrix of all n rows after the unknowns of S have been solved for,

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
