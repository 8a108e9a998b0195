"""One problem for K classes: the All-Distances SVM."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from maxmargin import dual
from maxmargin._compiled.limits import Limit
from maxmargin._sklearn import Interval, StrOptions, fit_context, with_callbacks
from maxmargin._types import Floats, Index
from maxmargin.estimators._joint_classes import JointSVC
from maxmargin.estimators.base import BaseSVM
from maxmargin.estimators.model import KernelModel
from maxmargin.estimators.search_axes import Axis


class AllDistancesSVC(JointSVC):
    r"""All-Distances SVM: the reduced hulls of K classes, each drawn to all others, in one problem.

    .. math:: \min_u \tfrac12\sum_{i,j} u_i\,\alpha_{ij}k(x_i, x_j)\,u_j,\quad
              \sum_{i\in I_r} u_i = 1,\quad 0\le u_i\le\mu,

    with :math:`\alpha_{ij} = K-1` within a class and -1 between classes: the sum of all squared distances
    between the points :math:`c_r = \sum_{i\in I_r}u_i\phi(x_i)` of the hulls. With their mean c a sample
    belongs to the class with the largest

    .. math:: f_r(x) = \langle w_r, \phi(x)\rangle + b_r - \rho_r,\qquad w_r = c_r - c,\quad
              b_r = -\langle w_r, c\rangle,\quad \rho_r = \|w_r\|^2.

    For two classes the solution is that of the reduced hulls, as in `NuSVC`.

    With squared slacks (``loss="squared_hinge"``) the hulls are whole ones, in the space of the kernel
    :math:`k(x_i, x_j) + \delta_{ij}/(2C)`:

    .. math:: \min_u \tfrac12\sum_{i,j} u_i\,\alpha_{ij}k(x_i, x_j)\,u_j + \frac{K-1}{4C}\sum_i u_i^2,\quad
              \sum_{i\in I_r} u_i = 1,\quad u_i\ge 0.

    There is no mu that classes could be too small for, and for two classes the solution is that of
    ``SVC(loss="squared_hinge")``.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Whether a sample that misses its margin costs its slack, with `mu` or `nu`, or the square of it, with
        `C`.
    C : float, default=1.0
        For ``loss="squared_hinge"``: the weight of the squared slacks, as in `SVC`. ``inf``: whole hulls,
        which must be disjoint.
    mu : float, default=None
        The largest weight of a sample in its hull, between 1 / (size of the smallest class), where that
        hull is one point, and 1, the whole hulls. None: from `nu`. Not used with squared slacks, nor is `nu`.
    nu : float, default=0.5
        In (0, 1]: mu = 1 / (nu * size of the smallest class), feasible in every fold.
    kernel, degree, gamma, coef0, tol, cache_size, verbose, max_iter, solver, max_time, n_jobs, warm_start
        See `SVC`. With squared slacks the solvers of hulls are possible too: "mdm", "mdm-accelerated", "npa",
        "gilbert", "maxminover", "maxminover-doubling".
    offset : {"bisector", "kkt"}, default="bisector"
        How high each plane is: by the points of the hulls (the paper's), or by the KKT conditions, so that
        f_r is zero on the free support vectors of class r (with squared slacks: where their slack is added).

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels.
    support_, support_vectors_, n_support_
        See `SVC`.
    dual_coef_ : ndarray of shape (1, n_SV)
        u.
    intercept_ : ndarray of shape (n_classes,)
        The constant of each f_r.
    coef_ : ndarray of shape (n_classes, n_features)
        w_r, for the linear kernel.
    b_, rho_ : ndarray of shape (n_classes,)
        The paper's b_r and rho_r.
    mu_ : float
        mu in use; 1 with squared slacks.
    n_iter_, status_, fit_status_, dual_gap_, relative_gap_, n_kernel_evals_, n_kernel_calls_, trace_
        See `SVC`.

    References
    ----------
    D. Candel, R. Nanculef, C. Concha, H. Allende, "A Sequential Minimal Optimization Algorithm for the
    All-Distances Support Vector Machine", 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from maxmargin import AllDistancesSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = AllDistancesSVC(nu=0.2).fit(X, y)
    >>> clf.decision_function(X).shape, round(clf.score(X, y), 2)
    ((150, 3), 0.94)
    >>> squared = AllDistancesSVC(loss="squared_hinge", C=10.0, solver="mdm-accelerated").fit(X, y)
    >>> squared.status_, round(squared.score(X, y), 2)
    ('solved', 0.97)
    """

    _search_axes: ClassVar[tuple[Axis, ...]] = (
        Axis("nu", ascending=False), Axis("mu", ascending=True), Axis("C", ascending=False),
    )  # fmt: skip
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseSVM._parameter_constraints,
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "C": [Interval(Real, 0.0, None, closed="right")],
        "mu": [Interval(Real, 0.0, None, closed="neither"), None],
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
        "offset": [StrOptions({"bisector", "kkt"})],
    }

    # The inner products behind `b_` and `rho_`, and the model that they belong to.
    _products: tuple[KernelModel, Floats] | None = None

    def __init__(
        self,
        *,
        loss: str = "hinge",
        C: float = 1.0,
        mu: float | None = None,
        nu: float = 0.5,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        offset: str = "bisector",
        tol: float = 1e-3,
        cache_size: float = 200,
        verbose: bool = False,
        max_iter: int = -1,
        solver: Any = "auto",
        max_time: float | None = None,
        n_jobs: int | None = None,
        warm_start: bool = False,
    ) -> None:
        self.loss = loss
        self.C = C
        self.mu = mu
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.offset = offset
        self.tol = tol
        self.cache_size = cache_size
        self.verbose = verbose
        self.max_iter = max_iter
        self.solver = solver
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.warm_start = warm_start

    @fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> AllDistancesSVC:
        """Find the points of the hulls.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or (n_samples, n_samples)
            Training data; for ``kernel="precomputed"`` the square kernel matrix.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Factors of mu, or of C, per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        limit = Limit(self.max_time)
        X, kept, label, weight = self._labelled(X, y, sample_weight)
        by_class = np.argsort(label, kind="stable")
        order, label, weight = kept[by_class], label[by_class], weight[by_class]
        problem = self._problem(label, weight)
        solution, _ = self._solve_one(X, order, problem, self._start("all", order), limit)
        # The gradient of a sample of class r is K <w_r, x>, and its slack.
        k = len(self.classes_)
        g = solution.gradient - problem.ridge * solution.u
        height = np.bincount(label, weights=solution.u * g, minlength=k) / k
        intercept = -height if self.offset == "bisector" else -solution.offset / k
        self._keep(X, order, label, solution.u[None], intercept, solution.u, solution)
        return self

    def _problem(self, label: Index, weight: Floats) -> dual.Dual:
        """The dual problem, with a factor of mu or C for each sample; sets `mu_`."""
        if self.loss == "squared_hinge":
            self.mu_ = 1.0
            return dual.squared_all_distances(label, 1.0 / (2.0 * self.C * weight))
        size = np.bincount(label, weights=weight)
        self.mu_ = 1.0 / (self.nu * float(size.min())) if self.mu is None else float(self.mu)
        if self.mu_ * size.min() < 1 - 1e-12:
            raise ValueError(
                f"mu = {self.mu_:g} is infeasible: the smallest class, {self.classes_[np.argmin(size)]!r}, "
                f"weighs {size.min():g}, so the smallest feasible mu is {1 / size.min():g}. Give nu instead "
                "of mu to be feasible in every fold."
            )
        return dual.all_distances(label, np.minimum(self.mu_ * weight, 1.0))

    @property
    def b_(self) -> Floats:
        """b_r = -<w_r, c>."""
        G = self._centre_products()
        return np.asarray(-(G - G.mean(axis=0)).mean(axis=1))

    @property
    def rho_(self) -> Floats:
        """rho_r = <w_r, w_r>."""
        G = self._centre_products()
        return np.asarray(np.diag(G) - 2.0 * G.mean(axis=1) + G.mean())

    def _centre_products(self) -> Floats:
        """<c_r, c_s> for all pairs of classes; computed at the first request."""
        model = self.get_model()
        if not model.of_features:
            raise AttributeError("b_ and rho_ are available for kernels of feature vectors only.")
        if self._products is None or self._products[0] is not model:
            ends = np.concatenate([[0], np.cumsum(model.n_support)])
            weighted = self._parts(model.vectors) * model.coef[0]
            products = np.stack([weighted[:, a:e].sum(axis=1) for a, e in pairwise(ends)])
            self._products = (model, products)
        return self._products[1]

    def _parts(self, X: Any) -> Floats:
        """<c_r, x> for every class and sample."""
        return np.asarray(self._expand(X, by_class=True)[:, :, 0])

    def _linear_coef(self) -> Any:
        model = self.get_model()
        k = len(model.n_support)
        own = np.repeat(np.arange(k), model.n_support)  # class of each support vector
        return model.combine(model.coef[0] * ((own == np.arange(k)[:, None]) - 1.0 / k))

    def _scores(self, X: Any) -> Floats:
        self._check_fitted()
        if self.kernel == "linear":
            return self._linear_values(X, self.intercept_)
        parts = self._parts(X)
        return np.asarray((parts - parts.mean(axis=0)).T + self.intercept_)
