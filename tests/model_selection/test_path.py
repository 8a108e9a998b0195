"""Grids as graphs, paths through them, the cheapest ones."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import ParameterGrid

from maxmargin.model_selection import Grid, Path, arborescence, cost_matrix, heuristic, up

GRIDS = {
    "plane": {"C": [1, 10, 100], "gamma": [0.1, 0.2, 0.4, 0.8]},
    "unsorted": {"gamma": [3.0, 1.0, 2.0], "C": np.array([5, 1, 3, 4])},
    "mixed": {"kernel": ["rbf", "linear"], "C": [2, 1, 3], "class_weight": [None, {0: 2}], "gamma": [1, 2]},
    "three": {"C": [1, 2], "epsilon": [0.1, 0.2, 0.3], "gamma": [1, 2, 3]},
    "line": {"C": [1, 2, 3, 4, 5]},
    "names": {"kernel": ["rbf", "linear"], "shrinking": [True, False]},
    "scale": {"gamma": ["scale", 0.1, 0.2], "C": [1, 2]},
    "point": {},
}
every_grid = pytest.mark.parametrize("param_grid", GRIDS.values(), ids=GRIDS)


def is_number(value):
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def are_neighbours(param_grid, a, b):
    """By the definition, on the nodes' values."""
    differ = [name for name in param_grid if a[name] != b[name]]
    if len(differ) != 1 or not all(is_number(v) for v in param_grid[differ[0]]):
        return False
    values = sorted(param_grid[differ[0]])
    return abs(values.index(a[differ[0]]) - values.index(b[differ[0]])) == 1


# -- the grid --------------------------------------------------------------------------------


@every_grid
def test_nodes_are_those_of_scikit_learn_in_its_order(param_grid):
    grid, nodes = Grid(param_grid), list(ParameterGrid(param_grid))
    assert len(grid) == len(nodes)
    assert [grid[i] for i in range(len(grid))] == nodes


@every_grid
def test_neighbours_are_one_value_away_along_one_numeric_parameter(param_grid):
    grid, nodes = Grid(param_grid), list(ParameterGrid(param_grid))
    for i, node in enumerate(nodes):
        expected = {j for j, other in enumerate(nodes) if are_neighbours(param_grid, node, other)}
        assert set(grid.neighbours(i)) == expected and len(grid.neighbours(i)) == len(expected)
    assert set(grid.edges()) == {(i, j) for i in range(len(grid)) for j in grid.neighbours(i)}


def test_a_parameter_with_any_other_value_is_not_numeric():
    assert Grid(GRIDS["mixed"]).numeric == ("C", "gamma")
    assert Grid(GRIDS["scale"]).numeric == ("C",)
    assert Grid({"tol": [1e-3, np.nan], "C": [1.0, np.inf], "b": [np.True_], "n": [np.int64(1)]}).numeric == (
        "n",
    )


def test_steps_go_by_ascending_values_and_end_at_the_ends():
    grid = Grid(GRIDS["unsorted"])
    node = next(i for i in range(len(grid)) if grid[i] == {"C": 3, "gamma": 1.0})
    assert grid[grid.step(node, "C", 2)] == {"C": 5, "gamma": 1.0}
    assert grid[grid.step(node, "gamma", 1)] == {"C": 3, "gamma": 2.0}
    assert grid.step(node, "C", 3) is None and grid.step(node, "gamma", -1) is None
    assert grid.rank(node, "C") == 1 and grid.rank(node, "gamma") == 0


def test_wrong_grids_and_nodes_are_refused():
    with pytest.raises(TypeError, match="param_grid must be a dict"):
        Grid([{"C": [1]}, {"C": [2]}])
    with pytest.raises(TypeError):
        Grid({"C": 1.0})
    with pytest.raises(ValueError):
        Grid({"C": []})
    for node in (-1, 12):
        with pytest.raises(IndexError, match="no node"):
            Grid(GRIDS["plane"])[node]
    with pytest.raises(ValueError, match="not a numeric parameter"):
        Grid(GRIDS["mixed"]).step(0, "kernel", 1)


def test_repr_shows_the_size():
    assert repr(Grid(GRIDS["plane"])) == "<Grid of 12 nodes, C: 3, gamma: 4>"


# -- paths -----------------------------------------------------------------------------------


def random_path(n, seed, roots=1):
    rng = np.random.default_rng([n, seed])
    names = rng.permutation(n)
    parents = np.full(n, -1)
    for k in range(roots, n):
        parents[names[k]] = names[rng.integers(max(0, k - 4), k)]
    return Path(parents)


@pytest.mark.parametrize("seed", range(5))
def test_order_has_parents_first_and_every_node_once(seed):
    path = random_path(40, seed, roots=3)
    place = np.argsort(path.order)
    assert sorted(path.order) == list(range(40))
    assert all(place[p] < place[i] for i, p in enumerate(path.parents) if p >= 0)
    assert len(path.roots) == 3
    assert path.pairs() == [(path.parents[i], i) for i in path.order]
    assert all(path.parents[c] == i for i in range(40) for c in path.children(i))


def test_wrong_parents_are_refused():
    for parents, message in (
        ([1, 0], "cycle"), ([-1, 1], "cycle"), ([-1, 2], "one of"), ([-2], "one of"), ([-0.5], "whole"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=message):
            Path(parents)


def test_a_path_cannot_be_changed_and_compares_by_its_parents():
    path = Path([-1, 0])
    with pytest.raises(ValueError):
        path.parents[0] = 1
    assert path == Path([-1, 0]) != Path([-1, -1])
    assert repr(path) == "<Path over 2 nodes, 1 of them cold>"
    assert len(Path([])) == 0 and Path([]).pairs() == []


def test_a_very_long_chain_is_no_problem():
    n = 5000
    path = Path(np.arange(-1, n - 1))
    np.testing.assert_array_equal(path.order, np.arange(n))
    assert [len(c.nodes) for c in path.chains(5)] == [1000] * 5


def test_following_hands_on_solutions_and_forgets_them():
    path = random_path(60, 0, roots=2)
    alive, most = set(), 0

    class Solved:
        def __init__(self, node):
            self.node = node
            alive.add(node)

        def __del__(self):
            alive.discard(self.node)

    def train(node, start):
        nonlocal most
        assert (start is None) == (path.parents[node] < 0)
        assert start is None or start.node == path.parents[node]
        most = max(most, len(alive))
        return Solved(node)

    assert [node for node, _ in path.follow(train)] == path.order.tolist()
    assert most <= 8


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("seed", range(3))
def test_chains_cover_the_path_balanced_and_in_order(n, seed):
    path = random_path(50, seed, roots=1 + seed)
    costs = np.random.default_rng(seed).exponential(size=50)
    chains = path.chains(n, costs)
    assert sorted(itertools.chain(*(c.nodes for c in chains))) == list(range(50))
    done = set()
    for chain in chains:
        assert chain.start == path.parents[chain.nodes[0]] and (chain.start < 0 or chain.start in done)
        mine = set()
        for node in chain.nodes:
            assert node == chain.nodes[0] or path.parents[node] in mine
            mine.add(node)
        done |= mine
        assert chain.cost == pytest.approx(costs[chain.nodes].sum())
        assert chain.cost <= max(costs.sum() / n * 1.001, costs[chain.nodes].max())
    if n == 1:
        assert len(chains) == 1 + seed


def test_chains_begin_with_what_others_wait_for():
    path = heuristic(Grid({"C": list(range(1, 21)), "sigma": list(range(1, 21))}), spine="sigma")
    first, second = path.chains(2)
    assert len(first.nodes) == len(second.nodes) == 200
    # The other chain can start when the spine of this one is done.
    assert first.start == -1 and first.nodes.index(second.start) == 9


def test_separate_trees_stay_whole_where_they_are_small():
    grid = Grid(GRIDS["plane"])
    chains = up(grid, "C").chains(2)
    assert [c.start for c in chains] == [-1] * 4 and {len(c.nodes) for c in chains} == {3}


@pytest.mark.parametrize("n", [0, -1, 1.5, True])
def test_a_number_of_chains_that_is_not_positive_and_whole_is_refused(n):
    with pytest.raises(ValueError, match="n must be a positive whole number"):
        Path([-1]).chains(n)


@pytest.mark.parametrize("costs", [[1.0], [1.0, -1.0], [1.0, np.nan], [1.0, np.inf]])
def test_wrong_costs_of_nodes_are_refused(costs):
    with pytest.raises(ValueError, match="costs must be 2 finite numbers"):
        Path([-1, 0]).chains(2, costs)


def test_several_grids_are_joined_as_scikit_learn_joins_them():
    grids = [GRIDS["plane"], GRIDS["line"], GRIDS["point"]]
    joined = Path.join([up(Grid(g), "C") if g else Path([-1]) for g in grids])
    nodes = list(ParameterGrid(grids))
    assert len(joined) == len(nodes)
    for node, parent in enumerate(joined.parents):
        assert parent < 0 or nodes[parent].keys() == nodes[node].keys()
        assert parent < 0 or nodes[parent]["C"] < nodes[node]["C"]
    assert len(Path.join([])) == 0


# -- paths that need no costs ----------------------------------------------------------------


def test_the_papers_heuristic():
    grid = Grid({"C": [1, 10, 100], "sigma": [0.5, 0.1, 5.0]})
    for node, parent in enumerate(heuristic(grid, spine="sigma").parents):
        C, sigma = grid[node]["C"], grid[node]["sigma"]
        if C < 100:
            expected = {"C": 10 * C, "sigma": sigma}
        elif sigma < 5:
            expected = {"C": 100, "sigma": 0.5 if sigma == 0.1 else 5.0}
        else:
            expected = None
        assert (grid[parent] if parent >= 0 else None) == expected


def test_directions_may_differ_by_parameter():
    grid = Grid(GRIDS["plane"])
    path = heuristic(grid, spine="gamma", direction={"gamma": "up"})
    assert [grid[r] for r in path.roots] == [{"C": 100, "gamma": 0.1}]
    assert heuristic(grid, "C", "up") == heuristic(grid, "C", {"C": "up", "gamma": "up"})
    assert [grid[r] for r in heuristic(grid, "C", "up").roots] == [{"C": 1, "gamma": 0.1}]


@every_grid
def test_paths_step_between_neighbours_with_one_cold_start_per_component(param_grid):
    grid = Grid(param_grid)
    for name in grid.numeric:
        others = len(grid) // len(param_grid[name])
        components = len(grid) // int(np.prod([len(param_grid[n]) for n in grid.numeric]))
        for path, roots in (
            (heuristic(grid, name), components),
            (up(grid, name), others),
            (up(grid, name, spine="down"), components),
        ):
            assert len(path.roots) == roots
            assert all(p in grid.neighbours(i) for i, p in enumerate(path.parents) if p >= 0)
        assert all(grid[p][name] < grid[i][name] for i, p in enumerate(up(grid, name).parents) if p >= 0)


def test_a_spine_over_some_of_the_other_parameters():
    grid = Grid(GRIDS["three"])
    path = up(grid, "C", spine={"gamma": "down"})
    assert [grid[r] for r in path.roots] == [{"C": 1, "epsilon": e, "gamma": 3} for e in (0.1, 0.2, 0.3)]


def test_wrong_directions_and_names_are_refused():
    grid = Grid(GRIDS["mixed"])
    with pytest.raises(ValueError, match="must be 'up' or 'down'"):
        heuristic(grid, "C", "left")
    with pytest.raises(ValueError, match="not a numeric parameter"):
        heuristic(grid, "kernel")
    with pytest.raises(ValueError, match="not a numeric parameter"):
        heuristic(grid, "C", {"kernel": "up"})
    with pytest.raises(ValueError, match="not a numeric parameter"):
        up(grid, "nu")
    with pytest.raises(ValueError, match="cannot go along 'C'"):
        up(grid, "C", spine={"C": "up"})


# -- paths by costs --------------------------------------------------------------------------


def brute_force(costs, cold, one_root):
    """The least cost over all choices of parents."""
    n = len(cold)
    into = [[-1, *costs.row[(costs.col == j) & np.isfinite(costs.data)]] for j in range(n)]
    cost = costs.todense()
    best, fewest = np.inf, n
    for parents in itertools.product(*into):
        try:
            path = Path(parents)
        except ValueError:
            continue
        roots = len(path.roots)
        total = sum(cold[j] if p < 0 else cost[p, j] for j, p in enumerate(parents))
        if (one_root and (roots, total) < (fewest, best)) or (not one_root and total < best):
            best, fewest = total, roots
    return best, fewest


def random_costs(n, density, seed, whole=False):
    rng = np.random.default_rng([n, seed])
    there = rng.random((n, n)) < density
    np.fill_diagonal(there, False)
    i, j = np.nonzero(there)
    data = rng.integers(0, 4, len(i)).astype(float) if whole else rng.exponential(size=len(i))
    cold = rng.integers(0, 6, n).astype(float) if whole else 2 * rng.exponential(size=n)
    return sp.coo_array((data, (i, j)), shape=(n, n)), cold


@pytest.mark.parametrize("cold_starts", ["few", "any"])
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_the_arborescence_is_the_cheapest_by_brute_force(seed, whole, cold_starts):
    for n, density in ((2, 0.9), (4, 0.6), (5, 0.5), (6, 0.4)):
        costs, cold = random_costs(n, density, seed, whole)
        path = arborescence(costs, cold, cold_starts)
        expected, fewest = brute_force(costs, cold, cold_starts == "few")
        assert path.node_costs(costs, cold).sum() == pytest.approx(expected, abs=1e-12)
        if cold_starts == "few":
            assert len(path.roots) == fewest


@pytest.mark.parametrize("seed", range(3))
def test_the_arborescence_costs_what_networkx_finds(seed):
    nx = pytest.importorskip("networkx")
    grid = Grid({"C": list(range(12)), "gamma": list(range(9))})
    rng = np.random.default_rng(seed)
    costs, cold = cost_matrix(grid, lambda i: (rng.exponential(3.0), None), lambda j, _: rng.exponential())
    graph = nx.DiGraph()
    graph.add_weighted_edges_from(zip(costs.row, costs.col, costs.data, strict=True))
    graph.add_weighted_edges_from((-1, j, c) for j, c in enumerate(cold))
    expected = nx.minimum_spanning_arborescence(graph).size(weight="weight")
    path = arborescence(costs, cold, "any")
    assert path.node_costs(costs, cold).sum() == pytest.approx(expected)


def test_a_large_grid_is_quick_and_no_worse_than_any_other_path():
    grid = Grid({"C": list(range(50)), "gamma": list(range(50))})
    rng = np.random.default_rng(0)
    costs, cold = cost_matrix(grid, lambda i: (rng.exponential(3.0), None), lambda j, _: rng.exponential())
    path = arborescence(costs, cold)
    assert len(path.roots) == 1
    least = path.node_costs(costs, cold).sum()
    others = (heuristic(grid, "C"), heuristic(grid, "gamma", "up"), up(grid, "C", spine="up"))
    assert all(other.node_costs(costs, cold).sum() > least for other in others)
    assert arborescence(costs, cold, "any").node_costs(costs, cold).sum() <= least


def test_components_have_a_cold_start_each():
    grid = Grid(GRIDS["mixed"])
    costs, cold = cost_matrix(grid, lambda i: (1.0, i), lambda j, i: 5.0)
    assert len(arborescence(costs, cold).roots) == 4
    assert len(arborescence(costs, cold, "any").roots) == len(grid)


def test_infinite_edges_are_not_taken_and_free_ones_are():
    grid = Grid(GRIDS["line"])
    costs, cold = cost_matrix(grid, lambda i: (1.0, i), lambda j, i: 0.0 if j > i else np.inf)
    np.testing.assert_array_equal(arborescence(costs, cold).parents, [-1, 0, 1, 2, 3])
    np.testing.assert_array_equal(arborescence(costs.tocsr(), cold).parents, [-1, 0, 1, 2, 3])
    nothing, cold = cost_matrix(grid, lambda i: (1.0, i), lambda j, i: np.inf)
    assert len(arborescence(nothing, cold).roots) == 5


def test_costs_are_measured_from_solutions_of_cold_neighbours():
    grid = Grid(GRIDS["plane"])
    calls = []

    def cold(i):
        calls.append(i)
        return i + 100, {"node": i}

    def warm(j, solution):
        assert len(calls) == len(grid)
        return 1000 * solution["node"] + j

    costs, alone = cost_matrix(grid, cold, warm)
    assert calls == list(range(len(grid)))
    np.testing.assert_array_equal(alone, np.arange(len(grid)) + 100)
    assert set(zip(costs.row, costs.col, strict=True)) == set(grid.edges())
    np.testing.assert_array_equal(costs.data, 1000 * costs.row + costs.col)
    path = Path([-1, 0, *[-1] * 10])
    np.testing.assert_array_equal(path.node_costs(costs, alone)[:3], [100, 1, 102])
    assert np.isinf(Path([-1] * 11 + [0]).node_costs(costs, alone)[-1])


def test_a_grid_of_one_node():
    costs, cold = cost_matrix(Grid({}), lambda i: (1.0, None), lambda j, _: 0.0)
    assert arborescence(costs, cold).parents.tolist() == [-1]


def test_wrong_costs_are_refused():
    edge = sp.coo_array(([1.0], ([0], [1])), shape=(2, 2))
    with pytest.raises(ValueError, match="cold_starts must be 'few' or 'any'"):
        arborescence(edge, [1.0, 1.0], "one")
    with pytest.raises(TypeError, match="sparse"):
        arborescence(np.ones((2, 2)), [1.0, 1.0])
    with pytest.raises(ValueError, match="square"):
        arborescence(edge, [1.0])
    for cold in ([1.0, np.inf], [-1.0, 1.0], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="cold trainings must be finite"):
            arborescence(edge, cold)
    for cost in (-1.0, np.nan):
        with pytest.raises(ValueError, match="must not be negative"):
            arborescence(sp.coo_array(([cost], ([0], [1])), shape=(2, 2)), [1.0, 1.0])
