"""Which trainer takes which chain, and why."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, StandardScaler

from maxmargin import SVC, SVR, IncrementalSVC, NuSVC
from maxmargin.model_selection.folds import Folds
from maxmargin.model_selection.jobs import Job, SearchSetup
from maxmargin.model_selection.trainers import TRAINERS
from maxmargin.model_selection.work import Work

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.arange(30) % 2
C_PATH, WARM, USUAL = TRAINERS
GROWING = {"C": [0.1, 1.0]}


def work(estimator, grid=None, X=X, y=Y, memory=1e9, fit_params=None, splits=None):
    candidates = list(ParameterGrid(GROWING if grid is None else grid))
    nodes = tuple(range(len(candidates)))
    setup = SearchSetup(
        estimator=estimator, candidates=candidates, splits=splits or list(KFold(3).split(X)), scorers=None,
        fit_params=fit_params or {}, score_params={}, return_train_score=False, error_score=np.nan,
        folds=Folds(memory),
    )  # fmt: skip
    return Work(X, y, setup, Job((0, 1, 2), nodes, (-1, *nodes[:-1])))


class Named(SVC):
    """A subclass with a parameter and a method of its own."""

    def __init__(self, C=1.0, name=""):
        super().__init__(C=C)
        self.name = name

    def describe(self):
        return self.name


@pytest.mark.parametrize(
    "estimator",
    [SVC(), SVR(), Named(), SVC(solver="batch"), make_pipeline(SVC()), SVC(kernel=lambda A, B: A @ B.T)],
)
def test_the_c_path_takes_hinge_machines_along_c(estimator):
    grid = {"svc__C": [0.1, 1.0]} if hasattr(estimator, "steps") else GROWING
    assert [trainer.can_take(work(estimator, grid)) for trainer in TRAINERS] == [None, None, None]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"estimator": NuSVC(), "grid": {"nu": [0.1, 0.2]}}, "the C path trains SVC and SVR, not NuSVC"),
        ({"estimator": SVC(loss="squared_hinge")}, "loss='hinge', not 'squared_hinge'"),
        ({"estimator": SVC(bias="penalised")}, "bias='free', not 'penalised'"),
        ({"estimator": SVR(loss="squared_epsilon_insensitive")}, "loss='epsilon_insensitive', not"),
        ({"estimator": SVC(solver="smo")}, "not to 'smo'"),
        ({"estimator": SVC(max_iter=100)}, "max_iter and max_time"),
        ({"estimator": SVC(max_time=9.0)}, "max_iter and max_time"),
        ({"estimator": SVC(), "grid": {"C": [1.0, 0.1]}}, "C does not ascend"),
        ({"estimator": SVC(), "grid": {"C": [1.0, np.inf]}}, "C must be a positive number, and finite"),
        ({"estimator": SVC(), "grid": {"gamma": [1.0, 2.0]}}, "other parameters than C change"),
        ({"estimator": SVC(), "memory": 10.0}, "would take more than `memory`"),
        ({"estimator": SVC(class_weight={5: 1.0})}, "class_weight does not suit a fold"),
        ({"estimator": SVC(class_weight={0: -1.0})}, "class_weight has negative numbers"),
    ],
)
def test_chains_that_are_not_along_c_are_left_to_warm_fits_with_a_reason(case, reason):
    job = work(**case)
    assert reason in C_PATH.can_take(job)
    assert WARM.can_take(job) is None


def text():
    return np.full((30, 2), "a")


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ({"estimator": IncrementalSVC()}, "IncrementalSVC keeps its own kernel matrix"),
        ({"estimator": SVC(), "grid": {"C": [-1.0, 1.0]}}, "a parameter is not valid (InvalidParameterError"),
        ({"estimator": SVC(), "grid": {"tol": [1e-3, "low"]}}, "a parameter is not valid"),
        ({"estimator": SVC(), "grid": {"c": [1.0]}}, "SVC has no parameter c"),
        ({"estimator": SVC(kernel="sigmoid")}, "the kernel may be indefinite"),
        ({"estimator": SVC(kernel="poly", coef0=-1.0)}, "the kernel may be indefinite"),
        ({"estimator": SVC(), "grid": {"kernel": ["rbf", "precomputed"]}}, "in different ways"),
        ({"estimator": SVC(break_ties=True, decision_function_shape="ovo")}, "break_ties"),
        ({"estimator": SVC(), "X": text()}, "the data cannot be used (ValueError"),
        ({"estimator": SVC(), "y": None}, "the estimator needs y"),
        ({"estimator": SVC(), "y": np.c_[Y]}, "y is not one-dimensional"),
        ({"estimator": SVC(), "y": X[:, 0]}, "y cannot be used (ValueError"),
        ({"estimator": SVR(), "y": np.where(Y, np.nan, 1.0)}, "y cannot be used (ValueError"),
        ({"estimator": SVC(), "y": [0] * 15 + [[1, 2]] * 15}, "y cannot be used (ValueError"),
        ({"estimator": SVC(), "y": np.arange(30) // 20}, "a fold has a single class"),
        ({"estimator": SVC(), "fit_params": {"groups": Y}}, "other parameters than sample_weight (groups)"),
        ({"estimator": SVC(), "fit_params": {"sample_weight": Y[:5]}}, "one finite number per row"),
        (
            {"estimator": SVC(), "fit_params": {"sample_weight": np.full(30, np.nan)}},
            "one finite number per row",
        ),
        ({"estimator": SVC(), "fit_params": {"sample_weight": ["a"] * 30}}, "weights are not numbers"),
        ({"estimator": SVC(), "fit_params": {"sample_weight": np.zeros(30)}}, "a positive weight"),
        ({"estimator": SVC(), "splits": [(np.arange(30), np.arange(0))] * 3}, "a fold has no rows"),
        (
            {"estimator": make_pipeline(StandardScaler(), SVC()), "grid": {"svc": [SVC(), NuSVC()]}},
            "svc is not a parameter of the steps before the last",
        ),
        (
            {"estimator": make_pipeline(KernelCenterer(), SVC(kernel="precomputed")), "grid": {}},
            "a pipeline changes a precomputed kernel matrix",
        ),
    ],
)
def test_jobs_that_fit_may_refuse_are_left_to_scikit_learn_with_a_reason(case, reason):
    job = work(**case)
    assert reason in WARM.can_take(job)
    assert C_PATH.can_take(job) is not None
    assert USUAL.can_take(job) is None
