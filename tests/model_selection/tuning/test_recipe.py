import numpy as np
import pytest

from maxmargin.model_selection.tuning.recipe import Climb, Node, ascend, best_of, explore, refine
from maxmargin.model_selection.tuning.surface import Setting


class Hill:
    """A surface whose scores fall with the distance from a best C and gamma, along and across the ridge."""

    n_rows, counts_rows = 1000, True

    def __init__(self, C, gamma, noise=0.0):
        self.best, self.asked, self.noise = np.log10([C, gamma or 1.0]), [], noise

    def baseline(self, setting):
        return 0.5

    def scores_of(self, walks):
        return [self.scores(*walk) for walk in walks]

    def scores(self, setting, Cs):
        assert list(Cs) == sorted(Cs)
        self.asked += [(setting, C) for C in Cs]
        found = []
        for C in Cs:
            c = np.log10(C) - self.best[0]
            g = (np.log10(setting.gamma) - self.best[1]) if setting.gamma else 0.0
            score = 0.9 - 0.02 * (c + g) ** 2 - 0.01 * (c - g) ** 2
            found.append(np.full(5, score))
        return np.array(found)


@pytest.mark.parametrize("C", [0.1, 1.0, 30.0, 1000.0])
@pytest.mark.parametrize("gamma", [0.02, 0.1, 0.5, 2.0])
def test_the_best_node_is_within_a_step_of_the_top(C, gamma):
    climb = Climb(Hill(C, gamma))
    explore(climb, "rbf", 0.1, 1.0)
    refine(climb, climb.best)
    best = climb.best
    assert abs(np.log10(best.C / C)) <= 1.0 and abs(np.log10(best.setting.gamma / gamma)) <= 0.8
    assert best.mean > 0.88


def test_no_combination_is_tried_twice():
    hill = Hill(10.0, 0.3)
    climb = Climb(hill)
    explore(climb, "rbf", 0.1, 1.0)
    refine(climb, climb.best)
    refine(climb, climb.best)
    assert len(set(hill.asked)) == len(hill.asked) == len(climb.nodes)


def test_about_fifteen_combinations_are_tried():
    for C in (1.0, 100.0):
        hill = Hill(C, 0.1)
        climb = Climb(hill)
        explore(climb, "rbf", 0.1, 1.0)
        refine(climb, climb.best)
        assert 8 <= len(hill.asked) <= 22


def test_the_walk_along_C_ends_when_scores_fall():
    hill = Hill(1.0, None)
    explore(Climb(hill), "linear", 0.0, 1.0)
    assert max(C for _, C in hill.asked) <= 100.0


class Plain(Hill):
    """A surface that is flat, as of constant models, up to a large C."""

    def scores(self, setting, Cs):
        return np.where(np.array(Cs)[:, None] < 50.0, 0.5, super().scores(setting, Cs))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_walk_along_C_goes_on_while_models_are_constant(kernel):
    climb = Climb(Plain(300.0, 0.1))
    explore(climb, kernel, 0.1, 1.0)
    assert climb.best.C >= 100.0 and climb.best.mean > 0.85


def test_C_is_counted_in_its_unit():
    hill = Hill(1000.0, None)
    climb = Climb(hill)
    explore(climb, "linear", 0.0, 1000.0)
    assert pytest.approx(1000.0) == climb.best.C


def test_of_equal_nodes_the_one_with_the_least_C_and_gamma_is_best():
    nodes = [
        Node(Setting("rbf", g), C, np.array([0.9, 0.8])) for C, g in ((10.0, 0.1), (1.0, 0.1), (1.0, 1.0))
    ]
    assert best_of(nodes) is nodes[1]


def test_a_node_that_was_not_solved_is_never_the_best():
    bad = Node(Setting("rbf", 0.1), 1.0, np.array([np.nan, 1.0]))
    assert best_of([bad, Node(Setting("rbf", 0.1), 2.0, np.zeros(2))]).C == 2.0


def test_scores_that_are_known_are_not_computed_again():
    hill = Hill(10.0, 0.1)
    first = Climb(hill)
    explore(first, "rbf", 0.1, 1.0)
    known = iter([node.scores for node in first.nodes.values()])
    again = Climb(Hill(1.0, 1.0), known=lambda: next(known, None))
    explore(again, "rbf", 0.1, 1.0)
    assert again.surface.asked == [] and list(again.nodes) == list(first.nodes)


def test_ascending_ends_at_the_top_of_a_slope_or_after_its_rounds():
    hill = Hill(3000.0, 0.01)
    climb = Climb(hill)
    climb.walk(Setting("rbf", 0.1), [10.0])
    ascend(climb, 10, 1.0)
    assert climb.best.mean > 0.895
    assert max(C for _, C in hill.asked) <= 1e5
    short = Climb(Hill(3000.0, 0.01))
    short.walk(Setting("rbf", 0.1), [10.0])
    ascend(short, 1, 1.0)
    assert len(short.nodes) <= 10 and short.best.mean < climb.best.mean


def test_walks_side_by_side_give_the_nodes_of_walks_one_by_one():
    walks = [(Setting("rbf", 0.1), [1.0, 10.0]), (Setting("rbf", 0.2), [1.0])]
    together, alone = Climb(Hill(10.0, 0.1)), Climb(Hill(10.0, 0.1))
    together.walk_all(walks)
    together.walk_all(walks)  # known already
    for walk in walks:
        alone.walk(*walk)
    assert list(together.nodes) == list(alone.nodes) and len(together.surface.asked) == 3
