"""Shrinking, on problems that are far too small for it: every threshold is lowered."""

import gc
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest
import scipy.sparse as sp

import qp
from maxmargin import dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Stop, costs, interrupt
from maxmargin.solvers.batch.shrinking import Shrunk

N = 240
KINDS = ["c_svc", "bounds", "equal bounds", "squared_c_svc", "one_class", "weighted one_class"]
every_kind = pytest.mark.parametrize("kind", KINDS)
precisions = pytest.mark.parametrize("dtype", ["float32", "float64"])


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Every problem is shrunk at once."""
    for name, value in {"SHRINK_FROM": 0, "SHRINK_SHARE": 1.0, "SHRINK_WORTH": 0.0}.items():
        monkeypatch.setattr(costs, name, value)


@pytest.fixture
def seen(monkeypatch):
    """The active variables, every time that a run is shrunk."""
    active, of = [], Shrunk.of

    def spy(state, expected):
        found = of(state, expected)
        if found is not None:
            active.append(found.active)
        return found

    monkeypatch.setattr(Shrunk, "of", staticmethod(spy))
    return active


def points(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where((X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.1), 1.0, -1.0)
    return X, y, rng


def problem_of(kind, C=20.0, n=N, seed=0):
    X, y, rng = points(n, seed)
    weights = rng.uniform(0.1, 2.0, n)
    few = weights * (rng.random(n) < 0.7)
    return X, {
        "c_svc": lambda: dual.c_svc(y, C=C),
        "bounds": lambda: dual.c_svc(y, bounds=C * weights),
        "equal bounds": lambda: dual.c_svc(y, bounds=C * few),
        "squared_c_svc": lambda: dual.squared_c_svc(y, ridge=weights / C),
        "one_class": lambda: dual.one_class(n, nu=0.2),
        "weighted one_class": lambda: dual.one_class(n, nu=0.2, weights=few),
    }[kind]()


def assert_certified(solution, problem, X, atol=1e-9):
    """Whatever ended the run: gradient, violation, objective and gap are those of u."""
    Q = qp.dense_q(problem, qp.rbf(X))
    g = Q @ solution.u - problem.p
    qp.assert_feasible(problem, solution.u)
    np.testing.assert_allclose(solution.gradient, g, atol=atol)
    assert solution.violation == pytest.approx(problem.violation(solution.u, g), abs=2 * atol * problem.scale)
    assert solution.objective == pytest.approx(qp.objective(Q, problem.p, solution.u), rel=1e-6, abs=atol)
    slack = atol * np.abs(solution.u).sum() * 2 + 1e-9
    assert solution.gap == pytest.approx(problem.gap(solution.u, g), rel=1e-5, abs=slack)


@every_kind
def test_solution_is_that_without_shrinking_and_that_of_clarabel(kind, seen, monkeypatch):
    X, problem = problem_of(kind)
    solution = Batch(32).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert len(seen) > 1 and min(map(len, seen)) < N
    assert_certified(solution, problem, X)
    monkeypatch.setattr(costs, "SHRINK_FROM", N + 1)
    seen.clear()
    wide = Batch(32).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    _, best = qp.reference(problem, qp.rbf(X))
    assert not seen
    assert solution.status == wide.status == "solved"
    assert solution.objective == pytest.approx(best, rel=1e-8)
    assert solution.objective == pytest.approx(wide.objective, rel=1e-9)
    np.testing.assert_allclose(solution.offset, wide.offset, atol=1e-6)


@every_kind
def test_float32_rows_keep_the_tolerance_in_float64(kind, seen):
    for seed in range(3):
        X, problem = problem_of(kind, seed=seed)
        solution = Batch(24).solve(problem, qp.gram_of(X, dtype="float32"), stop=Stop(1e-3))
        g = qp.dense_q(problem, qp.rbf(X)) @ solution.u - problem.p
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u)
        assert problem.violation(solution.u, g) <= 1e-3 * (1 + 1e-6)
        np.testing.assert_allclose(solution.gradient, g, atol=1e-3 / problem.scale)
    assert seen


@pytest.mark.parametrize("C", [0.01, 1.0, 1e3])
@pytest.mark.parametrize("size", [4, 16, 100])
def test_any_working_set_and_penalty_give_the_optimum(C, size, seen):
    X, problem = problem_of("c_svc", C=C, n=160)
    solution = Batch(size).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert solution.status == "solved" and seen
    _, best = qp.reference(problem, qp.rbf(X))
    assert solution.objective == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("margin", [-10.0, -1.0, -0.3, 0.0, 1e6, np.inf])
@pytest.mark.parametrize("fall", [0.0, 0.1, 1.0, 10.0])
def test_absurd_margins_and_falls_cost_time_only(margin, fall, monkeypatch):
    monkeypatch.setattr(costs, "SHRINK_MARGIN", margin)
    monkeypatch.setattr(costs, "SHRINK_FALL", fall)
    X, problem = problem_of("c_svc")
    solution = Batch(32).solve(problem, qp.gram_of(X), stop=Stop(1e-6, max_time=20))
    assert solution.status == "solved"
    assert_certified(solution, problem, X)


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("storage", ["dense", "sparse", "chosen rows"])
def test_every_kernel_and_storage_gives_the_solution_without_shrinking(kernel, storage, seen, monkeypatch):
    monkeypatch.setattr(costs, "PROXIMAL_FEATURES", 0)  # pair steps, for the linear kernel too
    X, y, rng = points()
    X = X * (rng.random(X.shape) < 0.8)
    index = rng.permutation(N)[:200] if storage == "chosen rows" else None
    problem = dual.c_svc(y if index is None else y[index], C=2.0)
    data = sp.csr_array(X) if storage == "sparse" else X

    def solve():
        gram = Gram(data, kernel, gamma=0.5, dtype="float64", n_jobs=1, index=index, cache_bytes=30 * N * 8)
        return Batch(32).solve(problem, gram, stop=Stop(1e-6)), gram

    near, gram = solve()
    assert seen
    monkeypatch.setattr(costs, "SHRINK_FROM", N + 1)
    wide, _ = solve()
    assert near.status == wide.status == "solved"
    assert near.objective == pytest.approx(wide.objective, rel=1e-7)
    exact = problem.exact_gradient(near.u, np.arange(problem.m), gram)
    np.testing.assert_allclose(near.gradient, exact, atol=1e-8 * max(1.0, np.abs(exact).max()))


def test_a_matrix_that_is_given_is_never_shrunk(seen):
    X, problem = problem_of("c_svc")
    solution = Batch(32).solve(problem, Gram(qp.rbf(X), "precomputed"), stop=Stop(1e-6))
    assert solution.status == "solved" and not seen


@pytest.mark.parametrize("kind", ["reduced_hulls", "nearest_points", "minimum_norm", "all_distances"])
def test_several_groups_and_couplings_are_never_shrunk(kind, seen):
    problem, X, _, _, best = qp.solved_problem(kind, 0, 60)
    solution = Batch(16).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert not seen
    assert solution.objective == pytest.approx(best, rel=1e-6)


# -- the cache -------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [0, 1, 10, 60, N - 1, N, 3 * N])
def test_a_lent_budget_comes_back_whatever_its_size(rows, seen):
    X, problem = problem_of("c_svc")
    gram = qp.gram_of(X, cache_bytes=rows * N * 8)
    capacity = gram.capacity
    solution = Batch(32).solve(problem, gram, stop=Stop(1e-7))
    assert solution.status == "solved" and seen
    assert not gram.lent and gram.capacity == capacity
    assert_certified(solution, problem, X)
    again = Batch(32).solve(problem, gram, warm=solution.u, stop=Stop(1e-6))
    assert again.n_iter == 0


def test_active_variables_get_the_free_part_of_the_cache_or_all_of_it():
    X, _, _ = points()
    for rows in (0, 5, 50, N):
        gram = qp.gram_of(X, cache_bytes=rows * N * 8)
        if rows:
            gram.add(np.zeros(N), np.arange(min(rows, 30)), np.ones(min(rows, 30)))
        part = gram.part(np.arange(0, N, 3))
        held = 0 if gram.lent else int(gram.valid.any(axis=1).sum()) * N * 8
        assert held + part.capacity * part._stride * 8 <= rows * N * 8
        assert gram.lent == (part.capacity < part.n) or part.holds_all
        gram.reopen()
        assert not gram.lent


@pytest.mark.parametrize("rows", [1, 60, N])
def test_cached_rows_of_all_matrices_stay_within_the_budget_between_iterations(rows, monkeypatch):
    alive, init = weakref.WeakSet(), Gram.__init__
    monkeypatch.setattr(Gram, "__init__", lambda self, *a, **k: (init(self, *a, **k), alive.add(self))[0])
    X, problem = problem_of("c_svc")
    gc.collect()
    most = []

    def held(record):
        most.append(sum(int(g.valid.any(axis=1).sum()) * g._stride * g.dtype.itemsize for g in alive))

    Batch(32).solve(problem, qp.gram_of(X, cache_bytes=rows * N * 8), stop=Stop(1e-7), callback=held)
    assert 0 < max(most) <= rows * N * 8


# -- the course and the end ------------------------------------------------------------------


@every_kind
def test_objective_of_every_record_falls_and_iterations_rise(kind, seen):
    X, problem = problem_of(kind)
    records = []
    solution = Batch(16).solve(problem, qp.gram_of(X), stop=Stop(1e-7), callback=records.append)
    assert seen and len(records) > 10
    objective = np.array([r.objective for r in records])
    assert (np.diff(objective) <= 1e-11 * np.abs(objective[:-1]) + 1e-14).all()
    steps = [r.n_iter for r in records]
    assert steps == sorted(set(steps))
    assert records[-1] == solution.trace[-1]
    for name in ("n_kernel_evals", "n_kernel_calls"):
        values = [getattr(r, name) for r in records]
        assert values == sorted(values) and values[-1] > values[0]


@every_kind
def test_objective_and_support_of_every_record_are_those_of_its_u(kind, monkeypatch):
    X, problem = problem_of(kind)
    Q = qp.dense_q(problem, qp.rbf(X))
    advance, states, checked = Batch.advance, [], []

    def spy(self, state, work):
        states[:] = [state]
        return advance(self, state, work)

    def check(record):
        if states:
            state = states[0]
            true = qp.objective(Q, problem.p, state.u)
            assert record.objective == pytest.approx(true, rel=1e-9, abs=1e-12)
            assert record.n_support == np.count_nonzero(state.u)
            checked.append(state.anchor is not None)

    monkeypatch.setattr(Batch, "advance", spy)
    Batch(16).solve(problem, qp.gram_of(X), stop=Stop(1e-6), callback=check)
    assert any(checked) and not checked[-1]


@every_kind
@precisions
def test_max_iter_in_the_middle_leaves_a_certified_point(kind, dtype, seen):
    X, problem = problem_of(kind)
    atol = 1e-9 if dtype == "float64" else 2e-4 / problem.scale ** (kind[-5:] == "class")
    for most in (1, 5, 17, 40, 80, 150):
        solution = Batch(16).solve(problem, qp.gram_of(X, dtype=dtype), stop=Stop(1e-12, max_iter=most))
        assert solution.status == "max_iter" and solution.n_iter == most
        assert_certified(solution, problem, X, atol)
        assert solution.gap > 0
    assert seen


@pytest.mark.parametrize("cache", [20 * N * 8, 200 << 20])
def test_a_true_answer_in_the_middle_leaves_a_certified_point(cache, seen):
    X, problem = problem_of("c_svc")
    _, best = qp.reference(problem, qp.rbf(X))
    for last in range(1, 16, 2):
        count, gram = [], qp.gram_of(X, cache_bytes=cache)
        solution = Batch(16).solve(
            problem, gram, stop=Stop(1e-12), callback=lambda r, c=count, k=last: c.append(r) or len(c) == k
        )
        assert solution.status == "interrupted" and len(count) == last
        assert_certified(solution, problem, X)
        assert solution.objective - solution.gap <= best + 1e-9 * abs(best)
        assert not gram.lent
    assert seen


def test_max_time_in_the_middle_leaves_a_certified_point(seen):
    X, problem = problem_of("c_svc", C=1e5)

    def slow(record):
        time.sleep(0.004)

    for budget in (0.0, 0.03, 0.08):
        solution = Batch(16).solve(problem, qp.gram_of(X), stop=Stop(1e-12, max_time=budget), callback=slow)
        assert solution.status == "max_time"
        qp.assert_feasible(problem, solution.u)
        exact = qp.dense_q(problem, qp.rbf(X)) @ solution.u - problem.p
        np.testing.assert_allclose(solution.gradient, exact, rtol=1e-9, atol=1e-9 * np.abs(exact).max())
        assert solution.violation == pytest.approx(problem.violation(solution.u, exact), rel=1e-6)
    assert seen


def test_an_interrupt_in_the_middle_leaves_a_certified_point(seen, monkeypatch):
    monkeypatch.setattr(interrupt, "REPEATED", 0.0)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    X, problem = problem_of("c_svc")
    try:
        for last in (1, 6, 12):
            count = []

            def strike(record, count=count, last=last):
                count.append(record)
                if len(count) == last:
                    os.kill(os.getpid(), signal.SIGINT)

            solution = Batch(16).solve(problem, qp.gram_of(X), stop=Stop(1e-12), callback=strike)
            assert solution.status == "interrupted"
            assert_certified(solution, problem, X)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen


def test_a_stall_in_the_middle_leaves_a_certified_point(seen):
    X, problem = problem_of("c_svc", C=1e3)
    solution = Batch(16).solve(problem, qp.gram_of(X), stop=Stop(1e-16, max_time=30))
    assert solution.status == "stalled" and seen
    qp.assert_feasible(problem, solution.u)
    exact = qp.dense_q(problem, qp.rbf(X)) @ solution.u - problem.p
    np.testing.assert_allclose(solution.gradient, exact, atol=1e-13 * np.abs(solution.u).sum())


def test_nobody_looks_where_the_gradient_does_not_hold(monkeypatch):
    X, problem = problem_of("c_svc")
    Q, take, checked = qp.dense_q(problem, qp.rbf(X)), Shrunk.update, []

    def check(self, g, idx, delta, state):
        assert (self.position[idx] >= 0).all()
        take(self, g, idx, delta, state)
        if g is state.g:
            now = (Q @ state.u - problem.p)[self.active]
            np.testing.assert_allclose(g[self.active], now, atol=1e-9)
            others = self.position < 0
            np.testing.assert_array_equal(state.u[others], state.anchor.u[others])
            checked.append(others.sum())

    monkeypatch.setattr(Shrunk, "update", check)
    Batch(16).solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert max(checked) > 0


@every_kind
def test_warm_starts_near_and_far_reach_the_optimum(kind, seen):
    X, problem = problem_of(kind)
    tight = Batch().solve(problem, qp.gram_of(X), stop=Stop(1e-9))
    rng = np.random.default_rng(0)
    for warm in (tight.u * (1 + 1e-3 * rng.normal(size=N)), 10 * rng.normal(size=N), np.zeros(N)):
        seen.clear()
        solution = Batch(16).solve(problem, qp.gram_of(X), warm=warm, stop=Stop(1e-7))
        assert solution.status == "solved" and seen
        assert solution.objective == pytest.approx(tight.objective, rel=1e-8)
        assert_certified(solution, problem, X)
    done = Batch(16).solve(problem, qp.gram_of(X), warm=tight.u, stop=Stop(1e-6))
    assert done.n_iter == 0


def test_runs_in_several_threads_are_those_of_one(seen):
    X, problem = problem_of("c_svc")
    found = {}

    def run(k):
        found[k] = Batch(16, finish=None).solve(problem, qp.gram_of(X), stop=Stop(1e-7))

    team = [threading.Thread(target=run, args=(k,)) for k in range(3)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    run(3)
    assert seen
    for k in range(3):
        np.testing.assert_array_equal(found[k].u, found[3].u)


def test_an_exception_in_a_callback_gives_the_budget_back(seen):
    X, problem = problem_of("c_svc", C=100.0, n=300)
    gram = Gram(X, gamma=0.5, dtype="float64", cache_bytes=40 * 300 * 8)
    lent = []

    def fail(record):
        lent.append(gram.lent)
        if sum(lent) > 2:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        Batch(32).solve(problem, gram, stop=Stop(1e-6), callback=fail)
    assert lent[-1] and not gram.lent


def test_no_record_comes_twice_when_a_callback_ends_the_run(seen):
    X, problem = problem_of("c_svc", C=100.0, n=300)
    calls = []
    gram = Gram(X, gamma=0.5, dtype="float64")
    solution = Batch(32).solve(
        problem, gram, stop=Stop(1e-6), callback=lambda record: calls.append(record) or len(calls) > 29
    )
    steps = [record.n_iter for record in solution.trace]
    assert solution.status == "interrupted" and steps == sorted(set(steps))


def test_the_gap_criterion_keeps_all_gradients(seen):
    X, problem = problem_of("c_svc", C=100.0, n=300)
    gram = Gram(X, gamma=0.5, dtype="float64")
    solution = Batch(32).solve(problem, gram, stop=Stop(1e-5, "gap"))
    assert solution.status == "solved" and not seen
