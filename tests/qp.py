"""A dense reference for the dual: random problems of every kind, and their optimum by clarabel."""

from functools import lru_cache

import clarabel
import numpy as np
import scipy.sparse as sp

from maxmargin import dual
from maxmargin.gram.gram import Gram


def rbf(X, gamma=0.5):
    """The kernel matrix, from its definition."""
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def dense_q(problem, K):
    """A∘(K+c) + diag(ridge), from its definition."""
    A = problem.coupling[np.ix_(problem.label, problem.label)]
    return A * (K[np.ix_(problem.row, problem.row)] + problem.shift) + np.diag(problem.ridge)


def objective(Q, p, u):
    return 0.5 * u @ Q @ u - p @ u


def assert_feasible(problem, u, slack=1e-10):
    assert np.isfinite(u).all()
    assert (u >= problem.lo).all()
    assert (u <= problem.hi).all()
    for g, total in enumerate(problem.sums):
        mine = u[problem.group == g]
        assert abs(mine.sum() - total) <= slack * max(1.0, np.abs(mine).sum())


def is_feasible(problem, u):
    try:
        assert_feasible(problem, u)
    except AssertionError:
        return False
    return True


def solve_qp(Q, p, lo, hi, E, s):
    """clarabel's minimiser of u'Qu/2 - p'u with lo <= u <= hi and E u = s."""
    m = len(p)
    above, below = np.isfinite(lo), np.isfinite(hi)
    eye = sp.eye_array(m, format="csr")
    A = sp.vstack([sp.csr_array(E), -eye[above], eye[below]], format="csc")
    b = np.concatenate([s, -lo[above], hi[below]])
    cones = [clarabel.ZeroConeT(len(s))] if len(s) else []
    cones.append(clarabel.NonnegativeConeT(int(above.sum() + below.sum())))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    P = sp.csc_matrix(np.triu(Q))
    found = clarabel.DefaultSolver(P, -p, sp.csc_matrix(A), b, cones, settings).solve()
    u = np.array(found.x)
    # The stricter tolerances are wished for; a failure would show in `reference`'s own check.
    assert np.isfinite(u).all(), found.status
    return u


def reference(problem, K):
    """The optimum of a convex problem: u (polished on its active set, feasible) and f(u)."""
    Q = dense_q(problem, K)
    E = (problem.group == np.arange(problem.n_groups)[:, None]).astype(float)
    raw = solve_qp(Q, problem.p, problem.lo, problem.hi, E, problem.sums)
    best = None
    for near in (0.0, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5):
        u = _polish(Q, problem, E, raw, near) if near else problem.repair(raw)
        if u is None or not is_feasible(problem, u):
            continue
        score = kkt_violation(problem, Q, u)
        if best is None or score < best[0]:
            best = score, u
    assert best is not None, "clarabel's point cannot be made feasible"
    return best[1], objective(Q, problem.p, best[1])


def _polish(Q, problem, E, raw, near):
    """Solve the equations of the face that `raw` lies on; None if that leaves the box."""
    at_lo, at_hi = raw - problem.lo <= near, problem.hi - raw <= near
    fixed = at_lo | at_hi
    free = np.flatnonzero(~fixed)
    u = np.where(at_lo, problem.lo, np.where(at_hi, problem.hi, 0.0))
    k, g = len(free), problem.n_groups
    M = np.zeros((k + g, k + g))
    M[:k, :k], M[:k, k:], M[k:, :k] = Q[np.ix_(free, free)], E[:, free].T, E[:, free]
    right = np.concatenate([(problem.p - Q @ u)[free], problem.sums - E @ u])
    u[free] = np.linalg.lstsq(M, right, rcond=1e-13)[0][:k]
    inside = (u >= problem.lo).all() and (u <= problem.hi).all()
    return u if inside else None


def kkt_violation(problem, Q, u):
    """Largest difference of gradients along which u could still fall, written as a plain loop."""
    g = Q @ u - problem.p
    worst = 0.0
    for i in range(len(u)):
        for j in range(len(u)):
            rises, falls = u[i] < problem.hi[i], u[j] > problem.lo[j]
            if problem.group[i] == problem.group[j] and rises and falls:
                worst = max(worst, g[j] - g[i])
    return worst


# -- problems of every kind ------------------------------------------------------------------


def two_classes(rng, n):
    return rng.permutation(np.where(np.arange(n) < max(1, int(n * rng.uniform(0.25, 0.75))), 1.0, -1.0))


def _mu(rng, counts):
    return (1 / min(counts)) ** rng.uniform(0.0, 0.9) if min(counts) > 1 else 1.0


def _c_svc(rng, n, rows):
    return dual.c_svc(two_classes(rng, n), C=10 ** rng.uniform(-1, 1.5), rows=rows)


def _c_svc_bounds(rng, n, rows):
    bounds = rng.uniform(0, 3, size=n) * (rng.random(n) < 0.8)
    return dual.c_svc(two_classes(rng, n), bounds=bounds, rows=rows)


def _c_svc_hard(rng, n, rows):
    return dual.c_svc(two_classes(rng, n), C=np.inf, rows=rows)


def _squared_c_svc(rng, n, rows):
    return dual.squared_c_svc(two_classes(rng, n), ridge=10 ** rng.uniform(-2, 0.5), rows=rows)


def _squared_c_svc_ridges(rng, n, rows):
    return dual.squared_c_svc(two_classes(rng, n), ridge=10 ** rng.uniform(-2, 0.5, size=n), rows=rows)


def _reduced_hulls(rng, n, rows):
    y = two_classes(rng, n)
    return dual.reduced_hulls(y, mu=_mu(rng, [(y > 0).sum(), (y < 0).sum()]), rows=rows)


def _nearest_points(rng, n, rows):
    return dual.nearest_points(two_classes(rng, n), ridge=10 ** rng.uniform(-2, 0.5), rows=rows)


def _nearest_points_hard(rng, n, rows):
    return dual.nearest_points(two_classes(rng, n), rows=rows)


def _minimum_norm(rng, n, rows):
    return dual.minimum_norm(two_classes(rng, n), ridge=10 ** rng.uniform(-2, 0.5), rows=rows)


def _one_class(rng, n, rows):
    return dual.one_class(n, nu=rng.uniform(0.1, 1.0), rows=rows)


def _one_class_weights(rng, n, rows):
    weights = rng.uniform(0, 2, size=n) * (rng.random(n) < 0.8)
    weights[0] = 1.0
    return dual.one_class(n, nu=rng.uniform(0.1, 1.0), weights=weights, rows=rows)


def _one_class_l2(rng, n, rows):
    return dual.one_class_l2(n, ridge=10 ** rng.uniform(-2, 0.5), rows=rows)


def _all_distances(rng, n, rows):
    labels = rng.permutation(np.arange(n) % min(3, n))
    return dual.all_distances(labels, mu=_mu(rng, np.bincount(labels)), rows=rows)


def _squared_all_distances(rng, n, rows):
    labels = rng.permutation(np.arange(n) % min(4, n))
    return dual.squared_all_distances(labels, ridge=10 ** rng.uniform(-2, 0.5, size=n), rows=rows)


def _regression(rng, n, rows):
    """epsilon-SVR: 2n variables over n rows."""
    return dual.epsilon_svr(rng.normal(size=n), epsilon=0.1, C=10 ** rng.uniform(-1, 1), rows=rows)


def _regression_bounds(rng, n, rows):
    bounds = rng.uniform(0, 3, size=n) * (rng.random(n) < 0.8)
    return dual.epsilon_svr(rng.normal(size=n), epsilon=rng.uniform(0, 0.5), bounds=bounds, rows=rows)


def _squared_epsilon_svr(rng, n, rows):
    ridge = 10 ** rng.uniform(-2, 0.5, size=n)
    return dual.squared_epsilon_svr(rng.normal(size=n), epsilon=rng.uniform(0, 0.5), ridge=ridge, rows=rows)


def _nu_svr(rng, n, rows):
    # So little that the tube has a width: otherwise the solution is not unique.
    C = rng.uniform(0.05, 0.3, size=n)
    return dual.nu_svr(rng.normal(size=n), nu=rng.uniform(0.1, 0.4), C=C, rows=rows)


def _crammer_singer(rng, n, rows):
    """3n variables over n rows, one group per sample, classes not coupled."""
    k, C = 3, 10 ** rng.uniform(-1, 1)
    rows = np.arange(n) if rows is None else np.asarray(rows)
    true = (np.arange(k) == rng.integers(k, size=n)[:, None]).astype(float).ravel()
    return dual.Dual(
        name="crammer_singer",
        p=true,
        lo=np.full(n * k, -np.inf),
        hi=C * true,
        ridge=np.zeros(n * k),
        group=np.repeat(np.arange(n), k),
        sums=np.zeros(n),
        row=np.repeat(rows, k),
        label=np.tile(np.arange(k), n),
        coupling=np.eye(k),
    )


def _penalised_c_svc(rng, n, rows):
    return dual.penalised_bias(_c_svc_bounds(rng, n, rows), 10 ** rng.uniform(-1, 1))


def _penalised_squared_c_svc(rng, n, rows):
    return dual.penalised_bias(_squared_c_svc_ridges(rng, n, rows), 10 ** rng.uniform(-1, 1))


def _penalised_hard(rng, n, rows):
    return dual.penalised_bias(_c_svc_hard(rng, n, rows))


def _penalised_svr(rng, n, rows):
    return dual.penalised_bias(_regression_bounds(rng, n, rows), 10 ** rng.uniform(-1, 1))


MAKERS = {
    "c_svc": _c_svc,
    "c_svc-bounds": _c_svc_bounds,
    "c_svc-hard": _c_svc_hard,
    "squared_c_svc": _squared_c_svc,
    "squared_c_svc-ridges": _squared_c_svc_ridges,
    "reduced_hulls": _reduced_hulls,
    "nearest_points": _nearest_points,
    "nearest_points-hard": _nearest_points_hard,
    "minimum_norm": _minimum_norm,
    "one_class": _one_class,
    "one_class-weights": _one_class_weights,
    "one_class_l2": _one_class_l2,
    "all_distances": _all_distances,
    "regression": _regression,
    "crammer_singer": _crammer_singer,
}
KINDS = sorted(MAKERS)

# Behind the others: the seeds of these stay what they are.
MAKERS |= {
    "regression-bounds": _regression_bounds,
    "squared_epsilon_svr": _squared_epsilon_svr,
    "nu_svr": _nu_svr,
    "penalised_c_svc": _penalised_c_svc,
    "penalised_squared_c_svc": _penalised_squared_c_svc,
    "penalised_c_svc-hard": _penalised_hard,
    "penalised_svr": _penalised_svr,
    "squared_all_distances": _squared_all_distances,
}
KINDS += ["regression-bounds", "squared_epsilon_svr", "nu_svr"]
KINDS += ["penalised_c_svc", "penalised_squared_c_svc", "penalised_c_svc-hard", "penalised_svr"]
KINDS += ["squared_all_distances"]
# Not `dual.quantile_svr`: without a tube only the sum of the two variables of a row is unique.


def random_problem(kind, seed, n=None):
    """A problem of the given kind, its data (rbf kernel, gamma 0.5) and its kernel matrix."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.integers(3, 15)) if n is None else n
    X = rng.normal(size=(n, 2 if n < 20 else 5))  # many points in the plane: nearly singular
    return MAKERS[kind](rng, n, None), X, rbf(X)


@lru_cache(maxsize=4096)
def solved_problem(kind, seed, n=None):
    """`random_problem` with its optimum: problem, X, K, u*, f*."""
    problem, X, K = random_problem(kind, seed, n)
    u, f = reference(problem, K)
    u.flags.writeable = False
    return problem, X, K, u, f


def gram_of(X, dtype="float64", **options):
    return Gram(X, "rbf", gamma=0.5, dtype=dtype, n_jobs=1, **options)
