"""Newton steps on the free variables: the same solutions, sooner."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import qp
from maxmargin import SVC, OneClassSVM, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Status, Stop, costs
from maxmargin.solvers.batch import newton as finish
from maxmargin.solvers.batch import shrinking
from maxmargin.solvers.batch.newton import NewtonFinish

N = 150
FINISHES = (None, "auto", "newton")
KINDS = ["c_svc", "squared_c_svc", "one_class", "reduced_hulls", "nearest_points", "all_distances"]
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def steps(monkeypatch):
    """Of every step: whether it was taken, the objectives and u before and after."""
    taken, step = [], NewtonFinish.step

    def spy(self, state, product):
        before, old = state.objective(), state.u.copy()
        done = step(self, state, product)
        taken.append((done, before, state.objective(), old, state.u.copy()))
        return done

    monkeypatch.setattr(NewtonFinish, "step", spy)
    return taken


@pytest.fixture
def eager(monkeypatch):
    """Newton steps wherever they are possible at all."""
    monkeypatch.setattr(costs, "NEWTON_CHANGING", 1.0)
    monkeypatch.setattr(costs, "NEWTON_FEWEST", 2)


def case(kind, C, seed=0, n=N):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    X = rng.normal(size=(n, 3))
    y = np.where((X[:, 0] * X[:, 1] > 0) ^ (rng.random(n) < 0.15), 1.0, -1.0)
    return X, {
        "c_svc": lambda: dual.c_svc(y, C=C),
        "squared_c_svc": lambda: dual.squared_c_svc(y, ridge=0.5 / C),
        "one_class": lambda: dual.one_class(n, nu=0.3),
        "reduced_hulls": lambda: dual.reduced_hulls(y, mu=max(0.02, min(1.0, 0.02 * C))),
        "nearest_points": lambda: dual.nearest_points(y, ridge=0.5 / C),
        "all_distances": lambda: dual.all_distances(np.arange(n) % 3, mu=0.05),
    }[kind]()


def assert_every_step_is_feasible_and_lower(problem, steps):
    for done, before, after, old, new in steps:
        qp.assert_feasible(problem, new, slack=1e-12)
        if done:
            assert after <= before + 1e-12 * abs(before)
        else:
            np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("finish", ["Newton", "", True, 1, "none", ("newton",)])
def test_unknown_finish_is_refused_with_the_known_ones(finish):
    with pytest.raises(ValueError, match="finish must be 'auto', 'newton', 'rosen', 'conjugate' or None"):
        Batch(finish=finish)


@pytest.mark.parametrize("finish", FINISHES)
def test_repr_says_the_finish(finish):
    assert repr(Batch(finish=finish)) == f"Batch(working_set=None, finish={finish!r})"


@every_kind
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e2, 1e4])
def test_all_finishes_give_the_same_solution(kind, C):
    X, problem = case(kind, C, n=120)
    tight = Batch(finish=None).solve(problem, qp.gram_of(X), stop=Stop(1e-8, max_time=5))
    for end in FINISHES:
        solution = Batch(24, end).solve(problem, qp.gram_of(X), stop=Stop(1e-5, max_iter=400_000))
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u, slack=1e-12)
        assert abs(solution.objective - tight.objective) <= solution.gap + tight.gap + 1e-9 * abs(
            tight.objective
        )
        g = problem.exact_gradient(solution.u, np.arange(problem.m), qp.gram_of(X))
        assert problem.violation(solution.u, g) <= 1e-5 * (1 + 1e-6) + 1e-13 * np.abs(solution.u).sum()


@every_kind
@pytest.mark.usefixtures("eager")
def test_newton_at_every_opportunity_reaches_the_optimum_of_clarabel(kind, steps):
    X, problem = case(kind, 30.0, n=80)
    solution = Batch(16, "newton").solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert solution.status == "solved"
    assert any(done for done, *_ in steps)
    assert_every_step_is_feasible_and_lower(problem, steps)
    _, best = qp.reference(problem, qp.rbf(X))
    assert solution.objective == pytest.approx(best, rel=1e-6, abs=1e-10)


@pytest.mark.parametrize("C", [1e4, 1e6])
@pytest.mark.parametrize("kind", ["c_svc", "squared_c_svc"])
def test_newton_needs_fewer_iterations_where_pair_steps_crawl(kind, C, steps):
    X, problem = case(kind, C)
    stop = Stop(1e-6, max_iter=100_000)
    slow = Batch(24, None).solve(problem, qp.gram_of(X), stop=stop)
    assert not steps
    quick = Batch(24, "newton").solve(problem, qp.gram_of(X), stop=stop)
    assert any(done for done, *_ in steps)
    assert_every_step_is_feasible_and_lower(problem, steps)
    assert quick.objective <= slow.objective + 1e-9 * abs(slow.objective)
    assert quick.n_iter <= slow.n_iter


@every_kind
@pytest.mark.usefixtures("eager")
def test_newton_from_near_the_solution_reaches_1e_9_in_a_handful_of_steps(kind, monkeypatch):
    X, problem = case(kind, 10.0)
    near = Batch(finish=None).solve(problem, qp.gram_of(X), stop=Stop(1e-4))
    Q = qp.dense_q(problem, qp.rbf(X))
    states, begin = [], Batch.begin
    monkeypatch.setattr(Batch, "begin", lambda self, state: (states.append(state), begin(self, state))[1])
    Batch(16).solve(problem, qp.gram_of(X), warm=near.u, stop=Stop(1e-12, max_iter=0))
    state = states[0]
    state.target = 1e-10

    def product(idx, d):
        return Q[:, idx] @ d

    for _ in range(6):
        if not NewtonFinish(ridge=1e-12).step(state, product):
            break
    qp.assert_feasible(problem, state.u, slack=1e-12)
    exact = Q @ state.u - problem.p
    np.testing.assert_allclose(state.g, exact, atol=1e-10 * max(1.0, np.abs(state.u).sum()))
    assert problem.violation(near.u, Q @ near.u - problem.p) > 1e-7
    assert problem.violation(state.u, exact) <= 1e-9 * max(1.0, problem.tolerance_scale(state.u, exact))


def _degenerate():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(75, 3))
    twice = np.concatenate([X, X])
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    yield "duplicates", twice, "rbf", np.concatenate([y, y])
    yield "opposite labels", twice, "rbf", np.concatenate([y, -y])
    yield "rank three", twice + 0.3 * rng.normal(size=twice.shape), "linear", np.concatenate([y, y])
    yield "rank one", rng.normal(size=(150, 1)), "linear", rng.permutation(np.repeat([1.0, -1.0], 75))
    yield "one point", np.ones((150, 2)), "rbf", np.tile([1.0, -1.0], 75)


DEGENERATE = list(_degenerate())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", DEGENERATE, ids=[name for name, *_ in DEGENERATE])
@pytest.mark.usefixtures("eager")
def test_degenerate_problems_have_the_objective_of_every_finish(case, dtype, steps):
    _, X, kernel, y = case
    for problem in (dual.c_svc(y, C=5.0), dual.squared_c_svc(y, ridge=0.1), dual.reduced_hulls(y, mu=0.05)):
        found = []
        for end in FINISHES:
            steps.clear()
            gram = Gram(X, kernel, gamma=0.5, dtype=dtype, n_jobs=1)
            found.append(Batch(24, end).solve(problem, gram, stop=Stop(1e-3, max_iter=200_000)))
            assert_every_step_is_feasible_and_lower(problem, steps)
        assert {s.status for s in found} == {Status.SOLVED}
        for s in found[1:]:
            assert abs(s.objective - found[0].objective) <= s.gap + found[0].gap + 1e-12


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("kind", ["c_svc", "one_class", "reduced_hulls", "all_distances"])
@pytest.mark.parametrize("kernel", ["sigmoid", "precomputed"])
@pytest.mark.usefixtures("eager")
def test_indefinite_kernels_end_with_a_status_and_a_feasible_point(kernel, kind, finish, steps):
    X, problem = case(kind, 100.0)
    noise = np.random.default_rng(0).normal(size=(N, N))
    data = qp.rbf(X) + 0.1 * (noise + noise.T) if kernel == "precomputed" else X
    gram = Gram(data, kernel, gamma=0.5, coef0=-1.0, dtype="float64", n_jobs=1)
    solution = Batch(24, finish).solve(problem, gram, stop=Stop(1e-4, max_iter=50_000))
    assert isinstance(solution.status, Status)
    qp.assert_feasible(problem, solution.u, slack=1e-12)
    for done, before, after, old, new in steps:
        qp.assert_feasible(problem, new, slack=1e-12)
        assert not done or after <= before + 1e-12 * abs(before)
        assert done or np.array_equal(old, new)
    objective = [r.objective for r in solution.trace]
    assert objective[-1] <= objective[0] + 1e-12


@pytest.mark.usefixtures("eager")
def test_a_factorisation_that_fails_leaves_everything_to_the_pair_steps(monkeypatch, steps):
    def fail(*a, **k):
        raise np.linalg.LinAlgError("not positive definite")

    monkeypatch.setattr(finish.cholesky, "factor", fail)
    X, problem = case("c_svc", 100.0)
    solution = Batch(24, "newton").solve(problem, qp.gram_of(X), stop=Stop(1e-6))
    plain = Batch(24, None).solve(problem, qp.gram_of(X), stop=Stop(1e-6))
    assert steps and not any(done for done, *_ in steps)
    assert solution.status == "solved"
    np.testing.assert_array_equal(solution.u, plain.u)


def test_a_direction_that_is_uphill_or_not_a_number_is_not_taken(monkeypatch, steps, eager):
    direction = NewtonFinish._direction
    X, problem = case("c_svc", 100.0)
    for wrong in (-1.0, np.nan, 0.0):

        def mistaken(self, state, free, wrong=wrong):
            d = direction(self, state, free)
            return None if d is None else wrong * d

        monkeypatch.setattr(NewtonFinish, "_direction", mistaken)
        steps.clear()
        solution = Batch(24, "newton").solve(problem, qp.gram_of(X), stop=Stop(1e-5))
        assert solution.status == "solved"
        assert steps and not any(done for done, *_ in steps)


@pytest.mark.parametrize("ridge", [0.0, 1e-12, 1e-2, 10.0])
@pytest.mark.usefixtures("eager")
def test_the_ridge_changes_the_way_but_not_the_end(ridge, steps, monkeypatch):
    monkeypatch.setattr("maxmargin.solvers.batch.batch.NewtonFinish", lambda: NewtonFinish(ridge))
    X, problem = case("c_svc", 100.0)
    _, best = qp.reference(problem, qp.rbf(X))
    solution = Batch(24, "newton").solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert solution.status == "solved" and steps
    assert_every_step_is_feasible_and_lower(problem, steps)
    assert solution.objective == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("kind", ["c_svc", "squared_c_svc", "one_class"])
@pytest.mark.usefixtures("eager")
def test_newton_while_shrunk_gives_the_same_solution(kind, steps, monkeypatch):
    X, problem = case(kind, 100.0, n=240)
    _, best = qp.reference(problem, qp.rbf(X))
    for name, value in {"SHRINK_FROM": 0, "SHRINK_SHARE": 1.0, "SHRINK_WORTH": 0.0}.items():
        monkeypatch.setattr(costs, name, value)
    updated, update = [], shrinking.Shrunk.update
    monkeypatch.setattr(
        shrinking.Shrunk, "update", lambda self, g, *a: (updated.append(g), update(self, g, *a))[1]
    )
    solution = Batch(24, "newton").solve(problem, qp.gram_of(X), stop=Stop(1e-7))
    assert solution.status == "solved"
    assert updated and any(done for done, *_ in steps)
    assert_every_step_is_feasible_and_lower(problem, steps)
    assert solution.objective == pytest.approx(best, rel=1e-7)
    exact = qp.dense_q(problem, qp.rbf(X)) @ solution.u - problem.p
    np.testing.assert_allclose(solution.gradient, exact, atol=1e-9)


@pytest.mark.usefixtures("eager")
def test_max_iter_after_a_newton_step_leaves_the_gradient_of_u(steps):
    X, problem = case("c_svc", 1e3)
    Q = qp.dense_q(problem, qp.rbf(X))
    for most in range(1000, 6500, 600):  # with 6,667 steps it comes to the limit of rounding
        solution = Batch(24, "newton").solve(problem, qp.gram_of(X), stop=Stop(1e-12, max_iter=most))
        assert solution.status == "max_iter"
        qp.assert_feasible(problem, solution.u, slack=1e-12)
        np.testing.assert_allclose(solution.gradient, Q @ solution.u - problem.p, atol=1e-8)
    assert any(done for done, *_ in steps)


@pytest.mark.parametrize("finish", FINISHES)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_estimators_take_a_solver_with_any_finish(finish, storage):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, "a", "b")
    auto = SVC(C=100.0, tol=1e-6).fit(storage(X), y)
    model = SVC(C=100.0, tol=1e-6, solver=Batch(working_set=32, finish=finish)).fit(storage(X), y)
    assert model.status_ == "solved"
    np.testing.assert_allclose(
        model.decision_function(storage(X)), auto.decision_function(storage(X)), atol=1e-4
    )
    one = OneClassSVM(nu=0.3, tol=1e-6, solver=Batch(working_set=32, finish=finish)).fit(storage(X))
    same = OneClassSVM(nu=0.3, tol=1e-6).fit(storage(X))
    np.testing.assert_allclose(
        one.decision_function(storage(X)), same.decision_function(storage(X)), atol=1e-5
    )


def test_a_step_that_fails_does_not_count_as_an_iteration(monkeypatch):
    monkeypatch.setattr(NewtonFinish, "_direction", lambda *_: None)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0) * np.where(rng.random(300) < 0.1, -1, 1)
    gram = Gram(X, gamma=0.5, dtype="float64")
    solution = Batch(32, "newton").solve(dual.c_svc(y, 100.0), gram, stop=Stop(1e-9, max_iter=4300))
    assert solution.n_iter <= 4300


def test_the_same_problem_takes_the_same_steps_however_slow_the_machine():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0) * np.where(rng.random(800) < 0.15, -1, 1)
    problem = dual.c_svc(y, 1000.0)

    def solve(callback=None):
        gram = Gram(X, gamma=0.5, dtype="float64")
        return Batch(64).solve(problem, gram, stop=Stop(1e-6), callback=callback)

    fast, slow = solve(), solve(lambda record: time.sleep(0.001))
    assert fast.n_iter == slow.n_iter
    np.testing.assert_array_equal(fast.u, slow.u)


@pytest.mark.parametrize("C", [0.3, 100.0, 2000.0])
def test_without_a_minimum_a_run_ends_with_a_feasible_point(C):
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    model = SVC(loss="squared_hinge", kernel="sigmoid", gamma=0.5, C=C, max_time=60)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    assert model.status_ == "stalled"
    coef = model.dual_coef_
    assert np.isfinite(coef).all() and abs(coef.sum()) <= 1e-9 * np.abs(coef).sum()


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_the_ridge_of_a_matrix_near_the_largest_float32_is_finite():
    Q = np.diag(np.full(8, 1e38, np.float32))
    assert np.isfinite(NewtonFinish()._ridged(Q)).all()


def test_a_step_that_overflows_is_refused_before_lapack_complains(capfd):
    Q = np.diag(np.full(4, 1e-30, np.float32))
    with pytest.raises(np.linalg.LinAlgError), np.errstate(over="ignore", invalid="ignore"):
        finish._newton(Q, np.full(4, 1e20), np.ones((4, 1)), np.zeros(1), -np.ones(4), np.ones(4), 8)
    assert "DLASCL" not in "".join(capfd.readouterr())
