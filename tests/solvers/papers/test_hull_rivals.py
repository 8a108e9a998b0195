"""The rivals of MDM: the nearest point algorithm and Gilbert's."""

import os
import signal

import numpy as np
import pytest

import qp
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import NPA, Gilbert, Stop
from maxmargin.solvers.papers.npa import best_of_triangle

SOLVERS = {"npa": NPA, "gilbert": Gilbert, "gilbert-to-the-letter": lambda: Gilbert(sweep=False)}


def classes_of(y):
    """Four classes."""
    return np.arange(len(y)) % 2 + 2 * (np.asarray(y) > 0)


KINDS = {
    "minimum_norm": lambda y, **options: dual.minimum_norm(y, **options),
    "nearest_points": lambda y, **options: dual.nearest_points(y, **options),
    "one_class_l2": lambda y, **options: dual.one_class_l2(len(y), **options),
    "squared_all_distances": lambda y, **options: dual.squared_all_distances(classes_of(y), **options),
}
KERNELS = {"linear": lambda X: X @ X.T, "rbf": qp.rbf}
every_solver = pytest.mark.parametrize("make", SOLVERS.values(), ids=SOLVERS.keys())
every_kind = pytest.mark.parametrize("kind", KINDS)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


def gram_of(X, kernel="rbf", dtype="float64", **options):
    return Gram(X, kernel, gamma=0.5, dtype=dtype, n_jobs=1, **options)


def data(n, seed=0, d=3, apart=0.0):
    rng = np.random.default_rng([n, seed])
    y = np.where(np.arange(n) % 3, 1.0, -1.0)
    return rng.normal(size=(n, d)) + apart * y[:, None], y


def spread(problem, rng):
    """A feasible point with weight everywhere."""
    u = np.empty(problem.m)
    for k in range(problem.n_groups):
        mine = problem.group == k
        u[mine] = rng.dirichlet(np.ones(mine.sum()))
    return u


def in_short_slices(solver, steps, look=None):
    """The same solver with a checkpoint after every few iterations."""
    advance = solver.advance

    def short(state, work):
        state.left = min(state.left, steps)
        advance(state, work)
        if look is not None:
            look(state, work)

    solver.advance = short
    return solver


# -- the best point of a triangle ------------------------------------------------------------

SIDE = np.linspace(0.0, 1.0, 101)
A, B = (grid.ravel() for grid in np.meshgrid(SIDE, SIDE))
A, B = A[A + B <= 1.0 + 1e-12], B[A + B <= 1.0 + 1e-12]


def triangle(p, q, pp, qq, pq, a, b):
    return a * p + b * q + 0.5 * (a * a * pp + b * b * qq) + a * b * pq


def assert_best(numbers):
    a, b = best_of_triangle(*numbers)
    assert a >= 0.0 and b >= 0.0 and a + b <= 1.0 + 1e-12
    value, grid = triangle(*numbers, a, b), triangle(*numbers, A, B)
    scale = np.abs(numbers).max()
    assert value <= grid.min() + 1e-9 * scale
    # Nor can it be much better than a fine grid.
    assert value >= grid.min() - 0.05 * scale
    return a, b


@pytest.mark.parametrize("seed", range(5))
def test_best_of_triangle_beats_a_fine_grid(seed):
    rng = np.random.default_rng(seed)
    places = set()
    for _ in range(200):
        # Two directions in space (now and then nearly parallel) and the slopes along them.
        P, Q = rng.normal(size=(2, 3))
        if rng.random() < 0.2:
            Q = rng.normal() * P + 1e-4 * Q
        p, q = 1.5 * rng.normal(size=2)
        a, b = assert_best((p, q, float(P @ P), float(Q @ Q), float(P @ Q)))
        inside = a > 0 and b > 0
        places.add((a > 0, b > 0, inside and a + b < 1 - 1e-9))
    assert places >= {(False, False, False), (True, False, False), (False, True, False), (True, True, False)}
    assert (True, True, True) in places


def test_best_of_triangle_inside_is_the_stationary_point():
    a, b = best_of_triangle(-0.5, -0.7, 2.0, 3.0, 0.5)
    assert np.array([[2.0, 0.5], [0.5, 3.0]]) @ [a, b] == pytest.approx([0.5, 0.7])
    assert a > 0 and b > 0 and a + b < 1


@pytest.mark.parametrize(
    "numbers",
    [
        (-1.0, -2.0, 1.0, 4.0, 2.0),  # the two directions are one
        (-1.0, 2.0, 1.0, 4.0, -2.0),  # opposite ones
        (-1.0, -1.0, 1.0, 1.0, 1.0),
        (-1.0, 0.5, 0.0, 1.0, 0.0),  # no curvature along the first
        (0.5, -1.0, 1.0, 0.0, 0.0),  # nor along the second
        (-1.0, -2.0, 0.0, 0.0, 0.0),  # nor at all
        (0.0, 0.0, 1.0, 1.0, 0.0),
        (1.0, 1.0, 1.0, 1.0, 0.0),
        (-1e-9, -1.0, 1e-18, 1.0, 1e-10),  # hardly any weight to move
        (-1e12, -1e12, 1e12, 2e12, 1e11),
    ],
)
def test_best_of_degenerate_triangles_beats_a_fine_grid(numbers):
    assert_best(numbers)


def test_best_of_triangle_stays_where_nothing_descends():
    assert best_of_triangle(0.3, 0.2, 1.0, 1.0, -0.9) == (0.0, 0.0)


# -- the steps -------------------------------------------------------------------------------


@every_kernel
@every_kind
def test_step_of_npa_leads_to_the_best_point_of_its_triangle(kernel, kind):
    for seed in range(5):
        X, y = data(20, seed)
        problem = KINDS[kind](y, ridge=0.1)
        Q = qp.dense_q(problem, KERNELS[kernel](X))
        warm = spread(problem, np.random.default_rng(seed))
        d = Q @ warm
        hulls = [np.flatnonzero(problem.group == k) for k in range(problem.n_groups)]
        mine = max(hulls, key=lambda hull: np.ptp(d[hull]))
        L, U = mine[np.argmin(d[mine])], mine[np.argmax(d[mine])]
        along, towards = np.zeros(20), np.zeros(20)
        along[[L, U]] = warm[U], -warm[U]
        towards[mine] = -warm[mine]
        towards[L] += 1.0
        values = [0.5 * u @ Q @ u for u in warm + A[::7, None] * along + B[::7, None] * towards]
        solution = NPA().solve(problem, gram_of(X, kernel), warm=warm, stop=Stop(1e-10, max_iter=1))
        assert solution.objective <= min(values) + 1e-12
        # It lies in the triangle.
        found = np.linalg.lstsq(np.stack([along, towards], axis=1), solution.u - warm, rcond=None)[0]
        assert solution.u == pytest.approx(warm + found[0] * along + found[1] * towards, abs=1e-13)
        assert (found >= -1e-12).all() and found.sum() <= 1 + 1e-12
        assert solution.gradient == pytest.approx(Q @ solution.u, abs=1e-12)


@every_kernel
@every_kind
def test_step_of_gilbert_is_the_best_point_of_its_segment(kernel, kind):
    for seed in range(5):
        X, y = data(20, seed)
        problem = KINDS[kind](y, ridge=0.1)
        Q = qp.dense_q(problem, KERNELS[kernel](X))
        warm = spread(problem, np.random.default_rng(seed))
        d, target = Q @ warm, np.zeros(20)
        for k in range(problem.n_groups):
            mine = np.flatnonzero(problem.group == k)
            target[mine[np.argmin(d[mine])]] = 1.0
        along = target - warm
        step = min(1.0, -(d @ along) / (along @ Q @ along))
        solver, gram = Gilbert(sweep=False), gram_of(X, kernel)
        solution = solver.solve(problem, gram, warm=warm, stop=Stop(1e-10, max_iter=1))
        assert solution.u == pytest.approx(warm + step * along, abs=1e-13)
        assert solution.gradient == pytest.approx(Q @ solution.u, abs=1e-12)


@every_solver
@every_kernel
@every_kind
def test_every_step_decreases_the_norm_and_stays_feasible(make, kernel, kind):
    X, y = data(30, 1)
    problem = KINDS[kind](y, ridge=0.1)
    Q = qp.dense_q(problem, KERNELS[kernel](X))
    squares = []

    def look(state, work):
        qp.assert_feasible(problem, state.u, slack=1e-13)
        assert np.abs(state.g - Q @ state.u).max() <= 1e-12
        squares.append(state.u @ Q @ state.u)

    solver = in_short_slices(make(), 1, look)
    warm = spread(problem, np.random.default_rng(2))
    solver.solve(problem, gram_of(X, kernel), warm=warm, stop=Stop(1e-9, max_iter=150))
    assert len(squares) > 30
    assert squares[0] < warm @ Q @ warm
    assert (np.diff(squares) <= 1e-14).all()
    assert squares[-1] < 0.9 * squares[0]


@every_kind
def test_npa_uses_two_rows_per_step(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    start = gram_of(X)
    u = problem.start()
    problem.gradient(u, start)
    for k in range(problem.n_groups - 1):  # each hull's own part of the gradient
        problem.gradient(np.where(problem.group == k, u, 0.0), start)
    solution = NPA().solve(problem, gram_of(X), stop=Stop(1e-6))
    assert solution.n_iter > 20
    assert solution.n_kernel_calls - start.n_calls == 2 * problem.m * solution.n_iter


@every_kind
def test_gilbert_uses_one_row_per_hull_and_step(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    start = gram_of(X)
    problem.gradient(problem.start(), start)
    solution = Gilbert(sweep=False).solve(problem, gram_of(X), stop=Stop(1e-2, criterion="paper"))
    assert solution.n_iter > 20
    assert solution.n_kernel_calls - start.n_calls == problem.n_groups * problem.m * solution.n_iter


# -- where they lead -------------------------------------------------------------------------


@every_kernel
@every_kind
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_npa_reaches_the_optimum_from_anywhere(kernel, kind, ridge):
    for seed in range(4):
        X, y = data(24, seed, apart=2.0)
        X = X * y[:, None] if kind == "one_class_l2" else X
        problem, K = KINDS[kind](y, ridge=ridge), KERNELS[kernel](X)
        Q = qp.dense_q(problem, K)
        _, best = qp.reference(problem, K)
        rng = np.random.default_rng(seed)
        vertex = np.zeros(24)
        for k in range(problem.n_groups):
            vertex[rng.choice(np.flatnonzero(problem.group == k))] = 1.0
        for warm in (None, vertex, spread(problem, rng)):
            solution = NPA().solve(problem, gram_of(X, kernel), warm=warm, stop=Stop(1e-6))
            assert solution.status == "solved"
            qp.assert_feasible(problem, solution.u)
            assert problem.violation(solution.u, Q @ solution.u) <= 1e-6 * (1 + 1e-6)
            assert solution.objective - best <= solution.gap + 1e-13 * np.diag(Q).max()


def test_npa_goes_on_after_a_step_that_leaves_weight_on_a_single_vertex():
    X, y = np.array([[1.0], [2.0], [3.0], [-1.0], [-2.0]]), np.array([1.0, 1.0, 1.0, -1.0, -1.0])
    warm = np.array([1 / 3, 1 / 3, 1 / 3, 0.5, 0.5])
    # The first step goes all the way to the vertex at 1; then the other hull has its turn.
    solution = NPA().solve(dual.nearest_points(y), gram_of(X, "linear"), warm=warm)
    assert solution.status == "solved"
    assert solution.u == pytest.approx([1.0, 0.0, 0.0, 1.0, 0.0])


@pytest.mark.parametrize("rows", [6, 10, 20, 30, 39])
def test_npa_reads_the_right_rows_whatever_the_cache_has_evicted(rows):
    for seed in range(6):
        X, y = data(40, seed)
        problem = dual.nearest_points(y, ridge=0.1)
        Q = qp.dense_q(problem, qp.rbf(X))
        warm = spread(problem, np.random.default_rng(seed))
        gram = gram_of(X, cache_bytes=rows * 40 * 8)
        solution = NPA().solve(problem, gram, warm=warm, stop=Stop(1e-6))
        assert np.abs(solution.gradient - Q @ solution.u).max() <= 1e-12
        assert problem.violation(solution.u, Q @ solution.u) <= 1e-6 * (1 + 1e-6)


def measure(problem, Q, u):
    """(||W||^2 - <W, z>) / ||W||^2, from its definition."""
    d = Q @ u
    towards = sum(d[problem.group == k].min() for k in range(problem.n_groups))
    return (u @ d - towards) / (u @ d)


@pytest.mark.parametrize("sweep", [False, True])
@every_kernel
@every_kind
def test_gilbert_reaches_its_measure(sweep, kernel, kind):
    for seed in range(3):
        X, y = data(30, seed, apart=1.0)
        X = X * y[:, None] if kind == "one_class_l2" else X
        problem, K = KINDS[kind](y, ridge=0.1), KERNELS[kernel](X)
        Q = qp.dense_q(problem, K)
        _, best = qp.reference(problem, K)
        stop = Stop(1e-2, criterion="paper")
        solution = Gilbert(sweep).solve(problem, gram_of(X, kernel), stop=stop)
        assert solution.status == "solved"
        assert measure(problem, Q, solution.u) <= 1e-2 * (1 + 1e-9)
        # It bounds the distance to the optimum, and the certificate is no worse.
        assert solution.objective - best <= solution.gap + 1e-12 <= 1e-2 * 2 * solution.objective + 2e-12


@every_kind
def test_gilbert_stops_at_the_first_step_where_its_measure_is_reached(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    Q = qp.dense_q(problem, qp.rbf(X))
    for tol in (0.1, 0.01):
        end = Gilbert(sweep=False).solve(problem, gram_of(X), stop=Stop(tol, criterion="paper"))
        assert end.n_iter > 5
        assert [record.n_iter for record in end.trace] == [0, end.n_iter]
        budget = Stop(tol, criterion="paper", max_iter=end.n_iter - 1)
        before = Gilbert(sweep=False).solve(problem, gram_of(X), stop=budget)
        assert before.status == "max_iter"
        assert measure(problem, Q, before.u) > tol >= measure(problem, Q, end.u) * (1 - 1e-9)


@pytest.mark.parametrize("kind", ["minimum_norm", "nearest_points"])
def test_gilbert_to_the_letter_never_removes_a_vector_and_the_sweep_does(kind):
    X, y = data(30, 3, apart=1.0)
    problem = KINDS[kind](y, ridge=0.1)
    best, _ = qp.reference(problem, X @ X.T)
    warm = spread(problem, np.random.default_rng(0))
    wrong = best == 0.0
    assert wrong.sum() > 10
    letter = Gilbert(sweep=False).solve(
        problem, gram_of(X, "linear"), warm=warm, stop=Stop(1e-3, max_iter=2000)
    )
    assert letter.status == "max_iter"
    assert (letter.u > 0.0).all()
    swept = Gilbert().solve(problem, gram_of(X, "linear"), warm=warm, stop=Stop(1e-3))
    assert swept.status == "solved"
    assert (swept.u[wrong] == 0.0).all()


# -- how it ends -----------------------------------------------------------------------------


@every_solver
def test_repr_tells_them_apart(make):
    assert type(make()).__name__ in repr(make())
    if isinstance(make(), Gilbert):
        assert repr(make().sweep) in repr(make())


@every_solver
@every_kind
def test_statuses_say_how_it_ended(make, kind):
    X, y = data(30, apart=1.0)
    problem = KINDS[kind](y, ridge=0.1)
    ends = {
        "solved": Stop(0.05, criterion="paper"),
        "max_iter": Stop(1e-9, max_iter=3),
        "max_time": Stop(1e-9, max_time=0.0),
    }
    for status, stop in ends.items():
        solution = make().solve(problem, gram_of(X), stop=stop)
        assert solution.status == status
        qp.assert_feasible(problem, solution.u)
        assert solution.n_iter == {"max_iter": 3, "max_time": 0}.get(status, solution.n_iter)


@every_solver
@pytest.mark.parametrize("kind", ["minimum_norm", "nearest_points"])
def test_hulls_that_touch_are_infeasible(make, kind):
    X, y = data(12)
    problem = KINDS[kind](np.concatenate([y, -y]))
    solution = make().solve(problem, gram_of(np.concatenate([X, X])))
    assert solution.status == "infeasible"
    qp.assert_feasible(problem, solution.u)


@every_kind
def test_npa_stalls_where_the_tolerance_is_below_rounding(kind):
    X, y = data(20)
    problem = KINDS[kind](y, ridge=0.5)
    _, best = qp.reference(problem, qp.rbf(X))
    solution = NPA().solve(problem, gram_of(X), stop=Stop(1e-18, max_iter=10**6))
    assert solution.status in ("stalled", "max_iter")
    qp.assert_feasible(problem, solution.u)
    assert solution.objective == pytest.approx(best, rel=1e-12)


@every_solver
def test_a_single_vertex_is_the_solution(make):
    problem = dual.one_class_l2(1, ridge=0.5)
    solution = make().solve(problem, gram_of(np.array([[2.0]]), "linear"))
    assert solution.status == "solved" and solution.u == pytest.approx([1.0])
    assert solution.objective == pytest.approx(2.25)


@every_solver
@every_kind
def test_true_answer_of_the_callback_leaves_a_feasible_best_so_far(make, kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    Q = qp.dense_q(problem, qp.rbf(X))
    records = []

    def enough(record):
        records.append(record)
        return len(records) == 4

    solver = in_short_slices(make(), 5)
    solution = solver.solve(problem, gram_of(X), stop=Stop(1e-9), callback=enough)
    assert solution.status == "interrupted"
    assert len(records) == 4 and solution.n_iter == records[-1].n_iter == 15
    qp.assert_feasible(problem, solution.u)
    assert solution.objective == pytest.approx(min(record.objective for record in records))
    assert solution.objective == pytest.approx(0.5 * solution.u @ Q @ solution.u)
    assert solution.gap >= solution.objective - qp.reference(problem, qp.rbf(X))[1]


@pytest.fixture
def default_handler():
    """Python's own SIGINT handler, whatever the test runner installed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@every_solver
@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_leaves_a_feasible_best_so_far(make):
    X, y = data(30)
    problem = dual.nearest_points(y, ridge=0.1)
    slices = []

    def press(state, work):
        slices.append(state.u.copy())
        if len(slices) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    solver = in_short_slices(make(), 5, press)
    solution = solver.solve(problem, gram_of(X), stop=Stop(1e-9))
    assert solution.status == "interrupted"
    assert solution.n_iter == 15 and np.array_equal(solution.u, slices[-1])
    qp.assert_feasible(problem, solution.u)
    assert solution.objective < solution.trace[0].objective
