"""Classification on cells."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from maxmargin._types import Floats, Index
from maxmargin.cells.base import BaseCells
from maxmargin.cells.training import decide_cell
from maxmargin.estimators._plain import class_labels
from maxmargin.estimators.svc import SVC


class CellSVC(ClassifierMixin, BaseCells):
    r"""Support vector classification on cells: an approximation for very many rows that states its cost.

    K-means on a sample finds centres :math:`z_1, \dots, z_k`, about one for every `cell_size` rows. A cell is the
    rows whose nearest centre is the same, and each cell has an exact `SVC` of its own, with the same parameters. A
    row is predicted by the model of its own cell,

    .. math:: f(x) = f_{c(x)}(x), \qquad c(x) = \arg\min_j \|x - z_j\|.

    Training takes time in proportion to the rows, not to their square. The price depends on the data: nothing where
    the kernel is narrow and many rows are needed, a point of accuracy where it reaches across cells. After `fit`
    the attribute `cost_` states it: on a sample of rows, of which a quarter is held out, the accuracy of cells, of
    the exact model, and of the exact model on random rows that take as long to train as the cells.

    Parameters
    ----------
    estimator : SVC, default=None
        The parameters that all cells share; None for ``SVC()``. ``gamma="scale"`` is computed from all rows.
    cell_size : int, default=5000
        Rows of a cell, about. With fewer than 1.5 times as many rows there is one cell, the exact model.
    overlap : float, default=0.0
        Rows of neighbouring cells, next to the border, that a cell is trained on besides, as a share of its own.
        It rarely helps.
    tune : bool, default=False
        Whether to choose C and gamma with `SVCCV` on a sample of 5,000 rows, for all cells.
    report_cost : bool, default=True
        Whether to measure `cost_`, which takes as long as an exact fit of some 20,000 rows.
    random_state : int, default=None
        Chooses the samples, always the same if None. The cells do not depend on `n_jobs`.
    max_time : float, default=None
        Budget in seconds; cells that are not trained by then predict their most frequent class.
    n_jobs : int, default=None
        Threads, each of which trains one cell at a time; None for all cores.
    verbose : bool, default=False
        Whether to print how many cells are trained.

    Attributes
    ----------
    cost_ : Cost or None
        The statement of cost; None with one cell, or if it was not asked for.
    n_cells_ : int
        Number of cells.
    cell_sizes_ : ndarray of int of shape (n_cells,)
        Rows that each cell was trained on.
    centres_ : ndarray of shape (n_cells, n_features)
        The centres.
    models_ : list
        For each cell a fitted `SVC` for the numbers of the classes, or a constant.
    estimator_ : SVC
        The parameters of all cells, with the number for gamma.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    status_ : str
        "solved", or the worst status of a cell, see `SVC`.
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

    _classifies: ClassVar[bool] = True

    def _default(self) -> SVC:
        return SVC()

    def _tuner(self) -> Any:
        from maxmargin.model_selection.tuning.svc_cv import SVCCV  # takes long to import

        return SVCCV()

    def _encoded(self, y: Any, kept: Index) -> NDArray[Any]:
        y, self.classes_, label = class_labels(y)
        if len(kept) < len(y):
            # Classes without weight are unknown, as in `SVC`; their rows are left out.
            self.classes_ = np.unique(y[kept])
            label = np.searchsorted(self.classes_, y)
        if len(self.classes_) < 2:
            raise ValueError(
                f"The number of classes has to be greater than one; got {len(self.classes_)} class"
            )
        return np.asarray(label, dtype=np.intp)

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
        X = self._samples(X)
        return self.classes_[self._by_cell(X).astype(np.intp)]

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
            One value for two classes, -1 or 1 in constant cells; otherwise one column per class, in which classes
            that a cell does not have are below all others.
        """
        X = self._samples(X)
        k = len(self.classes_)
        columns = 0 if k == 2 else k
        return self._by_cell(X, lambda model, rows: decide_cell(model, rows, np.arange(k)), columns)
