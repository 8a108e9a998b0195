"""Solutions of several problems, as objects and as arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from maxmargin import SVC
from maxmargin.solvers.solution import Record, Solution, Status
from maxmargin.solvers.solutions import Solutions, SolvedTogether, Traces


def alone(gap=1.0, status=Status.STALLED, n_iter=7):
    record = Record(n_iter, 0.5, 0.25, -3.0, 2, 40, 80)
    return Solution(
        u=np.ones(2), offset=np.array([0.5]), status=status, gap=gap, violation=0.25, objective=-3.0,
        n_iter=n_iter, n_kernel_calls=80, n_kernel_evals=40, seconds=0.5, trace=(record, record),
        gradient=np.zeros(2),
    )  # fmt: skip


@pytest.fixture
def together():
    """Problems 1 and 4, whose variables are among those of others."""
    return SolvedTogether(
        index=np.array([1, 4]), starts=np.array([2, 7]), ends=np.array([4, 10]),
        u=np.arange(12.0), gradient=-np.arange(12.0), offset=np.array([0.1, 0.4]),
        gap=np.array([0.01, 0.04]), violation=np.array([1e-3, 4e-3]),
        measured_violation=np.array([5e-4, 2e-3]), objective=np.array([-1.0, -4.0]),
        noise=np.array([1e-9, 4e-9]), n_iter=np.array([10, 0]), n_support=np.array([2, 3]),
        n_kernel_calls=np.array([60, 0]), n_kernel_evals=np.array([6, 9]), seconds=0.125,
    )  # fmt: skip


def test_solutions_are_found_by_number_in_ascending_order(together):
    found = Solutions({6: alone(6.0), 3: alone(3.0)}, together)
    assert list(found) == [1, 3, 4, 6] and len(found) == 4
    assert [solution.gap for solution in found.values()] == [0.01, 3.0, 0.04, 6.0]
    assert 4 in found and 2 not in found and "4" not in found
    with pytest.raises(KeyError):
        found[2]


def test_an_entry_of_the_arrays_is_a_solution_like_others(together):
    solution = Solutions({}, together)[4]
    np.testing.assert_array_equal(solution.u, [7.0, 8.0, 9.0])
    np.testing.assert_array_equal(solution.gradient, [-7.0, -8.0, -9.0])
    assert (solution.offset[0], solution.gap, solution.violation, solution.noise) == (0.4, 0.04, 4e-3, 4e-9)
    assert solution.status is Status.SOLVED and solution.engine == "whole"
    assert solution.trace == (Record(0, 0.125, 2e-3, -4.0, 3, 9, 0),)
    assert type(solution.trace[0].n_iter) is int and type(solution.trace[0].violation) is float


@pytest.mark.parametrize(
    "name", ["gap", "relative_gap", "violation", "objective", "n_iter", "n_kernel_calls"]
)
def test_columns_have_the_numbers_of_the_solutions(together, name):
    for found in (Solutions({3: alone()}, together), Solutions({}, together), Solutions({3: alone()})):
        np.testing.assert_array_equal(found.column(name), [getattr(s, name) for s in found.values()])


def test_statuses_are_counted(together):
    assert Solutions({3: alone()}, together).statuses() == {Status.SOLVED: 2, Status.STALLED: 1}
    assert Solutions({}).statuses() == {}


def test_traces_have_an_entry_for_every_problem(together):
    traces = Solutions({3: alone()}, together).traces(6)
    assert len(traces) == 6 and [len(trace) for trace in traces] == [0, 1, 0, 2, 1, 0]
    assert traces[-2] == traces[4] == (Record(0, 0.125, 2e-3, -4.0, 3, 9, 0),)
    assert traces[1:4:2] == [traces[1], traces[3]]
    with pytest.raises(IndexError):
        traces[6]
    again = pickle.loads(pickle.dumps(traces))
    assert again == traces == list(traces) and again != list(traces)[:-1]


def test_a_model_of_many_pairs_keeps_numbers_not_the_variables_of_the_problems():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(12), 8)
    model = SVC(n_jobs=1).fit(rng.normal(size=(96, 3)) + y[:, None] % 5, y)
    assert isinstance(model.trace_, Traces)
    assert [trace[-1].n_iter for trace in model.trace_] == list(model.n_iter_)
    assert len(pickle.dumps(model.trace_)) < 66 * 8 * 10 + 2000
