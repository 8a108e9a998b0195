import numpy as np
import pytest

from maxmargin._compiled.limits import Limit
from maxmargin.solvers.c_path.class_pairs import PairProblems, PairSolutions, solve_pairs
from maxmargin.solvers.c_path.path import solve_folds

CS = np.array([0.1, 1.0, 50.0])


def problems(same=True, tol=1e-7, start=None, start_C=1.0):
    """Three classes of a matrix with 60 rows, in three folds."""
    rng = np.random.default_rng(0)
    X, number = rng.normal(size=(60, 3)), rng.permutation(np.repeat([0, 1, 2], [15, 20, 25]))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    of_class = [np.flatnonzero(number == k) for k in range(3)]
    pairs = [(0, 1), (0, 2), (1, 2)]
    rows = np.concatenate([of_class[k] for pair in pairs for k in pair])
    begins = np.append(0, np.cumsum([len(of_class[a]) + len(of_class[b]) for a, b in pairs]))
    masks = np.arange(60) % 4 != np.arange(3)[:, None]
    factors = rng.uniform(0.5, 2.0, size=(1 if same else 3, 60))
    return K, PairProblems(
        rows.astype(np.uint64), begins, np.array([len(of_class[a]) for a, _ in pairs]), masks,
        np.ascontiguousarray(np.broadcast_to(factors, (3, 60))), same, CS, tol, 10_000_000,
        np.empty((0, len(rows))) if start is None else start, start_C,
    )  # fmt: skip


def solved(K, given):
    found = PairSolutions.empty(given)
    solve_pairs(K, given, found)
    return found


@pytest.mark.parametrize("same", [True, False], ids=["the same factors", "factors of each fold"])
def test_each_pair_is_solved_as_by_itself(same):
    K, given = problems(same)
    found = solved(K, given)
    assert found.solved.all() and (found.steps >= 0).all()
    for p, (begin, end) in enumerate(zip(given.begins, given.begins[1:], strict=False)):
        rows = given.rows[begin:end].astype(np.intp)
        y = np.where(np.arange(len(rows)) < given.n_first[p], 1.0, -1.0)
        for f in range(3):
            alone = solve_folds(
                np.ascontiguousarray(K[np.ix_(rows, rows)]), y, given.masks[f : f + 1, rows], CS,
                tol=1e-7, weight=given.factors[f, rows],
            )[0]  # fmt: skip
            np.testing.assert_allclose(found.u[f, :, begin:end], alone.u, atol=1e-5)
            np.testing.assert_allclose(found.offset[f, :, p], alone.offset, atol=1e-5)


def test_a_start_for_another_C_leads_to_the_same_solutions():
    K, given = problems()
    cold = solved(K, given)
    K, again = problems(start=np.ascontiguousarray(cold.u[:, -1]), start_C=50.0)
    warm = solved(K, again)
    assert warm.solved.all()
    np.testing.assert_allclose(warm.u, cold.u, atol=1e-5)


def test_pairs_that_were_not_begun_when_the_time_was_up_are_not_solved():
    K, given = problems()
    with Limit(0.0) as limit:
        limit.flag[0] = 1
        found = solved(K, given)
    assert not found.solved.any() and (found.steps < 0).all() and not found.u.any()
