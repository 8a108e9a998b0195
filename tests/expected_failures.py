"""Checks of scikit-learn that its own machines do not pass either."""

import sklearn.svm


def failures_of_scikit_learns_own_class(estimator):
    """The checks that scikit-learn expects to fail for the class of the same name."""
    try:
        from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
    except ImportError:
        return {}
    # To a tolerance like SVC, and with a gamma that does not look at weights.
    name = {"AllDistancesSVC": "SVC", "CrammerSingerSVC": "SVC", "L2OneClassSVM": "OneClassSVM"}.get(
        type(estimator).__name__, type(estimator).__name__
    )
    twin = getattr(sklearn.svm, name, None)
    return PER_ESTIMATOR_XFAIL_CHECKS.get(twin, {})
