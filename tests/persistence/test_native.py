import hashlib
import io
import json
import struct
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from maxmargin import SVC, SVR, IncrementalSVC, NuSVR, OneClassSVM, QuantileSVR
from maxmargin.persistence import ModelFileError, load, save
from maxmargin.persistence.native import DIGEST, MAGIC, PREFIX, read, write

X, y = load_iris(return_X_y=True)


def bytes_of(model):
    file = io.BytesIO()
    save(model, file)
    return file.getvalue()


@pytest.fixture(scope="module")
def models():
    return {
        "dense": bytes_of(SVC().fit(X, y)),
        "sparse": bytes_of(SVC().fit(sp.csr_matrix(X), y)),
        "precomputed": bytes_of(SVC(kernel="precomputed").fit(X @ X.T, y)),
        "one": bytes_of(OneClassSVM().fit(X)),
        "regression": bytes_of(SVR().fit(X, X[:, 0])),
        "tube": bytes_of(NuSVR().fit(sp.csr_matrix(X), X[:, 0])),
        "targets": bytes_of(NuSVR().fit(X[:, 2:], X[:, :2])),
        "quantiles": bytes_of(QuantileSVR(quantiles=[0.2, 0.5]).fit(X[:, 2:], X[:, 0])),
        "rows": bytes_of(IncrementalSVC().fit(X, y > 0)),
        "pipeline": bytes_of(make_pipeline(StandardScaler(), SVC()).fit(X, y)),
    }


def split(data):
    """Header and arrays, as another program would read them from the description of the format."""
    n = struct.unpack("<I", data[12:16])[0]
    header = json.loads(data[24 : 24 + n])
    at, arrays = 24 + n, {}
    for name, dtype, shape in header["arrays"]:
        at += -at % 64
        dtype = np.dtype({"b1": "?"}.get(dtype, "<" + dtype))
        count = int(np.prod(shape, dtype=int))
        arrays[name] = np.frombuffer(data, dtype, count, at).reshape(shape)
        at += arrays[name].nbytes
    return header, arrays


def join(header, arrays, version=1):
    """A hostile file: everything is right but for what it says."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = b""
    start = 24 + len(text)
    start += -start % 64
    for a in arrays.values():
        body += bytes(-len(body) % 64) + a.tobytes()
    body += bytes(-len(body) % 64)
    out = struct.pack("<8sIIQ", MAGIC, version, len(text), start + len(body) + 32) + text
    out += bytes(start - len(out)) + body
    return out + hashlib.sha256(out).digest()


def test_the_layout_is_the_documented_one(models):
    data = models["dense"]
    header, arrays = split(data)
    assert data[:8] == bytes.fromhex("894D41584D470D0A") and struct.unpack("<Q", data[16:24])[0] == len(data)
    assert hashlib.sha256(data[:-32]).digest() == data[-32:]
    assert header["content"]["model"]["class"] == "SVC"
    np.testing.assert_array_equal(arrays["support_vectors_"], SVC().fit(X, y).support_vectors_)
    assert load(io.BytesIO(join(header, arrays))).predict(X[:1]) == [0]


def test_the_container_keeps_every_dtype_and_shape():
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.zeros((0, 5), np.float32),
        "c": np.array([-(2**31), 7], np.int32),
        "d": np.array(2**62),
        "e": np.array([True, False]),
        "f": np.asfortranarray(np.arange(6.0).reshape(2, 3))[:, ::2],
    }
    file = io.BytesIO()
    write(file, {"x": "ü"}, arrays)
    file.seek(0)
    content, found = read(file, "here", None)
    assert content == {"x": "ü"} and list(found) == list(arrays)
    for name, a in arrays.items():
        assert found[name].dtype == a.dtype and found[name].flags.writeable and found[name].flags.c_contiguous
        np.testing.assert_array_equal(found[name], a)


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.7, 0.999])
def test_a_file_that_was_cut_short_is_damaged(models, tmp_path, share):
    data = models["dense"]
    path = tmp_path / "short"
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(ModelFileError, match=r"damaged|not a maxmargin model file") as error:
        load(path)
    assert str(path) in str(error.value)


def test_any_flipped_bit_is_noticed(models):
    data = models["one"]
    for at in range(0, len(data), 7):
        wrong = bytearray(data)
        wrong[at] ^= 1 << at % 8
        with pytest.raises(ModelFileError):
            load(io.BytesIO(bytes(wrong)))


def test_a_file_that_went_through_text_mode_is_damaged(models):
    with pytest.raises(ModelFileError, match="damaged: its first bytes"):
        load(io.BytesIO(models["one"].replace(b"\r\n", b"\n")))


def test_more_bytes_than_there_should_be_are_noticed(models, tmp_path):
    (tmp_path / "long").write_bytes(models["one"] + b"\0")
    with pytest.raises(ModelFileError, match=r"damaged: it has .* bytes and should have"):
        load(tmp_path / "long")


def test_a_newer_format_is_told_apart(models):
    header, arrays = split(models["one"])
    with pytest.raises(ModelFileError, match="version 2 of the format"):
        load(io.BytesIO(join(header, arrays, version=2)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"[" * 200_000, "nested too deeply|cannot be read"),
        (b'{"a":' * 200_000, "nested too deeply|cannot be read"),
        (b'{"arrays":[],"content":{"model":NaN}}', "the constant NaN"),
        (b'{"arrays":[],"content":{"model":1e999}}', "beyond float64"),
        (b'{"arrays":[],"content":{"model":9223372036854775808}}', "beyond 64 bits"),
        (b'{"arrays":[],"content":{"model":' + b"9" * 10_000 + b"}}", "beyond 64 bits"),
        (b'{"arrays":[],"content":{},"arrays":[]}', "a duplicate key"),
        (b'{"arrays":[],"content":{"model":"\\ud800"}}', "cannot be read"),
        (b'{"arrays":[],"content":{"model":"\xff"}}', "cannot be read"),
        (b'{"arrays":[],"content":{}} x', "cannot be read"),
        (b'{"arrays":[],"content":{}}', "neither a model nor a pipeline"),
        (b'{"arrays":[],"content":[]}', "is not an object"),
        (b'{"content":{}}', "'arrays' and 'content'"),
        (b"null", "'arrays' and 'content'"),
        (b'{"arrays":[["a","O",[1]]],"content":{}}', "dtype is not one of"),
        (b'{"arrays":[["a",["f8"],[1]]],"content":{}}', "dtype is not one of"),
        (b'{"arrays":[["a","f8",[1.0]]],"content":{}}', "impossible shape"),
        (b'{"arrays":[["a","f8",[true]]],"content":{}}', "impossible shape"),
        (b'{"arrays":[["a","f8",[-1]]],"content":{}}', "impossible shape"),
        (b'{"arrays":[["a","f8",[4611686018427387904]]],"content":{}}', "impossible shape"),
        (b'{"arrays":[["a","f8",[1099511627775,1099511627775]]],"content":{}}', "does not fit"),
        (b'{"arrays":[["a","f8",[1,1,1]]],"content":{}}', "more than two dimensions"),
        (b'{"arrays":[["a","f8",[0]],["a","f8",[0]]],"content":{}}', "two arrays 'a'"),
        (b'{"arrays":[' + b",".join([b'["a","f8",[0]]'] * 10_001) + b'],"content":{}}', "10001 arrays"),
        (b'{"arrays":[["a","f8"]],"content":{}}', "name, dtype and shape"),
    ],
    ids=lambda text: text[:40] if isinstance(text, bytes) else None,
)
def test_hostile_headers_are_refused(text, message):
    with pytest.raises(ModelFileError, match=message):
        load(io.BytesIO(join(text, {})))


def test_sizes_that_are_claimed_are_not_allocated():
    claims = PREFIX.pack(MAGIC, 1, 100, 2**50)
    tracemalloc.start()
    with pytest.raises(ModelFileError, match="damaged: it ends after 24"):
        load(io.BytesIO(claims))
    assert tracemalloc.get_traced_memory()[1] < 1e6
    tracemalloc.stop()
    with pytest.raises(ModelFileError, match="a header of 4294967295 bytes"):
        load(io.BytesIO(PREFIX.pack(MAGIC, 1, 2**32 - 1, 2**50)))


def test_bytes_between_arrays_must_be_zero(models):
    data = bytearray(models["dense"])
    n = PREFIX.unpack(data[: PREFIX.size])[2]
    assert (PREFIX.size + n) % 64, "the header ends on a line: choose another model"
    data[PREFIX.size + n] = 1
    data[-DIGEST:] = hashlib.sha256(data[:-DIGEST]).digest()
    with pytest.raises(ModelFileError, match="other than zero"):
        load(io.BytesIO(bytes(data)))


def changed(array, at, value):
    out = array.copy()
    out[at] = value
    return out


BAD_ARRAYS = [
    ("dense", "support_", 0, 150, "beyond the 150 training samples"),
    ("dense", "support_", 0, -1, "out of range"),
    ("precomputed", "support_", -1, 150, "out of range"),
    ("dense", "_n_support", 0, 1, "do not add up"),
    ("dense", "_n_support", 0, -1, "out of range"),
    ("dense", "_dense_coef", (0, 0), np.nan, "NaN or infinity"),
    ("dense", "support_vectors_", (0, 0), np.inf, "NaN or infinity"),
    ("dense", "intercept_", 0, -np.inf, "NaN or infinity"),
    ("sparse", "support_vectors_.indices", 0, 4, "column outside"),
    ("sparse", "support_vectors_.indices", 0, -1, "column outside"),
    ("sparse", "support_vectors_.indptr", 0, 1, "rows overlap"),
    ("sparse", "support_vectors_.indptr", 1, -5, "rows overlap"),
    ("sparse", "support_vectors_.indptr", -1, 10**6, "rows overlap"),
    ("sparse", "support_vectors_.data", 0, np.nan, "NaN or infinity"),
    ("regression", "intercept_", 0, np.nan, "NaN or infinity"),
    ("regression", "_n_support", 0, 1, "do not add up"),
    ("tube", "_dense_coef", (0, 0), np.inf, "NaN or infinity"),
    ("tube", "support_vectors_.indices", 0, 4, "column outside"),
    ("rows", "_y", 0, 0.0, "sides of rows"),
    ("rows", "_u", 0, 1e3, "other sign"),
    ("rows", "_ridge", 0, 0.0, "out of range"),
    ("pipeline", "0/scale_", 0, 0.0, "out of range"),
    ("pipeline", "0/mean_", 0, np.nan, "NaN or infinity"),
]


@pytest.mark.parametrize(("model", "name", "at", "value", "message"), BAD_ARRAYS)
def test_values_that_prediction_would_stumble_over_are_refused(models, model, name, at, value, message):
    header, arrays = split(models[model])
    arrays[name] = changed(arrays[name], at, value)
    with pytest.raises(ModelFileError, match=message):
        load(io.BytesIO(join(header, arrays)))


@pytest.mark.parametrize(
    "model", ["dense", "sparse", "precomputed", "one", "regression", "tube", "rows", "pipeline"]
)
def test_an_array_of_another_shape_or_dtype_or_none_is_refused(models, model):
    header, arrays = split(models[model])
    for k, (name, dtype, _) in enumerate(header["arrays"]):
        for new in (arrays[name][:-1], arrays[name].astype("<i8" if dtype != "i8" else "<f8"), None):
            table = [list(entry) for entry in header["arrays"]]
            others = dict(arrays)
            if new is None:
                del table[k], others[name]
            else:
                table[k] = [name, new.dtype.str[1:], list(new.shape)]
                others[name] = new
            if new is not None and (new.shape == arrays[name].shape) == (new.dtype == arrays[name].dtype):
                continue  # an empty array cannot be shorter
            if name.endswith("n_samples_seen_") and new is not None and len(new):
                continue  # may be float or int
            if name.endswith("relative_gap_") and new is None:
                continue  # files of earlier versions have none
            with pytest.raises(ModelFileError):
                load(io.BytesIO(join({**header, "arrays": table}, others)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("class", "LogisticRegression"),
        ("class", "StandardScaler"),
        ("class", ["SVC"]),
        ("n_features", 5),
        ("n_features", 2**31),
        ("n_features", True),
        ("labels", None),
        ("labels", {"dtype": "int64", "values": [2, 1, 0]}),
        ("labels", {"dtype": "int64", "values": [0, 1, 1]}),
        ("labels", {"dtype": "int64", "values": [0, 1, 2.5]}),
        ("labels", {"dtype": "int8", "values": [0, 1, 300]}),
        ("labels", {"dtype": "str", "values": ["a", "b", "b\0"]}),
        ("labels", {"dtype": "str", "values": [*map(str, range(10_000)), "x" * 10_000]}),
        ("labels", {"dtype": "V8", "values": [0, 1, 2]}),
        ("labels", {"dtype": "int64", "values": list(range(100))}),
        ("feature_names", ["a"]),
        ("feature_names", [1, 2, 3, 4]),
        ("values", {}),
        ("values", []),
        ("parameters", {"C": -1.0}),
        ("parameters", {"kernel": "spline"}),
        ("parameters", {"kernel": ["rbf"]}),
        ("parameters", {"n_jobs": 0}),
        ("parameters", {"gamma": {"float": "nan"}}),
        ("parameters", {"gamma": {"float": "nan()"}}),
        ("parameters", {"kernel": {"tuple": [{"tuple": []}]}}),
        ("parameters", {"__class__": 1}),
        ("parameters", None),
        ("other", 1),
    ],
)
def test_headers_of_models_that_cannot_be_are_refused(models, key, value):
    header, arrays = split(models["dense"])
    header["content"]["model"][key] = value
    with pytest.raises(ModelFileError):
        load(io.BytesIO(join(header, arrays)))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("_gamma", -1.0),
        ("_gamma", {"float": "inf"}),
        ("_gamma", "1"),
        ("_sparse", True),
        ("status_", "great"),
        ("shape_fit_0", 10),
        ("shape_fit_0", 2**40),
        ("more", 1),
    ],
)
def test_values_of_models_that_cannot_be_are_refused(models, key, value):
    header, arrays = split(models["dense"])
    header["content"]["model"]["values"][key] = value
    with pytest.raises(ModelFileError):
        load(io.BytesIO(join(header, arrays)))


@pytest.mark.parametrize(
    ("key", "value"), [("epsilon_", None), ("epsilon_", "wide"), ("epsilon_", 1), ("offset_", 0.5)]
)
def test_a_tube_that_is_no_number_is_refused(models, key, value):
    header, arrays = split(models["tube"])
    header["content"]["model"]["values"][key] = value
    with pytest.raises(ModelFileError):
        load(io.BytesIO(join(header, arrays)))


def test_a_parameter_that_is_missing_has_its_default(models):
    header, arrays = split(models["dense"])
    del header["content"]["model"]["parameters"]["break_ties"]
    assert load(io.BytesIO(join(header, arrays))).break_ties is False


@pytest.mark.parametrize("limits", [["f8", 1], [0], [1, 0], [0, {"float": "nan"}], [False, True], 5, None])
def test_a_range_of_a_scaler_that_is_none_is_refused(limits):
    header, arrays = split(bytes_of(make_pipeline(MinMaxScaler(clip=True), SVC()).fit(X, y)))
    scaler = header["content"]["pipeline"]["steps"][0][1]
    scaler["parameters"]["feature_range"] = {"tuple": limits} if isinstance(limits, list) else limits
    with pytest.raises(ModelFileError):
        load(io.BytesIO(join(header, arrays)))


def test_pipelines_that_cannot_be_are_refused(models):
    header, arrays = split(models["pipeline"])
    scaler, machine = header["content"]["pipeline"]["steps"]
    for steps in (
        [],
        [scaler],
        [machine, machine],
        [["a__b", "passthrough"], machine],
        ["x"],
        [[1, 2]],
        None,
    ):
        wrong = {**header, "content": {"pipeline": {"steps": steps, "verbose": False}}}
        with pytest.raises(ModelFileError):
            load(io.BytesIO(join(wrong, arrays)))
