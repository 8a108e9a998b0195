"""MaxMinOver: counters, the feasibility gap, warm starts."""

import numpy as np
import pytest

import qp
from maxmargin import SVC, dual, solvers
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, MaxMinOver, Stop
from maxmargin.solvers.papers.maxminover import apportion, feasibility_gap


def classes_of(y):
    """Four classes."""
    return np.arange(len(y)) % 2 + 2 * (np.asarray(y) > 0)


KINDS = {
    "minimum_norm": lambda y, **options: dual.minimum_norm(y, **options),
    "nearest_points": lambda y, **options: dual.nearest_points(y, **options),
    "one_class_l2": lambda y, **options: dual.one_class_l2(len(y), **options),
    "squared_all_distances": lambda y, **options: dual.squared_all_distances(classes_of(y), **options),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_ridge = pytest.mark.parametrize("ridge", [0.0, 0.1, "mixed"])


def gram_of(X, dtype="float64", **options):
    return Gram(X, "rbf", gamma=0.5, dtype=dtype, n_jobs=1, **options)


def data(n, seed=0, d=3):
    rng = np.random.default_rng([n, seed])
    y = np.where(np.arange(n) % 3, 1.0, -1.0)
    return rng.normal(size=(n, d)) + 0.5 * y[:, None], y


def problem_of(kind, y, ridge, seed=0):
    if ridge == "mixed":
        rng = np.random.default_rng(seed)
        ridge = 10 ** rng.uniform(-3, 1, size=len(y)) * (rng.random(len(y)) < 0.7)
    return KINDS[kind](y, ridge=ridge)


def in_short_slices(solver, steps, look):
    """The same solver with a checkpoint after every few iterations."""
    advance = solver.advance

    def short(state, work):
        state.left = min(state.left, steps)
        advance(state, work)
        look(state, work)

    solver.advance = short
    return solver


def by_definition(problem, Q, steps):
    """The algorithm as the papers have it, on a dense matrix: counters after each step."""
    hulls = [np.flatnonzero(problem.group == k) for k in range(problem.n_groups)]
    a = problem.start()
    out = [a.copy()]
    for _ in range(steps):
        s = Q @ a
        for hull in hulls:
            i_min = hull[np.argmin(s[hull])]
            used = hull[a[hull] > 0]
            i_max = used[np.argmax(s[used])]
            a[i_min] += 2
            a[i_max] -= 1
        out.append(a.copy())
    return np.array(out)


# -- the steps -------------------------------------------------------------------------------


@every_ridge
@every_kind
def test_counters_are_those_of_the_algorithm_by_its_definition(kind, ridge):
    X, y = data(25)
    problem = problem_of(kind, y, ridge)
    Q = qp.dense_q(problem, qp.rbf(X))
    expected = by_definition(problem, Q, 150)
    seen = []

    def look(state, work):
        total = work.progress[0]
        assert total == 1 + state.n_iter
        counts = state.u * total
        assert np.abs(counts - np.rint(counts)).max() < 1e-9
        seen.append(np.rint(counts))
        qp.assert_feasible(problem, state.u)
        assert np.abs(state.g - Q @ state.u).max() <= 1e-12

    in_short_slices(MaxMinOver(), 1, look).solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=150))
    np.testing.assert_array_equal(seen, expected[1:])


@every_kind
@pytest.mark.parametrize("refresh", [1, 7, 1000])
def test_how_often_margins_are_recomputed_does_not_change_the_steps(kind, refresh):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    a, b = (
        MaxMinOver(r).solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=500)) for r in (refresh, 10**6)
    )
    assert a.n_iter == b.n_iter == 500
    assert a.u == pytest.approx(b.u, abs=1e-15)


@every_kind
def test_two_rows_per_hull_and_step_are_counted(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    start = gram_of(X)
    problem.gradient(problem.start(), start)
    solution = MaxMinOver(10**6).solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=200))
    assert solution.n_kernel_calls - start.n_calls == 200 * 2 * problem.n_groups * problem.m


@pytest.mark.parametrize("rows", [4, 7, 20])
def test_a_small_cache_gives_the_same_steps(rows):
    X, y = data(40)
    problem = dual.nearest_points(y, ridge=0.1)
    gram = gram_of(X, cache_bytes=rows * 40 * 8)
    small = MaxMinOver(50).solve(problem, gram, stop=Stop(1e-12, max_iter=700))
    large = MaxMinOver(50).solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=700))
    np.testing.assert_array_equal(small.u, large.u)
    assert small.gradient == pytest.approx(qp.dense_q(problem, qp.rbf(X)) @ small.u, abs=1e-12)


def test_a_cache_without_room_for_a_step_is_refused():
    X, y = data(40)
    with pytest.raises(ValueError, match="4 kernel rows that MaxMinOver needs"):
        MaxMinOver().solve(dual.nearest_points(y), gram_of(X, cache_bytes=3 * 40 * 8))


# -- the feasibility gap ---------------------------------------------------------------------


def gap_by_definition(problem, Q, u):
    """Primal, dual and rho of the scaled solution, slack by slack."""
    K = Q - np.diag(problem.ridge)
    s, h = Q @ u, K @ u
    least = np.array([s[problem.group == k].min() for k in range(problem.n_groups)])
    rho = least.mean()
    alpha = u / rho
    xi = np.maximum(0.0, 1.0 - (h + rho - least[problem.group]) / rho)
    if problem.n_groups == 2:  # y (<w, x> + b) with b half-way
        b = 0.5 * (least[1] - least[0]) / rho
        sign = np.where(problem.group == 0, 1.0, -1.0)
        assert xi == pytest.approx(np.maximum(0.0, 1.0 - h / rho - sign * b), abs=1e-10 / rho)
    hard = problem.ridge == 0
    assert (xi[hard] <= 1e-9 / rho).all()
    with np.errstate(divide="ignore", invalid="ignore"):
        loss = np.where(hard, 0.0, xi**2 / problem.ridge).sum()
    primal = 0.5 * alpha @ K @ alpha + 0.5 * loss
    return primal, alpha.sum() - 0.5 * alpha @ Q @ alpha, rho


@every_ridge
@every_kind
def test_gap_is_a_true_bound_at_every_checkpoint(kind, ridge):
    for seed in range(6):
        X, y = data(20, seed)
        problem = problem_of(kind, y, ridge, seed)
        K = qp.rbf(X)
        Q = qp.dense_q(problem, K)
        _, best = qp.reference(problem, K)
        optimal = problem.n_groups**2 / (4 * best)
        looked, solver = [], MaxMinOver()

        def look(state, work, solver=solver, problem=problem, Q=Q, best=best, optimal=optimal, looked=looked):
            measure = solver.paper_rule(state, work)
            f = 0.5 * state.u @ Q @ state.u
            if not np.isfinite(measure):  # rho is not positive: nothing is known
                return
            primal, value, rho = gap_by_definition(problem, Q, state.u)
            assert measure == pytest.approx((primal - value) / (1 + primal), rel=1e-6, abs=1e-12)
            slack = 1e-9 * (1 + primal)
            # The scaled machine: dual <= optimum <= primal. The hulls: f(u) - f* <= rho^2 (P - D).
            assert value <= optimal + slack and primal >= optimal - slack
            assert rho**2 * (primal - value) >= f - best - 1e-12
            assert problem.gap(state.u, state.g) <= rho**2 * (primal - value) + 1e-12
            looked.append(measure)

        in_short_slices(solver, 7, look).solve(problem, gram_of(X), stop=Stop(1e-9, max_iter=700))
        assert len(looked) > 20
        assert min(looked) < max(looked)


def test_gap_allows_for_noise_in_the_margins():
    rng = np.random.default_rng(0)
    for seed in range(20):
        X, y = data(20, seed)
        problem = problem_of("nearest_points", y, "mixed", seed)
        order = np.argsort(problem.group, kind="stable")
        starts = np.searchsorted(problem.group[order], [0, 1, 2])
        Q = qp.dense_q(problem, qp.rbf(X))[np.ix_(order, order)]
        u = MaxMinOver().solve(problem, gram_of(X), stop=Stop(1e-9, max_iter=3000)).u[order]
        exact = feasibility_gap(starts, problem.ridge[order], u, Q @ u, 1.0, 0.0)
        for noise in (1e-9, 1e-6, 1e-4):
            wrong = Q @ u + noise * rng.uniform(-1, 1, len(u))
            assert feasibility_gap(starts, problem.ridge[order], u, wrong, 1.0, noise) >= exact - 1e-12


def test_gap_does_not_depend_on_the_scale_of_the_counters():
    X, _ = data(20)
    problem = dual.one_class_l2(20, ridge=0.1)
    Q = qp.dense_q(problem, qp.rbf(X))
    u = np.random.default_rng(0).dirichlet(np.ones(20))
    starts = np.array([0, 20])
    one, many = (feasibility_gap(starts, problem.ridge, t * u, t * (Q @ u), t, 0.0) for t in (1.0, 1e5))
    assert one == pytest.approx(many, rel=1e-9)


def test_gap_is_infinite_where_the_data_are_on_both_sides_of_the_origin():
    s = np.array([-0.1, 1.0])
    assert feasibility_gap(np.array([0, 2]), np.zeros(2), np.array([0.5, 0.5]), s, 1.0, 0.0) == np.inf


@every_kind
def test_paper_rule_stops_at_the_first_look_below_the_tolerance(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    Q = qp.dense_q(problem, qp.rbf(X))
    for refresh in (1, 50):
        solver, tol = MaxMinOver(refresh), 1e-3
        end = solver.solve(problem, gram_of(X), stop=Stop(tol, criterion="paper"))
        assert end.status == "solved" and end.n_iter > 50 and end.n_iter % refresh == 0
        primal, value, _ = gap_by_definition(problem, Q, end.u)
        assert (primal - value) / (1 + primal) <= tol * (1 + 1e-9)
        before = solver.solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=end.n_iter - refresh))
        primal, value, _ = gap_by_definition(problem, Q, before.u)
        assert (primal - value) / (1 + primal) > tol


@every_kind
def test_gap_stays_below_a_multiple_of_one_over_the_root_of_the_steps(kind):
    X, y = data(60)
    problem = KINDS[kind](y, ridge=0.1)
    steps, gaps = [], []

    def look(state, work):
        steps.append(state.n_iter)
        gaps.append(solver.paper_rule(state, work))

    solver = in_short_slices(MaxMinOver(), 50, look)
    solver.solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=20_000))
    scaled = np.array(gaps) * np.sqrt(steps)
    assert scaled[-100:].max() <= scaled[:100].max()


# -- where it leads --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["one_class_l2", "minimum_norm", "nearest_points", "nearest_points-hard"])
@pytest.mark.parametrize("seed", range(6))
def test_reaches_the_optimum_of_an_independent_solver(kind, seed):
    problem, X, K, _, best = qp.solved_problem(kind, seed)
    solution = MaxMinOver().solve(problem, qp.gram_of(X), stop=Stop(1e-3, max_iter=2_000_000))
    if solution.status == "infeasible":  # hulls that all but touch
        assert best <= 1e-9
        return
    assert solution.status == "solved"
    qp.assert_feasible(problem, solution.u)
    Q = qp.dense_q(problem, K)
    assert problem.violation(solution.u, Q @ solution.u) <= 1e-3 * (1 + 1e-6)
    assert -1e-12 <= solution.objective - best <= solution.gap + 1e-13


@pytest.mark.parametrize("criterion", ["kkt", "gap", "paper"])
def test_every_criterion_is_reached_with_float32_rows(criterion):
    X, _ = data(200)
    problem = dual.one_class_l2(200, ridge=0.01)
    _, best = qp.reference(problem, qp.rbf(X))
    solution = MaxMinOver().solve(problem, gram_of(X, "float32"), stop=Stop(1e-3, criterion=criterion))
    assert solution.status == "solved"
    assert solution.objective - best <= solution.gap + 1e-9
    assert solution.objective == pytest.approx(best, rel=1e-3)


def test_equal_points_share_what_one_of_them_would_have():
    X, _ = data(15)
    once = dual.one_class_l2(15, ridge=0.05)
    twice = dual.one_class_l2(30, ridge=0.1)
    a = MaxMinOver().solve(once, gram_of(X), stop=Stop(1e-4))
    b = MaxMinOver().solve(twice, gram_of(np.vstack([X, X])), stop=Stop(1e-4))
    assert b.u[:15] + b.u[15:] == pytest.approx(a.u, abs=1e-3)


def test_points_that_are_all_equal_are_solved():
    problem = dual.one_class_l2(8, ridge=0.5)
    solution = MaxMinOver().solve(problem, gram_of(np.ones((8, 2))), stop=Stop(1e-3))
    assert solution.status == "solved"
    assert solution.u == pytest.approx(np.full(8, 1 / 8), abs=2e-3)


def test_a_single_vertex_is_the_solution():
    solution = MaxMinOver().solve(dual.one_class_l2(1, ridge=0.5), gram_of(np.ones((1, 1))))
    assert solution.status == "solved" and solution.u == pytest.approx([1.0]) and solution.n_iter == 0


def test_an_svc_with_squared_hinge_is_the_same_as_with_another_solver():
    X, y = data(60)
    kind = {"loss": "squared_hinge", "gamma": 0.5, "C": 5.0, "tol": 1e-3}
    ours, theirs = SVC(solver="maxminover", **kind).fit(X, y), SVC(solver="simple", **kind).fit(X, y)
    assert ours.status_ == "solved"
    assert ours.decision_function(X) == pytest.approx(theirs.decision_function(X), abs=5e-3)


# -- warm starts -----------------------------------------------------------------------------


@every_kind
def test_a_run_from_counters_goes_on_as_if_it_had_never_stopped(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    whole = MaxMinOver().solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=900))
    half = MaxMinOver().solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=400))
    counters = np.rint(half.details["total"] * half.u)
    assert half.details["total"] == 401 and (counters.sum() == 401 * problem.n_groups)
    rest = MaxMinOver().solve(problem, gram_of(X), warm=counters, stop=Stop(1e-12, max_iter=500))
    assert rest.details["total"] == whole.details["total"] == 901
    np.testing.assert_array_equal(rest.u, whole.u)


@every_kind
def test_a_warm_start_from_a_neighbour_takes_fewer_steps(kind):
    X, y = data(60)
    stop = Stop(1e-4, criterion="paper")
    near, here = KINDS[kind](y, ridge=0.01), KINDS[kind](y, ridge=0.02)
    other = MaxMinOver(50).solve(near, gram_of(X), stop=stop)
    cold = MaxMinOver(50).solve(here, gram_of(X), stop=stop)
    warm = MaxMinOver(50).solve(here, gram_of(X), warm=np.rint(other.details["total"] * other.u), stop=stop)
    assert cold.status == warm.status == "solved"
    assert warm.n_iter < 0.5 * cold.n_iter


@every_kind
def test_weights_of_another_solver_are_a_good_start(kind):
    X, y = data(60)
    problem = KINDS[kind](y, ridge=0.05)
    exact = Batch().solve(problem, gram_of(X), stop=Stop(1e-8))
    stop = Stop(1e-4, criterion="paper")
    cold = MaxMinOver(10).solve(problem, gram_of(X), stop=stop)
    warm = MaxMinOver(10).solve(problem, gram_of(X), warm=exact.u, stop=stop)
    assert warm.status == "solved" and warm.n_iter < cold.n_iter


def test_own_weights_give_the_counters_back():
    X, y = data(30)
    problem = dual.nearest_points(y, ridge=0.1)
    first = MaxMinOver().solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=500))
    counts = np.rint(first.u * 501)
    assert counts[counts > 0].min() == 1
    again = MaxMinOver().solve(problem, gram_of(X), warm=first.u, stop=Stop(1e-12, max_iter=0))
    assert again.details["total"] == 501
    np.testing.assert_array_equal(again.u, first.u)


def test_counters_of_unequal_sums_are_made_equal():
    X, y = data(6)
    problem = dual.nearest_points(y, ridge=0.1)
    counters = np.where(y > 0, 3.0, 1.0)
    start = MaxMinOver().solve(problem, gram_of(X), warm=counters, stop=Stop(1e-12, max_iter=0))
    assert start.details["total"] == 12
    np.testing.assert_array_equal(12 * start.u, np.where(y > 0, 3.0, 6.0))


@every_kind
def test_inertia_scales_counters_down_and_keeps_those_below_it(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    first = MaxMinOver().solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=900))
    counters = np.rint(first.u * 901)
    there = Stop(1e-12, max_iter=0)
    same = MaxMinOver(inertia=901).solve(problem, gram_of(X), warm=counters, stop=there)
    np.testing.assert_array_equal(same.u, first.u)
    less = MaxMinOver(inertia=200).solve(problem, gram_of(X), warm=counters, stop=there)
    assert less.details["total"] == 200
    np.testing.assert_allclose(less.u * 200, np.rint(less.u * 200), atol=1e-12)
    assert np.abs(less.u - first.u).max() <= 1 / 200
    qp.assert_feasible(problem, less.u)
    one = MaxMinOver(inertia=1).solve(problem, gram_of(X), warm=counters, stop=there)
    assert one.details["total"] == 1 and np.count_nonzero(one.u) == problem.n_groups


def test_inertia_spares_steps_where_counters_have_added_up():
    X, _ = data(60)
    problem, other = (dual.one_class_l2(60, ridge=ridge) for ridge in (0.01, 1.0))
    stop = Stop(1e-3, criterion="paper")
    long = MaxMinOver(refresh=10).solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=200_000))
    counters = np.rint(long.u * long.details["total"])
    cold = MaxMinOver(refresh=10).solve(other, gram_of(X), stop=stop)
    inert = MaxMinOver(refresh=10).solve(other, gram_of(X), warm=counters, stop=stop)
    capped = MaxMinOver(refresh=10, inertia=1000).solve(other, gram_of(X), warm=counters, stop=stop)
    assert {run.status for run in (cold, inert, capped)} == {"solved"}
    assert capped.n_iter < 0.1 * inert.n_iter


@pytest.mark.parametrize("warm", [np.zeros(29), np.full(30, np.nan), np.zeros((30, 1))])
def test_a_warm_start_of_a_wrong_shape_or_with_nan_is_refused(warm):
    X, _ = data(30)
    with pytest.raises(ValueError, match="warm start"):
        MaxMinOver().solve(dual.one_class_l2(30, ridge=0.1), gram_of(X), warm=warm)


@pytest.mark.parametrize("warm", [np.zeros(30), -np.ones(30), np.full(30, 1e-300), np.eye(1, 30)[0] * 1e9])
def test_odd_warm_starts_end_at_the_same_optimum(warm):
    X, _ = data(30)
    problem = dual.one_class_l2(30, ridge=0.1)
    _, best = qp.reference(problem, qp.rbf(X))
    before = warm.copy()
    solution = MaxMinOver().solve(problem, gram_of(X), warm=warm, stop=Stop(1e-2, max_iter=10**6))
    qp.assert_feasible(problem, solution.u)
    np.testing.assert_array_equal(warm, before)
    if warm.max() < 1e9:  # from a thousand million counts at the wrong place it takes as many steps
        assert solution.status == "solved" and solution.objective == pytest.approx(best, rel=1e-2)


@pytest.mark.parametrize("total", [1, 7, 100, 12345])
def test_apportioned_counts_are_whole_and_add_up(total):
    rng = np.random.default_rng(total)
    for _ in range(50):
        weights = rng.dirichlet(np.full(20, 0.3))
        counts = apportion(weights, float(total))
        assert counts.sum() == total and (counts >= 0).all() and (counts == np.rint(counts)).all()
        assert np.abs(counts - total * weights).max() <= 1.0


# -- how it ends -----------------------------------------------------------------------------


@every_kind
def test_statuses_say_how_it_ended(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    for status, stop in {
        "solved": Stop(0.05, criterion="paper"),
        "max_iter": Stop(1e-12, max_iter=3),
        "max_time": Stop(1e-14, max_time=0.05),
    }.items():
        solution = MaxMinOver().solve(problem, gram_of(X), stop=stop)
        assert solution.status == status
        qp.assert_feasible(problem, solution.u)
    once = MaxMinOver().solve(problem, gram_of(X), callback=lambda record: True)
    assert once.status == "interrupted" and once.n_iter == 0


@pytest.mark.parametrize("kind", ["minimum_norm", "nearest_points"])
def test_hulls_that_touch_are_not_called_solved(kind):
    X, y = data(12)
    problem = KINDS[kind](np.concatenate([y, -y]))
    solution = MaxMinOver().solve(problem, gram_of(np.concatenate([X, X])), stop=Stop(1e-3, max_iter=200_000))
    assert solution.status in ("infeasible", "max_iter")
    qp.assert_feasible(problem, solution.u)


def test_only_hulls_are_accepted():
    _, y = data(10)
    for make in KINDS.values():
        assert "maxminover" in solvers.accepting(make(y, ridge=0.1))
    for problem in (dual.c_svc(y), dual.one_class(10), dual.reduced_hulls(y, mu=0.5)):
        assert "maxminover" not in solvers.accepting(problem)
        with pytest.raises(TypeError, match="MaxMinOver cannot take"):
            MaxMinOver().solve(problem, gram_of(np.ones((10, 1))))


@pytest.mark.parametrize("refresh", [0, -1, 2.5, None, True, "1000"])
def test_a_refresh_that_is_no_positive_whole_number_is_refused(refresh):
    with pytest.raises(ValueError, match="refresh"):
        MaxMinOver(refresh)


def test_repr_shows_the_refresh():
    assert repr(MaxMinOver()) == "MaxMinOver(refresh=1000)"
    assert repr(MaxMinOver(inertia=9)) == "MaxMinOver(refresh=1000, inertia=9)"
    assert repr(solvers.get("maxminover-doubling")) == "MaxMinOver(refresh=1000, doubling=True)"
    assert repr(solvers.get("maxminover")) == "MaxMinOver(refresh=1000)"


@pytest.mark.parametrize("inertia", [0, -1, 1.5, True, "few"])
def test_an_inertia_that_is_no_positive_whole_number_is_refused(inertia):
    with pytest.raises(ValueError, match="inertia must be a positive whole number"):
        MaxMinOver(inertia=inertia)


# -- doubled counters ------------------------------------------------------------------------


def best_total_by_definition(problem, Q, u):
    """d'Qd / -d's of the direction of the next step, from dense matrices."""
    s, d = Q @ u, -u.copy()
    for k in range(problem.n_groups):
        hull = np.flatnonzero(problem.group == k)
        used = hull[u[hull] > 0]
        d[hull[np.argmin(s[hull])]] += 2.0
        d[used[np.argmax(s[used])]] -= 1.0
    return (d @ Q @ d) / -(d @ s)


@every_kind
def test_a_doubled_step_is_never_longer_than_the_best_one_and_lowers_the_objective(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    Q = qp.dense_q(problem, qp.rbf(X))
    u = [problem.start()]
    totals = [1.0]

    def look(state, work):
        fitting = best_total_by_definition(problem, Q, u[-1])
        total = work.progress[0] - 1.0  # before the count that the step adds
        assert total + 1.0 >= fitting * (1 - 1e-9)
        factor = total / totals[-1]
        assert np.log2(factor) == np.rint(np.log2(factor))
        assert factor == 1.0 or 0.5 * total + 1.0 < fitting * (1 + 1e-9)  # no oftener than needed
        assert state.u @ Q @ state.u < u[-1] @ Q @ u[-1]
        counts = state.u * (total + 1.0)
        assert np.abs(counts - np.rint(counts)).max() < 1e-6
        u.append(state.u.copy())
        totals.append(total + 1.0)

    in_short_slices(MaxMinOver(doubling=True), 1, look).solve(
        problem, gram_of(X), stop=Stop(1e-12, max_iter=150)
    )
    assert len(u) == 151 and totals[-1] > 1000


@pytest.mark.parametrize("kind", ["one_class_l2", "minimum_norm", "nearest_points", "nearest_points-hard"])
@pytest.mark.parametrize("seed", range(6))
def test_doubled_counters_reach_a_small_tolerance(kind, seed):
    problem, X, K, _, best = qp.solved_problem(kind, seed)
    stop = Stop(1e-5, max_iter=2_000_000)
    solution = MaxMinOver(doubling=True).solve(problem, qp.gram_of(X), stop=stop)
    if best <= 1e-9:  # hulls that all but touch
        assert solution.status in ("infeasible", "max_iter")
        return
    assert solution.status == "solved"
    qp.assert_feasible(problem, solution.u)
    Q = qp.dense_q(problem, K)
    assert problem.violation(solution.u, Q @ solution.u) <= 1e-5 * (1 + 1e-6)
    assert -1e-12 <= solution.objective - best <= solution.gap + 1e-13


@every_kind
def test_doubled_counters_take_a_small_share_of_the_steps(kind):
    X, y = data(60)
    problem, stop = KINDS[kind](y, ridge=0.01), Stop(1e-4, criterion="paper")
    plain, doubled = (
        MaxMinOver(10, doubling=doubling).solve(problem, gram_of(X), stop=stop) for doubling in (False, True)
    )
    assert plain.status == doubled.status == "solved"
    assert doubled.n_iter < 0.2 * plain.n_iter
    assert doubled.objective == pytest.approx(plain.objective, rel=1e-3)


def test_counters_that_have_added_up_are_scaled_down_to_what_fits():
    X, _ = data(60)
    problem, other = (dual.one_class_l2(60, ridge=ridge) for ridge in (0.01, 1.0))
    stop = Stop(1e-3, criterion="paper")
    long = MaxMinOver(refresh=10).solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=200_000))
    counters = np.rint(long.u * long.details["total"])
    inert = MaxMinOver(refresh=10).solve(other, gram_of(X), warm=counters, stop=stop)
    fitted = MaxMinOver(refresh=10, doubling=True)
    start = fitted.solve(other, gram_of(X), warm=counters, stop=Stop(1e-12, max_iter=0))
    total = start.details["total"]
    assert total == np.ceil(best_total_by_definition(other, qp.dense_q(other, qp.rbf(X)), long.u)) < 1000
    assert start.gradient == pytest.approx(qp.dense_q(other, qp.rbf(X)) @ start.u, abs=1e-12)
    warm = fitted.solve(other, gram_of(X), warm=counters, stop=stop)
    assert warm.status == "solved" and warm.n_iter < 0.01 * inert.n_iter


@every_kind
def test_counters_that_fit_are_kept_whole(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    first = MaxMinOver().solve(problem, gram_of(X), stop=Stop(1e-12, max_iter=20))
    start = MaxMinOver(doubling=True).solve(
        problem, gram_of(X), warm=np.rint(first.u * 21), stop=Stop(1e-12, max_iter=0)
    )
    assert start.details["total"] == 21
    np.testing.assert_array_equal(start.u, first.u)


@pytest.mark.parametrize("rows", [4, 7, 20])
def test_doubling_with_a_small_cache_solves_too(rows):
    X, y = data(40)
    problem = dual.nearest_points(y, ridge=0.1)
    gram = gram_of(X, cache_bytes=rows * 40 * 8)
    solver = MaxMinOver(50, doubling=True)
    large = solver.solve(problem, gram_of(X), stop=Stop(1e-4))
    for warm in (None, large.u):
        small = solver.solve(problem, gram, stop=Stop(1e-4), warm=warm)
        assert small.status == "solved"
        assert small.objective == pytest.approx(large.objective, rel=1e-6)


def test_equal_points_and_single_vertices_do_not_double_without_end():
    for points, ridge in ((np.ones((8, 2)), 0.5), (np.ones((8, 2)), 0.0), (np.ones((1, 2)), 0.5)):
        problem = dual.one_class_l2(len(points), ridge=ridge)
        solution = MaxMinOver(doubling=True).solve(problem, gram_of(points), stop=Stop(1e-8))
        assert solution.status == "solved" and solution.details["total"] <= 2**41
