"""Checks of scikit-learn that its own estimators do not pass either."""

import sklearn
import sklearn.svm
from sklearn.utils.fixes import parse_version

from maxmargin import IncrementalSVC


def failures_of_scikit_learns_own_class(estimator):
    """The checks that scikit-learn expects to fail for the class of the same name."""
    if isinstance(estimator, IncrementalSVC) and parse_version(sklearn.__version__) < parse_version("1.7"):
        reason = (
            "before scikit-learn 1.7 the check merges three classes into two differently for its two fits"
        )
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    try:
        from sklearn.utils._test_common.instance_generator import PER_ESTIMATOR_XFAIL_CHECKS
    except ImportError:
        return {}
    # To a tolerance like SVC, and with a gamma that does not depend on weights.
    like = {
        "AllDistancesSVC": "SVC",
        "CrammerSingerSVC": "SVC",
        "L2OneClassSVM": "OneClassSVM",
        "CellSVC": "SVC",
        "CellSVR": "SVR",
        "QuantileSVR": "SVR",
    }
    own = getattr(sklearn.svm, like.get(type(estimator).__name__, type(estimator).__name__), None)
    return PER_ESTIMATOR_XFAIL_CHECKS.get(own, {})
