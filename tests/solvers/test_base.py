"""What every solver promises, and the loop around them."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import qp
from maxmargin import SVC, dual, solvers
from maxmargin.dual import relative_to_value
from maxmargin.gram.gram import Gram
from maxmargin.solvers import SMO, Batch, Record, Solver, Status, Stop
from maxmargin.solvers import registry as registry_module

SOLVERS = {
    "smo-first-order": lambda: SMO("first-order"),
    "smo-second-order": SMO,
    "batch": Batch,
}
every_solver = pytest.mark.parametrize("make", SOLVERS.values(), ids=SOLVERS.keys())
every_kind = pytest.mark.parametrize("kind", qp.KINDS)
precisions = pytest.mark.parametrize("dtype", ["float32", "float64"])


class PairSteps(Solver):
    """A toy: one step with the most violating pair per checkpoint."""

    name = "pair-steps"

    def advance(self, state, work):
        p, u, g = state.problem, state.u, state.g
        k = int(np.argmax(state.most - state.least))
        mine = p.group == k
        i = int(np.argmin(np.where(mine & (u < p.hi), g, np.inf)))
        j = int(np.argmax(np.where(mine & (u > p.lo), g, -np.inf)))
        pair = np.array([i, j])
        Q = p.block(pair, pair, state.gram)
        step = (g[j] - g[i]) / max(Q[0, 0] + Q[1, 1] - 2 * Q[0, 1], 1e-12)
        step = min(step, p.hi[i] - u[i], u[j] - p.lo[j])
        u[pair] += [step, -step]
        p.update(g, pair, np.array([step, -step]), state.gram)
        state.n_iter += 1


class DoesNothing(Solver):
    """A toy that never moves and says so."""

    name = "does-nothing"

    def __init__(self):
        self.begun = []

    def begin(self, state):
        self.begun.append(state.gram.dtype)

    def advance(self, state, work):
        state.n_iter += 1
        state.stuck = True


class OnlyOneClass(PairSteps):
    name = "only-one-class"

    def accepts(self, problem):
        return problem.name == "one_class"


def classification(n, seed=0, C=10.0, noise=0.2):
    """Two overlapping classes: X and a C-SVC."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where((X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < noise), 1.0, -1.0)
    return X, dual.c_svc(y, C=C)


# -- the optimum -----------------------------------------------------------------------------


@every_solver
@every_kind
def test_reaches_the_optimum_of_clarabel(make, kind):
    for seed in range(12):
        problem, X, K, _, best = qp.solved_problem(kind, seed)
        solution = make().solve(problem, qp.gram_of(X), stop=Stop(1e-8))
        assert solution.status == "solved"
        assert solution.violation <= 1e-8
        qp.assert_feasible(problem, solution.u)
        value = qp.objective(qp.dense_q(problem, K), problem.p, solution.u)
        assert value == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert solution.objective == pytest.approx(value, rel=1e-9, abs=1e-12)


@every_solver
@every_kind
def test_float32_rows_keep_the_tolerance_in_float64(make, kind):
    for seed in range(6):
        problem, X, K, _, best = qp.solved_problem(kind, seed)
        for tol in (1e-3, 1e-6):
            solution = make().solve(problem, qp.gram_of(X, dtype="float32"), stop=Stop(tol))
            qp.assert_feasible(problem, solution.u)
            Q = qp.dense_q(problem, K)
            assert solution.status == "solved"
            assert solution.violation <= tol
            assert problem.violation(solution.u, Q @ solution.u - problem.p) <= tol * (1 + 1e-6)
            value = qp.objective(Q, problem.p, solution.u)
            assert solution.gap >= value - best - 1e-12 * (1 + abs(best))


@every_solver
@every_kind
def test_reported_gradient_offset_and_gap_are_those_of_u(make, kind):
    problem, X, K, _, best = qp.solved_problem(kind, 3)
    solution = make().solve(problem, qp.gram_of(X), stop=Stop(1e-4))
    Q = qp.dense_q(problem, K)
    g = Q @ solution.u - problem.p
    assert solution.gradient == pytest.approx(g, abs=1e-9)
    assert solution.offset == pytest.approx(problem.offset(solution.u, g), abs=1e-8)
    assert solution.gap >= qp.objective(Q, problem.p, solution.u) - best - 1e-9


@every_solver
@every_kind
def test_gap_criterion_reaches_the_relative_gap(make, kind):
    for seed in range(4):
        problem, X, K, _, _ = qp.solved_problem(kind, seed)
        for tol in (1e-2, 1e-6):
            solution = make().solve(problem, qp.gram_of(X), stop=Stop(tol, criterion="gap"))
            assert solution.status == "solved"
            g = qp.dense_q(problem, K) @ solution.u - problem.p
            assert problem.relative_gap(solution.u, g) <= tol * (1 + 1e-6) + 1e-12


@every_solver
def test_gap_criterion_holds_with_float32_rows(make):
    X, problem = classification(60)
    solution = make().solve(problem, qp.gram_of(X, dtype="float32"), stop=Stop(1e-4, criterion="gap"))
    assert solution.status == "solved"
    g = qp.dense_q(problem, qp.rbf(X)) @ solution.u - problem.p
    assert problem.relative_gap(solution.u, g) <= 1e-4 * (1 + 1e-6)


@every_solver
@pytest.mark.parametrize("cache_bytes", [200 << 20, 8 * 40 * 4])
def test_a_class_pair_of_a_larger_gram_is_solved_by_rows_and_by_a_view(make, cache_bytes):
    rng = np.random.default_rng(0)
    X, label = rng.normal(size=(40, 2)), rng.integers(3, size=40)
    rows = np.flatnonzero(label != 1)
    y = np.where(label[rows] == 0, 1.0, -1.0)
    problem = dual.c_svc(y, C=5.0, rows=rows)
    _, best = qp.reference(problem, qp.rbf(X))
    for case, gram in (
        (problem, qp.gram_of(X, cache_bytes=cache_bytes)),
        (dual.c_svc(y, C=5.0), qp.gram_of(X, cache_bytes=cache_bytes).view(rows)),
    ):
        solution = make().solve(case, gram, stop=Stop(1e-8))
        assert solution.status == "solved"
        assert solution.objective == pytest.approx(best, rel=1e-7)


# -- nasty problems --------------------------------------------------------------------------


def _nasty():
    rng = np.random.default_rng(42)
    X = rng.normal(size=(20, 3))
    y = np.where(np.arange(20) % 2, 1.0, -1.0)
    twice, opposite = np.repeat(X[:10], 2, axis=0), np.tile([1.0, -1.0], 10)
    third = np.arange(20) % 3
    yield "duplicates", twice, {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(np.repeat(y[:10], 2), C=10.0)
    yield "opposite labels", twice, {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(opposite, C=10.0)
    yield "opposite labels, huge C", twice, {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(opposite, C=1e9)
    yield "opposite labels, hard", twice, {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(opposite, C=np.inf)
    yield "one point", np.ones((20, 2)), {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(y, C=10.0)
    yield "all zero", np.zeros((20, 2)), {"kernel": "linear"}, dual.c_svc(y, C=10.0)
    yield "all zero, hulls", np.zeros((20, 2)), {"kernel": "linear"}, dual.nearest_points(y)
    yield "all zero, one class", np.zeros((20, 2)), {"kernel": "linear"}, dual.one_class(20, 0.3)
    yield "touching hulls", X, {"kernel": "linear"}, dual.nearest_points(y)
    yield "touching reduced hulls", X, {"kernel": "linear"}, dual.reduced_hulls(y, mu=0.2)
    yield "touching three hulls", X, {"kernel": "linear"}, dual.all_distances(third, mu=0.2)
    yield "large features", 1e6 * X, {"kernel": "linear"}, dual.c_svc(y, C=1.0)
    separable = np.where(X[:, 0] > 0, 1.0, -1.0)
    yield "large features, separable", 1e6 * X, {"kernel": "linear"}, dual.c_svc(separable, C=1.0)
    yield "large features, ridge", 1e6 * X, {"kernel": "linear"}, dual.squared_c_svc(y, ridge=0.5)
    yield "small features", 1e-6 * X, {"kernel": "linear"}, dual.c_svc(y, C=1.0)
    yield "tiny C", X, {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(y, C=1e-6)
    yield "huge C", X, {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(y, C=1e9)
    yield "C zero", X, {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(y, C=0.0)
    yield "rank one", X[:, :1], {"kernel": "linear"}, dual.c_svc(y, C=100.0)
    yield "rank one, huge C", X[:, :1], {"kernel": "linear"}, dual.c_svc(y, C=1e9)
    yield "rank one, hard", X[:, :1], {"kernel": "linear"}, dual.c_svc(y, C=np.inf)
    yield "rank one, one class", X[:, :1], {"kernel": "linear"}, dual.one_class(20, 0.3)
    yield "sigmoid", X, {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}, dual.c_svc(y, C=10.0)
    yield "sigmoid, hulls", X, {"kernel": "sigmoid", "gamma": 1.0, "coef0": -1.0}, dual.nearest_points(y)
    yield (
        "sigmoid, distances", X, {"kernel": "sigmoid", "gamma": 1.0}, dual.all_distances(third, mu=0.5),
    )  # fmt: skip
    yield "wide rbf", X, {"kernel": "rbf", "gamma": 1e-9}, dual.c_svc(y, C=1e6)
    yield "narrow rbf", X, {"kernel": "rbf", "gamma": 1e9}, dual.c_svc(y, C=1e6)
    yield "poly", 10 * X, {"kernel": "poly", "gamma": 1.0, "degree": 5}, dual.c_svc(y, C=1.0)
    yield "one label", X, {"kernel": "rbf", "gamma": 0.5}, dual.c_svc(np.ones(20), C=1.0)
    yield "two points", X[:2], {"kernel": "rbf", "gamma": 0.5}, dual.c_svc([1, -1], C=1.0)
    yield "two points, hulls", X[:2], {"kernel": "rbf", "gamma": 0.5}, dual.nearest_points([1, -1])
    yield "two points, reduced", X[:2], {"kernel": "rbf", "gamma": 0.5}, dual.reduced_hulls([1, -1], 1.0)
    yield "two points, one class", X[:2], {"kernel": "rbf", "gamma": 0.5}, dual.one_class(2, 0.5)
    yield "two equal points", np.ones((2, 1)), {"kernel": "linear"}, dual.c_svc([1, -1], C=1e9)
    yield "two equal points, hulls", np.ones((2, 1)), {"kernel": "linear"}, dual.nearest_points([1, -1])
    yield "one point, one class", X[:1], {"kernel": "rbf", "gamma": 0.5}, dual.one_class(1, 0.5)


NASTY = list(_nasty())


@every_solver
@precisions
@pytest.mark.parametrize("case", NASTY, ids=[name for name, *_ in NASTY])
@pytest.mark.timeout(60)
def test_nasty_problem_ends_with_a_status_and_a_feasible_point(make, dtype, case):
    _, X, kernel, problem = case
    stop = Stop(1e-3, max_iter=200_000)
    solution = make().solve(problem, Gram(X, dtype=dtype, n_jobs=1, **kernel), stop=stop)
    assert isinstance(solution.status, Status)
    qp.assert_feasible(problem, solution.u, slack=1e-9)
    assert solution.gap >= 0
    assert solution.violation >= 0
    assert np.isfinite(solution.objective)
    assert np.isfinite(solution.offset).all()
    if solution.status == "solved":
        assert solution.violation <= 1e-3


EASY_TO_SOLVE = [
    "duplicates", "opposite labels", "one point", "all zero", "all zero, one class", "small features",
    "large features, separable", "tiny C", "huge C", "C zero", "rank one", "rank one, one class",
    "narrow rbf", "one label", "two points", "two points, hulls", "one point, one class",
]  # fmt: skip


@every_solver
@precisions
@pytest.mark.parametrize("name", EASY_TO_SOLVE)
@pytest.mark.timeout(60)
def test_convex_bounded_problem_is_solved_however_it_is_scaled(make, dtype, name):
    _, X, kernel, problem = next(case for case in NASTY if case[0] == name)
    gram = Gram(X, dtype=dtype, n_jobs=1, **kernel)
    assert make().solve(problem, gram, stop=Stop(1e-3)).status == "solved"


@every_solver
@precisions
@pytest.mark.parametrize("name", ["all zero, hulls", "touching hulls", "two equal points, hulls"])
def test_hulls_that_touch_are_infeasible(make, dtype, name):
    _, X, kernel, problem = next(case for case in NASTY if case[0] == name)
    solution = make().solve(problem, Gram(X, dtype=dtype, n_jobs=1, **kernel), stop=Stop(1e-3))
    assert solution.status == "infeasible"


# -- invariance ------------------------------------------------------------------------------


@every_solver
@every_kind
def test_order_of_rows_does_not_change_the_objective(make, kind):
    problem, X, _, _, _ = qp.solved_problem(kind, 5)
    order = np.random.default_rng(0).permutation(len(X))
    place = np.argsort(order)  # where an old row stands now
    moved = dual.Dual(
        **{
            name: getattr(problem, name)
            for name in ("name", "p", "lo", "hi", "ridge", "group", "sums", "label", "coupling", "shift")
        },
        row=place[problem.row],
        scale=problem.scale,
        self_scaled=problem.self_scaled,
    )
    one = make().solve(problem, qp.gram_of(X), stop=Stop(1e-8))
    other = make().solve(moved, qp.gram_of(X[order]), stop=Stop(1e-8))
    assert one.objective == pytest.approx(other.objective, rel=1e-7, abs=1e-10)
    assert problem.offset(one.u, one.gradient) == pytest.approx(other.offset, abs=1e-4)


@every_solver
def test_a_kernel_times_four_with_a_quarter_of_c_is_the_same_machine(make):
    X, problem = classification(30, C=2.0)
    K = qp.rbf(X)
    one = make().solve(problem, Gram(K, "precomputed"), stop=Stop(1e-8))
    other = make().solve(dual.c_svc(problem.p, C=0.5), Gram(4 * K, "precomputed"), stop=Stop(1e-8))
    assert one.u == pytest.approx(4 * other.u, abs=1e-6)
    assert one.objective == pytest.approx(4 * other.objective, rel=1e-8)


@every_solver
def test_sample_given_twice_is_a_sample_with_twice_the_bound(make):
    X, problem = classification(25, C=2.0)
    twice = np.concatenate([X, X[:5]])
    y = np.concatenate([problem.p, problem.p[:5]])
    bounds = np.where(np.arange(25) < 5, 4.0, 2.0)
    one = make().solve(dual.c_svc(y, C=2.0), qp.gram_of(twice), stop=Stop(1e-8))
    other = make().solve(dual.c_svc(problem.p, bounds=bounds), qp.gram_of(X), stop=Stop(1e-8))
    assert one.objective == pytest.approx(other.objective, rel=1e-7)


# -- warm start ------------------------------------------------------------------------------


@every_solver
@every_kind
def test_warm_start_from_the_solution_takes_no_steps(make, kind):
    problem, X, _, best, _ = qp.solved_problem(kind, 1)
    solution = make().solve(problem, qp.gram_of(X), warm=best, stop=Stop(1e-6))
    assert solution.status == "solved"
    assert solution.n_iter == 0


@every_solver
@every_kind
def test_warm_start_is_not_modified(make, kind):
    problem, X, _ = qp.random_problem(kind, 2)
    warm = problem.start()
    before = warm.copy()
    solution = make().solve(problem, qp.gram_of(X), warm=warm, stop=Stop(1e-6))
    assert np.array_equal(warm, before)
    assert not np.shares_memory(solution.u, warm)


@every_solver
@every_kind
def test_infeasible_warm_start_is_repaired_and_solved(make, kind):
    problem, X, _, _, best = qp.solved_problem(kind, 4)
    warm = 100 * np.random.default_rng(0).normal(size=problem.m)
    solution = make().solve(problem, qp.gram_of(X), warm=warm, stop=Stop(1e-8))
    assert solution.status == "solved"
    qp.assert_feasible(problem, solution.u)
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-9)


@every_solver
@pytest.mark.parametrize("warm", [np.zeros(29), np.zeros((30, 1)), np.full(30, np.nan)])
def test_warm_start_of_a_wrong_shape_or_with_nan_is_refused(make, warm):
    X, problem = classification(30)
    with pytest.raises(ValueError, match="warm start"):
        make().solve(problem, qp.gram_of(X), warm=warm)


@every_solver
@every_kind
def test_both_means_the_violation_and_a_gap_beside_the_value(make, kind):
    for tol in (1e-2, 1e-5):
        problem, X, K, _, _ = qp.solved_problem(kind, 1)
        solution = make().solve(problem, qp.gram_of(X), stop=Stop(tol, criterion="both"))
        assert solution.status == "solved"
        g = qp.dense_q(problem, K) @ solution.u - problem.p
        assert problem.violation(solution.u, g) <= tol * (1 + 1e-6)
        assert relative_to_value(problem.gap(solution.u, g), solution.objective) <= max(tol, 1e-3) * (
            1 + 1e-6
        )


# -- when to stop ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        {"tol": 0.0},
        {"tol": -1e-3},
        {"tol": np.nan},
        {"criterion": "KKT"},
        {"criterion": None},
        {"max_iter": -1},
        {"max_time": -0.5},
        {"max_time": np.nan},
    ],
)
def test_stop_refuses_impossible_values_by_name(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        Stop(**arguments)


@pytest.mark.parametrize("m", [0, 2, 10**5, 10**7])
def test_default_budget_is_finite(m):
    assert max(m, 10**6) <= Stop().iterations(m) < np.inf


def test_budget_is_what_was_asked_for():
    assert Stop(max_iter=17).iterations(10**6) == 17


@every_solver
@pytest.mark.parametrize("max_iter", [0, 1, 7])
def test_max_iter_ends_the_run_with_a_feasible_point(make, max_iter):
    X, problem = classification(100)
    solution = make().solve(problem, qp.gram_of(X), stop=Stop(1e-10, max_iter=max_iter))
    assert solution.status == "max_iter"
    assert solution.n_iter == max_iter
    assert solution.gap > 0
    qp.assert_feasible(problem, solution.u)


@every_solver
def test_max_time_ends_the_run_with_a_feasible_point(make):
    X, problem = classification(400, C=1e6)
    at_once = make().solve(problem, qp.gram_of(X), stop=Stop(1e-10, max_time=0.0))
    assert at_once.status == "max_time"
    assert at_once.n_iter == 0
    began = time.perf_counter()
    solution = make().solve(problem, qp.gram_of(X), stop=Stop(1e-14, max_time=0.2))
    assert solution.status == "max_time"
    assert 0.2 <= solution.seconds <= time.perf_counter() - began < 5
    assert solution.n_iter > 0
    qp.assert_feasible(problem, solution.u)


def test_paper_criterion_is_refused_by_a_solver_without_a_rule_of_its_own():
    X, problem = classification(10)
    with pytest.raises(TypeError, match="no stopping rule of its own"):
        Batch().solve(problem, qp.gram_of(X), stop=Stop(criterion="paper"))


def test_paper_rule_of_a_solver_is_compared_with_the_tolerance():
    class WithRule(PairSteps):
        def paper_rule(self, state, work):
            return 1.0 / (1 + state.n_iter)

    X, problem = classification(50)
    solution = WithRule().solve(problem, qp.gram_of(X), stop=Stop(0.05, criterion="paper"))
    assert solution.status == "solved"
    assert solution.n_iter == 19


def test_a_stuck_solver_stalls_in_float64():
    X, problem = classification(20)
    solution = DoesNothing().solve(problem, qp.gram_of(X))
    assert solution.status == "stalled"
    assert solution.n_iter == 1


def test_a_stuck_solver_gets_float64_rows_before_it_stalls():
    X, problem = classification(20)
    solver = DoesNothing()
    solution = solver.solve(problem, qp.gram_of(X, dtype="float32"))
    assert solution.status == "stalled"
    assert solver.begun == [np.float32, np.float64]


# -- callbacks and Ctrl-C --------------------------------------------------------------------


@every_solver
def test_callback_receives_records_of_the_run(make):
    X, problem = classification(200)
    records = []
    solution = make().solve(problem, qp.gram_of(X), stop=Stop(1e-6), callback=records.append)
    assert records
    assert all(isinstance(r, Record) for r in records)
    assert records[0].n_iter == 0
    assert records[0].n_support == 0
    assert set(records) <= set(solution.trace)
    assert all(r.n_support <= problem.m and r.violation > 1e-6 for r in records[:-1])
    assert records[-1].violation <= 1e-6  # the last state is reported too


@every_solver
def test_true_answer_of_the_callback_interrupts(make):
    X, problem = classification(200)
    seen = []

    def enough(record):
        seen.append(record)
        return len(seen) == 1

    solution = make().solve(problem, qp.gram_of(X), callback=enough)
    assert solution.status == "interrupted"
    assert len(seen) == 1
    assert solution.n_iter == 0
    qp.assert_feasible(problem, solution.u)


@pytest.fixture
def default_handler():
    """Python's own SIGINT handler, whatever the test runner installed."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@every_solver
@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_ends_a_long_run_and_loses_nothing(make):
    X, problem = classification(1500, C=1e7)
    timers = []

    def strike_soon(record):
        if not timers:
            timers.append(threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)))
            timers[0].start()

    try:
        solution = make().solve(problem, qp.gram_of(X), stop=Stop(1e-14, max_time=30), callback=strike_soon)
    finally:
        timers[0].cancel()
    assert solution.status == "interrupted"
    assert solution.n_iter > 0
    assert 0.2 < solution.seconds < 10
    qp.assert_feasible(problem, solution.u)
    assert np.isfinite(solution.gap) and solution.gap >= 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@every_solver
@pytest.mark.usefixtures("default_handler")
def test_ctrl_c_inside_the_callback_interrupts(make):
    X, problem = classification(100)
    solution = make().solve(
        problem, qp.gram_of(X), callback=lambda record: os.kill(os.getpid(), signal.SIGINT)
    )
    assert solution.status == "interrupted"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("default_handler")
def test_second_ctrl_c_raises_and_the_handler_is_restored():
    X, problem = classification(100)

    def twice(record):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        SMO().solve(problem, qp.gram_of(X), callback=twice)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("default_handler")
def test_handler_is_restored_when_the_callback_raises():
    X, problem = classification(100)

    def fail(record):
        raise RuntimeError("from the callback")

    with pytest.raises(RuntimeError, match="from the callback"):
        SMO().solve(problem, qp.gram_of(X), callback=fail)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("default_handler")
def test_a_handler_of_somebody_else_is_respected():
    X, problem = classification(100)
    caught = []

    def theirs(number, frame):
        caught.append(number)

    signal.signal(signal.SIGINT, theirs)
    solution = SMO().solve(
        problem, qp.gram_of(X), callback=lambda record: os.kill(os.getpid(), signal.SIGINT)
    )
    assert solution.status == "solved"
    assert caught
    assert signal.getsignal(signal.SIGINT) is theirs


@every_solver
def test_solves_outside_the_main_thread(make):
    X, problem = classification(100)
    results = []
    thread = threading.Thread(target=lambda: results.append(make().solve(problem, qp.gram_of(X))))
    thread.start()
    thread.join()
    assert [r.status for r in results] == ["solved"]


# -- the trace -------------------------------------------------------------------------------


def assert_trace_runs_on(solution):
    iterations = [r.n_iter for r in solution.trace]
    assert iterations == sorted(set(iterations))
    for name in ("seconds", "n_kernel_calls", "n_kernel_evals"):
        values = [getattr(r, name) for r in solution.trace]
        assert values == sorted(values)
    values = np.array([r.objective for r in solution.trace])
    assert (np.diff(values) <= 1e-9 * (1 + np.abs(values[:-1]))).all()
    assert solution.trace[0].n_iter == 0
    assert solution.trace[-1].n_iter == solution.n_iter
    assert solution.trace[-1].objective == pytest.approx(solution.objective, rel=1e-9, abs=1e-12)


@every_solver
@every_kind
def test_trace_rises_in_iterations_and_falls_in_the_objective(make, kind):
    problem, X, _ = qp.random_problem(kind, 0)
    assert_trace_runs_on(make().solve(problem, qp.gram_of(X), stop=Stop(1e-8)))


def test_trace_of_a_long_run_is_bounded_and_keeps_both_ends():
    X, problem = classification(60, C=100.0)
    checkpoints = []
    solution = PairSteps().solve(problem, qp.gram_of(X), stop=Stop(1e-9), callback=checkpoints.append)
    assert len(checkpoints) > 600
    assert 64 <= len(solution.trace) <= 300
    assert_trace_runs_on(solution)


def test_trace_of_a_short_run_keeps_every_checkpoint():
    X, problem = classification(60)
    solution = PairSteps().solve(problem, qp.gram_of(X), stop=Stop(1e-12, max_iter=50))
    assert [r.n_iter for r in solution.trace] == list(range(51))


# -- registry --------------------------------------------------------------------------------


@pytest.fixture
def registry(monkeypatch):
    """A registry of third parties that is forgotten afterwards."""
    monkeypatch.setattr(registry_module, "_registered", {})


def test_names_are_sorted_and_each_gives_a_solver():
    assert solvers.names() == sorted(solvers.names())
    assert {"auto", "batch", "smo", "smo-accelerated", "smo-first-order"} <= set(solvers.names())
    assert all(isinstance(solvers.get(name), Solver) for name in solvers.names())


def test_get_gives_the_variant_of_its_name():
    assert solvers.get("smo").selection == "second-order"
    assert solvers.get("smo-first-order").selection == "first-order"
    assert isinstance(solvers.get("auto"), Batch)


def test_get_returns_a_solver_as_it_is():
    solver = PairSteps()
    assert solvers.get(solver) is solver


def test_unknown_solver_is_refused_with_the_known_names():
    with pytest.raises(ValueError, match=r"'smoo'.*batch.*smo.*smo-first-order"):
        solvers.get("smoo")


@pytest.mark.usefixtures("registry")
def test_registered_solver_is_known_and_solves():
    solvers.register("pair-steps", PairSteps)
    assert "pair-steps" in solvers.names()
    problem, X, _, _, best = qp.solved_problem("all_distances", 0)
    solution = solvers.get("pair-steps").solve(problem, qp.gram_of(X), stop=Stop(1e-8))
    assert solution.status == "solved"
    assert solution.objective == pytest.approx(best, rel=1e-6)
    assert "pair-steps" in solvers.accepting(problem)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["auto", "batch", "smo", "smo-accelerated", "smo-first-order"])
def test_name_of_a_built_in_solver_cannot_be_registered(name):
    with pytest.raises(ValueError, match=f"'{name}' belongs to a built-in"):
        solvers.register(name, PairSteps)
    assert not isinstance(solvers.get(name), PairSteps)


@pytest.mark.usefixtures("registry")
@pytest.mark.parametrize("name", ["", None, 3])
def test_name_that_is_no_string_cannot_be_registered(name):
    with pytest.raises(TypeError, match="non-empty string"):
        solvers.register(name, PairSteps)


@pytest.mark.usefixtures("registry")
def test_factory_that_makes_no_solver_is_refused():
    solvers.register("broken", lambda: "a string")
    with pytest.raises(TypeError, match=r"'broken' did not return a Solver"):
        solvers.get("broken")


@pytest.mark.usefixtures("registry")
def test_solver_that_does_not_accept_a_problem_names_those_that_do():
    solvers.register("only-one-class", OnlyOneClass)
    X, problem = classification(10)
    with pytest.raises(TypeError, match=r"OnlyOneClass cannot take .*'c_svc'.*batch.*smo") as error:
        OnlyOneClass().solve(problem, qp.gram_of(X))
    assert "only-one-class" not in str(error.value)
    assert "only-one-class" in solvers.accepting(dual.one_class(10))


def test_solver_of_one_problem_solves_it():
    problem, X, _, _, best = qp.solved_problem("one_class", 0)
    solution = OnlyOneClass().solve(problem, qp.gram_of(X), stop=Stop(1e-8))
    assert solution.objective == pytest.approx(best, rel=1e-6)


class Idle(Solver):
    """A solver that never makes a step, and does not say so."""

    name = "idle"
    about = "nothing"

    def accepts(self, problem):
        return True

    def advance(self, state, work):
        pass


def test_a_solver_that_makes_no_steps_ends_as_stalled():
    X = np.random.default_rng(0).normal(size=(20, 2))
    problem = dual.c_svc(np.repeat([-1, 1], 10), C=1.0)
    assert Idle().solve(problem, Gram(X, gamma=1.0)).status is Status.STALLED


@pytest.mark.parametrize(
    "solver", ["gilbert", "maxminover", "maxminover-doubling", "mdm", "mdm-accelerated", "npa"]
)
@pytest.mark.parametrize("seed", range(4))
def test_hulls_of_an_indefinite_kernel_come_to_an_end(solver, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.choice([-2.0, -0.5, 0.5, 1.5, 2.0, 2.5], size=(16, 1)), np.arange(16) % 2
    kernel = {"kernel": "sigmoid", "gamma": 1.0, "coef0": 5.0 * (seed % 2)}
    model = SVC(C=5e3, loss="squared_hinge", solver=solver, tol=1e-9, max_iter=2000, max_time=20, **kernel)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.status_ in ("stalled", "max_iter", "infeasible")


# -- points that are not feasible ------------------------------------------------------------


class BreaksThePoint(PairSteps):
    """A toy that solves, and then leaves the sum or the box by little, so that the tolerance still holds."""

    name = "breaks-the-point"

    def __init__(self, damage):
        self.damage = damage

    def advance(self, state, work):
        p, u = state.problem, state.u
        while np.max(state.most - state.least) > 1e-4:
            super().advance(state, work)
            state.least, state.most = p.extremes(u, state.g)
        outer = int(np.flatnonzero(u == p.hi)[0])
        inner = int(np.flatnonzero((u > p.lo) & (u < p.hi))[0])
        pair = np.array([outer, inner])
        change = {"sum": [0.0, 1e-4], "box": [1e-4, -1e-4], "nan": [0.0, np.nan]}[self.damage]
        u[pair] += change
        p.update(state.g, pair, np.array(change), state.gram)


@pytest.mark.parametrize("damage", ["sum", "box", "nan"])
def test_a_point_with_a_wrong_sum_or_box_is_repaired(damage):
    X, problem = classification(60)
    gram = Gram(X, gamma=0.5, dtype="float64")
    solution = BreaksThePoint(damage).solve(problem, gram, stop=Stop(1e-2, max_iter=10_000))
    assert solution.n_iter > 10
    assert problem.feasible(solution.u)
    # What is claimed is true of the point that is returned. `Dual.snap` puts a variable back into its box.
    exact = problem.gradient(solution.u, gram)
    assert solution.status == ("solved" if damage == "box" else "stalled")
    assert damage != "box" or problem.violation(solution.u, exact) <= 1e-2
    np.testing.assert_allclose(solution.gradient, exact, atol=float(np.max(solution.noise)) + 1e-12)
    assert solution.gap >= problem.gap(solution.u, exact) * (1 - 1e-9)
    if damage != "nan":  # which sends it back to where it started
        assert solution.objective == pytest.approx(Batch().solve(problem, gram).objective, rel=1e-3)
