import pytest
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import SVC, SVR, AllDistancesSVC, CrammerSingerSVC, L2OneClassSVM, NuSVC
from maxmargin.estimators.search_axes import Axis
from maxmargin.model_selection import Grid, heuristic
from maxmargin.model_selection.plan import jobs_of, parents_of

GRID = list(ParameterGrid({"C": [10.0, 0.1, 1.0], "gamma": [0.5, 2.0]}))


def test_c_ascends_for_an_svc_at_a_fixed_width():
    for node, parent in enumerate(parents_of(SVC(), GRID, "auto")):
        if GRID[node]["C"] == 0.1:
            assert parent == -1
        else:
            assert GRID[parent] == {"C": GRID[node]["C"] / 10, "gamma": GRID[node]["gamma"]}


def test_other_estimators_go_in_the_direction_that_was_measured_best():
    down = parents_of(CrammerSingerSVC(), GRID, "auto")
    assert [GRID[k]["C"] for k in range(6) if down[k] == -1] == [10.0, 10.0]
    grid = list(ParameterGrid({"nu": [0.1, 0.2, 0.3]}))
    assert parents_of(NuSVC(), grid, "auto") == [1, 2, -1]
    assert parents_of(NuSVC(), grid, "up") == [-1, 0, 1]


def test_c_ascends_for_a_regressor_and_where_c_is_fixed_epsilon_descends():
    grid = list(ParameterGrid({"C": [1.0, 2.0], "epsilon": [0.1, 0.2]}))
    for node, parent in enumerate(parents_of(SVR(), grid, "auto")):
        assert parent == -1 if grid[node]["C"] == 1.0 else grid[parent] == {**grid[node], "C": 1.0}
    assert parents_of(SVR(), [{"epsilon": e} for e in (0.1, 0.2, 0.3)], "auto") == [1, 2, -1]


@pytest.mark.parametrize("prefix", ["", "l2oneclasssvm__"])
def test_a_one_class_machine_with_squared_slacks_follows_the_papers_spine_along_the_widths(prefix):
    values = {f"{prefix}C": [1.0, 100.0, 10.0], f"{prefix}gamma": [0.5, 0.1, 2.0]}
    machine = make_pipeline(StandardScaler(), L2OneClassSVM()) if prefix else L2OneClassSVM()
    paper = heuristic(Grid(values), f"{prefix}gamma", {f"{prefix}gamma": "up", f"{prefix}C": "down"})
    found = parents_of(machine, list(ParameterGrid(values)), "auto")
    assert found == paper.parents.tolist()
    assert found.count(-1) == 1
    assert parents_of(machine, list(ParameterGrid(values)), "down").count(-1) == 3


def test_the_spine_needs_no_c_and_leaves_out_values_that_are_not_numbers():
    widths = [{"gamma": g} for g in (0.5, "scale", 0.1)]
    assert parents_of(L2OneClassSVM(), widths, "auto") == [2, -1, -1]
    kernels = list(ParameterGrid({"gamma": [0.1, 0.5], "kernel": ["rbf", "laplacian"]}))
    assert parents_of(L2OneClassSVM(), kernels, "auto") == [-1, -1, 0, 1]


def test_hulls_grow_along_nu_or_mu():
    assert parents_of(AllDistancesSVC(), [{"nu": nu} for nu in (0.1, 0.2, 0.3)], "auto") == [1, 2, -1]
    assert parents_of(AllDistancesSVC(), [{"mu": mu} for mu in (0.1, 0.2, 0.3)], "auto") == [-1, 0, 1]
    assert parents_of(AllDistancesSVC(), [{"mu": None}, {"mu": 0.2}, {"mu": 0.1}], "auto") == [-1, 2, -1]


def test_without_an_axis_of_the_estimator_every_node_starts_anew():
    assert parents_of(SVC(), [{"gamma": 1.0}, {"gamma": 2.0}], "auto") == [-1, -1]
    assert parents_of(SVC(), GRID, "cold") == [-1] * 6


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_parents_come_before_their_children_in_a_job(n_jobs):
    parents = [2, 0, -1, 2, 3, -1]
    jobs = jobs_of(SVC(), [{"C": float(k)} for k in range(6)], parents, 3, n_jobs)
    found = sorted((f, n) for c in jobs for f in c.folds for n in c.nodes)
    assert found == [(f, n) for f in range(3) for n in range(6)]
    assert len(jobs) == (2 if n_jobs == 1 else 6)
    for job in jobs:
        seen = set()
        for node, parent in zip(job.nodes, job.parents, strict=True):
            assert parent == parents[node]
            assert parent == -1 or parent in seen
            seen.add(node)


def test_nodes_with_different_preprocessing_do_not_share_a_job():
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = [{"svc__C": c, "standardscaler__with_mean": m} for m in (True, False) for c in (1.0, 2.0)]
    jobs = jobs_of(pipeline, grid, [-1, 0, 1, 2], 1)
    assert sorted(c.nodes for c in jobs) == [(0, 1), (2, 3)]
    assert all(c.parents[0] == -1 for c in jobs)


def test_the_largest_gamma_comes_first():
    jobs = jobs_of(SVC(), GRID, parents_of(SVC(), GRID, "auto"), 3)
    assert [GRID[job.nodes[0]]["gamma"] for job in jobs] == [2.0, 0.5]
    named = [{"C": 1.0, "gamma": gamma} for gamma in ("scale", 0.5, "auto", 2.0)]
    assert [job.nodes[0] for job in jobs_of(SVC(), named, [-1] * 4, 3)] == [3, 1, 0, 2]


def test_jobs_of_two_folds_alternate_where_each_has_rows_of_its_own_and_workers_are_several():
    pipeline = make_pipeline(StandardScaler(), SVC())
    grid = [{"svc__gamma": gamma} for gamma in (2.0, 1.0)]
    for workers, folds in ((1, [0, 0, 1, 1, 2, 2]), (2, [0, 1, 0, 1, 2, 2]), (8, [0, 1, 0, 1, 2, 2])):
        assert [job.folds[0] for job in jobs_of(pipeline, grid, [-1, -1], 3, workers)] == folds


def test_jobs_with_the_same_preprocessing_follow_each_other():
    pipeline = make_pipeline(StandardScaler(), SVC())
    values = {"svc__gamma": [0.5, 2.0, 1.0], "standardscaler__with_mean": [True, False]}
    grid = list(ParameterGrid(values))
    jobs = jobs_of(pipeline, grid, [-1] * 6, 1)
    found = [
        (grid[job.nodes[0]]["standardscaler__with_mean"], grid[job.nodes[0]]["svc__gamma"]) for job in jobs
    ]
    assert found == [(mean, gamma) for mean in (True, False) for gamma in (2.0, 1.0, 0.5)]


class Named(SVC):
    """A subclass with a parameter of its own."""

    def __init__(self, C=1.0, gamma="scale", name=""):
        super().__init__(C=C, gamma=gamma)
        self.name = name


class Scaled(SVC):
    """A subclass with a method of its own."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(2 * X, y, sample_weight)


class Reversed(NuSVC):
    """A subclass with an axis of its own."""

    _search_axes = (Axis("nu", ascending=True),)


def test_subclasses_inherit_the_axes_of_their_estimator_or_declare_others():
    assert parents_of(Named(), GRID, "auto") == parents_of(SVC(), GRID, "auto")
    assert parents_of(Reversed(), [{"nu": nu} for nu in (0.1, 0.2, 0.3)], "auto") == [-1, 0, 1]


def test_all_folds_of_an_estimator_with_a_c_path_are_one_job_also_for_a_subclass():
    def count(estimator):
        return len(jobs_of(estimator, GRID, parents_of(estimator, GRID, "auto"), 5))

    assert [count(kind()) for kind in (SVC, Named, Scaled, NuSVC)] == [2, 2, 10, 30]


@pytest.mark.parametrize("path", [[0, 1], [1, 0, -1, -1, -1, -1], [7] * 6, "sideways"])
def test_an_invalid_path_is_refused(path):
    with pytest.raises(ValueError, match="path"):
        parents_of(SVC(), GRID, path)
