"""Searches on a Ray cluster, through Ray's backend of joblib."""

import os

import joblib
import numpy as np
import pytest
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV

from maxmargin import SVC
from maxmargin.model_selection import SVMSearchCV

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
pytestmark = pytest.mark.timeout(300)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 4))
Y = np.where(X[:, 0] * X[:, 1] + 0.3 * RNG.normal(size=240) > 0, "yes", "no")
GRID = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}


@pytest.fixture(scope="module")
def cluster():
    """Two workers on this machine."""
    from ray.util.joblib import register_ray

    ray.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    register_ray()
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def expected():
    """Scores in this process."""
    return SVMSearchCV(SVC(), GRID, cv=3, n_jobs=1).fit(X, Y).cv_results_["mean_test_score"]


def process(y, predicted):
    """A score that tells in which process it was computed."""
    return float(os.getpid())


def test_a_search_runs_on_the_workers_and_has_the_scores_of_one_process(cluster, expected):
    scorers = {"accuracy": "accuracy", "process": make_scorer(process)}
    with joblib.parallel_config(backend="ray"):
        search = SVMSearchCV(SVC(), GRID, cv=3, n_jobs=2, scoring=scorers, refit="accuracy").fit(X, Y)
    assert np.array_equal(search.cv_results_["mean_test_accuracy"], expected)
    assert os.getpid() not in search.cv_results_["split0_test_process"]
    assert set(search.trainers_) == {"C path"}
    assert (search.predict(X) == Y).mean() > 0.8


def test_scikit_learns_search_has_the_same_scores(cluster, expected):
    with joblib.parallel_config(backend="ray"):
        search = GridSearchCV(SVC(), GRID, cv=3, n_jobs=2).fit(X, Y)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], expected, atol=0.01)
