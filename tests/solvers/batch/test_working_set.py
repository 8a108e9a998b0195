"""Working sets beyond what an index in a mantissa can count, and sets that grow during a run."""

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin import _costs, dual
from maxmargin.gram.gram import Gram
from maxmargin.solvers import Batch, Stop, costs
from maxmargin.solvers.batch import working_set
from maxmargin.solvers.batch.working_set import WorkingSet, _cut, default_size
from maxmargin.solvers.pairs import LONGEST


@pytest.mark.parametrize(
    ("m", "support", "size"),
    [
        (500, 500, 1024),
        (9_999, 9_999, 1024),
        (10_000, 0, 2048),
        (40_000, 8_192, 2048),
        (40_000, 8_193, 4096),
        (99_999, 99_999, 4096),
        (100_000, 8_193, 4096),
        (100_000, 16_385, 8192),
        (10**6, 300_000, 8192),
    ],
)
def test_a_large_set_is_chosen_where_many_more_variables_are_needed(m, support, size):
    assert default_size(m, support) == size


@pytest.mark.parametrize("size", [2.0, 4096.5, "4096", True])
def test_a_size_that_is_not_an_integer_is_refused(size):
    with pytest.raises(ValueError, match="working_set must be an integer between 2 and 8192"):
        Batch(working_set=size)


def test_places_are_cut_into_ranges_that_an_index_can_count_within_their_group():
    ranges, of_groups = _cut(np.array([0, 10, 10 + 2 * LONGEST, 5000]))
    assert ranges.tolist() == [0, 10, 10 + LONGEST, 10 + 2 * LONGEST, 5000]
    assert of_groups.tolist() == [0, 1, 3, 4]
    assert np.diff(_cut(np.array([0, 8192]))[0]).tolist() == [LONGEST] * 4


N = 5200
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = np.where(X[:, 0] * X[:, 1] + 0.7 * RNG.normal(size=N) > 0, 1.0, -1.0)
ONE_HOT = sp.csr_array(np.where(RNG.random((N, 40)) < 0.1, 1.0, 0.0))
WIDE = sp.csr_array(sp.hstack([sp.csr_array(X), sp.random_array((N, 1100), density=0.01, rng=1)]))
# Data, kernel, precision and threshold of copies: every kind of block.
BLOCKS = {
    "panels": (X, "rbf", "float32", None),
    "float64": (X, "rbf", "float64", None),
    "sparse": (ONE_HOT, "rbf", "float32", None),
    "gathered": (X, "rbf", "float32", 0),
    "gathered sparse": (ONE_HOT, "rbf", "float32", 0),
    "index": (WIDE, "rbf", "float32", None),
    "full": (X, "laplacian", "float32", None),
}


def assert_equal_within_certificates(problem, gram, a, b):
    """That neither objective, in float64, is further above the other than its own gap says."""
    assert a.status == b.status == "solved"
    precise = gram.double(cache_bytes=0)
    f, h = (problem.objective(each.u, problem.gradient(each.u, precise)) for each in (a, b))
    assert -b.gap <= f - h <= a.gap


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_set_of_4096_gives_the_solution_of_2048_with_every_block(kind, monkeypatch):
    data, kernel, dtype, streamed = BLOCKS[kind]
    if streamed is not None:
        monkeypatch.setattr(_costs, "STREAMED_BYTES", streamed)
    gram = Gram(data, kernel, gamma=0.5, dtype=dtype, cache_bytes=1 << 20)
    problem = dual.c_svc(Y, C=1.0)
    small, large = (Batch(working_set=size).solve(problem, gram, stop=Stop(1e-3)) for size in (2048, 4096))
    assert np.count_nonzero(large.u) > 2048
    assert_equal_within_certificates(problem, gram, large, small)


PROBLEMS = {
    "two groups": lambda: dual.reduced_hulls(Y, 1.0 / 1500),
    "paired variables": lambda: dual.epsilon_svr(X[:, 0] * X[:, 1], 0.01, C=0.1),
    "ridge": lambda: dual.squared_c_svc(Y, 1.0),
    "three classes": lambda: dual.all_distances(np.arange(N) % 3, 1.0 / 1000),
}


@pytest.mark.parametrize(("kind", "size"), [*((kind, 4096) for kind in PROBLEMS), ("paired variables", 8192)])
def test_large_sets_solve_every_kind_of_problem(kind, size):
    problem, gram = PROBLEMS[kind](), Gram(X, gamma=0.5, cache_bytes=1 << 20)
    small, large = (Batch(working_set=s).solve(problem, gram, stop=Stop(1e-3)) for s in (2048, size))
    assert_equal_within_certificates(problem, gram, large, small)


def test_a_set_of_8192_needs_fewer_rounds_and_gives_the_solution_of_2048():
    rng = np.random.default_rng(3)
    n = 11_000
    Z = rng.normal(size=(n, 4))
    y = np.where(Z[:, 0] + 2.0 * rng.normal(size=n) > 0, 1.0, -1.0)
    gram, problem = Gram(Z, gamma=0.5, cache_bytes=1 << 20), dual.c_svc(y, C=0.5)
    found, rounds = {}, {}
    for size in (2048, 4096, 8192):
        solver = Batch(working_set=size)
        found[size] = solver.solve(problem, gram, stop=Stop(1e-3))
        rounds[size] = len(found[size].trace)
    assert np.count_nonzero(found[8192].u) > 8192
    for size in (4096, 8192):
        assert_equal_within_certificates(problem, gram, found[size], found[2048])
    assert rounds[8192] < rounds[4096] < rounds[2048]


@pytest.fixture
def small_steps(monkeypatch):
    """Sets of 32 places, of 64 with 40 variables that are not zero, of 128 with 80; indices count to 32."""
    monkeypatch.setattr(working_set, "LONGEST", 32)
    monkeypatch.setattr(costs, "WORKING_SETS", ((0, 32), (100, 64), (100, 128)))
    monkeypatch.setattr(costs, "WORKING_SET_SUPPORT", 0.625)
    seen = []

    class Seen(WorkingSet):
        def __init__(self, state, size, cycles):
            super().__init__(state, size, cycles)
            self.restricted = []
            seen.append(self)

        def restrict(self, active):
            super().restrict(active)
            self.restricted.append(active is not None)

    monkeypatch.setattr("maxmargin.solvers.batch.batch.WorkingSet", Seen)
    return seen


@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_a_set_grows_during_a_run_and_keeps_its_members(small_steps, kernel):
    gram, problem = Gram(X[:1500], kernel, gamma=0.5), dual.c_svc(Y[:1500], C=1.0)
    left = {}
    enter = WorkingSet.enter

    def entered(self, new, state):
        if not (self.ids >= 0).any() and len(small_steps) > 1:
            left[self.size] = set(small_steps[-2].ids), set(new.tolist())
        return enter(self, new, state)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkingSet, "enter", entered)
        grown = Batch().solve(problem, gram, stop=Stop(1e-4))
    assert [each.size for each in small_steps] == [32, 64, 128]
    assert [len(each.ids) for each in small_steps] == [32, 64, 128]
    for size, (before, after) in left.items():
        assert before - {-1} == after and len(after) == size // 2
    fixed = Batch(working_set=128).solve(problem, gram, stop=Stop(1e-4))
    assert_equal_within_certificates(problem, gram, grown, fixed)


def test_a_set_that_was_chosen_does_not_grow(small_steps):
    gram, problem = Gram(X[:1500], gamma=0.5), dual.c_svc(Y[:1500], C=1.0)
    assert Batch(working_set=32).solve(problem, gram, stop=Stop(1e-3)).status == "solved"
    assert [each.size for each in small_steps] == [32]


def test_a_set_grows_while_variables_are_left_out(small_steps, monkeypatch):
    monkeypatch.setattr(costs, "SHRINK_FROM", 100)
    monkeypatch.setattr(costs, "SHRINK_SHARE", 1.0)
    monkeypatch.setattr(costs, "SHRINK_WORTH", 0.0)
    gram, problem = Gram(X[:1500], gamma=0.5), dual.c_svc(Y[:1500], C=1.0)
    solution = Batch().solve(problem, gram, stop=Stop(1e-4))
    assert any(each.restricted[:1] == [True] for each in small_steps[1:])
    fixed = Batch(working_set=64).solve(problem, gram, stop=Stop(1e-4))
    assert_equal_within_certificates(problem, gram, solution, fixed)
