"""A state whose gradient is elsewhere: a solver finds the same solution, and interrupted steps are undone."""

import numpy as np
import pytest

from maxmargin import dual
from maxmargin._compiled.limits import Stopped
from maxmargin._types import RemoteReply
from maxmargin.gram import Gram
from maxmargin.solvers import Batch, Stop
from maxmargin.solvers.remote_state import RemoteState, state_of


class Elsewhere:
    """A gradient in this process that behaves as one that is kept elsewhere, with a log of the calls."""

    def __init__(self, problem, gram):
        self.problem, self.gram, self.log = problem, gram, []
        self.points, self.version, self.kept = {}, 0, 0
        self.before_answer = lambda: None

    def put(self, u, g):
        self.log.append("put")
        self.version += 1
        self.kept = self.version
        self.points[self.version] = u.copy(), g.copy()

    def step(self, u, idx, delta, members, wanted):
        self.log.append("step")
        old_u, old_g = self.points[self.version]
        np.testing.assert_array_equal(np.delete(u, idx), np.delete(old_u, idx))
        g = old_g.copy()
        self.problem.update(g, idx, delta, self.gram)
        self.before_answer()
        self.version += 1
        self.points[self.version] = u.copy(), g
        least, most = self.problem.extremes(u, g)
        outside = np.setdiff1d(np.arange(len(u)), members)
        ids = np.concatenate([outside, members])
        return RemoteReply(least, most, float(u @ g), ids, g[ids], len(outside))

    def keep(self):
        self.log.append("keep")
        self.kept = self.version

    def undo(self, u):
        self.log.append("undo")
        self.version = self.kept
        np.testing.assert_array_equal(u, self.points[self.version][0])
        return u, self.entries(u)

    def entries(self, u):
        self.log.append("entries")
        np.testing.assert_array_equal(u, self.points[self.version][0])
        return self.points[self.version][1].copy()


class Remote:
    """A Gram matrix whose gradients are `Elsewhere`."""

    resident = False

    def __init__(self, gram, log):
        self._gram, self.log = gram, log

    def __getattr__(self, name):
        return getattr(self._gram, name)

    def remote_gradient(self, problem):
        self.log.append(Elsewhere(problem, self._gram))
        return self.log[-1]

    def double(self, cache_bytes=None):
        return Remote(self._gram.double(cache_bytes), self.log)


def problem_and_rows(n=400, tol=1e-3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1, -1)
    log = []
    return dual.c_svc(y, C=2.0), Remote(Gram(X, gamma=0.5, dtype=np.float32), log), log


def state(start=None):
    problem, rows, log = problem_and_rows()
    u = problem.start() if start is None else start
    return state_of(problem, rows, u, problem.gradient(u, rows._gram), Stop(), None), log


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_a_solver_finds_the_solution_of_rows_that_are_here(tol):
    problem, rows, log = problem_and_rows()
    found = Batch(working_set=60).solve(problem, rows, stop=Stop(tol=tol))
    wanted = Batch(working_set=60).solve(problem, rows._gram, stop=Stop(tol=tol))
    assert found.status == wanted.status == "solved"
    assert abs(found.objective - wanted.objective) <= found.gap + wanted.gap
    assert sum(remote.log.count("step") for remote in log) > 5


def test_entries_are_fetched_when_all_are_needed_and_not_before():
    s, [remote] = state()
    inside = np.zeros(s.problem.m, bool)
    s.look()
    members = s.violators(inside, 5)
    s.move(members[:2], 0.1 * s.problem.p[members[:2]], members, inside)
    s.look()
    s.objective()
    s.gradient_at(members)
    assert "entries" not in remote.log
    np.testing.assert_allclose(s.g, s.problem.gradient(s.u, s.gram._gram), atol=1e-5)
    assert remote.log == ["put", "step", "entries"]
    s.look()
    assert remote.log.count("entries") == 1


def test_what_is_known_of_a_remote_point_is_what_the_point_has():
    s, [remote] = state()
    inside = np.zeros(s.problem.m, bool)
    s.look()
    members = s.violators(inside, 8)
    s.move(members, 0.05 * s.problem.p[members], members, inside)
    s.look()
    g = remote.points[remote.version][1]
    least, most = s.problem.extremes(s.u, g)
    np.testing.assert_array_equal((s.least, s.most), (least, most))
    assert s.objective() == pytest.approx(s.problem.objective(s.u, g))
    np.testing.assert_array_equal(s.gradient_at(members), g[members])
    assert s.n_support == len(members)
    inside[members] = True
    outside = s.violators(inside, 7)
    assert len(outside) and not inside[outside].any() and len(outside) <= 14


@pytest.mark.parametrize("looked", [False, True], ids=["at the first step", "after the gradient was here"])
def test_a_step_that_is_interrupted_is_undone(looked):
    s, [remote] = state()
    inside = np.zeros(s.problem.m, bool)
    s.look()
    members = s.violators(inside, 5)
    delta = 0.1 * s.problem.p[members]
    s.move(members, delta, members, inside)
    s.keep()
    kept_u, kept_g = s.u.copy(), remote.points[remote.version][1].copy()
    if looked:
        assert s.g is not None  # as for the certificate: the next step puts the gradient back

    def interrupt():
        raise Stopped

    remote.before_answer = interrupt
    with pytest.raises(Stopped):
        s.move(members, delta, members, inside)
    s.go_back()
    np.testing.assert_array_equal(s.u, kept_u)
    np.testing.assert_array_equal(s.g, kept_g)
    s.look()
    assert isinstance(s, RemoteState) and np.isfinite(s.objective())


def test_rows_that_keep_their_gradient_here_have_an_ordinary_state():
    problem, rows, _ = problem_and_rows()
    u = problem.start()
    s = state_of(problem, rows._gram, u, problem.gradient(u, rows._gram), Stop(), None)
    assert not isinstance(s, RemoteState)
