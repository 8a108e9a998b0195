import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    IncrementalSVR,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.model_selection import SVMSearchCV

skops = pytest.importorskip("skops.io")
X, y = load_iris(return_X_y=True)
MODELS = [
    SVC(),
    SVC(warm_start=True),
    NuSVC(nu=0.2),
    OneClassSVM(),
    L2OneClassSVM(),
    AllDistancesSVC(),
    CrammerSingerSVC(),
    IncrementalSVC(),
    IncrementalSVC(loss="hinge"),
    IncrementalSVR(),
    SVR(warm_start=True),
    NuSVR(),
    QuantileSVR(quantiles=[0.2, 0.8]),
    make_pipeline(StandardScaler(), SVC()),
    make_pipeline(StandardScaler(), SVR()),
    SVMSearchCV(SVC(), {"C": [0.1, 1.0]}),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_skops_gives_back_a_model_that_predicts_the_same(model, form):
    data = form(X)
    if form is sp.csr_matrix and hasattr(model, "steps"):
        pytest.skip("centring would make it dense")
    model = model.fit(data, y > 0)
    model.predict(data)  # what is kept for later predictions must not be in the way
    dumped = skops.dumps(model)
    again = skops.loads(dumped, trusted=skops.get_untrusted_types(data=dumped))
    np.testing.assert_array_equal(again.predict(data), model.predict(data))
    if hasattr(model, "decision_function"):
        np.testing.assert_array_equal(again.decision_function(data), model.decision_function(data))
    if isinstance(model, IncrementalSVC | IncrementalSVR):
        np.testing.assert_array_equal(again.leave_one_out(), model.leave_one_out())
