"""Steps along cycles of pair steps: fewer steps to the same optimum, in the box all the time."""

import numpy as np
import pytest

import qp
from maxmargin import SVC, SVR, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Stop
from maxmargin.solvers._pair_cycles import Cycles, go_along
from pair_loop import BIG, TAU, block_rows, matrix, places_of, run

few_groups = pytest.mark.parametrize("kind", [k for k in qp.KINDS if k != "crammer_singer"])


def slow(n=120, seed=0):
    """A problem on which pair steps zigzag: matrix, linear term and bounds."""
    Q, rng = matrix(n, seed, ridge=1e-3)
    return Q, rng.normal(size=n), np.full(n, -30.0), np.full(n, 30.0)


def value(Q, p, u):
    return 0.5 * u @ Q @ u - p @ u


def solve(Q, p, lo, hi, most=200_000, with_cycles=True, tol=1e-6, groups=1):
    n = len(p)
    ranges = np.linspace(0, n, groups + 1).astype(np.intp)
    places = places_of(n, np.diag(Q).copy(), ranges, np.arange(groups + 1))
    cycles = Cycles.of(n, Q.dtype) if with_cycles else None
    u = np.zeros(n)
    steps = run(Q, places, u, lo, hi, -p, tol=tol, most=most, cycles=cycles)
    return u, steps, places


@pytest.mark.parametrize("groups", [1, 3])
def test_fewer_steps_lead_to_the_same_optimum(groups):
    Q, p, lo, hi = slow()
    plain, many, _ = solve(Q, p, lo, hi, with_cycles=False, groups=groups)
    u, few, _ = solve(Q, p, lo, hi, groups=groups)
    assert few < 0.8 * many
    assert value(Q, p, u) == pytest.approx(value(Q, p, plain), rel=1e-6)
    for part in np.split(u, groups):
        assert abs(part.sum()) < 1e-10


def test_every_step_descends_within_the_box_and_keeps_the_sum():
    Q, p, lo, hi = slow()
    values = []
    for most in range(1, 1500, 37):
        u, steps, _ = solve(Q, p, lo, hi, most)
        assert steps == most
        assert ((lo <= u) & (u <= hi)).all()
        assert abs(u.sum()) < 1e-10
        values.append(value(Q, p, u))
    assert (np.diff(values) <= 1e-9).all()
    plain, _, _ = solve(Q, p, lo, hi, most, with_cycles=False)
    assert values[-1] < value(Q, p, plain)


def test_gradients_are_those_of_the_point():
    Q, p, lo, hi = slow()
    u, _, places = solve(Q, p, lo, hi, 1500)
    g = Q @ u - p
    assert (u == lo).any() or (u == hi).any()
    np.testing.assert_allclose(places.up[u < hi], g[u < hi], atol=1e-9)
    np.testing.assert_allclose(places.down[u > lo], g[u > lo], atol=1e-9)
    assert (places.up[u == hi] == BIG).all()
    assert (places.down[u == lo] == -BIG).all()


def cycle(bound=np.inf):
    """Three pair steps, of which the last is not in the gradient yet, at a part of their best lengths."""
    Q, _ = matrix(6, ridge=0.1)
    p = np.array([1.0, 0.5, 0.2, -0.4, -0.6, -0.7])
    lo, hi = np.full(6, -bound), np.full(6, bound)
    places, cycles = places_of(6, np.diag(Q).copy()), Cycles.of(6, Q.dtype)
    u, g = np.zeros(6), -p
    for t, (i, j) in enumerate([(0, 5), (1, 4), (0, 5)], 1):
        fall, curvature = g[j] - g[i], Q[i, i] + Q[j, j] - 2 * Q[i, j]
        step = fall / curvature / 20
        u[[i, j]] += step, -step
        cycles.pairs[t], cycles.sizes[t] = (i, j), (step, step * (fall - 0.5 * step * curvature))
        before, g = g, g + step * (Q[i] - Q[j])
    places.up[:], places.down[:] = before, before
    return Q, p, u, lo, hi, places, cycles, g


def test_the_step_along_a_cycle_is_an_exact_line_search():
    Q, p, u, lo, hi, places, cycles, g = cycle()
    before = u.copy()
    assert go_along(cycles, 3, 3, block_rows(Q), places, u, lo, hi, BIG, TAU)
    d = before  # it began at zero
    best = before - d * (g @ d) / (d @ Q @ d)
    np.testing.assert_allclose(u, best, atol=1e-12)
    assert abs((Q @ u - p) @ d) < 1e-12


def test_a_step_along_a_cycle_ends_exactly_on_the_bounds_that_it_meets():
    _, _, u, *_ = cycle()
    bound = 2.0 * np.abs(u).max()
    Q, _, u, lo, hi, places, cycles, _ = cycle(bound)
    assert go_along(cycles, 3, 3, block_rows(Q), places, u, lo, hi, BIG, TAU)
    assert u[0] == bound
    assert u[5] == -bound
    assert places.up[0] == BIG
    assert places.down[5] == -BIG
    assert ((lo <= u) & (u <= hi)).all()


def test_a_cycle_that_does_not_pay_changes_nothing():
    Q, _, u, lo, hi, places, cycles, _ = cycle()
    cycles.sizes[1:4, 1] *= 1e6  # as if its steps had gained much more
    before, up = u.copy(), places.up.copy()
    assert not go_along(cycles, 3, 3, block_rows(Q), places, u, lo, hi, BIG, TAU)
    assert (u == before).all()
    assert (places.up == up).all()
    assert (cycles.where == -1).all()


DIFFICULT = {
    "many violations": {"C": 1e4},
    "all at the bound": {"C": 1e-6},
    "equal points": {"C": 10.0, "copies": 3},
    "equal points with other labels": {"C": 100.0, "copies": 2, "flip": True},
    "low rank": {"C": 100.0, "kernel": "linear"},
}


def difficult(C, copies=1, flip=False, **kernel):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 4))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=240))
    X, y = np.vstack([X] * copies), np.hstack([y, *[-y if flip else y] * (copies - 1)])
    return dual.c_svc(y, C), Gram(X, **(kernel or {"gamma": 0.1}))


@pytest.mark.parametrize("name", DIFFICULT)
@pytest.mark.parametrize("size", [None, 32])
def test_difficult_problems_have_the_same_optimum_within_both_certificates(name, size):
    problem, gram = difficult(**DIFFICULT[name])
    found = [
        Batch(working_set=size, finish=None, cycles=cycles).solve(problem, gram, stop=Stop(1e-4))
        for cycles in (False, True)
    ]
    for solution in found:
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u)
    assert abs(found[0].objective - found[1].objective) <= found[0].gap + found[1].gap


@few_groups
@pytest.mark.parametrize("cycles", [False, True])
def test_every_kind_of_problem_reaches_its_optimum(kind, cycles):
    problem, X, _, _, best = qp.solved_problem(kind, 1, 60)
    for size in (None, 16):
        solver = Batch(working_set=size, finish=None, cycles=cycles)
        solution = solver.solve(problem, qp.gram_of(X), stop=Stop(1e-7))
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u)
        assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("model", [SVC, SVR])
def test_fits_repeat_to_the_last_bit(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 6))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=2500)
    y = np.sign(y) if model is SVC else y
    one, other = (model(C=100.0, gamma=0.1, n_jobs=1, solver=Batch()).fit(X, y) for _ in range(2))
    assert np.array_equal(one.n_iter_, other.n_iter_)
    assert np.array_equal(one.dual_coef_, other.dual_coef_)


def test_cycles_save_pair_steps_of_a_regression():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(2500, 6))
    y = np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=2500)
    many, few = (
        SVR(C=100.0, gamma=0.5, n_jobs=1, solver=Batch(cycles=cycles)).fit(X, y) for cycles in (False, True)
    )
    assert few.n_iter_ < 0.9 * many.n_iter_
    difference = few.trace_[0][-1].objective - many.trace_[0][-1].objective
    assert abs(difference) <= np.sum(few.dual_gap_) + np.sum(many.dual_gap_)


def test_a_limit_of_iterations_holds():
    problem, gram = difficult(C=1e4)
    solution = Batch(finish=None).solve(problem, gram, stop=Stop(1e-9, max_iter=500))
    assert solution.n_iter == 500
    qp.assert_feasible(problem, solution.u)


@pytest.mark.parametrize("cycles", ["auto", None, 1])
def test_other_values_than_true_and_false_are_refused(cycles):
    with pytest.raises(ValueError, match="cycles must be True or False"):
        Batch(cycles=cycles)


def test_repr_says_that_there_are_no_cycles():
    assert repr(Batch(cycles=False)).endswith("cycles=False)")
