"""Files of the folder `format_1`, written when the format was new, are read and written as they were."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

from maxmargin.persistence import load, save
from maxmargin.persistence.native import read

FOLDER = Path(__file__).parent / "format_1"
# Decision values, or predicted targets, of the first rows of every third row of iris.
VALUES = json.loads((FOLDER / "values.json").read_text())
X = load_iris().data[::3]


def samples(name):
    """The rows as the model was trained with them."""
    if "sparse" in name:
        return sp.csr_matrix(np.where(X > 1.5, X, 0.0))[:6]
    if "precomputed" in name:
        return (X @ X.T)[:6]
    return X[:6].astype(np.float32) if "float32" in name else X[:6]


def test_there_is_a_file_for_every_line_of_values():
    assert {path.stem for path in FOLDER.glob("*.mm")} == set(VALUES)


@pytest.mark.parametrize("name", VALUES)
def test_a_stored_model_has_the_values_that_it_had(name):
    model = load(FOLDER / f"{name}.mm")
    method = getattr(model, "decision_function", model.predict)
    tolerance = 1e-5 if "float32" in name else 1e-9
    np.testing.assert_allclose(method(samples(name)), VALUES[name], rtol=tolerance, atol=tolerance)


def contents(file):
    """Header and arrays of a file; parameters may come with later versions."""
    content, arrays = read(file, "file", None)
    models = [content["model"]] if "model" in content else [step[1] for step in content["pipeline"]["steps"]]
    for model in models:
        del model["parameters"]
    return content, arrays


@pytest.mark.parametrize("name", VALUES)
def test_a_stored_model_is_written_with_the_same_fields_and_numbers(name):
    again = io.BytesIO()
    save(load(FOLDER / f"{name}.mm"), again)
    with open(FOLDER / f"{name}.mm", "rb") as file:
        content, arrays = contents(file)
    again.seek(0)
    new_content, new_arrays = contents(again)
    assert new_content == content and list(new_arrays) == list(arrays)
    for key, array in arrays.items():
        assert new_arrays[key].dtype == array.dtype
        np.testing.assert_array_equal(new_arrays[key], array)
