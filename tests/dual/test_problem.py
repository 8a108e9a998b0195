from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import qp
from maxmargin import _costs as costs
from maxmargin import dual
from maxmargin.dual._extremes import missing
from maxmargin.dual._group import fill_evenly, quantile
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Stop

SEEDS = range(6)
SIGNS = [1, -1, 1, -1, 1]
every_kind = pytest.mark.parametrize("kind", qp.KINDS)


def feasible_point(problem, rng, scale=1.0):
    """A random feasible point, some of its variables at a bound."""
    raw = scale * rng.normal(size=problem.m) * rng.integers(0, 2, size=problem.m)
    return problem.repair(raw)


def gradient(problem, K, u):
    return qp.dense_q(problem, K) @ u - problem.p


# -- feasible points -------------------------------------------------------------------------


@every_kind
def test_start_is_feasible(kind):
    for seed in SEEDS:
        problem, _, _ = qp.random_problem(kind, seed)
        qp.assert_feasible(problem, problem.start())


def test_start_of_a_sum_zero_problem_is_zero():
    assert not dual.c_svc(SIGNS).start().any()


def test_start_has_no_more_non_zeros_than_the_bounds_ask_for():
    assert np.count_nonzero(dual.one_class(64, nu=0.125).start()) == 8
    assert np.count_nonzero(dual.nearest_points(SIGNS).start()) == 2


def test_start_fills_bounds_that_leave_only_one_point():
    assert dual.one_class(7, nu=1.0).start() == pytest.approx(np.full(7, 1 / 7))


@every_kind
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_repair_makes_any_point_feasible(kind, scale):
    rng = np.random.default_rng(0)
    for seed in SEEDS:
        problem, _, _ = qp.random_problem(kind, seed)
        qp.assert_feasible(problem, problem.repair(scale * rng.normal(size=problem.m)))
        qp.assert_feasible(problem, problem.repair(np.full(problem.m, scale)))
        qp.assert_feasible(problem, problem.repair(np.full(problem.m, -scale)))
        qp.assert_feasible(problem, problem.repair(np.zeros(problem.m)))


@every_kind
def test_repair_keeps_a_feasible_point(kind):
    rng = np.random.default_rng(1)
    for seed in SEEDS:
        problem, _, _ = qp.random_problem(kind, seed)
        u = feasible_point(problem, rng)
        again = problem.repair(u)
        assert again == pytest.approx(u, rel=1e-12, abs=1e-14)
        assert ((again == 0) == (u == 0)).all()


def test_repair_returns_an_exactly_feasible_point_bit_by_bit():
    problem = dual.c_svc(SIGNS, C=2.0)
    u = np.array([0.25, -0.5, 2.0, -2.0, 0.25])
    assert np.array_equal(problem.repair(u), u)


@every_kind
def test_repair_does_not_modify_its_argument(kind):
    problem, _, _ = qp.random_problem(kind, 0)
    u = np.random.default_rng(2).normal(size=problem.m)
    before = u.copy()
    out = problem.repair(u)
    out += 1.0
    assert np.array_equal(u, before)


@pytest.mark.parametrize(
    ("problem", "u"),
    [
        (dual.c_svc([1, 1, -1, -1], C=10.0), [1.0, 0.0, -0.5, 0.0]),
        (dual.c_svc([1, 1, -1, -1], C=10.0), [0.5, 0.0, -9.0, 0.0]),
        (dual.squared_c_svc([1, 1, -1, -1], ridge=0.1), [3.0, 0.0, -1.0, 0.0]),
        (dual.one_class(8, nu=0.5), [0.2, 0.2, 0.2, 0.1, 0.2, 0.0, 0.0, 0.0]),
        (dual.one_class_l2(4, ridge=0.1), [0.2, 0.0, 0.1, 0.0]),
        (dual.nearest_points([1, 1, -1, -1]), [4.0, 0.0, 0.1, 0.0]),
        (dual.reduced_hulls([1, 1, 1, -1, -1, -1], mu=0.75), [0.75, 0.75, 0.0, 0.1, 0.5, 0.0]),
    ],
)
def test_repair_keeps_zeros_that_need_not_move(problem, u):
    u = np.array(u)
    out = problem.repair(u)
    qp.assert_feasible(problem, out)
    assert not out[u == 0].any()


def test_repair_moves_zeros_when_the_rest_has_no_room():
    problem = dual.one_class(4, nu=0.75)
    out = problem.repair([1.0, 0.0, 0.0, 0.0])
    qp.assert_feasible(problem, out)
    assert out[0] == problem.hi[0]


@pytest.mark.parametrize("shape", [(4,), (6,), (5, 1), ()])
def test_repair_refuses_a_wrong_shape(shape):
    with pytest.raises(ValueError, match=r"shape \(5,\)"):
        dual.c_svc(SIGNS).repair(np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_repair_refuses_numbers_that_are_not_finite(bad):
    with pytest.raises(ValueError, match="NaN or infinity"):
        dual.c_svc(SIGNS).repair([0.0, bad, 0.0, 0.0, 0.0])


@given(kind=st.sampled_from(qp.KINDS), seed=st.integers(0, 10**6), exponent=st.integers(-12, 12))
@settings(max_examples=200)
def test_repair_is_feasible_whatever_it_is_given(kind, seed, exponent):
    problem, _, _ = qp.random_problem(kind, seed)
    rng = np.random.default_rng(seed)
    out = problem.repair(10.0**exponent * rng.standard_cauchy(problem.m))
    qp.assert_feasible(problem, out)


# -- the matrix ------------------------------------------------------------------------------


def mapped_problem(kind, seed):
    """A problem on some rows, out of order, of a larger Gram."""
    rng = np.random.default_rng([seed, 77])
    n = int(rng.integers(3, 10))
    X = rng.normal(size=(n + 4, 2))
    rows = rng.permutation(n + 4)[:n]
    return qp.MAKERS[kind](rng, n, rows), X, qp.rbf(X)


@every_kind
@pytest.mark.parametrize("make", [qp.random_problem, mapped_problem])
@pytest.mark.parametrize("options", [{}, {"cache_bytes": 0}])
def test_gradient_is_the_dense_formula(kind, make, options):
    rng = np.random.default_rng(3)
    for seed in SEEDS:
        problem, X, K = make(kind, seed)
        u = feasible_point(problem, rng)
        got = problem.gradient(u, qp.gram_of(X, **options))
        assert got == pytest.approx(gradient(problem, K, u), rel=1e-10, abs=1e-10)


@every_kind
@pytest.mark.parametrize("make", [qp.random_problem, mapped_problem])
def test_update_equals_recomputation(kind, make):
    rng = np.random.default_rng(4)
    for seed in SEEDS:
        problem, X, K = make(kind, seed)
        gram, u = qp.gram_of(X), feasible_point(problem, rng)
        g = problem.gradient(u, gram)
        for size in (0, 1, problem.m // 2, problem.m):
            idx = rng.permutation(problem.m)[:size]
            delta = rng.normal(size=size)
            u[idx] += delta
            problem.update(g, idx, delta, gram)
            assert g == pytest.approx(gradient(problem, K, u), rel=1e-10, abs=1e-10)


def test_update_of_a_problem_on_the_first_rows_of_a_larger_gram_stays_inside_its_gradient():
    X = np.random.default_rng(5).normal(size=(8, 2))
    problem = dual.c_svc(SIGNS, rows=np.arange(5))
    buffer = np.full(64, 7.0)  # the gradient's neighbours in memory
    g = buffer[:5]
    g[:] = -problem.p
    u = np.array([0.5, -0.5, 0.25, -0.25, 0.0])
    problem.update(g, np.arange(5), u, qp.gram_of(X))
    assert g == pytest.approx(gradient(problem, qp.rbf(X), u))
    assert (buffer[5:] == 7.0).all()


@every_kind
@pytest.mark.parametrize("make", [qp.random_problem, mapped_problem])
def test_block_is_a_block_of_the_dense_matrix(kind, make):
    rng = np.random.default_rng(6)
    for seed in SEEDS:
        problem, X, K = make(kind, seed)
        gram, Q = qp.gram_of(X), qp.dense_q(problem, K)
        one = rng.permutation(problem.m)[: rng.integers(1, problem.m + 1)]
        other = rng.permutation(problem.m)[: rng.integers(1, problem.m + 1)]
        assert problem.block(one, other, gram) == pytest.approx(Q[np.ix_(one, other)], rel=1e-10, abs=1e-10)
        assert problem.diag(gram) == pytest.approx(np.diag(Q))


def test_block_of_float32_rows_has_the_exact_diagonal():
    X = 100 + np.random.default_rng(7).normal(size=(6, 3))
    gram = Gram(X, "linear", dtype="float32")
    everything = np.arange(6)
    problem = dual.squared_c_svc([1, -1, 1, -1, 1, -1], ridge=0.1)
    block = problem.block(everything, everything[::-1], gram)
    assert block.dtype == np.float32
    assert np.array_equal(np.diag(block[:, ::-1]), problem.diag(gram).astype(np.float32))


@every_kind
@pytest.mark.parametrize("make", [qp.random_problem, mapped_problem])
def test_exact_gradient_of_some_variables_is_float64_whatever_the_rows(kind, make):
    rng = np.random.default_rng(8)
    for seed in SEEDS:
        problem, X, K = make(kind, seed)
        u = feasible_point(problem, rng)
        some = rng.permutation(problem.m)[: rng.integers(1, problem.m + 1)]
        got = problem.exact_gradient(u, some, qp.gram_of(X, dtype="float32"))
        assert got == pytest.approx(gradient(problem, K, u)[some], rel=1e-12, abs=1e-12)


@every_kind
def test_objective_is_the_dense_formula(kind):
    rng = np.random.default_rng(9)
    for seed in SEEDS:
        problem, _, K = qp.random_problem(kind, seed)
        u, Q = feasible_point(problem, rng), qp.dense_q(problem, K)
        g = gradient(problem, K, u)
        assert problem.objective(u, g) == pytest.approx(qp.objective(Q, problem.p, u), rel=1e-10, abs=1e-10)
        assert problem.square(u, g) == pytest.approx(u @ Q @ u, rel=1e-10, abs=1e-10)


# -- optimality ------------------------------------------------------------------------------


@every_kind
def test_violation_vanishes_at_the_optimum(kind):
    for seed in SEEDS:
        problem, _, K, u, _ = qp.solved_problem(kind, seed)
        assert problem.violation(u, gradient(problem, K, u)) <= 1e-8


@every_kind
def test_violation_is_the_largest_over_all_pairs_in_libsvm_scaling(kind):
    rng = np.random.default_rng(10)
    for seed in SEEDS:
        problem, _, K = qp.random_problem(kind, seed)
        u, Q = feasible_point(problem, rng), qp.dense_q(problem, K)
        scale = problem.scale / (u @ Q @ u) if problem.self_scaled else problem.scale
        expected = scale * qp.kkt_violation(problem, Q, u)
        assert problem.violation(u, Q @ u - problem.p) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@every_kind
def test_violation_is_positive_where_the_value_is_not_the_least(kind):
    rng = np.random.default_rng(11)
    apart = 0
    for seed in range(20):
        problem, _, K, _, f = qp.solved_problem(kind, seed)
        u = feasible_point(problem, rng)
        if qp.objective(qp.dense_q(problem, K), problem.p, u) > f + 1e-6:
            apart += 1
            assert problem.violation(u, gradient(problem, K, u)) > 1e-9
    assert apart >= 5


@pytest.mark.parametrize(
    ("problem", "scale"),
    [
        (dual.c_svc(SIGNS, C=3.0), 1.0),
        (dual.one_class(10, nu=0.4), 4.0),
        (dual.one_class(4, nu=0.5, weights=[1.0, 2.0, 3.0, 4.0]), 5.0),
        (dual.reduced_hulls(SIGNS, mu=0.5), 2.0),
        (dual.all_distances([0, 0, 1, 1, 2, 2], mu=0.5), 2.0),
    ],
)
def test_scale_is_that_of_libsvm(problem, scale):
    assert problem.tolerance_scale(problem.start(), np.zeros(problem.m)) == pytest.approx(scale)


def test_violation_is_a_number_where_the_two_hulls_are_one_point():
    problem = dual.nearest_points([1, -1])
    assert not np.isnan(problem.violation(problem.start(), np.zeros(2)))


@every_kind
def test_offset_is_the_gradient_on_the_free_variables(kind):
    for seed in SEEDS:
        problem, _, K, u, _ = qp.solved_problem(kind, seed)
        g = gradient(problem, K, u)
        offset = problem.offset(u, g)
        for k in range(problem.n_groups):
            mine = problem.group == k
            rises, falls = mine & (u < problem.hi), mine & (u > problem.lo)
            # At the optimum every gradient that may rise is above it, every one that may fall below.
            assert (g[rises] >= offset[k] - 1e-6).all()
            assert (g[falls] <= offset[k] + 1e-6).all()


def test_offset_without_free_variables_is_the_middle_of_the_interval():
    problem = dual.c_svc([1, -1], C=1.0)
    assert problem.offset(np.array([1.0, -1.0]), np.array([-3.0, 1.0])) == pytest.approx([-1.0])


# -- the gap ---------------------------------------------------------------------------------


@every_kind
def test_gap_bounds_the_distance_to_the_optimum(kind):
    rng = np.random.default_rng(12)
    for seed in range(15):
        problem, _, K, best, f = qp.solved_problem(kind, seed)
        Q = qp.dense_q(problem, K)
        for u in (feasible_point(problem, rng), problem.repair(best + 0.01 * rng.normal(size=problem.m))):
            value = qp.objective(Q, problem.p, u)
            assert problem.gap(u, Q @ u - problem.p) >= value - f - 1e-10 * (1 + abs(value))


@every_kind
def test_gap_vanishes_at_the_optimum(kind):
    for seed in SEEDS:
        problem, _, K, u, f = qp.solved_problem(kind, seed)
        g = gradient(problem, K, u)
        assert 0 <= problem.gap(u, g) <= 1e-8 * (1 + abs(f))
        assert 0 <= problem.relative_gap(u, g) <= 1e-8


@pytest.mark.parametrize("C", [1e2, 1e6, 1e12])
def test_the_gap_of_margins_just_short_of_1_does_not_grow_with_a_huge_C(C):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 2)), rng.integers(3, size=20)
    problem, K = dual.crammer_singer(y, C), qp.rbf(X, 2.0)
    Q = qp.dense_q(problem, K)
    u, best = qp.reference(dual.crammer_singer(y, 1e2), K)  # no variable is at its bound
    assert u.max() < 50.0
    short = 0.999 * u
    gap = problem.gap(short, Q @ short - problem.p)
    assert qp.objective(Q, problem.p, short) - best <= gap <= 3e-3 * abs(best)


@given(
    kind=st.sampled_from(qp.KINDS),
    seed=st.integers(0, 10**6),
    n=st.integers(2, 12),
    near=st.sampled_from([1.0, 0.1, 1e-3]),
)
@settings(max_examples=300)
def test_gap_bounds_the_distance_to_the_optimum_of_any_small_problem(kind, seed, n, near):
    problem, _, K, best, f = qp.solved_problem(kind, seed, n)
    Q = qp.dense_q(problem, K)
    u = problem.repair((1 - near) * best + near * np.random.default_rng(seed).normal(size=problem.m))
    value = qp.objective(Q, problem.p, u)
    gap = problem.gap(u, Q @ u - problem.p)
    assert gap >= 0
    assert gap >= value - f - 1e-10 * (1 + abs(value))


@given(
    kind=st.sampled_from([k for k in qp.KINDS if k != "c_svc-hard"]),
    seed=st.integers(0, 10**6),
    noise=st.sampled_from([1e-6, 1e-3, 0.1]),
)
@example(kind="c_svc", seed=0, noise=1e-3)
@settings(max_examples=200)
def test_gap_with_noise_bounds_the_distance_although_the_gradient_is_wrong_by_that_much(kind, seed, noise):
    problem, _, K, best, f = qp.solved_problem(kind, seed)
    rng = np.random.default_rng(seed)
    Q = qp.dense_q(problem, K)
    u = problem.repair(best + 2 * noise * rng.normal(size=problem.m))
    value = qp.objective(Q, problem.p, u)
    wrong = Q @ u - problem.p + noise * rng.choice([-1.0, 1.0], size=problem.m)
    assert problem.gap(u, wrong, noise) >= value - f - 1e-10 * (1 + abs(value))


def test_gap_with_noise_sees_a_violation_that_the_noise_hides():
    # K = 0: the true gradient (-1, 1) asks for a step from 0 to C. With entries wrong by 1.5 the point
    # looks optimal, and yet the value can fall by 2.
    problem = dual.c_svc([1, -1], C=1.0)
    true = np.array([-1.0, 1.0])
    u = np.zeros(2)
    assert problem.gap(u, true) == pytest.approx(2.0)
    assert problem.gap(u, true + np.array([1.5, -1.5]), noise=1.5) >= 2.0


def test_gap_of_c_svc_is_primal_minus_dual_with_the_best_bias():
    rng = np.random.default_rng(13)
    for seed in range(10):
        problem, _, K = qp.random_problem("c_svc-bounds", seed)
        u, y, C = feasible_point(problem, rng), problem.p, np.maximum(problem.hi, -problem.lo)
        score = K @ u
        # The primal is piecewise linear in the bias: its least value is at a kink.
        hinges = min((C * np.maximum(0, 1 - y * (score - b))).sum() for b in score - y)
        primal, value = 0.5 * u @ score + hinges, -(0.5 * u @ score - y @ u)
        gap = problem.gap(u, score - y)
        assert gap == pytest.approx(primal - value, rel=1e-9, abs=1e-9)
        assert problem.relative_gap(u, score - y) == pytest.approx(gap / (1 + primal), rel=1e-9, abs=1e-12)


def test_gap_of_squared_c_svc_is_primal_minus_dual_with_the_best_bias():
    rng = np.random.default_rng(14)
    for seed in range(10):
        problem, _, K = qp.random_problem("squared_c_svc-ridges", seed)
        u, y, C = feasible_point(problem, rng), problem.p, 0.5 / problem.ridge
        score = K @ u

        def loss(b, score=score, y=y, C=C):
            return (C * np.maximum(0, 1 - y * (score - b)) ** 2).sum()

        bracket = (score.min() - 2, score.max() + 2)
        least = minimize_scalar(loss, bounds=bracket, method="bounded", options={"xatol": 1e-10}).fun
        primal = 0.5 * u @ score + least
        value = y @ u - 0.5 * u @ score - 0.5 * problem.ridge @ u**2
        gap = problem.gap(u, gradient(problem, K, u))
        assert gap == pytest.approx(primal - value, rel=1e-6, abs=1e-6)


def test_gap_of_a_hard_margin_is_infinite_while_points_are_on_the_wrong_side():
    problem = dual.c_svc([1, -1, 1, -1], C=np.inf)
    u = np.array([1.0, -1.0, 0.0, 0.0])
    score = np.array([1.0, -1.0, -2.0, 2.0])
    assert problem.gap(u, score - problem.p) == np.inf
    assert problem.relative_gap(u, score - problem.p) == np.inf


def test_relative_gap_of_a_rescaled_problem_is_that_of_the_squared_hinge_machine():
    # At u the machine has the dual value scale^2/(2 ||w||^2); the bound must hold for the best one.
    rng = np.random.default_rng(15)
    for seed in range(10):
        problem, _, K, best, f = qp.solved_problem("nearest_points", seed)
        u = problem.repair(best + 0.003 * rng.normal(size=problem.m))
        g = gradient(problem, K, u)
        got = problem.relative_gap(u, g)
        optimum, now = 2 / (2 * f), 2 / problem.square(u, g)
        assert got >= (optimum - now) / (1 + optimum) - 1e-12


def test_relative_gap_of_the_sum_one_problems_does_not_depend_on_the_scaling_of_alpha():
    # LIBSVM's one-class dual has alpha' = nu n alpha: its objective is (nu n)^2 times ours.
    problem, _, K = qp.random_problem("one_class", 0, n=12)
    u = problem.start()
    g = gradient(problem, K, u)
    unit = problem.scale**2
    gap, primal = unit * problem.gap(u, g), unit * (problem.gap(u, g) - problem.objective(u, g))
    assert problem.relative_gap(u, g) == pytest.approx(gap / (1 + abs(primal)))


def test_infeasible_is_seen_where_the_hulls_touch():
    X = np.array([[0.0], [2.0], [1.0]])
    problem, gram = dual.nearest_points([1, 1, -1]), Gram(X, "linear", dtype="float64")
    touching, apart = np.array([0.5, 0.5, 1.0]), np.array([1.0, 0.0, 1.0])
    assert problem.infeasible(touching, problem.gradient(touching, gram), gram)
    assert not problem.infeasible(apart, problem.gradient(apart, gram), gram)


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        dual.c_svc,
        lambda y: dual.squared_c_svc(y, ridge=1.0),
        lambda y: dual.reduced_hulls(y, mu=1.0),
        dual.nearest_points,
        dual.minimum_norm,
    ],
)
@pytest.mark.parametrize("y", [[0, 1], [1, 2, -1], [1.0, np.nan, -1.0], [[1, -1], [1, -1]], [True, False]])
def test_labels_other_than_plus_and_minus_one_are_refused(make, y):
    with pytest.raises(ValueError, match=r"-1 and \+1"):
        make(y)


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf, [0.1, -0.1, 0.1, 0.1, 0.1]])
@pytest.mark.parametrize(
    "make",
    [
        lambda ridge: dual.squared_c_svc(SIGNS, ridge),
        lambda ridge: dual.nearest_points(SIGNS, ridge),
        lambda ridge: dual.minimum_norm(SIGNS, ridge),
        lambda ridge: dual.one_class_l2(5, ridge),
    ],
)
def test_a_ridge_that_is_negative_or_not_finite_is_refused(make, ridge):
    with pytest.raises(ValueError, match="ridge"):
        make(ridge)


@pytest.mark.parametrize("C", [-1.0, np.nan, [1.0, 1.0, -0.5, 1.0, 1.0]])
def test_bounds_that_are_negative_or_not_numbers_are_refused(C):
    with pytest.raises(ValueError, match="non-negative"):
        dual.c_svc(SIGNS, C=C)
    with pytest.raises(ValueError, match="non-negative"):
        dual.c_svc(SIGNS, bounds=C)


def test_bounds_of_another_length_are_refused():
    with pytest.raises(ValueError):
        dual.c_svc(SIGNS, bounds=[1.0, 2.0])


@pytest.mark.parametrize("mu", [0.0, -1.0, np.nan])
def test_mu_must_be_positive(mu):
    with pytest.raises(ValueError, match="mu must be positive"):
        dual.reduced_hulls(SIGNS, mu)
    with pytest.raises(ValueError, match="mu must be positive"):
        dual.all_distances([0, 1, 2], mu)


def test_infinite_mu_leaves_a_usable_scale_or_is_refused():
    for make in (lambda: dual.reduced_hulls(SIGNS, np.inf), lambda: dual.all_distances([0, 1, 2], np.inf)):
        try:
            problem = make()
        except ValueError:
            continue
        assert problem.scale > 0


@pytest.mark.parametrize("nu", [0.0, -0.1, 1.1, np.nan])
def test_nu_must_be_in_the_unit_interval(nu):
    with pytest.raises(ValueError, match="nu"):
        dual.one_class(5, nu)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("weights", [[1.0, -1.0, 1.0], [np.nan, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0]])
def test_impossible_weights_of_one_class_are_refused(weights):
    with pytest.raises(ValueError):
        dual.one_class(3, 0.5, weights=weights)


def test_reduced_hulls_without_a_feasible_point_are_refused():
    dual.reduced_hulls([1, 1, 1, -1, -1], mu=0.5)
    with pytest.raises(ValueError, match=r"No feasible point: the variables of group 1 .* 0\.98"):
        dual.reduced_hulls([1, 1, 1, -1, -1], mu=0.49)


@pytest.mark.parametrize("make", [lambda y: dual.reduced_hulls(y, mu=1.0), dual.nearest_points])
def test_hulls_of_one_class_are_refused(make):
    with pytest.raises(ValueError, match="No feasible point"):
        make([1, 1, 1])


def test_infeasible_mu_of_all_distances_names_the_smallest_feasible_one():
    labels = ["a"] * 5 + ["b"] * 4 + ["c"] * 6
    dual.all_distances(labels, mu=0.25)
    with pytest.raises(ValueError, match=r"smallest feasible mu is 0\.25"):
        dual.all_distances(labels, mu=0.2)


def test_all_distances_needs_two_classes():
    with pytest.raises(ValueError, match="two classes"):
        dual.all_distances([1, 1, 1], mu=1.0)


def test_bounds_in_the_wrong_order_are_refused():
    with pytest.raises(ValueError, match="lower bound"):
        dual.Dual(
            name="mine",
            p=np.zeros(2),
            lo=np.ones(2),
            hi=np.zeros(2),
            ridge=np.zeros(2),
            group=np.zeros(2, np.intp),
            sums=np.ones(1),
            row=np.arange(2),
            label=np.zeros(2, np.intp),
            coupling=np.ones((1, 1)),
        )


def test_a_problem_does_not_share_memory_with_what_it_was_made_from():
    y, bounds, rows = np.array([1.0, -1.0]), np.array([1.0, 2.0]), np.array([1, 0])
    problem = dual.c_svc(y, bounds=bounds, rows=rows)
    y[:], bounds[:], rows[:] = 0, 0, 0
    assert problem.p.tolist() == [1.0, -1.0]
    assert problem.hi.tolist() == [1.0, 0.0]
    assert problem.row.tolist() == [1, 0]


# -- one problem, several machines -----------------------------------------------------------


def random_data(seed, n=12):
    rng = np.random.default_rng([seed, 5])
    X = rng.normal(size=(n, 2))
    return qp.two_classes(rng, n), qp.rbf(X)


@pytest.mark.parametrize("ridge", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("seed", range(5))
def test_nearest_points_times_two_over_the_squared_norm_is_the_squared_hinge_machine(seed, ridge):
    y, K = random_data(seed)
    hulls, machine = dual.nearest_points(y, ridge), dual.squared_c_svc(y, ridge)
    u, f = qp.reference(hulls, K)
    expected, value = qp.reference(machine, K)
    scaled = y * u * 2 / (2 * f)
    assert scaled == pytest.approx(expected, rel=1e-7, abs=1e-8)
    assert machine.violation(scaled, gradient(machine, K, scaled)) <= 1e-6
    assert -value == pytest.approx(2 / (2 * f))  # scale^2 / (2 ||w||^2), scale 2


@pytest.mark.parametrize("seed", range(5))
def test_nearest_points_without_ridge_are_the_hard_margin_machine(seed):
    y, K = random_data(seed)
    u, f = qp.reference(dual.nearest_points(y), K)
    expected, _ = qp.reference(dual.c_svc(y, C=np.inf), K)
    assert y * u / f == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_minimum_norm_over_its_square_is_the_machine_with_a_penalised_bias(seed):
    y, K = random_data(seed)
    ridge = 0.1
    u, f = qp.reference(dual.minimum_norm(y, ridge), K)
    # min ||w||^2/2 + b^2/2 + C sum xi^2: no equality constraint, the bias is in the kernel.
    Q = np.outer(y, y) * (K + 1) + ridge * np.eye(len(y))
    no_sums = np.zeros((0, len(y))), np.zeros(0)
    expected = qp.solve_qp(Q, np.ones(len(y)), np.zeros(len(y)), np.full(len(y), np.inf), *no_sums)
    alpha = u / (2 * f)
    assert alpha == pytest.approx(expected, rel=1e-6, abs=1e-6)
    b = (y * u).sum() / (2 * f)
    slack = ridge * alpha  # xi on the support vectors
    support = alpha > 1e-8
    assert (y * (K @ (y * alpha) + b) + slack)[support] == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_one_class_l2_over_its_square_needs_no_sum(seed):
    _, K = random_data(seed)
    ridge, n = 0.2, len(K)
    u, f = qp.reference(dual.one_class_l2(n, ridge), K)
    free = np.zeros((0, n)), np.zeros(0)
    expected = qp.solve_qp(K + ridge * np.eye(n), np.ones(n), np.zeros(n), np.full(n, np.inf), *free)
    assert u / (2 * f) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_a_c_svc_solution_divided_by_its_class_sum_solves_the_reduced_hulls(seed):
    y, K = random_data(seed)
    C = 0.7
    u, _ = qp.reference(dual.c_svc(y, C), K)
    total = u[y > 0].sum()
    hulls = dual.reduced_hulls(y, mu=C / total)
    alpha = hulls.repair(y * u / total)
    assert alpha == pytest.approx(y * u / total, abs=1e-9)
    _, best = qp.reference(hulls, K)
    assert qp.objective(qp.dense_q(hulls, K), hulls.p, alpha) == pytest.approx(best, rel=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_all_distances_of_two_classes_is_the_reduced_hulls_problem(seed):
    y, K = random_data(seed)
    mu = 1 / min((y > 0).sum(), (y < 0).sum()) ** 0.5
    ours, _ = qp.reference(dual.all_distances(np.where(y > 0, 0, 1), mu), K)
    hulls, _ = qp.reference(dual.reduced_hulls(y, mu), K)
    assert ours == pytest.approx(hulls, abs=1e-7)


def test_all_distances_adds_the_squared_distances_of_all_pairs_of_hull_points():
    rng = np.random.default_rng(16)
    X = rng.normal(size=(9, 4))
    labels = np.repeat([0, 1, 2], 3)
    problem = dual.all_distances(labels, mu=1.0)
    u = feasible_point(problem, rng)
    centres = np.array([u[labels == k] @ X[labels == k] for k in range(3)])
    total = sum(((centres[a] - centres[b]) ** 2).sum() for a in range(3) for b in range(a))
    assert 2 * problem.objective(u, gradient(problem, X @ X.T, u)) == pytest.approx(total)


@pytest.mark.parametrize("seed", range(5))
def test_squared_all_distances_adds_the_squared_distances_in_the_ridged_space(seed):
    rng = np.random.default_rng(seed)
    X, labels, ridge = rng.normal(size=(15, 2)), np.arange(15) % 4, rng.uniform(0.1, 1.0, size=15)
    problem = dual.squared_all_distances(labels, ridge)
    u = problem.repair(rng.uniform(size=15))
    points = np.hstack([X, np.diag(np.sqrt(ridge))])
    centres = np.stack([u[labels == k] @ points[labels == k] for k in range(4)])
    distances = ((centres[:, None] - centres) ** 2).sum() / 2
    assert qp.objective(qp.dense_q(problem, X @ X.T), problem.p, u) == pytest.approx(0.5 * distances)


@pytest.mark.parametrize("seed", range(5))
def test_squared_all_distances_of_two_classes_are_the_nearest_points(seed):
    rng = np.random.default_rng(seed)
    y, ridge = np.where(np.arange(12) % 3, 1.0, -1.0), rng.uniform(0.1, 1.0, size=12)
    K = qp.rbf(rng.normal(size=(12, 2)))
    ours, theirs = dual.squared_all_distances(np.where(y > 0, 0, 1), ridge), dual.nearest_points(y, ridge)
    np.testing.assert_array_equal(qp.dense_q(ours, K), qp.dense_q(theirs, K))
    assert ours.two_hulls and ours.scale == theirs.scale


def test_squared_all_distances_needs_two_classes_and_no_negative_ridge():
    with pytest.raises(ValueError, match="at least two classes"):
        dual.squared_all_distances([1, 1, 1], 0.5)
    with pytest.raises(ValueError, match="ridge must be finite and non-negative"):
        dual.squared_all_distances([0, 1, 2], -0.5)


def test_weights_of_one_class_matter_by_their_ratio_only():
    weights = np.array([1.0, 2.0, 0.5, 4.0])
    one, seven = dual.one_class(4, 0.4, weights), dual.one_class(4, 0.4, 7 * weights)
    assert one.hi == pytest.approx(seven.hi)
    assert dual.one_class(4, 0.4, np.ones(4)).hi == pytest.approx(dual.one_class(4, 0.4).hi)


def test_equal_bounds_are_the_same_as_c():
    one, other = dual.c_svc(SIGNS, C=2.5), dual.c_svc(SIGNS, bounds=np.full(5, 2.5))
    assert np.array_equal(one.lo, other.lo) and np.array_equal(one.hi, other.hi)


@pytest.mark.parametrize("kind", ["c_svc", "reduced_hulls", "all_distances"])
def test_accurate_gradient_is_right_where_the_sums_of_the_classes_cancel(kind):
    rng = np.random.default_rng(0)
    X = 1e6 + rng.normal(size=(12, 2)).astype(np.float32).astype(np.float64)
    y = np.repeat([-1, 1], 6)
    problem = {
        "c_svc": lambda: dual.c_svc(y, C=1.0),
        "reduced_hulls": lambda: dual.reduced_hulls(y, mu=0.5),
        "all_distances": lambda: dual.all_distances(np.arange(12) % 3, mu=0.5),
    }[kind]()
    u = problem.repair(problem.start() + 0.1 * rng.random(problem.m))
    rows = [[Fraction(value) for value in X[r]] for r in problem.row]
    got = problem.accurate_gradient(u, np.arange(problem.m), Gram(X, kernel="linear", dtype="float64"))
    for i in range(problem.m):
        true = Fraction(problem.ridge[i]) * Fraction(u[i]) - Fraction(problem.p[i])
        for j in np.flatnonzero(u):
            coupling = Fraction(problem.coupling[problem.label[i], problem.label[j]])
            true += coupling * Fraction(u[j]) * sum(a * b for a, b in zip(rows[i], rows[j], strict=True))
        assert abs(Fraction(got[i]) - true) <= Fraction(1e-15) * max(abs(true), 1)


@pytest.mark.parametrize("loss", ["linear", "squared"])
def test_snapping_leaves_one_multiplier_of_a_row_of_a_regression(loss):
    y = np.array([0.0, 1.0, 3.0])
    problem = (
        dual.epsilon_svr(y, C=2.0, epsilon=0.1)
        if loss == "linear"
        else dual.squared_epsilon_svr(y, ridge=0.25, epsilon=0.1)
    )
    u = np.array([1.5, 0.25, 0.0, -0.25, -1.0, -0.5])
    snapped = problem.snap(u)
    np.testing.assert_array_equal(snapped, [1.25, 0.0, 0.0, 0.0, -0.75, -0.5])
    assert problem.objective(snapped, problem.gradient(snapped, qp.gram_of(np.eye(3)))) < problem.objective(
        u, problem.gradient(u, qp.gram_of(np.eye(3)))
    )


def test_snapping_keeps_both_multipliers_where_their_sizes_add_up_to_a_given_value():
    problem = dual.nu_svr(np.array([0.0, 1.0, 3.0]), C=2.0, nu=0.5)
    u = np.array([1.25, 0.25, 0.0, -0.25, -0.75, -0.5])
    np.testing.assert_array_equal(problem.snap(u), u)


def test_snapping_makes_the_sum_of_both_multipliers_of_a_row_a_float():
    rng = np.random.default_rng(0)
    n = 200
    problem = dual.nu_svr(rng.normal(size=n), nu=0.5, C=2.0)
    size = 2.0 ** rng.integers(-40, 1, (2, n)) * rng.uniform(0.5, 1.0, (2, n))
    u = np.concatenate([size[0], -size[1]])
    assert any(Fraction(a) + Fraction(b) != Fraction(a + b) for a, b in zip(u[:n], u[n:], strict=True))
    u = problem.snap(u)
    assert all(Fraction(a) + Fraction(b) == Fraction(a + b) for a, b in zip(u[:n], u[n:], strict=True))
    assert (u >= problem.lo).all() and (u <= problem.hi).all()


@pytest.mark.parametrize("make", [dual.c_svc, lambda y: dual.nu_svr(y, nu=0.5, C=2.0)])
def test_snapping_returns_the_same_array_where_nothing_changes(make):
    problem = make(np.array([1.0, -1.0, 1.0, -1.0]))
    u = problem.start()
    assert problem.snap(u) is u


def test_a_squared_norm_that_overflows_leaves_no_violation_within_a_tolerance():
    problem = dual.one_class_l2(3, 0.5)
    u = np.array([0.0, 1.0, 1.0])
    assert problem.tolerance_scale(u, np.full(3, 1.7e308)) == np.inf
    assert 0 < problem.tolerance_scale(u, np.full(3, 1.7e300)) < np.inf


@pytest.mark.parametrize("constructor", [dual.epsilon_svr, dual.nu_svr])
def test_a_sum_that_is_off_by_rounding_does_not_make_the_gap_smaller(constructor):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), 1e4 + 1e-3 * rng.normal(size=40)
    problem = constructor(y, 0.3, 100.0)
    gram = Gram(X, "linear", dtype="float64")
    u = Batch().solve(problem, gram, stop=Stop(1e-2)).u
    gap = problem.gap(u, problem.gradient(u, gram))
    free = int(np.argmax(np.minimum(u - problem.lo, problem.hi - u)))
    for change in (1e-9, -1e-9):  # one of these has a value below the optimal one
        off = u.copy()
        off[free] += change
        assert problem.gap(off, problem.gradient(off, gram)) >= 0.999 * gap > 0


@pytest.mark.parametrize("unit", [1.0, 1e-20, 1e20])
def test_a_sum_is_repaired_to_rounding_whatever_the_size_of_the_variables(unit):
    problem = dual.squared_c_svc(np.array([1.0, -1.0, 1.0, -1.0]), 1.0)
    u = problem.repair(unit * np.array([1.0, -1.0 - 1e-7, 0.5, -0.5]))
    assert abs(u.sum()) <= 1e-15 * np.abs(u).sum()
    assert problem.feasible(u)


@pytest.mark.parametrize("seed", range(5))
def test_a_group_is_filled_evenly_whatever_its_bounds(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    hi = rng.random(n) * (rng.random(n) < 0.8)
    total = 0.7 * hi.sum()
    missing = total
    typical = float(np.median(hi))
    count = min(n, int(np.ceil(missing / typical)) if typical > 0 else n)
    order = np.linspace(0, n - 1, max(1, count)).astype(int)
    order = [*dict.fromkeys(order), *(i for i in range(n) if i not in order)]
    expected = np.zeros(n)
    for i in order:
        expected[i] = min(hi[i], missing)
        missing -= expected[i]
    np.testing.assert_allclose(fill_evenly(np.zeros(n), hi, total), expected, atol=1e-14)


@pytest.mark.parametrize("seed", range(20))
def test_a_quantile_is_selected_without_sorting_where_all_widths_are_equal(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    c, lo, hi = np.round(rng.normal(size=n), 1), np.minimum(4.0 * y, 0.0), np.maximum(4.0 * y, 0.0)
    total = rng.choice([0.0, lo.sum(), hi.sum(), lo.sum() + 4.0 * n * rng.random()])
    expected = quantile(c, lo, hi, total)
    monkeypatch.setattr(costs, "SELECTED_FROM", 1)
    monkeypatch.setattr(np, "argsort", lambda *_: pytest.fail("sorted"))
    assert quantile(c, lo, hi, total) == expected


def test_a_missing_sum_is_right_to_the_last_digit():
    u = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.random.default_rng(1).integers(0, 9, 1000)
    total = float(u.sum())
    exact = Fraction(total) - sum(Fraction(x) for x in u.tolist())
    assert missing(u, total) == pytest.approx(float(exact), rel=1e-6)
