"""The statement of cost: the same rows for all candidates, equal time for the subsample."""

import numpy as np
import pytest

from maxmargin.cells import cost
from maxmargin.cells.cost import measured_cost

N = 400
X, Y = np.arange(N, dtype=float)[:, None], np.arange(N) % 2


class Clock:
    """A clock that only training moves."""

    now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(cost, "time", clock)
    return clock


def trainer(clock, seconds, wrong=0, seen=None):
    """A candidate that takes seconds(rows), and gets some of the held-out rows wrong."""

    def train(X, y, weight):
        clock.now += seconds(len(y))
        if seen is not None:
            seen.append(X.ravel())

        def predict(rows):
            labels = rows.ravel().astype(int) % 2
            labels[:wrong] = 1 - labels[:wrong]
            return labels

        return predict

    return train


def test_all_candidates_are_trained_and_scored_on_the_same_rows(clock):
    seen = []
    cells = trainer(clock, lambda n: 1.0, 10, seen)
    exact = trainer(clock, lambda n: n / 100, 5, seen)
    found = measured_cost(cells, exact, X, Y, np.ones(N), True, seed=0)
    assert found.held_out == 100 and found.cells.rows == found.exact.rows == 300
    assert np.array_equal(seen[0], seen[1]) and set(seen[2]) <= set(seen[0])
    assert found.cells.score == pytest.approx(0.9) and found.exact.score == pytest.approx(0.95)
    assert found.error == pytest.approx(np.sqrt(0.05 * 0.95 / 100))
    assert found.measure == "accuracy" and found.seconds == clock.now


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_the_subsample_takes_as_long_as_the_cells(clock, power):
    cells, exact = trainer(clock, lambda n: 0.2), trainer(clock, lambda n: (n / 300) ** power)
    found = measured_cost(cells, exact, X, Y, np.ones(N), True, seed=0)
    assert 0.8 <= found.subsample.seconds / found.cells.seconds <= 1.25
    assert found.subsample.rows == pytest.approx(300 * 0.2 ** (1 / power), rel=0.3)


def test_the_subsample_is_all_rows_where_cells_take_longer(clock):
    cells, exact = trainer(clock, lambda n: 5.0), trainer(clock, lambda n: 1.0)
    assert measured_cost(cells, exact, X, Y, np.ones(N), True, seed=0).subsample.rows == 300


def test_regression_is_scored_by_r2():
    def mean(X, y, weight):
        return lambda rows: np.full(len(rows), y.mean())

    def perfect(X, y, weight):
        return lambda rows: rows.ravel()

    found = measured_cost(mean, perfect, X, X.ravel(), np.ones(N), False, seed=0)
    assert found.measure == "R²" and found.exact.score == 1.0
    assert found.cells.score == pytest.approx(0.0, abs=0.1)


def test_the_text_has_the_three_scores_and_the_difference():
    few = cost.Candidate(0.7, 1.0, 40)
    text = str(
        cost.Cost(cost.Candidate(0.8, 1.0, 300), cost.Candidate(0.9, 2.0, 300), few, 0.01, 100, "R²", 9.0)
    )
    assert all(
        number in text for number in ("0.8000", "0.9000", "0.7000", "-0.1000 ± 0.0100", "100 held-out")
    )
