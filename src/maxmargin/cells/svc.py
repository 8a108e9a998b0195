"""Classification on cells."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import compute_class_weight

from maxmargin._types import Floats
from maxmargin.cells.base import BaseCells
from maxmargin.cells.training import decide_cell
from maxmargin.estimators._plain import class_labels
from maxmargin.estimators.svc import SVC


class CellSVC(ClassifierMixin, BaseCells):
    r"""Support vector classification on cells: an approximation for very many rows that states its cost.

    K-means on a sample finds centres :math:`z_1, \dots, z_k`, about one for every `cell_size` rows. A cell is
    the rows whose nearest centre is the same, and each cell has an exact `SVC` of its own, with the same
    parameters. A row is predicted by the model of its own cell,

    .. math:: f(x) = f_{c(x)}(x), \qquad c(x) = \arg\min_j \|x - z_j\|.

    Training takes time in proportion to the rows, not to their square. The price depends on the data: nothing
    where the kernel is narrow and many rows are needed, a point of accuracy where it reaches across cells.
    After `fit` the attribute `cost_` states it: on a sample of rows, of which a quarter is held out, the
    accuracy of cells, of the exact model, and of the exact model on random rows that take as long to train as
    the cells.

    Parameters
    ----------
    estimator : SVC, default=None
        The parameters that all cells share; None for ``SVC()``. ``gamma="scale"`` and
        ``class_weight="balanced"`` are computed from all rows.
    cell_size : int, default=5000
        Rows of a cell, about. With fewer than 1.5 times as many rows there is one cell, the exact model.
    overlap : float, default=0.0
        Rows of neighbouring cells, next to the border, that a cell is trained on besides, as a share of
        its own. It rarely helps.
    tune : bool, default=False
        Whether to choose C and gamma with `SVCCV` on a sample of 5,000 rows, for all cells; it may take 0.3
        of `max_time`.
    report_cost : bool, default=True
        Whether to measure `cost_`, which takes about as long as the fit itself.
    random_state : int, RandomState or None
        Chooses the samples, always the same if None. The cells do not depend on `n_jobs`.
    max_time : float, default=None
        Budget in seconds; cells that are not trained by then predict their most frequent class. Ctrl-C has
        the same effect.
    n_jobs : int, default=None
        Threads, each of which trains one cell at a time; None for all cores.
    verbose : bool, default=False
        Whether to print how many cells are trained, and the time left.

    Attributes
    ----------
    cost_ : Cost or None
        The statement of cost, see `maxmargin.cells.Cost`; None with one cell, if it was not asked for, or if
        no time was left. The sample has sqrt(n_samples cell_size) rows, six cells at least. With more rows
        than the sample has, the subsample of equal time is a smaller share of them, and cells gain on it.
    n_cells_ : int
        Number of cells.
    cell_sizes_ : ndarray of int of shape (n_cells,)
        Rows that each cell was trained on.
    centres_ : ndarray of shape (n_cells, n_features)
        The centres.
    models_ : list
        For each cell a fitted `SVC` for the numbers of the classes, or a constant if it has one class.
    estimator_ : SVC
        The parameters of all cells, with the number for gamma.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    status_ : str
        "solved", or the worst status of a cell, see `SVC`.
    relative_gap_ : float
        The largest one of a cell, see `SVC`: a certificate for each cell, not for the exact model of all
        rows.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    SVC : The exact model.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from maxmargin import CellSVC
    >>> X, y = make_moons(4000, noise=0.2, random_state=0)
    >>> clf = CellSVC(cell_size=500).fit(X, y)
    >>> clf.status_, clf.n_cells_ > 4, round(clf.score(X, y), 2)
    ('solved', True, 0.96)
    >>> bool(abs(clf.cost_.cells.score - clf.cost_.exact.score) < 0.02)
    True
    """

    _kind: ClassVar[Any] = SVC
    # A cell has numbers of classes for labels, and weights that include those of classes.
    _fixed: ClassVar[dict[str, Any]] = {
        "class_weight": None,
        "decision_function_shape": "ovr",
        "verbose": False,
        "warm_start": False,
    }

    def _tuner(self) -> Any:
        from maxmargin.model_selection.tuning.svc_cv import SVCCV  # takes long to import

        return SVCCV(scale=None, calibrate=None)

    def _encoded(self, y: Any, weight: Floats, shared: Any) -> tuple[NDArray[Any], Floats]:
        y, self.classes_, label = class_labels(y)
        kept = weight > 0
        if not kept.all() and kept.any():
            # Classes without weight are unknown, as in `SVC`; their rows are left out.
            self.classes_ = np.unique(y[kept])
            label = np.where(kept, np.searchsorted(self.classes_, y), 0)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        if shared.class_weight is not None and kept.any():
            factor = compute_class_weight(shared.class_weight, classes=self.classes_, y=y[kept])
            if (factor < 0).any():
                raise ValueError("class_weight must not be negative.")
            weight = weight * factor[label]
        return np.asarray(label, dtype=np.intp), weight

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict class labels.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        number = self._by_cell(X).astype(np.intp)
        return np.asarray(self.classes_[number])

    def decision_function(self, X: Any) -> Floats:
        """Evaluate the decision function of each sample's own cell.

        Values of different cells are not on one scale: they order the classes of a sample, not samples.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One value for two classes, -1 or 1 in constant cells; otherwise one column per class, in which
            classes that a cell does not have are below all others.
        """
        self._check_fitted()
        k = len(self.classes_)
        return self._by_cell(X, lambda model, rows: decide_cell(model, rows, k), 0 if k == 2 else k)
