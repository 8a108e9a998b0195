"""scikit-learn's own conventions, checked by scikit-learn's own tests."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from expected_failures import failures_of_scikit_learns_own_class
from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CellSVC,
    CellSVR,
    CrammerSingerSVC,
    IncrementalSVC,
    IncrementalSVR,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)

ESTIMATORS = [
    SVC(),
    SVC(kernel="precomputed"),
    SVC(loss="squared_hinge"),
    SVC(bias="penalised"),
    SVC(loss="squared_hinge", bias="penalised", solver="mdm-accelerated"),
    SVC(kernel="linear", solver="smo"),
    SVC(loss="squared_hinge", solver="simple"),
    IncrementalSVC(),
    IncrementalSVC(loss="hinge"),
    IncrementalSVR(),
    IncrementalSVR(loss="squared_epsilon_insensitive"),
    AllDistancesSVC(),
    AllDistancesSVC(loss="squared_hinge", solver="mdm"),
    CrammerSingerSVC(),
    NuSVC(),
    OneClassSVM(),
    L2OneClassSVM(),
    L2OneClassSVM(C=1000.0, solver="maxminover", tol=1e-2, contamination="margin"),
    SVR(),
    SVR(kernel="precomputed"),
    SVR(loss="squared_epsilon_insensitive"),
    SVR(kernel="linear", solver="smo"),
    NuSVR(),
    QuantileSVR(),
    QuantileSVR(kernel="linear", quantile=0.8),
    CellSVC(),
    CellSVC(cell_size=10),
    CellSVR(cell_size=20),
]


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=failures_of_scikit_learns_own_class)
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_weights_equal_repetition_where_gamma_does_not_depend_on_the_weights(loss):
    # scikit-learn's SVC fails these; with a fixed gamma and a tight tolerance they hold exactly.
    from sklearn.utils.estimator_checks import (
        check_sample_weight_equivalence_on_dense_data,
        check_sample_weight_equivalence_on_sparse_data,
    )

    estimator = SVC(gamma=0.3, tol=1e-10, loss=loss)
    check_sample_weight_equivalence_on_dense_data("SVC", estimator)
    check_sample_weight_equivalence_on_sparse_data("SVC", estimator)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_weights_equal_repetition_in_regression(loss):
    from sklearn.utils.estimator_checks import (
        check_sample_weight_equivalence_on_dense_data,
        check_sample_weight_equivalence_on_sparse_data,
    )

    estimator = SVR(gamma=0.3, tol=1e-10, loss=loss)
    check_sample_weight_equivalence_on_dense_data("SVR", estimator)
    check_sample_weight_equivalence_on_sparse_data("SVR", estimator)


def test_check_estimator_reports_nothing_unexpected():
    results = check_estimator(
        SVC(C=2.0), expected_failed_checks=failures_of_scikit_learns_own_class(SVC()), on_fail=None
    )
    assert not [r for r in results if r["status"] == "failed"]
    assert np.sum([r["status"] == "passed" for r in results]) > 40
