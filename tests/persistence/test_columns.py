"""Encoders of mixed tables in model files: they come back as they were, and hostile ones are refused."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)

from maxmargin import SVC
from maxmargin.data.columns import ColumnValues
from maxmargin.data.encoder import encoder_for
from maxmargin.data.kinds import kind_of
from maxmargin.persistence import ModelFileError, load, native, save
from mixed_tables import mixed, with_text

FRAME = with_text(mixed())
LABELS = FRAME.pop("outcome").to_numpy(dtype=str)
CELLS = FRAME.replace("", None)
NUMBERS = pd.DataFrame(
    {
        "a": np.where(np.arange(60) % 7 == 0, np.nan, np.arange(60.0)),
        "b": np.arange(60) % 5,
        "c": np.array(["x", "y", "z", "w"], dtype=object)[np.arange(60) % 4],
        "d": np.array(["u", None, np.nan], dtype=object)[np.arange(60) % 3],
    }
)
SIDES = np.arange(60) % 2


def bytes_of(model):
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


def again(model):
    return load(io.BytesIO(bytes_of(model)))


def by_kind(**options):
    columns = [kind_of(name, FRAME[name]) for name in FRAME]
    return make_pipeline(encoder_for(columns, **options), SVC())


def of_columns(*parts, **options):
    return make_pipeline(ColumnTransformer(list(parts), **options), SVC())


def same(one, other, frame):
    a, b = one.transform(frame), other.transform(frame)
    assert type(a) is type(b) and a.dtype == b.dtype
    a, b = (found.toarray() if hasattr(found, "toarray") else np.asarray(found) for found in (a, b))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("options", [{}, {"scaler": StandardScaler()}, {"scaler": MinMaxScaler()}])
def test_a_table_of_all_kinds_is_encoded_as_before(options):
    model = by_kind(**options).fit(FRAME, LABELS)
    found = again(model)
    same(model[0], found[0], FRAME)
    new = FRAME.assign(colour="violet", note="unheard of words", age=None, more=1)[::-1]
    same(model[0], found[0], new)
    np.testing.assert_array_equal(model.decision_function(new), found.decision_function(new))
    assert bytes_of(found) == bytes_of(model)
    assert found.feature_names_in_.tolist() == list(FRAME)


FILLED = make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder())
PARTS = {
    "one-hot": ("k", OneHotEncoder(handle_unknown="ignore"), ["c"]),
    "missing categories": ("k", OneHotEncoder(), ["d", "c"]),
    "numbers as categories": ("k", OneHotEncoder(sparse_output=False, dtype=np.float32), ["b"]),
    "rare": ("k", OneHotEncoder(min_frequency=14, handle_unknown="infrequent_if_exist"), ["c", "b"]),
    "dropped": ("k", OneHotEncoder(drop="first", max_categories=3), ["c", "b"]),
    "codes": ("k", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan), ["b"]),
    "codes of missing": ("k", OrdinalEncoder(encoded_missing_value=-2), ["d"]),
    "filled": ("k", FILLED, ["c"]),
    "filled with a constant": ("k", SimpleImputer(strategy="constant", fill_value=7), ["a", "b"]),
    "means": ("k", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
    "positions": ("k", SimpleImputer(), [1, 0]),
    "a mask": ("k", SimpleImputer(), [True, True, False, False]),
    "a selector": ("k", SimpleImputer(), make_column_selector(dtype_include=np.number)),
    "words": ("k", TfidfVectorizer(analyzer="char", ngram_range=(1, 2), lowercase=False), "c"),
    "counted words": ("k", TfidfVectorizer(use_idf=False, analyzer="char"), "c"),
    "values": ("k", ColumnValues(), ["b"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_scikit_learn_come_back_with_all_their_attributes(name):
    frame = NUMBERS
    parts = [PARTS[name], ("no", "drop", ["c"]), ("b as it is", "passthrough", ["b"])]
    whole = ColumnTransformer(parts)
    encoder = whole.fit(frame, SIDES)
    model = SVC(C=2.0).fit(np.nan_to_num(_dense(encoder.transform(frame))), SIDES)
    pipeline = make_pipeline(encoder, SVC())
    pipeline.steps[-1] = ("svc", model)
    found = again(pipeline)[0]
    same(encoder, found, frame)
    assert found.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
    assert set(vars(found)) == set(vars(encoder))
    for key in ("output_indices_", "sparse_output_", "_transformer_to_input_indices"):
        assert getattr(found, key) == getattr(encoder, key)
    ours, theirs = found.named_transformers_["k"], encoder.named_transformers_["k"]
    assert set(vars(ours)) >= set(vars(theirs)) - {"_stop_words_id", "fixed_vocabulary_"}


def _dense(found):
    return found.toarray() if hasattr(found, "toarray") else np.asarray(found)


def test_columns_that_remain_are_passed_on():
    model = of_columns(("k", OneHotEncoder(), ["c"]), remainder="passthrough", transformer_weights={"k": 2.0})
    frame = NUMBERS[["c", "b"]].assign(e=np.arange(60.0))
    model.fit(frame, SIDES)
    found = again(model)
    np.testing.assert_array_equal(model.decision_function(frame), found.decision_function(frame))
    assert set(vars(found[0])) == set(vars(model[0]))
    array = frame[["b", "e"]].to_numpy()
    model = of_columns(("k", StandardScaler(), [0]), remainder="passthrough").fit(array, SIDES)
    np.testing.assert_array_equal(model.decision_function(array), again(model).decision_function(array))


def test_an_imputer_alone_may_come_before_an_estimator():
    X = NUMBERS[["a", "b"]].to_numpy()
    model = make_pipeline(SimpleImputer(strategy="median"), StandardScaler(), SVC()).fit(X, SIDES)
    np.testing.assert_array_equal(model.decision_function(X), again(model).decision_function(X))


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        (("k", FunctionTransformer(np.log1p), ["b"]), TypeError, "FunctionTransformer cannot be stored"),
        (("k", KNNImputer(), ["a"]), TypeError, "KNNImputer cannot be stored"),
        (("k", SimpleImputer(add_indicator=True), ["a"]), ValueError, "add_indicator=True"),
        (("k", OneHotEncoder(categories=[["w", "x", "y", "z"]]), ["c"]), ValueError, "given categories"),
        (("k", OrdinalEncoder(max_categories=2), ["c"]), ValueError, "groups rare categories"),
        (("k", TfidfVectorizer(vocabulary=["w"], analyzer="char"), "c"), ValueError, "with this vocabulary"),
        (("k", SimpleImputer(), slice(0, 2)), ValueError, "a slice of columns"),
    ],
)  # fmt: skip
def test_what_cannot_be_stored_is_said_when_saving(part, error, message):
    encoder = ColumnTransformer([part]).fit(NUMBERS, SIDES)
    pipeline = make_pipeline(encoder, SVC())
    pipeline.steps[-1] = ("svc", SVC().fit(np.arange(60.0)[:, None], SIDES))
    with pytest.raises(error, match=message):
        bytes_of(pipeline)


def changed(model, edit):
    """The bytes of a model whose header has been edited, with a right checksum."""
    data = io.BytesIO(bytes_of(model))
    content, arrays = native.read(data, "file", None)
    content = json.loads(json.dumps(content))
    encoder = content["pipeline"]["steps"][0][1]
    edit(encoder, encoder["parts"])
    out = io.BytesIO()
    native.write(out, content, arrays)
    out.seek(0)
    return out


@pytest.fixture(scope="module")
def model():
    parts = [
        ("n", make_pipeline(SimpleImputer(), StandardScaler()), ["a", "b"]),
        ("c", OneHotEncoder(max_categories=3, handle_unknown="infrequent_if_exist"), ["c"]),
        ("t", TfidfVectorizer(analyzer="char"), "c"),
    ]
    return of_columns(*parts).fit(NUMBERS, SIDES)


def in_part(k, edit):
    return lambda encoder, parts: edit(parts[k][1])


EDITS = {
    "a class that is not allowed": in_part(1, lambda part: part.update({"class": "FunctionTransformer"})),
    "an estimator as a part": in_part(1, lambda part: part.update({"class": "SVC"})),
    "a class that cannot be hashed": in_part(1, lambda part: part.update({"class": {}})),
    "another pattern of words": in_part(2, lambda part: part["parameters"].update(token_pattern="(a+)+$")),
    "long grams": in_part(2, lambda part: part["parameters"].update(ngram_range={"tuple": [1, 10**6]})),
    "a word twice": in_part(2, lambda part: part["values"].update(vocabulary_=["w", "w", "x", "y"])),
    "too few words": in_part(2, lambda part: part["values"]["vocabulary_"].pop()),
    "a rare category beyond": in_part(1, lambda part: part["values"].update(_infrequent=[[2, 9]])),
    "rare categories ungrouped": in_part(1, lambda part: part["parameters"].update(max_categories=None)),
    "categories out of order": in_part(1, lambda part: part["values"]["categories_"][0]["values"].reverse()),
    "no categories": in_part(1, lambda part: part["values"]["categories_"][0].update(values=[])),
    "another type of numbers": in_part(1, lambda part: part["parameters"].update(dtype={"dtype": "object"})),
    "texts to be scaled": lambda encoder, parts: parts[0][1]["steps"].insert(0, ["c", parts[1][1]]),
    "a column that is not there": lambda encoder, parts: parts[0].__setitem__(2, ["a", "nothing"]),
    "another column": lambda encoder, parts: parts[0].__setitem__(2, ["a", "c"]),
    "a column too few": lambda encoder, parts: parts[0].__setitem__(2, ["a"]),
    "a table of text": lambda encoder, parts: parts[2].__setitem__(2, ["c"]),
    "a single column": lambda encoder, parts: parts[1].__setitem__(2, "c"),
    "the same name twice": lambda encoder, parts: parts[1].__setitem__(0, "n"),
    "a part less": lambda encoder, parts: parts.pop(),
    "a part dropped": lambda encoder, parts: parts[1].__setitem__(1, "drop"),
    "names twice": lambda encoder, parts: encoder.update(feature_names=["a", "b", "c", "c"]),
    "other keys": lambda encoder, parts: encoder.update(code="print()"),
    "processes": lambda encoder, parts: encoder["parameters"].update(n_jobs=10**6),
    "weights that are not finite": lambda encoder, parts: encoder["parameters"].update(
        transformer_weights={"dict": [["n", {"float": "inf"}]]}
    ),
    "an estimator for what remains": lambda encoder, parts: encoder["parameters"].update(remainder="SVC"),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_file_that_was_edited_is_refused(model, name):
    with pytest.raises(ModelFileError):
        load(changed(model, EDITS[name]))


def test_a_file_that_was_not_edited_is_loaded(model):
    found = load(changed(model, lambda encoder, parts: None))
    np.testing.assert_array_equal(found.decision_function(NUMBERS), model.decision_function(NUMBERS))
