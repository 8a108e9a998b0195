"""Solutions that a fit starts from, in the format that all estimators share."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.dual import c_svc, squared_c_svc
from maxmargin.estimators._warm_start import Start, WarmStart, box

X, y = load_iris(return_X_y=True)
ESTIMATORS = [
    SVC(),
    NuSVC(nu=0.2),
    SVR(),
    NuSVR(),
    QuantileSVR(quantile=0.7),
    OneClassSVM(),
    L2OneClassSVM(),
    AllDistancesSVC(),
    CrammerSingerSVC(),
]


def name_of(value):
    return type(value).__name__


def kept(values, bound=np.inf):
    return WarmStart((5, 2), {"all": Start(np.array([0, 3]), np.asarray(values), bound)})


def test_samples_without_a_solution_start_at_zero():
    found = kept([1.0, 2.0]).find("all", (5, 2), np.array([3, 4, 0]), (), np.inf)
    np.testing.assert_array_equal(found, [2.0, 0.0, 1.0])


def test_several_variables_of_a_sample_stay_together():
    found = kept([[1.0, -1.0], [2.0, 0.0]]).find("all", (5, 2), np.array([3, 1]), (2,), np.inf)
    np.testing.assert_array_equal(found, [[2.0, 0.0], [0.0, 0.0]])


@pytest.mark.parametrize(
    ("name", "shape", "width"), [("other", (5, 2), ()), ("all", (6, 2), ()), ("all", (5, 2), (3,))]
)
def test_another_problem_or_shape_or_number_of_variables_does_not_fit(name, shape, width):
    assert kept([1.0, 2.0]).find(name, shape, np.arange(5), width, np.inf) is None


@pytest.mark.parametrize(
    ("values", "before", "now", "factor"),
    [
        ([2.0, -2.0], 2.0, 6.0, 3.0),  # at their bounds, with which they move
        ([0.5, -2.0], 2.0, 6.0, 1.0),  # half of them are free
        ([0.5, -0.5], 2.0, 1.0, 0.5),  # the bound shrinks
        ([2.0, -2.0], 2.0, np.inf, 1.0),
        ([2.0, -2.0], np.inf, 6.0, 1.0),
    ],
)
def test_a_solution_is_rescaled_with_its_bounds(values, before, now, factor):
    found = kept(values, before).find("all", (5, 2), np.array([0, 3]), (), now)
    np.testing.assert_array_equal(found, factor * np.asarray(values))


def test_the_box_is_the_width_of_the_largest_bounds():
    assert box(c_svc([1, -1, 1], bounds=[1.0, 4.0, 2.0])) == 4.0
    assert box(squared_c_svc([1, -1], 0.5)) == np.inf


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=name_of)
def test_every_estimator_keeps_its_solution_in_one_format_only_if_asked(estimator):
    model = clone(estimator).fit(X, y)
    assert model._solutions is None
    model.set_params(warm_start=True).fit(X, y)
    assert type(model._solutions) is WarmStart and model._solutions.shape == X.shape
    starts = model._solutions.starts.values()
    assert all(type(start) is Start and len(start.rows) == len(start.values) for start in starts)
    steps = np.sum(model.n_iter_)
    assert np.sum(model.fit(X, y).n_iter_) <= steps


def test_a_problem_of_another_kind_is_started_afresh():
    model = SVC(warm_start=True).fit(X, y)
    names = set(model._solutions.starts)
    model.set_params(loss="squared_hinge").fit(X, y)
    assert not names & set(model._solutions.starts)
