"""Estimators that predict from a `KernelModel`, and their fitted attributes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin._compiled.threads import Threads
from maxmargin._sklearn import ParametersCheckedOnce
from maxmargin._types import Floats
from maxmargin.estimators._validation import check_samples
from maxmargin.estimators._warm_start import WarmStart
from maxmargin.estimators.model import KernelModel
from maxmargin.kernels.expansion import linear
from maxmargin.kernels.parts import Named


class KernelPredictor(ParametersCheckedOnce):
    """Fitted attributes, and values of new samples, from a model that a subclass trains."""

    _model: KernelModel
    _solutions: WarmStart | None

    def _publish(self, model: KernelModel) -> None:
        """Keep the model, and set the attributes that scikit-learn has for its parts."""
        self._model = model
        self.support_ = model.support
        self.support_vectors_ = model.support_vectors
        self.dual_coef_ = model.dual_coef
        self.shape_fit_ = model.shape
        self._publish_intercept(model.intercept)

    def _publish_intercept(self, intercept: Floats) -> None:
        self.intercept_ = intercept

    def _check_fitted(self) -> None:
        """`check_is_fitted`, which takes as long as the values of a sample, unless there is a model."""
        if "_model" not in vars(self):
            check_is_fitted(self)

    def get_model(self) -> KernelModel:
        """Return the kernel, support vectors and coefficients that predictions are made from.

        Returns
        -------
        maxmargin.estimators.model.KernelModel
            The model. Fitted attributes and kernel parameters that were replaced since `fit` are in it.
        """
        self._check_fitted()
        model, kernel = self._model, self._model.kernel
        if (self.kernel, self.degree, self.coef0) != (kernel.name, kernel.degree, kernel.coef0):
            kernel = replace(kernel, name=self.kernel, degree=self.degree, coef0=self.coef0)
        # A new `dual_coef_` is not among them: as in scikit-learn it counts for `coef_` only.
        self._model = model.updated(
            kernel=kernel,
            support=self.support_,
            vectors=self.support_vectors_ if model.of_features else model.vectors,
            intercept=getattr(self, "intercept_", model.intercept),
        )
        return self._model

    def set_model(self, model: KernelModel, **attributes: Any) -> Any:
        """Make this a fitted estimator, without training.

        Parameters
        ----------
        model : maxmargin.estimators.model.KernelModel
            A model for the kernel parameters of this estimator.
        **attributes
            The fitted attributes that are not part of a model, such as ``classes_``.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        model.check()
        self._publish(model)
        self._solutions = None
        self.n_features_in_ = model.shape[1]
        for name, value in attributes.items():
            setattr(self, name, value)
        return self

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors, of each class where there are classes."""
        self._check_fitted()
        return self._model.n_support

    @property
    def _gamma(self) -> float:
        """The number used for gamma. scikit-learn's estimators have it, and its tests and others read it."""
        return self._model.kernel.gamma

    @property
    def coef_(self) -> Any:
        """Weights of the features, for the linear kernel only."""
        if self.kernel not in ("linear", Named("linear")):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._linear_coef()
        (coef.data if sp.issparse(coef) else coef).flags.writeable = False
        return coef

    # -- values --------------------------------------------------------------------------------

    def _linear_coef(self) -> Any:
        return self.get_model().combine(self.dual_coef_)

    def _linear_values(self, X: Any, intercept: Floats) -> Floats:
        """Values of the linear functions with the weights `coef_`."""
        model = self.get_model()
        return linear(check_samples(self, X, model), self._linear_coef(), intercept)

    def _expand(self, X: Any, *, by_class: bool = False) -> Floats:
        """Kernel expansions, see `KernelModel.expand`."""
        model = self.get_model()
        X = check_samples(self, X, model)
        return model.expand(X, by_class=by_class, threads=Threads(self.n_jobs))
