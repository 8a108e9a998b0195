import numpy as np
import pytest
from scipy.optimize import brentq
from sklearn.datasets import make_classification

import qp
from maxmargin import SVC, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Batch, Rosen, Stop, _face, costs
from maxmargin.solvers._face import Block, Diagonal, _bend, _product, minimise, one_block
from maxmargin.solvers.papers.rosen import _at_most, _rank
from maxmargin.solvers.state import State

DIRECTIONS = ["steepest", "conjugate"]
every_kind = pytest.mark.parametrize("kind", qp.KINDS)
both = pytest.mark.parametrize("directions", DIRECTIONS)


def test_unknown_directions_are_refused():
    with pytest.raises(ValueError, match="directions must be 'steepest' or 'conjugate', got 'newton'"):
        Rosen("newton")


@every_kind
@both
def test_the_optimum_of_an_independent_solver_is_reached(kind, directions):
    for seed in range(3):
        problem, X, _, _, best = qp.solved_problem(kind, seed, 30)
        solution = Rosen(directions).solve(problem, qp.gram_of(X), stop=Stop(1e-6))
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u)
        assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert best >= solution.objective - solution.gap - 1e-9


@every_kind
@both
def test_a_tolerance_of_1e_8_comes_with_a_certified_relative_gap_below_1e_8(kind, directions):
    problem, X, _ = qp.random_problem(kind, 5, 40)
    solution = Rosen(directions).solve(problem, qp.gram_of(X), stop=Stop(1e-8, criterion="gap"))
    assert solution.status == "solved"
    assert problem.relative_gap(solution.u, solution.gradient) < 1e-8


@both
def test_float32_rows_do_not_claim_what_they_cannot_deliver(directions):
    problem, X, K = qp.random_problem("c_svc", 1, 60)
    solution = Rosen(directions).solve(problem, qp.gram_of(X, dtype="float32"), stop=Stop(1e-8))
    assert solution.status == "solved"
    g = qp.dense_q(problem, K) @ solution.u - problem.p
    assert problem.violation(solution.u, g) <= 1e-8 * (1 + 1e-6)


def projected(problem, u, g, extra=()):
    """-P g for the face of u, by Rosen's matrices."""
    m = problem.m
    bound = [i for i in range(m) if not problem.lo[i] < u[i] < problem.hi[i] and i not in extra]
    M = np.vstack([np.eye(m)[bound], *[(problem.group == k).astype(float) for k in range(problem.n_groups)]])
    d = -(np.eye(m) - np.linalg.pinv(M) @ M) @ g
    return np.where(np.abs(d) > 1e-13, d, 0.0)


# The flag of a computation that nobody ends.
NEVER = np.zeros(1, np.int64)


def local(problem, K, u):
    Q = qp.dense_q(problem, K)
    return Q, Q @ u - problem.p


@pytest.mark.parametrize("kind", ["c_svc", "one_class", "reduced_hulls", "all_distances"])
def test_the_first_step_goes_along_the_gradient_projected_by_rosens_matrices(kind):
    problem, _, K, best, _ = qp.solved_problem(kind, 3, 30)
    u = problem.repair(0.7 * best + 0.3 * problem.start())
    Q, g = local(problem, K, u)
    before = u.copy()
    d = projected(problem, u, g)
    assert np.abs(d).max() > 1e-6
    reads = np.zeros(1, np.int64)
    box = (problem.lo, problem.hi, problem.group, problem.n_groups)
    steps, _ = minimise(one_block(Q), g, u, *box, False, 1e-12, 1, reads, NEVER)
    assert reads[0] == np.count_nonzero(d) * problem.m  # rows of the variables that move
    moved = u - before
    assert steps == 1
    length = moved @ d / (d @ d)
    assert length > 0
    assert np.allclose(moved, length * d, atol=1e-12 * max(1.0, np.abs(moved).max()))
    # Exact: to the lowest point of the line, or to the first bound.
    lowest = -(Q @ before - problem.p) @ d / (d @ Q @ d)
    with np.errstate(divide="ignore", invalid="ignore"):
        rooms = np.where(d > 0, (problem.hi - before) / d, np.where(d < 0, (problem.lo - before) / d, np.inf))
    assert length == pytest.approx(min(lowest, rooms.min()), rel=1e-9)
    assert np.allclose(g, Q @ u - problem.p, atol=1e-10)


def test_where_nothing_is_free_the_most_violating_pair_is_released():
    problem, X, _ = qp.random_problem("c_svc", 0, 20)
    one = Rosen().solve(problem, qp.gram_of(X), stop=Stop(1e-6, max_iter=1))
    pair = SMO("first-order").solve(problem, qp.gram_of(X), stop=Stop(1e-6, max_iter=1))
    assert set(np.flatnonzero(one.u)) == set(np.flatnonzero(pair.u))
    assert one.objective == pytest.approx(pair.objective)


def test_at_an_optimal_face_the_most_negative_multiplier_is_released():
    problem, X, _ = qp.random_problem("c_svc", 4, 40)
    gram = qp.gram_of(X)
    state = State(problem, gram, problem.start(), -problem.p.copy(), Stop(1e-9))
    solver = Rosen()
    work = solver.begin(state)
    for _ in range(6):
        state.least, state.most = problem.extremes(state.u, state.g)
        state.target, state.left = 1e-9, 10**6
        solver.advance(state, work)
    state.least, state.most = problem.extremes(state.u, state.g)
    free = (state.u > problem.lo) & (state.u < problem.hi)
    assert free.any()
    mean = state.g[free].mean()
    assert np.ptp(state.g[free]) < 1e-6  # optimal on its face
    multiplier = np.where(state.u == problem.lo, state.g - mean, mean - state.g)
    multiplier[free] = np.inf
    chosen = solver._one(state, work)
    assert set(chosen) == {*np.flatnonzero(free), int(np.argmin(multiplier))}


def test_conjugate_directions_end_on_a_face_after_as_many_steps_as_it_has_dimensions():
    rng = np.random.default_rng(0)
    n = 25
    A = rng.normal(size=(n, n))
    Q = A @ A.T + 0.1 * np.eye(n)
    p = rng.normal(size=n)
    u = np.zeros(n)
    lo, hi = np.full(n, -1e9), np.full(n, 1e9)
    counts = {}
    for conjugate in (False, True):
        x, g = u.copy(), -p.copy()
        reads = np.zeros(1, np.int64)
        counts[conjugate], done = minimise(
            one_block(Q), g, x, lo, hi, np.zeros(n, int), 1, conjugate, 1e-7, 10**6, reads, NEVER
        )
        assert done
        assert np.ptp(Q @ x - p) < 1e-5
        assert abs(x.sum()) < 1e-8
    assert counts[True] <= 3 * n < counts[False]


@both
@pytest.mark.parametrize("seed", range(8))
def test_a_block_with_its_bounds_is_minimised_and_its_gradient_kept(directions, seed):
    problem, _, K, _, best = qp.solved_problem(["c_svc", "all_distances", "regression"][seed % 3], seed, 25)
    u = problem.start()
    Q, g = local(problem, K, u)
    for _ in range(500):
        # The paper's form ends with every face, so it is called again.
        minimise(one_block(Q), g, u, problem.lo, problem.hi, problem.group, problem.n_groups,
                 directions == "conjugate", 1e-9, 10**5, np.zeros(1, np.int64), NEVER)  # fmt: skip
        if problem.violation(u, g) < 1e-7:
            break
    qp.assert_feasible(problem, u)
    assert np.allclose(g, Q @ u - problem.p, atol=1e-8)
    assert qp.objective(Q, problem.p, u) == pytest.approx(best, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_product_with_blocks_is_that_with_the_whole_matrix(dtype):
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(n, n)) for n in (3, 0, 5, 1, 9)]
    blocks = [(A + A.T).astype(dtype) for A in blocks]
    ranges = np.cumsum([0] + [len(A) for A in blocks])
    d = rng.normal(size=ranges[-1]) * (rng.random(ranges[-1]) < 0.7)
    z = np.full(len(d), np.nan)
    read = _product(Diagonal(np.concatenate([A.ravel() for A in blocks]), ranges), d, z)
    parts = [(A, d[s : s + len(A)]) for A, s in zip(blocks, ranges, strict=False)]
    np.testing.assert_allclose(z, np.concatenate([A.astype(float) @ x for A, x in parts]), atol=1e-12)
    assert read == sum(np.count_nonzero(x) * len(x) for _, x in parts)


def test_the_steps_hardly_depend_on_the_tolerance():
    X, y = two_moons()
    problem = dual.c_svc(y, C=10.0)
    steps = [Rosen().solve(problem, Gram(X, gamma=1.0, dtype="float64"), stop=Stop(tol)).n_iter
             for tol in (1e-3, 1e-6)]  # fmt: skip
    assert steps[1] <= 1.05 * steps[0]


def two_moons(n=150):
    from sklearn.datasets import make_moons

    X, y = make_moons(n, noise=0.25, random_state=0)
    return X, 2.0 * y - 1.0


def test_conjugate_directions_take_fewer_steps_than_smo_and_compute_each_kernel_value_once():
    X, y = two_moons()
    for C in (1.0, 100.0):
        problem = dual.c_svc(y, C=C)
        conjugate, smo = (
            solver.solve(problem, Gram(X, gamma=1.0, dtype="float64"), stop=Stop(1e-6))
            for solver in (Rosen("conjugate"), SMO("first-order"))
        )
        assert conjugate.n_iter < smo.n_iter
        assert conjugate.n_kernel_evals <= len(X) * (len(X) + 1)


@both
def test_kernel_values_used_are_all_that_the_steps_read_as_for_smo(directions, monkeypatch):
    X, y = two_moons(40)
    problem = dual.c_svc(y, C=10.0)
    counted = Rosen(directions).solve(problem, qp.gram_of(X), stop=Stop(1e-6))
    read = []

    def product(Q, d, z):
        z[:] = Q.values.reshape(len(d), -1) @ d
        read.append(np.count_nonzero(d) * len(d))
        return read[-1]

    rows = []
    update = type(problem).update

    def updated(self, g, idx, change, gram):
        rows.append(len(idx) * len(X))
        return update(self, g, idx, change, gram)

    monkeypatch.setattr(_face, "_product", product)
    monkeypatch.setattr(_face, "raised", lambda flag: False)
    monkeypatch.setattr(_face, "minimise", minimise.py_func)
    monkeypatch.setattr(type(problem), "update", updated)
    again = Rosen(directions).solve(problem, qp.gram_of(X), stop=Stop(1e-6))
    assert len(read) >= again.n_iter == pytest.approx(counted.n_iter, rel=0.02)
    assert again.n_kernel_calls == sum(read) + sum(rows)
    assert counted.n_kernel_calls == pytest.approx(again.n_kernel_calls, rel=0.02)


def test_a_block_is_that_of_the_problem_whatever_was_known_before():
    rng = np.random.default_rng(0)
    problem, X, K = qp.random_problem("all_distances", 0, 40)
    block, Q = Block(problem, qp.gram_of(X)), qp.dense_q(problem, K)
    for size in (5, 1, 12, 12, 30, 2):
        own = np.sort(rng.choice(problem.m, size, replace=False))
        assert np.allclose(block.of(own), Q[np.ix_(own, own)], atol=1e-12)


def test_a_known_block_is_not_computed_again_and_counts_as_used_only_when_it_is_read(monkeypatch):
    problem, X, _ = qp.random_problem("c_svc", 0, 40)
    gram = qp.gram_of(X)
    asked = []
    values = Block._values
    monkeypatch.setattr(
        Block, "_values", lambda self, *of: asked.append(len(of[0]) * len(of[1])) or values(self, *of)
    )
    block = Block(problem, gram)
    block.of(np.arange(20))
    block.of(np.arange(5, 15))
    assert asked == [400]
    block.of(np.arange(5, 16))
    assert asked == [400, 11]
    assert gram.n_calls == 0


def test_without_a_violator_it_is_stuck_and_asks_for_more_precise_gradients():
    n = costs.FACE_WHOLE + 2
    y = np.repeat([-1.0, 1.0], n // 2)
    problem = dual.c_svc(y, C=0.1)
    gram = Gram(np.eye(n), "precomputed")
    u = np.where(y > 0, problem.hi, problem.lo)
    state = State(problem, gram, u, problem.gradient(u, gram), Stop(1e-9))
    state.least, state.most = problem.extremes(u, state.g)
    assert state.least > state.most
    solver = Rosen("conjugate")
    solver.advance(state, solver.begin(state))
    assert state.stuck
    np.testing.assert_array_equal(state.u, u)


def test_rank_counts_within_groups():
    assert _rank(np.array([0, 0, 0, 2, 2, 5])).tolist() == [0, 1, 2, 0, 1, 0]
    assert _rank(np.array([], dtype=int)).tolist() == []


def test_a_face_too_large_for_a_block_is_worked_on_from_both_ends():
    problem, X, _ = qp.random_problem("c_svc", 0, 40)
    gram = qp.gram_of(X)
    g = np.arange(40.0)
    state = State(problem, gram, problem.start(), g, Stop())
    state.least, state.most = np.array([0.0]), np.array([39.0])
    assert _at_most(6, np.arange(40), state).tolist() == [0, 1, 2, 37, 38, 39]
    assert _at_most(40, np.arange(40), state).tolist() == list(range(40))


@pytest.mark.parametrize("directions", DIRECTIONS)
def test_a_block_smaller_than_the_face_still_reaches_the_optimum(monkeypatch, directions):
    monkeypatch.setattr(costs, "FACE_MOST", 8)
    problem, X, _, _, best = qp.solved_problem("one_class_l2", 0, 40)
    solution = Rosen(directions).solve(problem, qp.gram_of(X), stop=Stop(1e-5))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(best, rel=1e-6)


@both
def test_equal_points_with_opposite_labels_huge_scales_and_low_rank_are_solved(directions):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    cases = [
        (np.vstack([X, X]), np.concatenate([y, -y]), {"gamma": 0.5}, 1.0),
        (np.vstack([X, X]), np.concatenate([y, y]), {"gamma": 0.5}, 1e-4),
        (X, y, {"kernel": "linear"}, 10.0),
        (1e3 * X, y, {"kernel": "linear"}, 1e-6),
    ]
    for data, labels, kernel, C in cases:
        gram = Gram(data, dtype="float64", **kernel)
        problem = dual.c_svc(labels, C=C)
        solution = Rosen(directions).solve(problem, gram, stop=Stop(1e-5))
        assert solution.status == "solved"
        other = SMO().solve(problem, gram, stop=Stop(1e-6))
        assert solution.objective <= other.objective + other.gap + solution.gap + 1e-9 * abs(other.objective)


@both
def test_an_indefinite_kernel_ends_with_a_status(directions):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(40, 40))
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    gram = Gram(K + K.T, "precomputed")
    for problem in (dual.c_svc(y, C=1.0), dual.squared_c_svc(y, ridge=0.1)):
        solution = Rosen(directions).solve(problem, gram, stop=Stop(1e-3, max_iter=20_000, max_time=20))
        assert solution.status in ("solved", "stalled", "max_iter")
        qp.assert_feasible(problem, solution.u, slack=1e-6)


@both
@pytest.mark.parametrize("budget", [0, 1, 7])
def test_a_budget_ends_with_a_feasible_point(directions, budget):
    problem, X, _ = qp.random_problem("all_distances", 1, 60)
    solution = Rosen(directions).solve(problem, qp.gram_of(X), stop=Stop(1e-9, max_iter=budget))
    assert solution.status == "max_iter"
    assert solution.n_iter <= max(budget, 1)
    qp.assert_feasible(problem, solution.u)


@both
def test_a_callback_ends_the_run_with_the_best_point_so_far(directions):
    problem, X, _ = qp.random_problem("c_svc", 1, 900)
    seen = []
    solution = Rosen(directions).solve(
        problem, qp.gram_of(X), stop=Stop(1e-9), callback=lambda r: seen.append(r.objective) or len(seen) == 2
    )
    assert solution.status == "interrupted"
    assert seen == sorted(seen, reverse=True)
    qp.assert_feasible(problem, solution.u)


@both
def test_a_warm_start_at_the_optimum_takes_no_step(directions):
    problem, X, _, best, _ = qp.solved_problem("c_svc", 2, 40)
    solution = Rosen(directions).solve(problem, qp.gram_of(X), warm=best, stop=Stop(1e-6))
    assert solution.status == "solved"
    assert solution.n_iter == 0


@pytest.mark.parametrize("solver", ["rosen", "rosen-conjugate"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_svc_predicts_the_same_with_it(solver, loss):
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    ours = SVC(loss=loss, C=5.0, tol=1e-6, solver=solver).fit(X, y)
    other = SVC(loss=loss, C=5.0, tol=1e-6).fit(X, y)
    assert ours.status_ == "solved"
    assert np.allclose(ours.intercept_, other.intercept_, atol=1e-4)
    assert (ours.predict(X) == other.predict(X)).all()


@pytest.mark.parametrize("finish", ["newton", "rosen", "conjugate", None])
@pytest.mark.parametrize("kind", ["c_svc", "squared_c_svc", "one_class", "reduced_hulls", "all_distances"])
def test_every_finish_of_batch_leads_to_the_same_optimum(finish, kind):
    problem, X, _, _, best = qp.solved_problem(kind, 7, 80)
    solution = Batch(working_set=32, finish=finish).solve(
        problem, qp.gram_of(X), stop=Stop(1e-8, criterion="gap")
    )
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(best, rel=1e-8, abs=1e-10)
    assert problem.relative_gap(solution.u, solution.gradient) < 1e-8


def test_a_finish_along_conjugate_directions_saves_pair_steps():
    finish = "conjugate"
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 5))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=1500) > 0, 1.0, -1.0)
    problem = dual.c_svc(y, C=100.0)
    runs = {f: Batch(working_set=256, finish=f).solve(problem, Gram(X, gamma=0.1, dtype="float64"),
                                                     stop=Stop(1e-5)) for f in (finish, None)}  # fmt: skip
    assert all(run.status == "solved" for run in runs.values())
    assert runs[finish].n_iter < runs[None].n_iter
    assert runs[finish].objective == pytest.approx(runs[None].objective, rel=1e-8)


@pytest.mark.parametrize("seed", range(20))
def test_a_bent_step_is_the_projection_on_the_box_and_the_sums(seed):
    rng = np.random.default_rng(seed)
    n, groups = 9, 2
    group = rng.integers(0, groups, n)
    lo, hi = np.zeros(n), rng.uniform(0.5, 2.0, n)
    u, d = rng.uniform(lo, hi), rng.normal(size=n)
    d[0] = 0.0  # takes no part
    for k in range(groups):
        some = (group == k) & (d != 0)
        d[some] -= d[some].mean() if some.any() else 0.0
    change = np.empty(n)
    assert _bend(u, lo, hi, d, 1.5, group, groups, change)
    assert change[0] == 0.0
    for k in range(groups):
        of = (group == k) & (d != 0)
        if of.any():
            wanted = u[of] + 1.5 * d[of]
            excess = lambda shift: (np.clip(wanted - shift, lo[of], hi[of]) - u[of]).sum()  # noqa: B023, E731
            shift = brentq(excess, -50.0, 50.0, xtol=1e-15)
            np.testing.assert_allclose(u[of] + change[of], np.clip(wanted - shift, lo[of], hi[of]), atol=1e-9)
    np.testing.assert_allclose(np.bincount(group, change, groups), 0.0, atol=1e-13)


def test_few_steps_take_many_variables_to_their_bounds():
    X, y = make_classification(400, flip_y=0.2, random_state=0)
    problem = dual.c_svc(2 * y - 1, C=0.1)
    solution = Rosen("conjugate").solve(problem, Gram(X, gamma=0.05, dtype="float64"), stop=Stop(1e-6))
    assert solution.status == "solved"
    at_bound = np.count_nonzero((solution.u == problem.lo) | (solution.u == problem.hi))
    assert solution.n_iter < at_bound
