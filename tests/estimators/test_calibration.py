import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.isotonic import IsotonicRegression

from maxmargin.estimators._coupling import coupled
from maxmargin.estimators.calibration import CALIBRATORS, LEAST, SigmoidCalibrator
from maxmargin.estimators.decisions import decision_values


def values_of(k, n=300, seed=0):
    """Pair values of k overlapping classes, in the signs of `BaseSVC._pair_values`, and labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(k, size=n)
    centres = 2.0 * rng.normal(size=(k, 3))
    X = centres[labels] + rng.normal(size=(n, 3))
    pairs = zip(*np.triu_indices(k, 1), strict=True)
    values = np.column_stack(
        [(X - (centres[a] + centres[b]) / 2) @ (centres[a] - centres[b]) for a, b in pairs]
    )
    return (-values if k == 2 else values), labels


def platt_loss(ab, f, first, weight):
    n1, n0 = weight[first].sum(), weight[~first].sum()
    target = np.where(first, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    x = ab[0] * f + ab[1]
    return np.sum(weight * (target * x + np.logaddexp(0, -x)))


@pytest.mark.parametrize("weighted", [False, True])
def test_a_sigmoid_is_the_minimum_of_platts_loss(weighted):
    values, labels = values_of(2)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(labels)) if weighted else None
    fitted = SigmoidCalibrator.fit(values, labels, 2, weight)
    arguments = (-values[:, 0], labels == 0, np.ones(len(labels)) if weight is None else weight)
    best = minimize(platt_loss, [0.0, 0.0], arguments, tol=1e-12)
    np.testing.assert_allclose([fitted.A[0], fitted.B[0]], best.x, rtol=1e-4)


def test_a_weight_counts_as_so_many_rows():
    values, labels = values_of(3)
    weight = np.random.default_rng(0).integers(1, 4, len(labels))
    once = SigmoidCalibrator.fit(values, labels, 3, weight)
    often = SigmoidCalibrator.fit(np.repeat(values, weight, axis=0), np.repeat(labels, weight), 3)
    np.testing.assert_allclose(once.A, often.A)
    np.testing.assert_allclose(once.B, often.B)


def test_separated_constant_and_missing_values_give_finite_probabilities():
    labels = np.array([0, 0, 0, 1, 1])
    for values in ([-2.0, -1.0, -3.0, 5.0, 6.0], np.zeros(5), [-1e8, 0.0, 0.0, 0.0, 1e8]):
        p = SigmoidCalibrator.fit(np.array(values), labels, 2).predict_proba(np.array(values))
        assert np.isfinite(np.log(p)).all()
    nothing = SigmoidCalibrator.of_pairs(2, [np.empty(0)], [np.empty(0, bool)])
    np.testing.assert_array_equal(nothing.predict_proba(np.array([3.0])), [[0.5, 0.5]])


@pytest.mark.parametrize("k", [3, 5, 12])
def test_coupling_is_near_the_minimum_of_the_second_method(k):
    rng = np.random.default_rng(k)
    first = rng.uniform(0.02, 0.98, size=(40, k * (k - 1) // 2))
    for p, r in zip(coupled(first, k, LEAST), first, strict=True):
        R = np.zeros((k, k))
        R[np.triu_indices(k, 1)], R.T[np.triu_indices(k, 1)] = r, 1 - r
        Q = -R * R.T + np.diag((R**2).sum(axis=0))
        system = np.block([[Q, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
        exact = np.linalg.solve(system, np.append(np.zeros(k), 1.0))[:k]
        np.testing.assert_allclose(p, exact, atol=0.03)
        assert p.sum() == pytest.approx(1.0) and (p >= 0).all()


def test_consistent_pairs_are_coupled_to_the_probabilities_behind_them():
    p = np.array([0.5, 0.3, 0.15, 0.05])
    a, b = np.triu_indices(4, 1)
    np.testing.assert_allclose(coupled((p[a] / (p[a] + p[b]))[None], 4, LEAST)[0], p, atol=0.01)


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.parametrize("k", [2, 4])
def test_calibrators_predict_better_than_frequencies_and_survive_storage(name, k):
    values, labels = values_of(k, 600)
    fitted = CALIBRATORS[name].fit(values[:300], labels[:300], k)
    p = fitted.predict_proba(values[300:])
    assert p.shape == (300, k)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p.argmax(axis=1) == labels[300:]).mean() > 0.7
    loss = -np.log(np.maximum(p[np.arange(300), labels[300:]], 1e-6)).mean()
    assert loss < 0.8 * np.log(k)
    arrays = fitted.arrays()
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    for again in (CALIBRATORS[name].from_arrays(k, arrays), pickle.loads(pickle.dumps(fitted))):
        np.testing.assert_array_equal(again.predict_proba(values[300:]), p)


def test_isotonic_of_two_classes_is_scikit_learns():
    values, labels = values_of(2)
    p = CALIBRATORS["isotonic"].fit(values, labels, 2).predict_proba(values)[:, 1]
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(values[:, 0], labels)
    np.testing.assert_allclose(p, theirs.predict(values[:, 0]), atol=1e-12)


@pytest.mark.parametrize("k", [2, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_temperature_is_scikit_learns(k, weighted):
    scaling = getattr(pytest.importorskip("sklearn.calibration"), "_TemperatureScaling", None)
    if scaling is None:
        pytest.skip("scikit-learn before 1.8")
    values, labels = values_of(k)
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(labels)) if weighted else None
    ours = CALIBRATORS["temperature"].fit(values, labels, k, weight)
    logits = decision_values(values, k, "ovr")
    theirs = scaling().fit(logits, labels, weight)
    np.testing.assert_allclose(ours.predict_proba(values), theirs.predict(logits), atol=1e-6)
