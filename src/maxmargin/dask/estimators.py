"""The estimators of the package: those of `maxmargin` with a client."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.utils.metaestimators import available_if

from maxmargin.dask.base import DaskEstimator, with_client
from maxmargin.dask.documentation import documented
from maxmargin.estimators import nu_svc, one_class, svc, svr


def _check_proba(estimator: Any) -> bool:
    return bool(estimator._check_proba())


class _Classifier(DaskEstimator):
    """Training and predictions of the classifiers."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model; returns when it is done.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Training data, in chunks of rows, whose sizes may be unknown.
        y : dask or local vector of shape (n_samples,)
            Class labels.
        sample_weight : dask or local vector of shape (n_samples,), default=None
            Factors of C per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        _check_given(self, y)
        return self._train(X, y, sample_weight)

    def decision_function(self, X: Any) -> Any:
        """Evaluate the decision function.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray, or lazy dask Array, Series or DataFrame
            One value for two classes; otherwise one column per class ("ovr") or per pair ("ovo"). Lazy if X
            is: a dask array for a dask array, a series or data frame for a dask data frame.
        """
        return self._values("decision_function", X)

    @available_if(_check_proba)
    def predict_proba(self, X: Any) -> Any:
        """Compute probabilities of the classes, see `maxmargin.SVC.predict_proba`.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray, or lazy dask Array or DataFrame of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`.
        """
        return self._values("predict_proba", X)

    @available_if(_check_proba)
    def predict_log_proba(self, X: Any) -> Any:
        """Compute the logarithms of the probabilities, see `predict_proba`.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray, or lazy dask Array or DataFrame of shape (n_samples, n_classes)
            Logarithms of the probabilities.
        """
        return self._values("predict_log_proba", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples.
        y, sample_weight : dask or local vectors of shape (n_samples,)
            Labels, and weights if there are any.

        Returns
        -------
        float
        """
        from sklearn.metrics import accuracy_score

        return self._measured(accuracy_score, X, y, sample_weight)


class _Regressor(DaskEstimator):
    """Training and scores of the regressors."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.multi_output = False
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model; returns when it is done.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Training data, in chunks of rows, whose sizes may be unknown.
        y : dask or local vector of shape (n_samples,)
            Targets.
        sample_weight : dask or local vector of shape (n_samples,), default=None
            Factors of C per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        _check_given(self, y)
        shape: tuple[Any, ...] = getattr(y, "shape", ())
        if len(shape) == 2 and shape[1] != 1:
            raise ValueError(
                f"y should be a 1d array, got {shape[1]} columns: here a model has one target. Fit one for "
                f"each column, or use maxmargin.{self._local_class.__name__}."
            )
        return self._train(X, y, sample_weight)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the coefficient of determination R².

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples.
        y, sample_weight : dask or local vectors of shape (n_samples,)
            Targets, and weights if there are any.

        Returns
        -------
        float
        """
        from sklearn.metrics import r2_score

        return self._measured(r2_score, X, y, sample_weight)


def _check_given(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )


@documented(data="load_iris", targets=", y", chunks="100, 50")
class SVC(_Classifier, svc.SVC):
    """C-support vector classification on a dask cluster."""

    _local_class = svc.SVC
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **svc.SVC._parameter_constraints,
        **DaskEstimator._added_constraints,
    }
    __init__ = with_client(svc.SVC)


@documented(data="load_iris", targets=", y", chunks="100, 50")
class NuSVC(_Classifier, nu_svc.NuSVC):
    """Nu-support vector classification on a dask cluster."""

    _local_class = nu_svc.NuSVC
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **nu_svc.NuSVC._parameter_constraints,
        **DaskEstimator._added_constraints,
    }
    __init__ = with_client(nu_svc.NuSVC)


@documented(data="load_diabetes", targets=", y", chunks="100, 100, 100, 100, 42")
class SVR(_Regressor, svr.SVR):
    """Epsilon-support vector regression on a dask cluster."""

    _local_class = svr.SVR
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **svr.SVR._parameter_constraints,
        **DaskEstimator._added_constraints,
    }
    __init__ = with_client(svr.SVR)


@documented(data="load_diabetes", targets=", y", chunks="100, 100, 100, 100, 42")
class NuSVR(_Regressor, svr.NuSVR):
    """Nu-support vector regression on a dask cluster."""

    _local_class = svr.NuSVR
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **svr.NuSVR._parameter_constraints,
        **DaskEstimator._added_constraints,
    }
    __init__ = with_client(svr.NuSVR)


@documented(data="load_iris", targets="", chunks="100, 50")
class OneClassSVM(DaskEstimator, one_class.OneClassSVM):
    """One-class SVM on a dask cluster."""

    _local_class = one_class.OneClassSVM
    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **one_class.OneClassSVM._parameter_constraints,
        **DaskEstimator._added_constraints,
    }
    __init__ = with_client(one_class.OneClassSVM)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Find the region that holds most of the samples; returns when it is done.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Training data, in chunks of rows, whose sizes may be unknown.
        y : Ignored
            Not used.
        sample_weight : dask or local vector of shape (n_samples,), default=None
            Factors of the bounds per sample; 0 is the same as leaving the row out.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        return self._train(X, None, sample_weight)

    def fit_predict(self, X: Any, y: Any = None, **parameters: Any) -> Any:
        """Fit, and predict the training data; see `fit` and `predict`."""
        return self.fit(X, **parameters).predict(X)

    def decision_function(self, X: Any) -> Any:
        """Signed distance to the boundary, positive for inliers.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray, or lazy dask Array or Series of shape (n_samples,)
        """
        return self._values("decision_function", X)

    def score_samples(self, X: Any) -> Any:
        """The unshifted scores: ``decision_function(X) + offset_``.

        Parameters
        ----------
        X : dask or local array, sparse matrix or data frame of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray, or lazy dask Array or Series of shape (n_samples,)
        """
        return self._values("score_samples", X)
