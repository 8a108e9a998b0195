"""A chunk may lose its part of a gradient at any time: it says so, and repeated steps give the same bits."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.dask.chunk import Behind, Chunk, Setting, Step
from maxmargin.dask.frame import Frame
from maxmargin.dask.store import Store
from maxmargin.kernels import Kernel

N, D = 40, 3
FRAME = Frame(Kernel("rbf", gamma=0.5), D, False, np.zeros(D))
X = np.random.default_rng(0).normal(size=(N, D))
NOTHING = np.empty(0, np.intp)


def chunk():
    return Chunk(FRAME, np.arange(N), [X[:15], X[15:]])


def setting(paired=False):
    m = 2 * N if paired else N
    lo, hi = np.zeros(m), np.ones(m)
    return Setting(((0, N),), np.ones(m), lo, hi, np.zeros(m), np.zeros(m, np.int8), None, 1, "float32")


def step(base, own, values, delta, *, version=None, wanted=5, whole=False):
    """The message that moves variables of this chunk alone."""
    own = np.asarray(own)
    return Step(
        "p", base, base + 1 if version is None else version, np.asarray(delta, float), own,
        np.asarray(values, float), np.asarray(delta, float), np.array([0, 1]), np.full(1, -9.0),
        np.full(1, 9.0), wanted, whole,
    )  # fmt: skip


def take(made, step):
    """Let a chunk take a step."""
    return made.step(step, X[step.own % N])


STEPS = [step(0, [3], [0.5], [0.5]), step(1, [3, 7], [0.2, 1.0], [-0.3, 1.0]), step(2, [9], [0.1], [0.1])]


def begun(paired=False):
    made = chunk()
    made.begin(
        "p", setting(paired), 0, np.zeros(2 * N if paired else N), -np.ones(2 * N if paired else N), ()
    )
    return made


def test_steps_lead_to_the_gradient_of_the_point():
    made = begun()
    for each in STEPS:
        answer = take(made, each)
    u = np.zeros(N)
    u[[3, 7, 9]] = 0.2, 1.0, 0.1
    g = FRAME.kernel.block(X, X) @ u - 1.0
    np.testing.assert_allclose(made.entries("p", 3), g, atol=1e-6)
    np.testing.assert_allclose(answer.member_values, g[:2], atol=1e-6)
    assert answer.product == pytest.approx(u @ g, abs=1e-5)
    assert (answer.least[0], answer.most[0]) == pytest.approx((g[u < 1].min(), g[u > 0].max()), abs=1e-6)
    np.testing.assert_array_equal(answer.samples, X[answer.outside])
    assert not np.isin([0, 1], answer.outside).any() and answer.gradient is None


def test_both_variables_of_a_pair_have_the_change_of_their_row():
    made = begun(paired=True)
    take(made, step(0, [4], [0.5], [0.5]))
    g = made.entries("p", 1)
    np.testing.assert_array_equal(g[:N], g[N:])


def test_a_task_that_runs_twice_does_no_harm():
    once, twice = begun(), begun()
    for each in STEPS:
        take(once, each)
        first = take(twice, each)
        second = take(twice, each)
        np.testing.assert_array_equal(first.member_values, second.member_values)
    np.testing.assert_array_equal(once.entries("p", 3), twice.entries("p", 3))


def test_the_last_step_can_be_undone_and_another_one_taken():
    made = begun()
    take(made, STEPS[0])
    kept = made.entries("p", 1)
    take(made, STEPS[1])
    np.testing.assert_array_equal(made.entries("p", 1), kept)
    take(made, STEPS[1]._replace(version=7))
    assert not isinstance(made.entries("p", 7), Behind)


def test_a_chunk_that_has_lost_its_part_says_so():
    made = begun()
    for lost in (chunk(), pickle.loads(pickle.dumps(made))):
        assert take(lost, STEPS[0]) == lost.entries("p", 0) == Behind(-1)
    assert take(made, STEPS[2]) == Behind(0)  # it cannot follow from the point that is here
    assert made.entries("p", 5) == Behind(0)


def test_repeated_steps_give_the_bits_of_the_first_time():
    first = begun()
    take(first, STEPS[0])
    middle = take(first, STEPS[1]._replace(whole=True)).gradient
    take(first, STEPS[2])
    again, u = chunk(), np.zeros(N)
    u[[3, 7]] = 0.2, 1.0
    again.begin("p", setting(), 2, u, middle, ())
    take(again, STEPS[2]._replace(members=NOTHING, wanted=0))
    np.testing.assert_array_equal(again.entries("p", 3), first.entries("p", 3))


def test_repeated_steps_propose_nothing():
    answer = take(begun(), STEPS[0]._replace(members=NOTHING, wanted=0))
    assert len(answer.outside) == len(answer.member_values) == len(answer.samples) == 0


def test_problems_that_are_solved_are_forgotten_when_the_next_one_begins():
    made = begun()
    made.begin("q", setting(), 0, np.zeros(N), -np.ones(N), ("p", "unknown"))
    assert made.entries("p", 0) == Behind(-1)
    assert not isinstance(made.entries("q", 0), Behind)


def test_only_some_rows_of_a_chunk_may_belong_to_a_problem():
    rows = np.r_[5:10, 20:23]
    few = Setting(
        ((5, 10), (20, 23)), *(f(8) for f in (np.ones, np.zeros, np.ones, np.zeros)), np.zeros(8, np.int8),
        None, 1, "float64",
    )  # fmt: skip
    made = chunk()
    made.begin("p", few, 0, np.zeros(8), -np.ones(8), ())
    answer = made.step(step(0, [6], [0.5], [0.5]), X[21:22])
    wanted = 0.5 * FRAME.kernel.block(X[rows], X[21:22])[:, 0] - 1.0
    np.testing.assert_allclose(made.entries("p", 1), wanted, rtol=1e-12)
    np.testing.assert_array_equal(answer.samples, X[rows[answer.outside]])


def test_exact_sums_have_the_digits_of_float64():
    coef, places = np.linspace(-1, 1, 5), np.array([3, 8, 13, 21, 34])
    found = chunk().exact(X[:7], places, coef)
    np.testing.assert_allclose(found, FRAME.kernel.block(X[:7], X[places]) @ coef, rtol=1e-13)
    np.testing.assert_array_equal(chunk().exact(X[:7], NOTHING, np.empty(0)), np.zeros(7))


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_store_returns_the_samples_in_any_order(form):
    data = sp.csr_array(X) if form == "sparse" else X
    store = Store(N)
    for some in (np.array([3, 1]), np.array([7]), np.arange(20, 33), np.array([0, 39])):
        assert set(store.missing(some)) == set(some)
        store.put(some, data[some])
    wanted = np.array([39, 3, 25, 3, 0])
    found = store.get(wanted)
    np.testing.assert_array_equal(found.toarray() if form == "sparse" else found, X[wanted])
    np.testing.assert_array_equal(store.missing(np.array([3, 4, 4, 38, 39])), [4, 38])


def test_a_store_takes_of_what_is_offered_only_what_is_needed():
    store = Store(N)
    store.offer(np.array([9, 2, 30]), X[[9, 2, 30]])
    np.testing.assert_array_equal(store.take_offered(np.array([2, 5, 30])), [5])
    np.testing.assert_array_equal(store.get(np.array([30, 2])), X[[30, 2]])
    np.testing.assert_array_equal(store.missing(np.array([9, 5])), [5, 9])
