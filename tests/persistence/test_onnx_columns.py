"""Encoders of mixed tables in ONNX graphs give what the estimator predicts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler

from maxmargin import SVC, SVR
from maxmargin.data.encoder import encoder_for
from maxmargin.data.kinds import kind_of, read_values
from maxmargin.persistence import to_onnx
from mixed_tables import mixed, with_text

pytest.importorskip("onnx")
FRAME = mixed()
LABELS = FRAME.pop("outcome").to_numpy(dtype=str)
COLUMNS = [kind_of(name, FRAME[name]) for name in FRAME]
# Days and numbers as floats, texts with NaN: what the graph takes, but for empty texts.
CELLS = pd.DataFrame({column.name: read_values(FRAME[column.name], column) for column in COLUMNS})


def run(model, frame, dtype=np.float64):
    """The outputs of the graph, by name."""
    runtime = pytest.importorskip("onnxruntime")
    graph = to_onnx(model, dtype=dtype).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    feed = {}
    for item in session.get_inputs():
        column = frame[item.name]
        text = item.type == "tensor(string)"
        cells = column.where(column.notna(), "") if text else column
        feed[item.name] = cells.to_numpy(dtype=object if text else dtype).reshape(-1, 1)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feed), strict=True))


@pytest.mark.parametrize("scaler", [None, StandardScaler(), RobustScaler()])
def test_a_table_of_all_kinds_gives_the_labels_and_values_of_the_model(scaler):
    model = make_pipeline(encoder_for(COLUMNS, scaler=scaler), SVC(gamma=0.1)).fit(CELLS, LABELS)
    new = CELLS.assign(colour=np.where(np.arange(len(CELLS)) % 4, CELLS["colour"], "violet"))
    for frame in (CELLS, new):
        found = run(model, frame)
        np.testing.assert_array_equal(found["label"], model.predict(frame))
        np.testing.assert_allclose(found["decision_function"], model.decision_function(frame), atol=1e-10)


def test_single_precision_agrees_to_single_precision():
    model = make_pipeline(encoder_for(COLUMNS, scaler=StandardScaler()), SVC()).fit(CELLS, LABELS)
    found = run(model, CELLS, np.float32)
    np.testing.assert_allclose(found["decision_function"], model.decision_function(CELLS), atol=1e-3)


NUMBERS = pd.DataFrame(
    {
        "a": np.where(np.arange(60) % 7 == 0, np.nan, np.arange(60.0) / 10),
        "b": (np.arange(60) % 5).astype(float),
        "c": np.array(["x", "y", "z", "w", "v"], dtype=object)[np.arange(60) % 5],
        "d": np.where(np.arange(60) % 3 == 0, np.nan, 4.0),
    }
)
UNKNOWN = NUMBERS.assign(b=9.0, c="nothing")
PARTS = {
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "rare": OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist", sparse_output=False),
    "dropped": OneHotEncoder(drop="first", handle_unknown="ignore"),
    "codes": OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1),
    "scaled": make_pipeline(OneHotEncoder(sparse_output=False, handle_unknown="ignore"), StandardScaler()),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Found unknown categories")
@pytest.mark.parametrize("columns", [["c"], ["b"], ["b", "d"]], ids=["texts", "numbers", "numbers and NaN"])
@pytest.mark.parametrize("name", PARTS)
def test_encoders_of_scikit_learn_treat_known_and_unknown_categories_alike(name, columns):
    if name == "codes" and "d" in columns:
        pytest.skip("a code that is NaN is refused")
    parts = [
        ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["a"]),
        ("k", PARTS[name], columns),
    ]
    encoder = ColumnTransformer(parts, transformer_weights={"numbers": 0.5})
    y = np.arange(60.0) % 5
    model = make_pipeline(encoder, SVR(gamma=0.2)).fit(NUMBERS, y)
    for frame in (NUMBERS, UNKNOWN):
        np.testing.assert_allclose(run(model, frame)["variable"], model.predict(frame), atol=1e-10)


def test_columns_by_position_and_those_that_are_passed_on_are_inputs_by_number():
    X = NUMBERS[["a", "b", "d"]].to_numpy()
    parts = [("k", SimpleImputer(strategy="constant", fill_value=2.0), [2, 0])]
    model = make_pipeline(ColumnTransformer(parts, remainder="passthrough"), StandardScaler(), SVR())
    model.fit(X, np.arange(60.0))
    found = run(model, pd.DataFrame(X, columns=["x0", "x1", "x2"]))
    np.testing.assert_allclose(found["variable"], model.predict(X), atol=1e-10)


def test_an_imputer_alone_is_translated():
    X = NUMBERS[["a", "b"]].to_numpy()
    model = make_pipeline(SimpleImputer(), SVR()).fit(X, np.arange(60.0))
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        to_onnx(model, dtype=np.float64).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    np.testing.assert_allclose(session.run(["variable"], {"X": X})[0], model.predict(X), atol=1e-10)


def test_what_has_no_operator_is_refused_with_the_column():
    frame = with_text(mixed()).drop(columns="outcome")
    columns = [kind_of(name, frame[name]) for name in frame]
    model = make_pipeline(encoder_for(columns), SVC()).fit(frame, LABELS)
    with pytest.raises(ValueError, match="text of the column 'note' cannot be exported"):
        to_onnx(model)
    frame = NUMBERS[["b"]].rename(columns={"b": "variable"})
    encoder = ColumnTransformer([("k", StandardScaler(), ["variable"])])
    model = make_pipeline(encoder, SVR()).fit(frame, np.arange(60.0))
    with pytest.raises(ValueError, match="'variable' has the name of an output"):
        to_onnx(model)
