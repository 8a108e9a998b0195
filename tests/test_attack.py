"""The judge of benchmarks/attack.py can tell a wrong model from a right one."""

import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import maxmargin

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
KINDS = {
    "hinge": ("SVC", {"C": 2.0}),
    "squared hinge": ("SVC", {"C": 2.0, "loss": "squared_hinge"}),
    "hulls": ("SVC", {"C": 2.0, "loss": "squared_hinge", "solver": "mdm"}),
    "hard margin": ("SVC", {"C": np.inf, "gamma": 5.0}),
    "NuSVC": ("NuSVC", {"nu": 0.3}),
    "SVR": ("SVR", {"C": 2.0}),
    "SVR squared": ("SVR", {"C": 2.0, "loss": "squared_epsilon_insensitive"}),
    "NuSVR": ("NuSVR", {"C": 2.0, "nu": 0.3}),
    "OneClassSVM": ("OneClassSVM", {"nu": 0.3}),
    "L2OneClassSVM": ("L2OneClassSVM", {"C": 5.0}),
    "AllDistancesSVC": ("AllDistancesSVC", {"nu": 0.3}),
    "CrammerSingerSVC": ("CrammerSingerSVC", {"C": 2.0}),
}


@pytest.fixture(scope="module")
def attacks():
    """The package of the attack's parts."""
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import attacks.exact
        import attacks.fits
        import attacks.judge
        import attacks.optimum
        import attacks.problems
    finally:
        sys.path.remove(str(BENCHMARKS))
    return attacks


def fitted(kind, tol=1e-2, **options):
    name, parameters = KINDS[kind]
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    y = np.arange(60) % (3 if name in ("AllDistancesSVC", "CrammerSingerSVC") else 2)
    X[:, 0] += y
    if "SVR" in name:
        y = X.sum(axis=1)
    parameters = {"gamma": 0.5, **parameters, **options}
    return getattr(maxmargin, name)(tol=tol, **parameters).fit(X, y), X, y


def faults(attacks, model, X, y):
    return [fault for verdict in attacks.judge.judge(model, X, y) for fault in verdict.faults]


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_model_has_no_faults(attacks, kind):
    for tol in (1e-1, 1e-3, 1e-6):
        assert faults(attacks, *fitted(kind, tol)) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_gap_that_is_too_small_is_a_false_certificate(attacks, kind):
    model, X, y = fitted(kind)
    assert np.max(model.dual_gap_) > 0
    model.dual_gap_ = 0.9 * model.dual_gap_
    assert any("false certificate" in fault for fault in faults(attacks, model, X, y))


@pytest.mark.parametrize("kind", KINDS)
def test_coefficients_that_are_not_optimal_are_told_from_those_that_are(attacks, kind):
    model, X, y = fitted(kind, 1e-6)
    coef = np.array(model.dual_coef_)
    rng = np.random.default_rng(0)
    model.dual_coef_ = coef * rng.uniform(0.9, 1.1, size=coef.shape)
    assert faults(attacks, model, X, y)


def test_a_coefficient_above_its_bound_is_found(attacks):
    model, X, y = fitted("hinge")
    top = int(np.argmax(np.abs(model.dual_coef_[0])))
    model.dual_coef_[0, top] *= 1 + 1e-6
    found = faults(attacks, model, X, y)
    assert any("above its bound" in fault for fault in found)
    assert any("add up to" in fault for fault in found)


@pytest.mark.parametrize("kind", ["hinge", "squared hinge", "SVR"])
def test_an_intercept_that_the_conditions_do_not_allow_is_found(attacks, kind):
    model, X, y = fitted(kind, 1e-4)
    model.intercept_ = model.intercept_ + 1e-2
    assert any("the intercept" in fault for fault in faults(attacks, model, X, y))


@pytest.mark.parametrize("kind", KINDS)
def test_solved_means_solved_to_tol(attacks, kind):
    model, X, y = fitted(kind, 1e-1)
    model.tol = 1e-9
    assert any("KKT violation" in fault for fault in faults(attacks, model, X, y))


@pytest.mark.parametrize("name", ["linear", "poly"])
def test_kernel_expansions_are_exact_where_float64_knows_nothing(attacks, name):
    rng = np.random.default_rng(1)
    X = 1e8 + np.round(rng.normal(size=(9, 2)), 3)
    X[0] = 1e9
    u = np.round(rng.normal(size=9), 6)
    exact = attacks.exact.Coefficients(u)
    exact.move(3, slice(None), 0.0)
    weights = [Fraction(float(v)) for v in u]
    weights[3] -= sum(weights)
    kernel = attacks.exact.Kernel(name, gamma=0.25, degree=3, coef0=1.0)

    def value(a, b):
        inner = sum(Fraction(float(s)) * Fraction(float(t)) for s, t in zip(a, b, strict=True))
        return inner if name == "linear" else (inner / 4 + 1) ** 3

    h = [sum(w * value(row, other) for w, other in zip(weights, X, strict=True)) for row in X]
    found = attacks.exact.expansion(kernel, X, exact)
    middle = sorted(h)[len(h) // 2]
    for got, want in zip(found.h, h, strict=True):
        assert abs(float(got) - float(want - middle)) <= 1e-15 * abs(float(want - middle))
    quad = float(sum(w * v for w, v in zip(weights, h, strict=True)))
    assert abs(float(found.quad) - quad) <= 1e-15 * abs(quad)


def test_independent_solver_finds_the_same_values(attacks):
    for seed in (*range(12), 31_000_811):  # the last: the other solver ends with a gap of its own
        assert attacks.optimum.run(seed).faults == []


def test_a_pair_without_coefficients_must_claim_an_infinite_gap(attacks):
    model, X, y = fitted("NuSVC")
    model.dual_coef_ = np.zeros_like(model.dual_coef_)
    assert any("false certificate" in fault for fault in faults(attacks, model, X, y))
    model.dual_gap_, model.status_ = np.array([np.inf]), "max_time"  # it was not begun
    assert faults(attacks, model, X, y) == []


def test_a_bias_that_is_not_unique_must_be_in_the_middle(attacks):
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    model = maxmargin.SVC(C=1e-3, gamma=0.5, tol=1e-6).fit(X, y)  # every multiplier at its bound
    assert faults(attacks, model, X, y) == []
    model.intercept_ = model.intercept_ + 0.1
    assert any("from the middle" in fault for fault in faults(attacks, model, X, y))


def test_every_solver_is_attacked(attacks):
    from maxmargin import solvers

    assert {name for some in attacks.problems.SOLVERS.values() for name in some} == set(solvers.names())
