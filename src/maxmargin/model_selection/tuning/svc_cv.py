"""Support vector classification that chooses its own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.class_weight import compute_class_weight

from maxmargin._sklearn import StrOptions
from maxmargin._types import Floats
from maxmargin.estimators.svc import SVC
from maxmargin.model_selection.tuning.base import Units
from maxmargin.model_selection.tuning.class_tuner import ClassTuner
from maxmargin.model_selection.tuning.classes import ClassSurface
from maxmargin.model_selection.tuning.surface import Split, Surface


class SVCCV(ClassTuner):
    r"""Support vector classification that chooses C and the width of its kernel by cross-validation.

    ``SVCCV().fit(X, y)`` scales the features, explores C and gamma in big steps on at most 1,000 rows,
    refines the best on more rows, fits an `SVC` with them on all rows, and calibrates probabilities with the
    values of held-out rows. Some 15 parameter combinations are tried, where a grid has 100. The steps:

    1. *Unit.* gamma is counted in units of 1 / (median squared distance of the scaled rows).
    2. *Explore* (tolerance ``10 * tol``): C = 0.1, 1, 10, ... at the unit of gamma until the score gets no
       better, and is better than that of a constant model; then kernels 6 and 40 times as wide and as narrow
       (in gamma), two C each: the best so far, and the one with the same product :math:`C\gamma`, along which
       scores hardly change. A direction ends where scores are worse by a quarter of a standard error.
    3. *Refine* on up to 4,000 rows: the best and its neighbours, half a step away; with ``refine=2`` once
       more, a quarter of a step. With more rows it goes on with twice as many, until the choice no longer
       changes or another stage would take more than some 15 seconds.

    Parameters
    ----------
    kernel : {"rbf", "linear", "laplacian", "auto"}, default="rbf"
        Kernel; "auto" tries all three, and takes the one with the best score.
    scale : {"standard", "robust"} or None, default="standard"
        How features are scaled, with statistics of all rows given to `fit`, before the folds are made; None
        for data that are scaled already. Sparse data are divided by the largest value of each feature.
    scoring : str or callable, default=None
        The score to maximise; None for the accuracy. Scores of probabilities ("neg_log_loss") use sigmoids
        fitted to held-out values.
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn; None for five shuffled and stratified ones.
    class_weight : dict or "balanced", default=None
        Factors of C per class.
    calibrate : {"sigmoid", "isotonic", "temperature"} or None, default="sigmoid"
        How `predict_proba` turns decision values into probabilities.
    refine : {0, 1, 2}, default=1
        Steps of refinement; 0 stops after the exploration.
    select : {"best", "1se"}, default="best"
        Take the best combination, or of those within one standard error of it the one with the least
        :math:`C\gamma`.
    tol : float, default=1e-3
        Tolerance of the final fit, and of refinement.
    cache_size : float, default=200
        Budget of the kernel cache of the final fit in MB.
    max_time : float, default=None
        Budget in seconds, of which tuning takes up to 70 %; the best combination so far is used.
    n_jobs : int, default=None
        Threads; None for all cores.
    random_state : int, RandomState or None, default=None
        Chooses parts of the rows; None is the same as 0.
    checkpoint : str or path-like, default=None
        A file that takes the scores as they come; a fit that finds its own results there continues from them.
    progress : bool, default=None
        Whether to show a progress line on the standard error; None: if that is a terminal and tuning takes
        half a second or more.
    verbose : int, default=0
        Print each combination and its score.

    Attributes
    ----------
    C_, gamma_, kernel_ : float, float, str
        The parameters that were chosen; gamma is that of the scaled features.
    best_params_ : dict
        The same.
    best_score_ : float
        Mean score of the held-out rows with them, in the last stage.
    best_estimator_ : Pipeline or SVC
        The final model: scaler and `SVC`.
    path_ : list of Tried
        All combinations in the order in which they were tried, with stage, number of rows and score.
    cv_results_ : dict of ndarray
        The same in the form of `GridSearchCV`, with the columns "stage" and "n_rows"; ranks compare those of
        the last stage first, as scores on other rows are not comparable.
    n_rows_ : int
        Rows of the last stage.
    held_out_rows_, held_out_predictions_ : ndarray
        Rows that were held out in the last stage, fold by fold, and the labels that models with the chosen
        parameters, trained without them, give them.
    calibrator_ : Calibrator or None
        What turns decision values into probabilities.
    classes_, n_features_in_, feature_names_in_, n_splits_, scorer_
        As in scikit-learn.
    status_ : str
        Status of the final fit, see `SVC`.
    interrupted_ : bool
        Whether tuning was ended by Ctrl-C.
    tuning_time_, refit_time_ : float
        Seconds until the choice was made, and those of the final fit.

    See Also
    --------
    maxmargin.model_selection.SVMSearchCV : Searches a grid that you give.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.model_selection import train_test_split
    >>> from maxmargin import SVCCV
    >>> X, X_test, y, y_test = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    >>> model = SVCCV().fit(X, y)
    >>> round(model.score(X_test, y_test), 2)
    0.97
    >>> model.predict_proba(X_test[:1]).round(1)
    array([[1., 0.]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ClassTuner._parameter_constraints,
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __init__(
        self,
        *,
        kernel: str = "rbf",
        scale: str | None = "standard",
        scoring: Any = None,
        cv: Any = None,
        class_weight: Any = None,
        calibrate: str | None = "sigmoid",
        refine: int = 1,
        select: str = "best",
        tol: float = 1e-3,
        cache_size: float = 200,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        checkpoint: Any = None,
        progress: bool | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.scale = scale
        self.scoring = scoring
        self.cv = cv
        self.class_weight = class_weight
        self.calibrate = calibrate
        self.refine = refine
        self.select = select
        self.tol = tol
        self.cache_size = cache_size
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.progress = progress
        self.verbose = verbose

    def _untrained(self, **params: Any) -> Any:
        given = {"tol": self.tol, **params}
        return SVC(class_weight=self.class_weight, cache_size=self.cache_size, n_jobs=self.n_jobs, **given)

    def _surface(self, estimator: Any, X: Any, y: Any, splits: Sequence[Split], **shared: Any) -> Surface:
        return ClassSurface(estimator, X, y, splits, **shared)

    def _units(self, y: Any, weight: Floats | None) -> Units:
        """C in units of the mean weight, whose common factors then change C only."""
        if weight is None and self.class_weight is None:
            return Units(C=1.0)
        factors = np.ones(len(y)) if weight is None else weight
        some = factors > 0
        classes, label = np.unique(y[some], return_inverse=True)
        factors = factors[some] * compute_class_weight(self.class_weight, classes=classes, y=y[some])[label]
        return Units(C=1.0 / (float(factors.mean()) or 1.0))
