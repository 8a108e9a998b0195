"""Model files that are damaged by chance or edited to do harm, and what becomes of them (fuzz_models.py)."""

from __future__ import annotations

import copy
import hashlib
import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from maxmargin.data.encoder import encoder_for, encoder_of, schema_of
from maxmargin.data.kinds import Column
from maxmargin.persistence import ModelFileError, load, load_libsvm, save, save_libsvm
from maxmargin.persistence.native import DIGEST, DTYPES, PREFIX

Rng = np.random.Generator
# Features up to which a mutated model is asked to predict three dense samples (sparse ones beyond), and
# samples up to which a precomputed kernel is asked to predict one row of values.
WIDEST, WIDEST_ROW = 100_000, 20_000_000
# Numbers that a scaler made too large, NaN without an imputer, categories that an encoder does not know.
_REFUSED = ("infinity", "contains NaN", "Found unknown categories")
OUTCOMES, SOUND = ("refused", "predicts", "refuses to predict", "too wide"), "predicts"
MEANING = (
    "refused: ModelFileError. predicts: what was changed does not matter to prediction, or it is another "
    "sound model. refuses to predict: the scaled sample overflows, or break_ties with 'ovo'. too wide: a "
    "precomputed kernel of more than 20,000,000 samples, a row of which is beyond the limit of memory."
)


def models() -> dict[str, Any]:
    """Small fitted models of every kind, by name."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::3], y[::3]
    two, words = y > 0, np.array(["setosa", "versicolor", "virginica"])[y]
    sparse = sp.csr_matrix(np.where(X > 1.5, X, 0.0))
    options: dict[str, Any] = {"C": 0.7, "gamma": 0.4}
    out = {
        "SVC": SVC(**options).fit(X, y),
        "SVC 2": SVC(**options, class_weight={False: 2.0, True: 1.0}).fit(X.astype(np.float32), two),
        "SVC words": SVC(C=np.inf, kernel="poly", decision_function_shape="ovo").fit(X, words),
        "SVC linear": SVC(kernel="linear").fit(sparse, y),
        "SVC sparse": SVC(**options).fit(sparse, y),
        "SVC laplacian": SVC(**options, kernel="laplacian").fit(sparse, y),
        "SVC precomputed": SVC(kernel="precomputed").fit(X @ X.T, y),
        "NuSVC": NuSVC(nu=0.2, kernel="sigmoid", gamma=0.01).fit(X, y),
        "OneClassSVM": OneClassSVM(nu=0.2).fit(X),
        "L2OneClassSVM": L2OneClassSVM().fit(sparse),
        "AllDistancesSVC": AllDistancesSVC().fit(X, y),
        "CrammerSingerSVC": CrammerSingerSVC().fit(X, words.astype(object)),
        "IncrementalSVC": IncrementalSVC().fit(X, two),
        "IncrementalSVC sparse": IncrementalSVC(kernel="linear").fit(sparse, two),
        "SVR": SVR(**options, epsilon=0.2).fit(X[:, :3], X[:, 3]),
        "SVR squared": SVR(kernel="linear", loss="squared_epsilon_insensitive").fit(sparse, X[:, 3]),
        "SVR precomputed": SVR(kernel="precomputed").fit(X @ X.T, X[:, 3]),
        "NuSVR": NuSVR(**options, nu=0.3).fit(X[:, :3].astype(np.float32), X[:, 3]),
        "NuSVR sparse": NuSVR(kernel="poly", degree=2).fit(sparse, X[:, 3]),
        "pipeline": make_pipeline(StandardScaler(), SVC(**options)).fit(X, y),
        "pipeline 2": make_pipeline(MinMaxScaler(clip=True), MaxAbsScaler(), OneClassSVM()).fit(X),
        "pipeline 3": make_pipeline(StandardScaler(), SVR()).fit(X[:, :3], X[:, 3]),
    }
    frame = mixed_frame(X)
    kinds = {"a": "number", "b": "number", "kind": "category", "day": "date", "flag": "boolean"}
    columns = [Column(name, kind) for name, kind in kinds.items()]
    out["table"] = make_pipeline(encoder_for(columns, scaler=StandardScaler()), SVC(**options)).fit(frame, y)
    columns[-1:] = [Column("note", "text"), Column("flag", "left out")]
    out["table text"] = make_pipeline(encoder_for(columns, impute=False), SVC()).fit(frame, words)
    parts = [
        ("filled", make_pipeline(SimpleImputer(), MinMaxScaler()), ["a"]),
        ("rare", OneHotEncoder(max_categories=2, handle_unknown="infrequent_if_exist", drop=None), ["kind"]),
        ("codes", OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["flag", "code"]),
    ]
    passing = ColumnTransformer(
        [*parts, ("as it is", "passthrough", ["b"])], transformer_weights={"codes": 0.5}
    )
    out["table of scikit-learn"] = make_pipeline(passing, SVR()).fit(frame, X[:, 3])
    out["table of positions"] = make_pipeline(
        ColumnTransformer([("scaled", StandardScaler(), [0, 2])], remainder="passthrough"),
        SimpleImputer(),
        SVC(),
    ).fit(X, y)
    votes = out["SVC votes"] = SVC(**options).fit(X, y)
    order = np.array([2, 0, 1])  # as of a LIBSVM file with these labels
    votes.set_model(replace(votes.get_model(), vote_order=order))
    return out


def mixed_frame(X: Any) -> Any:
    """A table of numbers, categories, dates and text."""
    import pandas as pd

    n = len(X)
    return pd.DataFrame(
        {
            "a": X[:, 0],
            "b": X[:, 1],
            "kind": np.array(["red", "green", "blue"])[np.arange(n) % 3],
            "day": 19_000.0 + np.arange(n),
            "note": [f"word{k % 5} and word{k % 7}" for k in range(n)],
            "flag": np.arange(n) % 2,
            "code": np.arange(n) % 4,
        }
    )


def rows_for(encoder: Any) -> Any:
    """Three rows that the encoder of a table takes."""
    if not hasattr(encoder, "feature_names_in_"):
        return np.linspace(0.0, 6.0, 3 * encoder.n_features_in_).reshape(3, -1)
    import pandas as pd

    schema = schema_of(encoder)
    values = {"category": ["red", "pink", "1"], "text": ["word1 and word2", "", "another"]}
    found = {}
    for name in schema.known:
        kind = schema.columns[name].kind if name in schema.columns else "number"
        found[name] = np.array(values[kind], dtype=object) if kind in values else np.linspace(0.0, 6.0, 3)
    return pd.DataFrame(found)


def files() -> dict[str, dict[str, bytes]]:
    """The models' files, by format and name."""
    out: dict[str, dict[str, bytes]] = {"native": {}, "LIBSVM": {}}
    for name, model in models().items():
        file = io.BytesIO()
        save(model, file)
        out["native"][name] = file.getvalue()
        if name in ("SVC words", "SVC laplacian", "SVC 2", "CrammerSingerSVC") or "pipe" in name:
            continue
        if name.startswith(("AllDistances", "Incremental", "table")):
            continue
        file = io.BytesIO()
        save_libsvm(model, file)
        out["LIBSVM"][name] = file.getvalue()
    return out


# -- damage ------------------------------------------------------------------------------------------


def damage(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """One to four accidents: bits flip, pieces are lost, come twice, or come from another file."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 5))):
        if not out:
            break
        at = int(rng.integers(len(out)))
        size = int(rng.integers(1, 65))
        match int(rng.integers(7)):
            case 0:
                out[at] ^= 1 << int(rng.integers(8))
            case 1:
                out[at] = int(rng.integers(256))
            case 2:
                del out[at : at + size]
            case 3:
                out[at:at] = out[at : at + size]
            case 4:
                del out[at:]
            case 5:
                other = others[int(rng.integers(len(others)))]
                start = int(rng.integers(len(other)))
                out[at : at + size] = other[start : start + size]
            case _:
                out[at : at + size] = bytes(min(size, len(out) - at))
    return bytes(out)


# -- native files with a right checksum --------------------------------------------------------------

NASTY: list[Any] = [
    None, True, False, -1, 0, 1, 2, 3, 5, 2**31, 2**40, 2**62, -(2**63), 0.5, -0.0, 1e-308, 1e308, "", "x",
    "inf", "precomputed", "linear", "rbf", "f8", "i4", "SVC", "SVR", "OneClassSVM", "StandardScaler", "\x00",
    "é",
    [], [[]], [0], {}, {"float": "inf"}, {"float": "nan"}, {"dict": [[0, 1]]}, {"tuple": [0, 1]},
    {"float": []}, {"dict": [[0]]}, [1, 2, 3],
]  # fmt: skip
NASTY_TEXT = [
    "NaN",
    "Infinity",
    "1e999",
    "9" * 30,
    "9" * 5000,
    "[" * 100_000,
    '"\\ud800"',
    "{",
    "-",
    "1e",
    "'",
]
NASTY_NUMBERS = [np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 1e300, -1e300, 1e-300, 2.0**31, 2.0**62, -(2.0**62)]


def sealed(header: bytes, body: bytes, data: bytes) -> bytes:
    """A file with its lengths and its checksum made right."""
    magic, version, *_ = PREFIX.unpack(data[: PREFIX.size])
    start = PREFIX.size + len(header)
    gap = bytes(-start % 64)
    total = start + len(gap) + len(body) + DIGEST
    out = PREFIX.pack(magic, version, len(header) % 2**32, total) + header + gap + body
    return out + hashlib.sha256(out).digest()


def parts(data: bytes) -> tuple[bytes, bytes]:
    """Header and arrays of a native file."""
    *_, n, _ = PREFIX.unpack(data[: PREFIX.size])
    start = PREFIX.size + n
    return data[PREFIX.size : start], data[start + -start % 64 : -DIGEST]


def places(node: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """All (container, key) of a JSON value."""
    keys: Any = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    for key in keys:
        found.append((node, key))
        places(node[key], found)
    return found


def edit_header(data: bytes, rng: Rng) -> bytes:
    """A header with other values, keys, types, or something that is no JSON."""
    raw, body = parts(data)
    header = json.loads(raw)
    for _ in range(int(rng.integers(1, 4))):
        spots = places(header, [])
        node, key = spots[int(rng.integers(len(spots)))]
        match int(rng.integers(6)):
            case 0 | 1:
                node[key] = copy.deepcopy(NASTY[int(rng.integers(len(NASTY)))])
            case 2:
                node.pop(key)
            case 3:
                other, at = spots[int(rng.integers(len(spots)))]
                node[key] = copy.deepcopy(other[at])
            case 4 if isinstance(node[key], int):
                node[key] += int(rng.choice([-1, 1, 2, 64, 2**32]))
            case _:
                node[key] = f"@{int(rng.integers(len(NASTY_TEXT)))}@"
    text = json.dumps(header)
    for k, nasty in enumerate(NASTY_TEXT):
        text = text.replace(f'"@{k}@"', nasty)
    return sealed(text.encode("utf-8", "surrogatepass"), body, data)


def edit_array(data: bytes, rng: Rng) -> bytes:
    """An array with some values that do not belong there."""
    raw, body = parts(data)
    table = json.loads(raw)["arrays"]
    out = bytearray(body)
    start = PREFIX.size + len(raw)
    at = start + -start % 64
    where = []
    for _, dtype, shape in table:
        kind = DTYPES[dtype]
        where.append((at, kind, int(np.prod(shape, dtype=np.int64))))
        at += where[-1][2] * kind.itemsize
        at += -at % 64
    first = where[0][0]
    for _ in range(int(rng.integers(1, 4))):
        begin, kind, count = where[int(rng.integers(len(where)))]
        if not count:
            continue
        view = np.frombuffer(out, kind, count, begin - first)
        value = NASTY_NUMBERS[int(rng.integers(len(NASTY_NUMBERS)))]
        with np.errstate(all="ignore"):
            converted = np.array(value).astype(kind)
        spot = int(rng.integers(count))
        if rng.random() < 0.2:
            view[:] = converted
        elif rng.random() < 0.3:
            view[spot] = view[int(rng.integers(count))]
        else:
            view[spot] = converted
        del view
    return sealed(raw, bytes(out), data)


def resealed(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Accidents in the header or the arrays, with the checksum made right."""
    header, body = parts(data)
    if rng.random() < 0.5:
        return sealed(damage(header, rng, others), body, data)
    return sealed(header, damage(body, rng, others) if body else b"", data)


# -- LIBSVM's text -----------------------------------------------------------------------------------

NASTY_WORDS = [
    b"nan", b"inf", b"-1", b"0", b"1e999", b"1e308", b"99999999999", b"2147483647", b"2147483648", b"1_0",
    b":", b"1:", b":1", b"0:1", b"1:1", b"-1:1", b"2147483647:1", b"SV", b"rbf", b"precomputed", b"c_svc",
    b"one_class", b"epsilon_svr", b"nu_svr", b"nr_class", b"\xff\xfe", b"\x00", b"9" * 5000, b"0x10",
    b"\xd9\xa1", b"",
]  # fmt: skip


def edit_text(data: bytes, rng: Rng) -> bytes:
    """Words and lines that are changed, lost, doubled or swapped."""
    lines = data.split(b"\n")
    for _ in range(int(rng.integers(1, 4))):
        # The head is short and the most delicate.
        k = int(rng.integers(min(len(lines), 12) if rng.random() < 0.6 else len(lines)))
        words = lines[k].split(b" ")
        at = int(rng.integers(len(words)))
        match int(rng.integers(6)):
            case 0 | 1:
                words[at] = NASTY_WORDS[int(rng.integers(len(NASTY_WORDS)))]
                lines[k] = b" ".join(words)
            case 2:
                words.pop(at)
                lines[k] = b" ".join(words)
            case 3:
                lines.insert(k, lines[int(rng.integers(len(lines)))])
            case 4 if len(lines) > 1:
                lines.pop(k)
            case _:
                other = int(rng.integers(len(lines)))
                lines[k], lines[other] = lines[other], lines[k]
    return b"\n".join(lines)


Edit = Callable[[bytes, Rng, list[bytes]], bytes]
MUTATIONS: dict[str, dict[str, Edit]] = {
    "native": {
        "damage": damage,
        "damage, right checksum": resealed,
        "header": lambda data, rng, others: edit_header(data, rng),
        "arrays": lambda data, rng, others: edit_array(data, rng),
    },
    "LIBSVM": {"damage": damage, "words and lines": lambda data, rng, others: edit_text(data, rng)},
}


def mutation(base: dict[str, dict[str, bytes]], seed: int, index: int) -> tuple[str, str, str, bytes]:
    """The format, model, way and bytes of one mutation."""
    rng = np.random.default_rng([seed, index])
    form = "native" if rng.random() < 0.7 else "LIBSVM"
    of_form = base[form]
    name = list(of_form)[int(rng.integers(len(of_form)))]
    ways = MUTATIONS[form]
    way = list(ways)[int(rng.integers(len(ways)))]
    return form, name, way, ways[way](of_form[name], rng, list(of_form.values()))


# -- what becomes of them ----------------------------------------------------------------------------


def outcome(form: str, data: bytes) -> str:
    """ "refused", "predicts", "too wide", or "refuses to predict"; anything else is raised."""
    try:
        model = load(io.BytesIO(data)) if form == "native" else load_libsvm(io.BytesIO(data))
    except ModelFileError:
        return "refused"
    d = model.n_features_in_
    machine = model[-1] if hasattr(model, "steps") else model
    encoder = encoder_of(model)
    if encoder is not None:
        if d > WIDEST:
            return "too wide"
        X = rows_for(encoder)
    elif d <= WIDEST:
        X = np.linspace(0.0, 6.0, 3 * d).reshape(3, d)
    elif machine.kernel == "precomputed":
        if d > WIDEST_ROW:
            return "too wide"
        X = np.zeros((1, d))
    else:
        X = sp.csr_array(([1.0, 2.0, 3.0], ([0, 1, 2], [0, d // 2, d - 1])), shape=(3, d))
    if getattr(machine, "break_ties", False) and machine.decision_function_shape == "ovo":
        return "refuses to predict"  # a combination that may be fitted, but not used
    with np.errstate(all="ignore"):
        try:
            labels = model.predict(X)
            if not is_regressor(machine):
                model.decision_function(X)
        except ValueError as error:
            if any(what in str(error) for what in _REFUSED) and hasattr(model, "steps"):
                return "refuses to predict"
            raise
    assert labels.shape == (X.shape[0],)
    if is_regressor(machine):
        assert labels.dtype == np.float64
    else:
        assert np.isin(labels, getattr(machine, "classes_", [-1, 1])).all()
    return "predicts"
