import numpy as np
import pytest
from sklearn.exceptions import DataConversionWarning

from maxmargin.estimators.targets import regression_targets


def test_numbers_of_any_type_become_float64_and_float64_is_not_copied():
    y = np.array([1.0, 2.0])
    assert regression_targets(y) is y
    for other in ([1, 2], np.array([1, 2], dtype=object), np.float32([1, 2])):
        found = regression_targets(other)
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, y)


def test_a_column_is_flattened_with_a_warning():
    with pytest.warns(DataConversionWarning):
        np.testing.assert_array_equal(regression_targets(np.ones((3, 1))), np.ones(3))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.ones((3, 2)), "MultiOutputRegressor"),
        ([1.0, np.nan], "NaN"),
        ([1.0, np.inf], "infinity"),
        ([1j, 2.0], "Complex"),
        (["a", "b"], "must be numbers"),
    ],
)
def test_anything_else_is_refused(y, message):
    with pytest.raises(ValueError, match=message):
        regression_targets(y)
