"""Values near the end of float64's range: an honest answer, and no warnings of NumPy's."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from maxmargin import SVC, L2OneClassSVM
from maxmargin.dual import widest


def test_an_undefined_spread_is_infinite() -> None:
    inf = np.inf
    assert widest(np.array([0.0, inf]), np.array([1.0, inf])) == inf
    assert widest(np.array([0.0, inf]), np.array([1.0, -inf])) == 1.0
    assert widest(np.array([]), np.array([])) == -inf


@pytest.mark.parametrize("solver", ["batch", "smo", "rosen"])
@pytest.mark.parametrize("offset", [1e30, 1e49, 1e51])
def test_kernel_values_near_overflow_are_not_called_solved(solver: str, offset: float) -> None:
    rng = np.random.default_rng(0)
    X = offset + rng.standard_normal((60, 1))
    y = rng.integers(0, 2, 60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = SVC(kernel="poly", coef0=1.0, gamma=1.0, C=1.7, tol=1e-8, solver=solver).fit(X, y)
    assert model.status_ != "solved"
    assert not [w for w in caught if issubclass(w.category, RuntimeWarning)]
    assert any(issubclass(w.category, ConvergenceWarning) for w in caught)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("n", [30, 700])
def test_the_largest_gamma_makes_no_noise(kernel: str, n: int) -> None:
    X = np.random.default_rng(0).normal(size=(n, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVC(kernel=kernel, gamma=1e308).fit(X, X[:, 0] > 0)
        assert model.status_ == "solved" and model.score(X, X[:, 0] > 0) == 1.0


@pytest.mark.parametrize("options", [{"C": 1e308}, {"C": 1.0, "sample_weight": 1e308}])
def test_bounds_beyond_all_reason_are_refused_with_advice(options: dict) -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    weight = np.full(30, options.pop("sample_weight", 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=r"smaller C|common number"):
            SVC(**options).fit(X, X[:, 0] > 0, sample_weight=weight)


@pytest.mark.parametrize("weight", [1e-150, 1e-160, 1e-300])
def test_weights_whose_squares_are_zero_leave_a_model_with_an_honest_status(weight: float) -> None:
    X = np.random.default_rng(0).normal(size=(30, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = L2OneClassSVM().fit(X, sample_weight=np.full(30, weight))
    assert model.status_ == ("solved" if model.relative_gap_ < 1e-3 else "stalled")
    assert np.isfinite(model.decision_function(X)).all()
