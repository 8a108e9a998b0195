"""The compiled certificate has the numbers of the NumPy form, whose gap is the smaller bound."""

import numpy as np
import pytest

from maxmargin import dual
from maxmargin.dual import _certify
from maxmargin.dual._certify import certify
from maxmargin.dual._extremes import widest_of
from maxmargin.dual.feasible import AT_BOUND
from maxmargin.gram import Gram
from maxmargin.solvers import SMO, Stop
from maxmargin.solvers.c_path.state import Point, is_feasible, offset_of

N = 80
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.where(X[:, 0] * X[:, 1] + 0.5 * RNG.normal(size=N) > 0, 1.0, -1.0)
ORDER = np.argsort(-Y, kind="stable")  # class by class
X, Y = X[ORDER], Y[ORDER]
PROBLEMS = {
    "c_svc": dual.c_svc(Y, C=2.0),
    "weighted": dual.c_svc(Y, bounds=RNG.uniform(0.1, 5.0, N)),
    "squared": dual.squared_c_svc(Y, ridge=RNG.uniform(0.05, 1.0, N)),
    "one_class": dual.one_class(N, nu=0.3),
    "epsilon_svr": dual.epsilon_svr(np.sin(X[:, 0]), C=2.0, epsilon=0.1),
    "squared_svr": dual.squared_epsilon_svr(np.sin(X[:, 0]), ridge=np.full(N, 0.3), epsilon=0.1),
    "hulls": dual.reduced_hulls(Y, mu=0.08).without_signs,
    "hulls, second class first": dual.reduced_hulls(-Y, mu=RNG.uniform(0.03, 0.06, N)).without_signs,
}
POINTS = [
    "optimal",
    "rough",
    "start",
    "random",
    "snapped",
    "beside a bound",
    "at bounds",
    "bad sum",
    "outside",
]


def gram():
    return Gram(X, gamma=0.4, dtype="float64")


def solved(problem, tol):
    return SMO().solve(problem, gram(), stop=Stop(tol)).u.copy()


def point(problem, kind):
    finite = np.isfinite(problem.hi - problem.lo)
    if kind == "optimal":
        return solved(problem, 1e-10)
    if kind == "rough":
        return solved(problem, 0.1)
    if kind == "start":
        return problem.start()
    if kind == "random":
        return problem.repair(np.random.default_rng(1).normal(size=problem.m))
    u = solved(problem, 1e-3)
    free = np.flatnonzero((u > problem.lo) & (u < problem.hi))
    if kind in ("snapped", "beside a bound"):
        at = free[finite[free]][:2] if finite.any() else free[:0]
        u[at] = problem.lo[at] + 0.5 * AT_BOUND * (problem.hi - problem.lo)[at]
        return problem.snap(u) if kind == "snapped" else u
    if kind == "at bounds":
        middle = 0.5 * (problem.lo + problem.hi)
        return np.where(
            finite & (u > middle), problem.hi, np.where(np.isfinite(problem.lo), problem.lo, problem.hi)
        )
    u[free[0]] += 1e-6 if kind == "bad sum" else 1e6 if not finite.any() else 100.0
    return u


def certified(problem, u, g, noise):
    """The report, and the numbers of the groups in the order of their ranges."""
    report = np.full(_certify.ENTRIES, np.nan)
    order = problem.group[problem.ranges[:-1]]
    box = problem.lo, problem.hi, problem.p, problem.ridge, problem.ranges, problem.sums[order]
    certify(u, g, *box, noise, noise, report)
    return report, order


@pytest.mark.parametrize("noise", [0.0, 1e-4])
@pytest.mark.parametrize("kind", POINTS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_certify_is_the_certificate_of_the_dual(name, kind, noise):
    problem = PROBLEMS[name]
    u = point(problem, kind)
    g = problem.gradient(u, gram())
    report, order = certified(problem, u, g, noise)
    close = {"rel": 1e-12, "abs": 1e-12 * max(1.0, float(np.abs(g).max()))}
    offset = report[_certify.OFFSET : _certify.OFFSET + len(order)]
    assert offset == pytest.approx(problem.offset(u, g)[order], **close)
    assert np.isnan(report[_certify.OFFSET + len(order) :]).all()
    assert report[_certify.OBJECTIVE] == pytest.approx(problem.objective(u, g), **close)
    assert report[_certify.VIOLATION] * problem.scale == pytest.approx(problem.violation(u, g), **close)
    assert report[_certify.WORST] * problem.scale == pytest.approx(problem.violation(u, g, noise), **close)
    widest = widest_of(u, g, problem.lo, problem.hi, problem.ranges)
    assert max(widest, 0.0) * problem.scale == pytest.approx(problem.violation(u, g), **close)
    assert report[_certify.NOISE] == noise
    assert bool(report[_certify.RIGHT]) == problem.feasible(u)
    if problem.feasible(u):
        one_sided = problem._one_sided(u)  # which is left to `Dual.snap`
        assert bool(report[_certify.NEAR_BOUND]) == bool((problem.snap(one_sided) != one_sided).any())
        # The multiplier of the dual is the best without noise: with it another may be better by a little.
        best = problem.gap(u, g, noise)
        assert best <= 1.001 * report[_certify.GAP]
        if kind in ("optimal", "snapped", "beside a bound"):
            assert report[_certify.GAP] <= 1.5 * best + 1e-9 * abs(problem.objective(u, g))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_gap_for_the_best_multiplier_is_that_of_the_dual(name):
    problem = PROBLEMS[name]
    for kind in ("optimal", "rough", "random", "snapped"):
        u = point(problem, kind)
        g = problem.gradient(u, gram())
        for noise in (0.0, 1e-4):
            bound = 0.0
            for member, total in zip(problem.members, problem.sums, strict=True):
                box = problem.lo[member], problem.hi[member], problem.ridge[member], total
                at = problem._multiplier((problem.ridge * u - g)[member], *box)
                bound += _certify.gap_for(u[member], g[member], *box, at, noise)
            assert bound == pytest.approx(problem.gap(u, g, noise), rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["c_svc", "hulls"])
def test_a_gradient_that_is_not_finite_certifies_nothing(bad, name):
    problem = PROBLEMS[name]
    for entry in (0, N - 1):
        u = problem.start()
        u[entry] = 0.5 * (problem.lo[entry] + problem.hi[entry])
        u = problem.repair(u)
        g = problem.gradient(u, gram())
        g[entry] = bad
        report, _ = certified(problem, u, g, 0.0)
        assert not report[_certify.RIGHT] and report[_certify.GAP] == problem.gap(u, g) == np.inf


@pytest.mark.parametrize("group", [0, 1])
def test_a_wrong_sum_of_either_group_is_not_right(group):
    problem = PROBLEMS["hulls"]
    u = point(problem, "optimal")
    g = problem.gradient(u, gram())
    assert certified(problem, u, g, 0.0)[0][_certify.RIGHT]
    free = (u > problem.lo) & (u < problem.hi)
    u[np.flatnonzero(free & (problem.group == group))[0]] += 1e-7
    assert not certified(problem, u, g, 0.0)[0][_certify.RIGHT]


@pytest.mark.parametrize("kind", ["optimal", "rough", "start", "snapped", "at bounds", "outside"])
def test_the_c_path_has_the_same_offset_violation_and_feasibility(kind):
    problem = PROBLEMS["c_svc"]
    u = point(problem, kind)
    g = problem.gradient(u, gram())
    offset, violation = offset_of(Point(u, g, problem.lo, problem.hi, 0.0))
    assert offset == pytest.approx(problem.offset(u, g)[0], rel=1e-12, abs=1e-12)
    assert max(violation, 0.0) * problem.scale == pytest.approx(problem.violation(u, g), rel=1e-12, abs=1e-12)
    assert is_feasible(u, problem.lo, problem.hi) == problem.feasible(u)
