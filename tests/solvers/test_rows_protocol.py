"""Solvers see kernel rows through the protocol `Rows` only."""

import ast
from pathlib import Path

import numpy as np
import pytest

import maxmargin.solvers
from maxmargin import dual
from maxmargin._compiled.threads import Threads
from maxmargin._types import Rows
from maxmargin.gram import Gram
from maxmargin.solvers import SMO, Batch, Rosen, Stop
from maxmargin.solvers.interrupt import watch_interrupt
from maxmargin.solvers.many import Limit, Subproblem, Subproblems

SOLVERS = Path(maxmargin.solvers.__file__).parent
# Learning and unlearning rows needs the rows of X: this package owns the data, and builds its rows of K.
OWNS_DATA = SOLVERS / "incremental"
MODULES = sorted(path for path in SOLVERS.rglob("*.py") if OWNS_DATA not in path.parents)
# Attributes of a Gram or a View that are not part of the protocol.
CONCRETE = {"kernel", "points", "X", "index", "base", "rounding", "double_rounding", "laid_out", "relative"}


def name_of(path):
    return str(path.relative_to(SOLVERS))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_solver_does_not_import_an_implementation_of_rows(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not (node.module or "").startswith("maxmargin.gram"), f"line {node.lineno}"
        elif isinstance(node, ast.Import):
            assert not any(alias.name.startswith("maxmargin.gram") for alias in node.names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_solver_does_not_read_kernels_or_data(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).split(".")[-1] == "gram":
            known = hasattr(Rows, node.attr)
            assert known and node.attr not in CONCRETE, f"line {node.lineno}: gram.{node.attr}"


class Dense:
    """A matrix with the members of the protocol and no others."""

    cost, capacity, cache_bytes = 10.0, 10**6, 10**9
    holds_all = in_place = releases_gil = resident = True
    panelled = by_distance = given = False
    by_frequency = on_demand = exact_data = features = None

    def __init__(self, K):
        self.table = np.array(K)
        self.n, self.dtype = len(K), self.table.dtype
        self.slot = self.columns = np.arange(self.n)
        self.diag = np.diag(K).astype(np.float64)
        self.threads = Threads(1)
        self.n_evals = self.n_calls = 0

    def count(self, evals=0, calls=0):
        self.n_evals += int(evals)
        self.n_calls += int(calls)

    def use_one_thread(self):
        self.threads = Threads(1)

    def ensure(self, rows):
        pass

    complete = ensure

    def held(self, rows):
        return np.ones(len(rows), np.bool_)

    def rows(self, idx):
        self.count(calls=len(idx) * self.n)
        return self.table[idx]

    def block(self, rows, columns):
        self.count(calls=len(rows) * len(columns))
        return self.table[np.ix_(rows, columns)]

    def add(self, out, idx, coef, *, keep=None, tally=None):
        (tally or self).count(calls=len(idx) * self.n)
        out += self.table[:, idx] @ coef

    def nearest(self, rows, others):
        values = self.table[np.ix_(rows, others)]
        best = values.argmax(axis=1)
        return best, -values[np.arange(len(rows)), best]

    def exact(self, rows, columns, coef):
        return self.table[np.ix_(rows, columns)] @ coef

    def sum_cost(self, rows, columns):
        return rows * columns

    def accurate(self, rows, columns, coef, factor):
        return self.exact(rows, columns, coef * factor)

    def bound(self, rows, columns, coef, double=False):
        return np.full(len(rows), 1e-14 * np.abs(coef).sum())

    def largest_bound(self, double=False):
        return 1e-14

    def accurate_bound(self, error, size):
        return error

    def double(self, cache_bytes=None):
        return self

    def view(self, index, cache_bytes=None):
        return Dense(self.table[np.ix_(index, index)])

    def part(self, index):
        return None

    def remote_gradient(self, problem):
        pass

    def gather(self, rows):
        raise AssertionError("only rows without on_demand are gathered")

    borrower = None

    def lend(self, borrower=None):
        pass

    def reopen(self):
        pass


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=120) > 0, 1.0, -1.0)


def dense(X):
    return Dense(Gram(X, gamma=0.5, dtype="float64").rows(np.arange(len(X))))


def test_the_dense_matrix_has_exactly_the_members_of_the_protocol(data):
    public = {name for name in dir(Rows) if not name.startswith("_")}
    assert {name for name in dir(dense(data[0])) if not name.startswith("_")} == public


@pytest.mark.parametrize("solver", [Batch(), Batch(working_set=32), SMO(), Rosen()], ids=repr)
def test_a_class_with_the_protocol_alone_can_be_solved(data, solver):
    X, y = data
    problem = dual.c_svc(y, C=3.0)
    found = solver.solve(problem, dense(X), stop=Stop(1e-6))
    best = solver.solve(problem, Gram(X, gamma=0.5, dtype="float64"), stop=Stop(1e-6))
    assert found.status == "solved"
    assert found.objective == pytest.approx(best.objective, rel=1e-8)
    np.testing.assert_allclose(found.offset, best.offset, atol=1e-5)


@pytest.mark.parametrize("solver", [Batch(), SMO(), Rosen()], ids=repr)
def test_several_problems_over_the_protocol_alone_can_be_solved(data, solver):
    X, y = data
    halves = [np.arange(0, 120, 2), np.arange(1, 120, 2)]
    order = np.concatenate(halves)
    parts = [np.arange(60), np.arange(60, 120)]

    def make(k):
        return Subproblem(str(k), dual.c_svc(y[halves[k]], C=3.0), parts[k], np.array([k]))

    problems = Subproblems(np.array([0, 60, 120]), np.array([60, 60]), make)
    with watch_interrupt(Limit(None)) as limit:
        found = solver.solve_many(problems, dense(X[order]), stop=Stop(1e-6), interrupt=limit, n_jobs=1)
    for k, half in enumerate(halves):
        alone = Batch().solve(dual.c_svc(y[half], C=3.0), Gram(X[half], gamma=0.5, dtype="float64"))
        assert found[k].status == "solved" and found[k].objective == pytest.approx(alone.objective, rel=1e-3)


def test_a_regression_over_the_protocol_alone_is_solved_in_one_call(data):
    X, _ = data
    problem = dual.epsilon_svr(np.sin(X[:, 0]), C=3.0, epsilon=0.1)
    problems = Subproblems.one(problem, len(X))
    with watch_interrupt(Limit(None)) as limit:
        found = Batch().solve_many(problems, dense(X), stop=Stop(1e-6), interrupt=limit)[0]
    assert found.engine == "path" and found.status == "solved"
    alone = SMO().solve(problem, Gram(X, gamma=0.5, dtype="float64"), stop=Stop(1e-6))
    assert found.objective == pytest.approx(alone.objective, rel=1e-8)
