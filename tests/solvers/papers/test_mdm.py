"""MDM, plain and accelerated, and what it shares with accelerated SMO."""

from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

import qp
from maxmargin import dual, solvers
from maxmargin.gram.gram import Gram
from maxmargin.solvers import MDM, NPA, SMO, Batch, Gilbert, Stop

SOLVERS = {
    "mdm": MDM,
    "mdm-second-order": lambda: MDM(selection="second-order"),
    "mdm-accelerated": lambda: MDM(accelerate=True),
    "mdm-accelerated-second-order": lambda: MDM(accelerate=True, selection="second-order"),
    "mdm-accelerated-by-pair": lambda: MDM(accelerate=True, by_pair=True),
    "mdm-accelerated-as-published": lambda: MDM(accelerate="paper"),
    "mdm-accelerated-as-published-second-order": lambda: MDM(accelerate="paper", selection="second-order"),
    "npa": NPA,
    "gilbert": Gilbert,
    "smo-accelerated": lambda: SMO(accelerate=True),
    "smo-accelerated-first-order": lambda: SMO("first-order", accelerate=True),
}
ACCELERATED = {name: make for name, make in SOLVERS.items() if "accelerated" in name}


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


def over(name, values):
    return pytest.mark.parametrize(name, values.values(), ids=values.keys())


every_solver = over("make", SOLVERS)
every_accelerated = over("make", ACCELERATED)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_kernel = pytest.mark.parametrize("kernel", KERNELS)


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Compile everything once, outside of tests with a time limit."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    y = np.where(np.arange(12) % 3, 1.0, -1.0)
    for make in SOLVERS.values():
        for kind in KINDS:
            for dtype in ("float32", "float64"):
                gram = qp.gram_of(X, dtype=dtype)
                make().solve(KINDS[kind](y, ridge=0.1), gram, stop=Stop(1e-2, max_iter=500))


def gram_of(X, kernel, dtype="float64", **options):
    return Gram(X, kernel, gamma=0.5, dtype=dtype, n_jobs=1, **options)


def rows_of(count, n):
    """Bytes of a cache for `count` float64 rows."""
    return count * n * 8


def data(n, seed=0, d=4):
    rng = np.random.default_rng([n, seed])
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


def spread(problem, rng):
    """A feasible point with weight everywhere."""
    u = np.empty(problem.m)
    for k in range(problem.n_groups):
        mine = problem.group == k
        u[mine] = rng.dirichlet(np.ones(mine.sum()))
    return u


def stopping(make, tol):
    """The rule that a solver can reach in reasonable time: Gilbert is slow."""
    return Stop(max(tol, 1e-2), criterion="paper") if isinstance(make(), Gilbert) else Stop(tol)


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


# -- MDM is SMO ------------------------------------------------------------------------------

SAME = {
    "plain": (lambda: SMO("first-order", prefetch=0), MDM),
    "second-order": (SMO, SOLVERS["mdm-second-order"]),
    "accelerated": (SOLVERS["smo-accelerated-first-order"], SOLVERS["mdm-accelerated"]),
    "accelerated-second-order": (SOLVERS["smo-accelerated"], SOLVERS["mdm-accelerated-second-order"]),
}


def reference_step(problem, Q, u, second_order):
    """The next point, and whether rounding could have led elsewhere."""
    g, scores, pairs, sure = Q @ u, [], [], True
    for k in range(problem.n_groups):
        mine = np.flatnonzero(problem.group == k)
        low = mine[np.argsort(g[mine], kind="stable")]
        sure &= len(low) == 1 or g[low[1]] - g[low[0]] > 1e-8
        for j in mine[u[mine] > 0]:
            b, curvature = g[j] - g[low[0]], Q[low[0], low[0]] + Q[j, j] - 2 * Q[low[0], j]
            scores.append(b**2 / curvature if second_order and b > 0 else b)
            pairs.append((low[0], j))
    best = np.argsort(scores)[::-1]
    sure &= scores[best[0]] - scores[best[1]] > 1e-8 * scores[best[0]]
    i, j = pairs[best[0]]
    step = min(u[j], (g[j] - g[i]) / (Q[i, i] + Q[j, j] - 2 * Q[i, j])) if i != j else 0.0
    after = u.copy()
    after[[i, j]] += [step, -step]
    return after, bool(sure)


def points_of(solver, steps, problem, gram, warm, iterations):
    """Where a solver stands after every few iterations."""
    points = []
    in_short_slices(solver, steps, lambda state, work: points.append((state.u.copy(), state.g.copy())))
    solver.solve(problem, gram, warm=warm, stop=Stop(1e-10, max_iter=iterations))
    return points


def skip_other_selections(name, kind):
    if name == "second-order" and kind == "squared_all_distances":
        pytest.skip("The second order of SMO on more than two hulls is the staged selection.")


def changed(before, after):
    return np.flatnonzero(np.abs(after - before) > 1e-13)


@pytest.mark.parametrize("name", ["plain", "second-order"])
@every_kernel
@every_kind
def test_smo_and_mdm_choose_the_same_pairs_and_go_the_same_way(name, kernel, kind):
    skip_other_selections(name, kind)
    smo, mdm = SAME[name]
    compared = 0
    for seed in range(4):
        X, y = data(40, seed)
        problem, gram = KINDS[kind](y, ridge=0.05), gram_of(X, kernel)
        gram.ensure(np.arange(40))
        Q = qp.dense_q(problem, KERNELS[kernel](X))
        before = warm = spread(problem, np.random.default_rng(seed))
        ways = [points_of(make(), 1, problem, gram, warm, 60) for make in (smo, mdm)]
        for (one, g), (other, h) in zip(*ways, strict=True):
            expected, sure = reference_step(problem, Q, before, name == "second-order")
            if not sure:
                break  # a tie: rounding decides
            moved = changed(before, one)
            assert len(moved) == 2 and np.array_equal(moved, changed(before, other))
            assert np.abs(one - other).max() <= 1e-10
            assert np.abs(g - h).max() <= 1e-10
            assert np.abs(one - expected).max() <= 1e-10
            before = one
            compared += 1
    assert compared >= 60


@pytest.mark.parametrize("name", ["accelerated", "accelerated-second-order"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "squared_all_distances"])  # no cycles
def test_accelerated_smo_and_mdm_go_the_same_way(name, kind):
    smo, mdm = SAME[name]
    second_order, along = smo().selection == "second-order", 0
    for seed in range(12):
        X, y = data(30, seed, d=2)
        problem, gram = KINDS[kind](y, ridge=0.5), gram_of(X, "linear")
        gram.ensure(np.arange(30))
        Q = qp.dense_q(problem, X @ X.T)
        before = warm = spread(problem, np.random.default_rng(seed))
        # Two iterations at a time: two plain steps, or one along a cycle.
        ways = [points_of(make(), 2, problem, gram, warm, 80) for make in (smo, mdm)]
        for (one, g), (other, h) in zip(*ways, strict=True):
            halfway, sure = reference_step(problem, Q, before, second_order)
            expected, sure_again = reference_step(problem, Q, halfway, second_order)
            if not (sure and sure_again):
                break
            assert np.abs(one - other).max() <= 1e-10
            assert np.abs(g - h).max() <= 1e-10
            if np.abs(one - expected).max() > 1e-10:
                along += 1
                assert len(changed(before, one)) >= 3
                assert one @ Q @ one < halfway @ Q @ halfway
            before = one
    assert along >= 3


@pytest.mark.parametrize("name", ["plain", "second-order"])
@every_kernel
@every_kind
@pytest.mark.parametrize("n", [6, 300])
def test_smo_and_mdm_make_the_same_step_from_the_same_point(name, kernel, kind, n):
    skip_other_selections(name, kind)
    smo, mdm = SAME[name]
    X, y = data(n)
    problem, gram = KINDS[kind](y, ridge=0.05), gram_of(X, kernel)
    gram.ensure(np.arange(n))
    u, stop, steps = problem.start(), Stop(1e-10, max_iter=1), 0
    for _ in range(12):
        one = smo().solve(problem, gram, warm=u, stop=stop)
        other = mdm().solve(problem, gram, warm=u, stop=stop)
        assert one.status == other.status
        assert np.abs(one.u - other.u).max() <= 1e-12
        if one.status == "solved":
            break
        moved = changed(u, one.u)
        assert len(moved) == 2 and np.array_equal(moved, changed(u, other.u))
        u = one.u
        steps += 1
    assert steps >= (1 if n == 6 else 12)


# Joachims' choice of a working set: the feasible direction d of steepest descent with q non-zero entries.
DIRECTIONS = {
    "c_svc": (lambda y: dual.c_svc(y, C=0.7), lambda: SMO("first-order", prefetch=0)),
    "minimum_norm": (lambda y: dual.minimum_norm(y, ridge=0.1), MDM),
    "nearest_points": (lambda y: dual.nearest_points(y, ridge=0.1), MDM),
}


def direction_of_svmlight(problem, y, Q, u, q):
    """The variables of d: a mixed-integer program in alpha = y u, or alpha = u for hulls, as in his paper."""
    m = problem.m
    sign = y if problem.name == "c_svc" else np.ones(m)
    slope = sign * (Q @ u - problem.p)
    at_lower, at_upper = (u <= problem.lo, u >= problem.hi)
    falls, rises = np.where(sign > 0, at_lower, at_upper), np.where(sign > 0, at_upper, at_lower)
    least, most = np.where(falls, 0.0, -1.0), np.where(rises, 0.0, 1.0)
    sums = np.array([np.where(problem.group == k, sign, 0.0) for k in range(problem.n_groups)])
    none, one = np.zeros((problem.n_groups, m)), np.eye(m)
    found = milp(
        np.concatenate([slope, np.zeros(m)]),
        integrality=np.repeat([0, 1], m),
        bounds=Bounds(np.concatenate([least, np.zeros(m)]), np.concatenate([most, np.ones(m)])),
        constraints=[
            LinearConstraint(np.hstack([sums, none]), 0.0, 0.0),  # feasible
            LinearConstraint(np.hstack([one, -one]), -np.inf, 0.0),  # -z <= d <= z
            LinearConstraint(np.hstack([one, one]), 0.0, np.inf),
            LinearConstraint(np.concatenate([np.zeros(m), np.ones(m)])[None], 0.0, q),
        ],
    )
    assert found.success
    return np.flatnonzero(np.abs(found.x[:m]) > 0.5)


@pytest.mark.parametrize("kind", DIRECTIONS)
def test_svmlight_with_two_variables_moves_the_pair_of_smo_and_mdm(kind):
    make_problem, make_solver = DIRECTIONS[kind]
    compared = 0
    for seed in range(3):
        X, y = data(25, seed)
        problem, gram = make_problem(y), gram_of(X, "rbf")
        Q = qp.dense_q(problem, qp.rbf(X))
        before = warm = problem.start() if kind == "c_svc" else spread(problem, np.random.default_rng(seed))
        for after, _ in points_of(make_solver(), 1, problem, gram, warm, 25):
            g = Q @ before - problem.p
            may_rise, may_fall = before < problem.hi, before > problem.lo
            descents = sorted(
                g[j] - g[i]
                for k in range(problem.n_groups)
                for i in np.flatnonzero(may_rise & (problem.group == k))
                for j in np.flatnonzero(may_fall & (problem.group == k))
            )
            if descents[-1] - descents[-2] > 1e-5:  # no tie
                pair = direction_of_svmlight(problem, y, Q, before, 2)
                assert len(pair) == 2 and np.array_equal(pair, changed(before, after))
                compared += 1
            before = after
    assert compared >= 30


@every_kind
def test_first_step_is_the_one_of_the_paper(kind):
    X, y = data(30)
    problem = KINDS[kind](y, ridge=0.1)
    Q = qp.dense_q(problem, qp.rbf(X))
    warm = spread(problem, np.random.default_rng(1))
    d = Q @ warm
    lowers, uppers = [], []
    for k in range(problem.n_groups):
        mine = np.flatnonzero(problem.group == k)
        lowers.append(mine[np.argmin(d[mine])])
        uppers.append(mine[np.argmax(d[mine])])
    k = int(np.argmax(d[uppers] - d[lowers]))
    L, U = lowers[k], uppers[k]
    step = min(warm[U], (d[U] - d[L]) / (Q[L, L] + Q[U, U] - 2 * Q[L, U]))
    expected = warm.copy()
    expected[[L, U]] += [step, -step]
    found = MDM().solve(problem, qp.gram_of(X), warm=warm, stop=Stop(1e-10, max_iter=1))
    assert found.u == pytest.approx(expected, abs=1e-14)
    assert found.gradient == pytest.approx(Q @ expected, abs=1e-13)


def way_of_the_paper(problem, Q, u, steps):
    """Section 3 of the paper in NumPy, up to a tie: the points, and the kernel rows of each step."""
    points, rows, recent = [], [], []
    for _ in range(steps):
        d = Q @ u
        pairs = []
        for k in range(problem.n_groups):
            mine = np.flatnonzero(problem.group == k)
            low, high = mine[np.argsort(d[mine])], mine[u[mine] > 0]
            high = high[np.argsort(-d[high])]
            if min(np.diff(d[low[:2]]).min(initial=1), -np.diff(d[high[:2]]).max(initial=-1)) < 1e-8:
                return points, rows
            pairs.append((d[high[0]] - d[low[0]], low[0], high[0]))
        width, L, U = max(pairs)
        D = np.eye(problem.m)[L] - np.eye(problem.m)[U]
        again = [t for t, (pair, _, _) in enumerate(recent) if pair == (L, U)]
        V = np.sum([step * D for _, step, D in recent[again[-1] :]], axis=0) if again else np.zeros(problem.m)
        limits = [-u[h] / V[h] for h in np.flatnonzero(V < 0)] + [
            (1 - u[h]) / V[h] for h in np.flatnonzero(V > 0)
        ]
        if -d @ V > 0 and min(limits) > 0:
            step = min(-d @ V / (V @ Q @ V), *limits)
            u, recent = u + step * V, []
            rows.append(np.count_nonzero(V))
        else:
            step = min(u[U], width / (D @ Q @ D))
            u = u + step * D
            recent.append(((L, U), step, D))
            rows.append(2)
        u[np.abs(u) < 1e-15] = 0.0
        points.append(u)
    return points, rows


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "squared_all_distances"])  # few cycles
def test_published_acceleration_goes_the_way_of_the_paper(kind):
    compared = along = 0
    for seed in range(8):
        X, y = data(30, seed, d=2)
        problem, gram = KINDS[kind](y, ridge=0.02), gram_of(X, "linear")
        gram.ensure(np.arange(30))
        warm = spread(problem, np.random.default_rng(seed))
        points, rows = way_of_the_paper(problem, qp.dense_q(problem, X @ X.T), warm, 100)
        calls = []
        solver = in_short_slices(MDM(accelerate="paper"), 1)
        found = solver.solve(
            problem, gram, warm=warm, stop=Stop(1e-12, max_iter=len(points)),
            callback=lambda record, calls=calls: calls.append(record.n_kernel_calls),
        )  # fmt: skip
        assert found.u == pytest.approx(points[found.n_iter - 1], abs=1e-6)
        assert np.diff(calls).tolist() == [count * problem.m for count in rows[: found.n_iter]]
        compared += found.n_iter
        along += sum(count > 2 for count in rows[: found.n_iter])
    assert compared >= 150 and along >= 10


def test_second_order_takes_fewer_iterations():
    X, y = data(100)
    problem = dual.minimum_norm(y, ridge=0.1)
    first, second = (
        MDM(selection=s).solve(problem, qp.gram_of(X), stop=Stop(1e-6)) for s in ("margin", "second-order")
    )
    assert second.n_iter < first.n_iter


def test_unknown_selection_is_refused():
    with pytest.raises(ValueError, match="selection"):
        MDM(selection="first-order")


@pytest.mark.parametrize("selection", ["margin", "second-order"])
@pytest.mark.parametrize("accelerate", [False, True, "paper"])
def test_repr_says_how_it_steps(selection, accelerate):
    text = repr(MDM(accelerate, selection))
    assert selection in text and f"accelerate={accelerate!r}" in text


def test_unknown_acceleration_is_refused():
    with pytest.raises(ValueError, match=r"True, False or 'paper', got 'published'"):
        MDM(accelerate="published")


# -- figure 1 --------------------------------------------------------------------------------

# The face that is nearest to the origin lies at height 1, its point of least norm at (0, 1).
RHOMBUS = np.array([[-1.0, 1.0], [1.5, 1.0], [0.0, 1.02], [2.5, 1.02]])
FAR = 3


def along_the_rhombus(solver, tol=1e-9):
    problem = dual.one_class_l2(4, ridge=0.0)
    warm = np.zeros(4)
    warm[FAR] = 1.0
    return solver.solve(problem, gram_of(RHOMBUS, "linear"), warm=warm, stop=Stop(tol, max_iter=100_000))


def test_plain_steps_zigzag_in_the_rhombus_of_figure_1():
    solution = along_the_rhombus(MDM())
    assert solution.status == "solved"
    assert solution.n_iter > 50


@every_accelerated
def test_cycles_reach_the_face_of_the_rhombus_at_once(make):
    solution = along_the_rhombus(make())
    assert solution.status == "solved"
    assert solution.n_iter <= 10
    assert solution.u == pytest.approx([0.6, 0.4, 0.0, 0.0], abs=1e-8)
    assert solution.u[FAR] == 0.0


def test_a_single_cycle_step_removes_the_far_vertex_of_the_rhombus():
    # A enters, then B, and when A enters again V leads to the face; one more step leads to W*.
    problem, gram, warm = dual.one_class_l2(4, ridge=0.0), gram_of(RHOMBUS, "linear"), np.eye(4)[FAR]

    def after(solver, iterations):
        return solver.solve(problem, gram, warm=warm, stop=Stop(1e-9, max_iter=iterations)).u

    for iterations in (1, 2):
        assert after(MDM(accelerate=True), iterations) == pytest.approx(after(MDM(), iterations))
    assert after(MDM(), 2) == pytest.approx([0.713626, 0.002297, 0.0, 0.284078], abs=1e-5)
    assert after(MDM(), 4)[FAR] > 0.28
    assert after(MDM(accelerate=True), 4) == pytest.approx([0.60229, 0.39771, 0.0, 0.0], abs=1e-5)
    assert after(MDM(accelerate=True), 5) == pytest.approx([0.6, 0.4, 0.0, 0.0])


# -- wrong vectors go ------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in SOLVERS if name != "gilbert"])
@every_kind
def test_wrong_initial_vectors_are_removed(name, kind):
    X, y = data(40, d=2)
    X = X + 3.0 * (y[:, None] if kind != "one_class_l2" else 1.0)
    problem = KINDS[kind](y, ridge=0.01)
    Q = qp.dense_q(problem, X @ X.T)
    best, _ = qp.reference(problem, X @ X.T)
    margin = Q @ best
    warm, wrong = np.zeros(problem.m), []
    for k in range(problem.n_groups):  # the vertices furthest away
        mine = np.flatnonzero(problem.group == k)
        worst = mine[np.argsort(margin[mine])[-3:]]
        warm[worst] = 1.0 / 3.0
        wrong.extend(worst)
    assert (best[wrong] < 1e-9).all()
    solution = SOLVERS[name]().solve(problem, gram_of(X, "linear"), warm=warm, stop=Stop(1e-5))
    assert solution.status == "solved"
    assert (solution.u[wrong] == 0.0).all()
    assert solution.u == pytest.approx(best, abs=1e-3)


# -- the paper's rule ------------------------------------------------------------------------


def measure(problem, Q, u):
    """(d_U - d_L) / ||W||^2, from its definition."""
    d = Q @ u
    widths = []
    for k in range(problem.n_groups):
        mine = problem.group == k
        widths.append(d[mine & (u > 0)].max() - d[mine].min())
    return max(widths) / (u @ Q @ u)


@pytest.mark.parametrize("selection", ["margin", "second-order"])
@every_kernel
@every_kind
@pytest.mark.parametrize("gamma", [1e-2, 1e-5])
def test_training_stops_at_the_first_iteration_where_the_papers_rule_holds(selection, kernel, kind, gamma):
    X, y = data(40)
    problem = KINDS[kind](y, ridge=0.2)
    Q = qp.dense_q(problem, KERNELS[kernel](X))
    stop = Stop(gamma, criterion="paper")
    gram = gram_of(X, kernel)
    end = MDM(selection=selection).solve(problem, gram, stop=stop)
    assert end.status == "solved"
    assert end.n_iter > 10
    assert measure(problem, Q, end.u) <= gamma * (1 + 1e-9)
    # It is the loop that notices: ||W||^2 is current there, there is no checkpoint in between.
    assert [record.n_iter for record in end.trace] == [0, end.n_iter]
    budget = Stop(gamma, criterion="paper", max_iter=end.n_iter - 1)
    before = MDM(selection=selection).solve(problem, gram, stop=budget)
    assert before.status == "max_iter"
    assert measure(problem, Q, before.u) > gamma


@every_kind
@pytest.mark.parametrize("name", [name for name in SOLVERS if name.startswith("mdm") or name == "npa"])
def test_papers_rule_holds_at_the_end(kind, name):
    for seed in range(3):
        X, y = data(50, seed)
        problem = KINDS[kind](y, ridge=0.05)
        stop = Stop(1e-4, criterion="paper")
        solution = SOLVERS[name]().solve(problem, qp.gram_of(X), stop=stop)
        assert solution.status == "solved"
        assert measure(problem, qp.dense_q(problem, qp.rbf(X)), solution.u) <= 1e-4 * (1 + 1e-9)
        # W moved far: had ||W||^2 been left as it was, the loop would have come back too early.
        assert [record.n_iter for record in solution.trace] == [0, solution.n_iter]
        assert solution.objective < 0.8 * solution.trace[0].objective


def test_the_rule_of_accelerated_smo_is_two_tau_between_gradients():
    X, y = data(40)
    problem = dual.minimum_norm(y, ridge=0.1)
    found = SMO(accelerate=True).solve(problem, qp.gram_of(X), stop=Stop(1e-4, criterion="paper"))
    least, most = problem.extremes(found.u, found.gradient)
    assert found.status == "solved"
    assert (most - least).max() <= 2e-4


# -- the optimum -----------------------------------------------------------------------------


def optimum(problem, K, gram):
    """The optimal values of clarabel and of Batch, and Batch's gap."""
    batch = Batch().solve(problem, gram, stop=Stop(1e-7))
    assert batch.status == "solved"
    Q = qp.dense_q(problem, K)
    return qp.reference(problem, K)[1], qp.objective(Q, problem.p, batch.u), batch.gap


def assert_optimal(make, problem, K, gram, known, tol=1e-6, noise=0.0):
    """Feasible, solved, certified, and as good as clarabel's and Batch's point."""
    best, batch, batch_gap = known
    Q = qp.dense_q(problem, K)
    unit = np.diag(Q).max()
    stop = stopping(make, tol)
    solution = make().solve(problem, gram, stop=stop)
    assert solution.status == "solved"
    qp.assert_feasible(problem, solution.u)
    value = qp.objective(Q, problem.p, solution.u)
    assert solution.objective == pytest.approx(value, abs=1e-12 * unit + noise)
    assert np.abs(solution.gradient - Q @ solution.u).max() <= 1e-12 * unit + noise
    rounding = 1e-13 * unit
    assert value - best <= solution.gap + rounding
    assert value - batch <= solution.gap + rounding
    assert batch - value <= batch_gap + rounding
    # The rule implies a gap, which is small if the rule is strict.
    assert solution.gap <= problem.n_groups * stop.tol * 2 * value + rounding + noise
    return solution


@lru_cache
def random_case(kind, seed):
    problem, X, K = qp.random_problem(kind, seed)
    return problem, X, K, optimum(problem, K, qp.gram_of(X))


@lru_cache
def ridged_case(kind, n, seed, rows=None, ridge=0.1):
    X, y = data(n, seed)
    rows = None if rows is None else np.array(rows)
    y = y if rows is None else np.where(np.arange(len(rows)) % 2, 1.0, -1.0)
    problem = KINDS[kind](y, ridge=ridge, rows=rows)
    return problem, X, qp.rbf(X), optimum(problem, qp.rbf(X), qp.gram_of(X))


@every_solver
@every_kind
def test_reaches_the_optimum_of_random_problems(make, kind):
    for seed in range(6):
        problem, X, K, known = random_case(kind, seed)
        assert_optimal(make, problem, K, qp.gram_of(X), known, tol=1e-7)


def _duplicates():
    X, y = data(12, 1, d=2)
    return np.tile(X, (3, 1)), np.tile(y, 3), 0.3


def _opposite_twins():
    X, y = data(12, 2, d=2)
    return np.concatenate([X, X]), np.concatenate([y, -y]), 0.3


def _huge():
    X, y = data(20, 3, d=3)
    return 1e6 * (X + 3.0 * y[:, None]), y, 1e9


def _tiny_ridge():
    X, y = data(20, 4, d=3)
    return X + 3.0 * y[:, None], y, 1e-8


def _separable():
    X, y = data(20, 5, d=3)
    return X + 3.0 * y[:, None], y, 0.0


def _rank_one():
    X, y = data(20, 6, d=1)
    return X + 3.0 * y[:, None], y, 0.05


def _more_columns_than_points():
    X, y = data(15, 6, d=40)
    return X, y, 0.0


def _two_points():
    return np.array([[1.0, 2.0], [-0.5, 0.3]]), np.array([1.0, -1.0]), 0.1


def _one_against_all():
    X, _ = data(20, 7, d=2)
    return X, np.where(np.arange(20) == 7, 1.0, -1.0), 0.3


NASTY = {
    "duplicates": _duplicates,
    "opposite-twins": _opposite_twins,
    "scale-1e6": _huge,
    "ridge-1e-8": _tiny_ridge,
    "separable-without-ridge": _separable,
    "rank-one": _rank_one,
    "more-columns-than-points": _more_columns_than_points,
    "two-points": _two_points,
    "one-against-all": _one_against_all,
}


@lru_cache
def nasty_case(case, kind, kernel):
    X, y, ridge = NASTY[case]()
    if kind == "one_class_l2" and kernel == "linear":
        X = X * y[:, None]  # all on one side: the origin must not lie in the hull
    problem, K = KINDS[kind](y, ridge=ridge), KERNELS[kernel](X)
    return problem, X, K, optimum(problem, K, gram_of(X, kernel))


@every_solver
@every_kind
@every_kernel
@pytest.mark.parametrize("case", NASTY)
def test_reaches_the_optimum_of_nasty_problems(make, kind, kernel, case):
    problem, X, K, known = nasty_case(case, kind, kernel)
    assert_optimal(make, problem, K, gram_of(X, kernel), known)


@every_solver
@every_kind
def test_float32_rows_reach_the_tolerance_in_float64(make, kind):
    for seed in range(3):
        problem, X, K, known = ridged_case(kind, 40, seed)
        gram = qp.gram_of(X, dtype="float32")
        solution = assert_optimal(make, problem, K, gram, known, tol=1e-4, noise=1e-6)
        if not isinstance(make(), Gilbert):
            exact = qp.dense_q(problem, K) @ solution.u
            assert problem.violation(solution.u, exact) <= 1e-4 * (1 + 1e-6)


@every_solver
@every_kind
@pytest.mark.parametrize("cached", [True, False], ids=["shared-rows", "own-cache"])
def test_subset_through_a_view_is_solved(make, kind, cached):
    problem, X, K, known = ridged_case(kind, 25, 0)
    others = np.random.default_rng(2).normal(size=(15, X.shape[1]))
    index = np.random.default_rng(3).permutation(40)[:25]
    more = np.empty((40, X.shape[1]))
    more[index], more[np.setdiff1d(np.arange(40), index)] = X, others
    options = {} if cached else {"cache_bytes": rows_of(39, 40)}
    view = qp.gram_of(more, **options).view(index)
    assert_optimal(make, problem, K, view, known)


ORDERS = {
    "permuted": np.random.default_rng(4).permutation(30),
    "some": np.random.default_rng(5).permutation(30)[:17],
    "repeated": np.random.default_rng(6).integers(30, size=25),
    "alternating": np.arange(30),
}


@every_solver
@every_kind
@over("rows", ORDERS)
def test_rows_may_come_in_any_order(make, kind, rows):
    problem, X, K, known = ridged_case(kind, 30, 3, tuple(rows))
    assert_optimal(make, problem, K, qp.gram_of(X), known)


@every_solver
@pytest.mark.parametrize("kind", ["minimum_norm", "nearest_points"])
def test_order_of_the_variables_does_not_matter(make, kind):
    X, y = data(40, 5)
    shuffled = np.random.default_rng(5).permutation(40)
    stop = stopping(make, 1e-8)
    one = make().solve(KINDS[kind](y, ridge=0.1), qp.gram_of(X), stop=stop)
    mixed = KINDS[kind](y[shuffled], ridge=0.1, rows=shuffled)
    other = make().solve(mixed, qp.gram_of(X), stop=stop)
    assert one.status == other.status == "solved"
    assert abs(one.objective - other.objective) <= max(one.gap, other.gap) + 1e-13
    if stop.tol == 1e-8:
        assert other.u == pytest.approx(one.u[shuffled], abs=1e-6)


@every_solver
@pytest.mark.parametrize("kind", ["minimum_norm", "nearest_points"])
@every_kernel
def test_hulls_that_touch_are_infeasible(make, kind, kernel):
    X, y, _ = _opposite_twins()
    solution = make().solve(KINDS[kind](y), gram_of(X, kernel), stop=Stop(1e-3))
    assert solution.status == Batch().solve(KINDS[kind](y), gram_of(X, kernel)).status == "infeasible"
    qp.assert_feasible(KINDS[kind](y), solution.u)


@every_solver
@every_kind
def test_gap_criterion_reaches_the_relative_gap(make, kind):
    X, y = data(30, 1)
    problem = KINDS[kind](y, ridge=0.5)
    tol = 1e-2 if isinstance(make(), Gilbert) else 1e-6
    solution = make().solve(problem, qp.gram_of(X), stop=Stop(tol, criterion="gap"))
    assert solution.status == "solved"
    exact = qp.dense_q(problem, qp.rbf(X)) @ solution.u
    assert problem.relative_gap(solution.u, exact) <= tol * (1 + 1e-6)


@every_solver
@every_kind
def test_warm_start_at_the_optimum_stays_there(make, kind):
    X, y = data(30, 2)
    problem = KINDS[kind](y, ridge=0.1)
    best, _ = qp.reference(problem, qp.rbf(X))
    solution = make().solve(problem, qp.gram_of(X), warm=best, stop=Stop(1e-4))
    assert solution.status == "solved" and solution.n_iter == 0
    assert solution.u == pytest.approx(best, abs=1e-12)


# -- small caches ----------------------------------------------------------------------------


class Circling(AssertionError):
    pass


def small_cache(X, rows, most, kernel="rbf"):
    """A cache of few rows that notices when rows are asked for without end."""
    gram = gram_of(X, kernel, cache_bytes=rows_of(rows, len(X)))
    assert gram.capacity == rows
    ensure, asked = gram.ensure, []

    def counted(*args, **options):
        asked.append(None)
        if len(asked) > most:
            raise Circling(f"{most} requests for rows, and no end")
        ensure(*args, **options)

    gram.ensure = counted
    return gram


def rows_needed(solver, problem):
    """Rows without which no step can be made."""
    if isinstance(solver, Gilbert):
        return max(2, problem.n_groups)
    second_order = getattr(solver, "selection", "margin") == "second-order"
    return 1 + problem.n_groups if second_order else 2  # the best of each hull, and U


def requests(make, problem, X, stop, kernel="rbf"):
    """Generously, the requests for rows of a run whose cache holds next to nothing."""
    return 1000 + 10 * make().solve(problem, gram_of(X, kernel), stop=stop).n_iter


@every_solver
@every_kind
@pytest.mark.parametrize("rows", [2, 3, 4, 5])
@pytest.mark.timeout(20, func_only=True)
def test_cache_of_a_few_rows_gives_the_same_solution_or_says_what_it_needs(make, kind, rows):
    X, y = data(16, d=2)
    problem = KINDS[kind](y, ridge=0.3)
    _, best = qp.reference(problem, qp.rbf(X))
    stop = stopping(make, 1e-4)
    most = requests(make, problem, X, stop)
    if rows < rows_needed(make(), problem):
        with pytest.raises(ValueError, match=r"cache of \d+ bytes cannot hold .* at least \d+ bytes"):
            make().solve(problem, small_cache(X, rows, most), stop=stop)
        return
    solution = make().solve(problem, small_cache(X, rows, most), stop=stop)
    assert solution.status == "solved"
    assert solution.objective - best <= solution.gap + 1e-14
    assert solution.gap <= 4 * stop.tol * best


@every_accelerated
@every_kind
@pytest.mark.parametrize("rows", [6, 12, 16, 20, 28, 36])
@pytest.mark.timeout(20, func_only=True)
def test_cycles_that_barely_fit_the_cache_come_to_an_end(make, kind, rows):
    X, y = data(40, d=3)
    problem = KINDS[kind](y, ridge=0.01)
    stop = Stop(1e-4)
    whole = make().solve(problem, qp.gram_of(X), stop=stop)
    solution = make().solve(problem, small_cache(X, rows, 1000 + 10 * whole.n_iter), stop=stop)
    assert solution.status == "solved"
    assert abs(solution.objective - whole.objective) <= max(solution.gap, whole.gap)


@pytest.mark.parametrize("selection", ["first-order", "second-order"])
@pytest.mark.parametrize("rows", [12, 20, 28])
@pytest.mark.timeout(20, func_only=True)
def test_cycles_of_other_problems_that_barely_fit_the_cache_come_to_an_end(selection, rows):
    for seed in range(4):
        X, y = data(40, seed, d=3)
        problem, stop = dual.c_svc(y, C=10.0), Stop(1e-6)
        solver = SMO(selection, accelerate=True)
        whole = solver.solve(problem, qp.gram_of(X), stop=stop)
        solution = solver.solve(problem, small_cache(X, rows, 1000 + 10 * whole.n_iter), stop=stop)
        assert solution.status == "solved"
        assert abs(solution.objective - whole.objective) <= max(solution.gap, whole.gap)


@every_solver
@every_kind
@pytest.mark.parametrize("rows", [3, 8, 20, 39])
@pytest.mark.timeout(20, func_only=True)
def test_gradient_is_right_whatever_the_cache_holds(make, kind, rows):
    for seed in range(6):
        X, y = data(40, seed, d=3)
        problem = KINDS[kind](y, ridge=0.1)
        rows = max(rows, rows_needed(make(), problem))
        Q, errors = qp.dense_q(problem, qp.rbf(X)), []
        warm = spread(problem, np.random.default_rng(seed))
        solver = in_short_slices(
            make(),
            3,
            lambda state, work, Q=Q, errors=errors: errors.append(np.abs(state.g - Q @ state.u).max()),
        )
        solver.solve(problem, small_cache(X, rows, 2000), warm=warm, stop=Stop(1e-10, max_iter=12))
        assert len(errors) >= 4 and max(errors) <= 1e-13


@every_solver
@every_kind
@pytest.mark.timeout(10, func_only=True)
def test_cache_that_is_too_small_is_refused_in_clear_words(make, kind):
    X, y = data(40)
    problem = KINDS[kind](y, ridge=0.1)
    enough = problem.n_groups if isinstance(make(), Gilbert) else 2
    for rows in range(enough):
        gram = qp.gram_of(X, cache_bytes=rows_of(rows, 40))
        with pytest.raises(ValueError, match=r"cache of \d+ bytes cannot hold .* at least \d+ bytes"):
            make().solve(problem, gram)


@every_solver
def test_two_points_need_no_more_than_their_two_rows(make):
    X, y, ridge = _two_points()
    problem = dual.nearest_points(y, ridge=ridge)
    solution = make().solve(problem, qp.gram_of(X, cache_bytes=rows_of(2, 2)))
    assert solution.status == "solved"
    assert solution.u == pytest.approx([1.0, 1.0])


# -- what acceleration costs -----------------------------------------------------------------


@every_accelerated
@every_kind
@every_kernel
def test_every_checkpoint_is_feasible_and_none_increases_the_objective(make, kind, kernel):
    for seed in range(2):
        X, y = data(40, seed)
        problem = KINDS[kind](y, ridge=0.02)
        Q = qp.dense_q(problem, KERNELS[kernel](X))
        records, errors = [], []

        def look(state, work, problem=problem, Q=Q, errors=errors):
            qp.assert_feasible(problem, state.u, slack=1e-13)
            errors.append(np.abs(state.g - Q @ state.u).max())

        solver = in_short_slices(make(), 3, look)
        stop = Stop(1e-6, max_iter=3000)
        solver.solve(problem, gram_of(X, kernel), stop=stop, callback=records.append)
        objectives = np.array([record.objective for record in records])
        assert len(records) > 20
        assert (np.diff(objectives) <= 1e-14 * np.diag(Q).max()).all()
        assert max(errors) <= 1e-12 * np.diag(Q).max()
        assert np.array_equal(
            np.diff([record.n_iter for record in records]) <= 3, [True] * (len(records) - 1)
        )


@every_solver
@every_kind
def test_budget_of_iterations_is_never_exceeded(make, kind):
    X, y = data(40, d=2)
    problem = KINDS[kind](y, ridge=0.02)
    gram = gram_of(X, "linear")
    objectives = []
    for budget in [*range(13), 50, 51]:
        solution = make().solve(problem, gram, stop=Stop(1e-12, max_iter=budget))
        assert solution.status == "max_iter"
        assert solution.n_iter == budget
        qp.assert_feasible(problem, solution.u)
        objectives.append(solution.objective)
    assert objectives[-1] < objectives[0]


@pytest.mark.parametrize(("selection", "rows"), [("margin", 2), ("second-order", 3)])
@every_kind
def test_plain_steps_use_two_or_three_rows_each(selection, rows, kind):
    X, y = data(40)
    problem = KINDS[kind](y, ridge=0.1)
    start = qp.gram_of(X)
    problem.gradient(problem.start(), start)
    solution = MDM(selection=selection).solve(problem, qp.gram_of(X), stop=Stop(1e-6))
    assert solution.n_iter > 50
    assert solution.n_kernel_calls - start.n_calls == rows * problem.m * solution.n_iter


@pytest.mark.parametrize("selection", ["margin", "second-order"])
@every_kind
def test_step_along_a_cycle_uses_one_row_per_member(selection, kind):
    X, y = data(40, d=3)
    problem = KINDS[kind](y, ridge=0.02)
    solver, gram = MDM(accelerate=True, selection=selection), gram_of(X, "linear")
    extra = 1 if selection == "second-order" else 0  # the row of L, for the selection
    points, began, calls = [problem.start()], [0], []

    def look(state, work):
        points.append(state.u.copy())
        # The first update that counts: a step along a cycle makes all before it stale.
        began.append(int(work.cycles.clock[1]))

    # Two iterations at a time: two plain steps, or one along a cycle.
    in_short_slices(solver, 2, look).solve(
        problem, gram, stop=Stop(1e-4), callback=lambda record: calls.append(record.n_kernel_calls)
    )
    used, along = np.diff(calls), np.flatnonzero(np.diff(began) > 0)
    assert len(along) >= 5
    for t in along:
        members = np.count_nonzero(points[t] != points[t + 1])
        whole = (members + extra) * problem.m
        # Whether the step pays is found out with two more values per member.
        assert members > 2 and whole <= used[t] <= whole + 2 * members


@pytest.mark.parametrize("selection", ["margin", "second-order"])
@every_kind
@every_kernel
def test_acceleration_uses_at_most_two_percent_more_kernel_values(selection, kind, kernel):
    total = {False: 0, True: 0}
    for seed in range(4):
        X, y = data(200, seed)
        for ridge in (0.1, 1.0):
            problem = KINDS[kind](y, ridge=ridge)
            ratio = 1.0
            for accelerate in total:
                solver, gram = MDM(accelerate, selection), gram_of(X, kernel)
                solution = solver.solve(problem, gram, stop=Stop(1e-3))
                assert solution.status == "solved"
                total[accelerate] += solution.n_kernel_calls
                ratio = solution.n_kernel_calls / ratio
            assert ratio <= 1.1
    assert total[True] <= 1.02 * total[False]


@pytest.mark.parametrize("selection", ["margin", "second-order"])
@every_kind
def test_acceleration_pays_where_plain_steps_zigzag(selection, kind):
    X, y = data(60, d=3)
    problem = KINDS[kind](y, ridge=1e-3)
    plain, accelerated = (
        MDM(accelerate, selection).solve(problem, gram_of(X, "linear"), stop=Stop(1e-3))
        for accelerate in (False, True)
    )
    assert plain.status == accelerated.status == "solved"
    assert accelerated.n_kernel_calls < 0.5 * plain.n_kernel_calls
    assert accelerated.n_iter < 0.5 * plain.n_iter


# -- other problems --------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["first-order", "second-order"])
@pytest.mark.parametrize("kind", [kind for kind in qp.KINDS if kind not in KINDS])
def test_accelerated_smo_reaches_the_optimum_of_every_kind(selection, kind):
    for seed in range(6):
        problem, X, K, _, best = qp.solved_problem(kind, seed)
        solution = SMO(selection, accelerate=True).solve(problem, qp.gram_of(X), stop=Stop(1e-8))
        assert solution.status == "solved"
        qp.assert_feasible(problem, solution.u)
        value = qp.objective(qp.dense_q(problem, K), problem.p, solution.u)
        assert value == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert solution.objective == pytest.approx(value, rel=1e-9, abs=1e-12)


MACHINES = {
    "c_svc": lambda y: dual.c_svc(y, C=100.0),
    "squared_c_svc": lambda y: dual.squared_c_svc(y, ridge=1e-2),
}


@pytest.mark.parametrize("selection", ["first-order", "second-order"])
@over("machine", MACHINES)
@every_kernel
def test_accelerated_smo_reaches_the_optimum_of_smo_in_fewer_iterations(selection, machine, kernel):
    X, y = data(80, d=3)
    problem = machine(y)
    plain, accelerated = (
        SMO(selection, accelerate=accelerate).solve(problem, gram_of(X, kernel), stop=Stop(1e-6))
        for accelerate in (False, True)
    )
    assert plain.status == accelerated.status == "solved"
    qp.assert_feasible(problem, accelerated.u)
    assert accelerated.objective == pytest.approx(plain.objective, rel=1e-9)
    assert accelerated.offset == pytest.approx(plain.offset, abs=1e-4)
    Q = qp.dense_q(problem, KERNELS[kernel](X))
    assert problem.violation(accelerated.u, Q @ accelerated.u - problem.p) <= 1e-6 * (1 + 1e-3)
    assert accelerated.n_iter < plain.n_iter


@pytest.mark.parametrize("kind", [kind for kind in qp.KINDS if kind.split("-")[0] not in KINDS])
def test_other_problems_are_refused_with_the_names_of_those_who_can(kind):
    problem, X, _ = qp.random_problem(kind, 0)
    for make in (MDM, NPA, Gilbert):
        assert not make().accepts(problem)
        with pytest.raises(TypeError, match=f"{make().__class__.__name__} cannot take.* smo") as caught:
            make().solve(problem, qp.gram_of(X))
        offered = str(caught.value).split(":")[1]
        assert not any(name in offered for name in ("mdm", "npa", "gilbert"))


def test_c_svc_is_refused_with_the_names_of_all_solvers_that_take_it():
    X, y = data(10)
    problem = dual.c_svc(y)
    with pytest.raises(TypeError, match="'c_svc'") as caught:
        MDM(accelerate=True).solve(problem, qp.gram_of(X))
    assert all(name in str(caught.value) for name in solvers.accepting(problem))
    assert {"auto", "batch", "smo", "smo-first-order"} <= set(solvers.accepting(problem))


@every_kind
def test_hull_problems_are_accepted_by_name(kind):
    _, y = data(10)
    known = {
        "mdm",
        "mdm-accelerated",
        "mdm-second-order",
        "npa",
        "gilbert",
        "smo",
        "smo-accelerated",
        "batch",
    }
    assert known <= set(solvers.accepting(KINDS[kind](y, ridge=0.1)))
    assert solvers.get("mdm-accelerated").accelerate and not solvers.get("mdm").accelerate
    assert solvers.get("mdm-second-order").selection == "second-order"
    assert not solvers.get("mdm-second-order").accelerate
    assert solvers.get("smo-accelerated").accelerate and not solvers.get("smo").accelerate
    assert solvers.get("smo-accelerated").selection == "second-order"
