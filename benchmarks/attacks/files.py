"""The part "files": damaged and hostile files give the library's own errors, in bounded time and memory.

Model files are mutated as in mutations.py; data files and checkpoints are mutated here, and some are made to
do harm: archives that unpack to gigabytes, shapes that no memory holds, objects in place of numbers.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.lib import format as npy
from sklearn.datasets import load_iris

from attacks.outcome import Outcome, generator, place, recorded
from maxmargin import SVC, data
from maxmargin.model_selection import SVMSearchCV
from mutations import damage, edit_text, files, mutation, outcome

SECONDS = 10.0
PACKERS: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress, lzma.compress)
Rng = np.random.Generator


@cache
def model_files() -> dict[str, dict[str, bytes]]:
    """Sound model files, by format and name."""
    return files()


@cache
def data_files() -> dict[str, bytes]:
    """Sound data files, by format."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    names = ["a", "b", "c", "d"]
    tables = {
        "csv": data.Table(X, np.array(["x", "y", "z"])[y], names, "kind"),
        "npz": data.Table(X, y),
        "svmlight": data.Table(sp.csr_array(np.where(X > 1.4, X, 0.0)), y),
        "parquet": data.Table(X, y, names, "kind"),
        "csv regression": data.Table(X[:, :3], X[:, 3], names[:3], "d"),
    }
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, table in tables.items():
            form = name.partition(" ")[0]
            path = Path(folder) / f"file.{form if form != 'svmlight' else 'svm'}"
            data.write(table, path)
            out[name] = path.read_bytes()
    file = io.BytesIO()
    sp.save_npz(file, sp.csr_matrix(X))
    out["npz sparse"] = file.getvalue()
    file = io.BytesIO()
    np.save(file, X)
    out["npy"] = file.getvalue()
    return out


def hostile(rng: Rng) -> tuple[str, bytes]:
    """A file that is made to do harm, and its name."""
    kind = int(rng.integers(10))
    sound = data_files()
    if kind == 0:
        pack = PACKERS[int(rng.integers(3))]
        # Each of these formats may be repeated: 6 MB many times.
        return "bomb", pack(b"1,2,3\n" * 1_000_000) * int(rng.choice([5, 300]))
    if kind == 1:
        shape = [(10**6, 10**6), (2**40, 1), (10**5, 10**5), (-1, 3), (2**62, 2**62)][int(rng.integers(5))]
        return "huge shape", _archive({"X.npy": _header(shape), "y.npy": _header((3,), b"\0" * 24)})
    if kind == 2:
        dtype = ["<c16", "|O", "<U100000", "|V64", "<M8[s]", "|b1", "<f2"][int(rng.integers(7))]
        body = b"\0" * 4096
        return f"dtype {dtype}", _archive(
            {"X.npy": _header((4, 2), body, dtype), "y.npy": _header((4,), body)}
        )
    if kind == 3:
        text = sound["svmlight"]
        return "byte order mark", [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"][int(rng.integers(3))] + text
    if kind == 4:
        at = [2**31 - 1, 2**31, 2**40, 2**63, 0, -1][int(rng.integers(6))]
        return "huge index", f"1 1:1 {at}:2\n0 1:2\n".encode() * int(rng.integers(1, 200))
    if kind == 5:
        raw = bytearray(sound["npz"])
        at = raw.find(b"PK\x01\x02")
        local = raw.find(b"PK\x03\x04")
        raw[local + 6] |= 1
        raw[at + 8] |= 1
        return "encrypted", bytes(raw)
    if kind == 6:
        return "zip bomb", zip_bomb()
    if kind == 7:
        line = b",".join([b"1"] * int(rng.choice([10, 100_000])))
        return "wide or ragged", line + b"\n" + b"1,2\n" * int(rng.integers(1, 5)) + line
    if kind == 8:
        arrays: dict[str, Any] = {
            "X_data": np.ones(3),
            "X_indices": np.array([0, 10**9, 5]),
            "X_indptr": np.array([0, 2, 99]),
            "X_shape": np.array([2, int(rng.choice([6, 10**9, 2**62]))]),
            "y": np.zeros(2),
        }
        file = io.BytesIO()
        np.savez(file, **arrays)
        return "sparse out of range", file.getvalue()
    quoted = b'"' * int(rng.integers(1, 5)) + b"1,2\n" * 3
    return "quotes", quoted + b"\0" * int(rng.integers(0, 9)) + b"9" * int(rng.choice([1, 10**6]))


@cache
def zip_bomb() -> bytes:
    """An archive of 2 MB with an array of 1.6 GB."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("X.npy", "w") as member:
            member.write(_header((2 * 10**8, 1)))
            for _ in range(100):
                member.write(bytes(16_000_000))
        archive.writestr("y.npy", _header((2 * 10**8,)))
    return file.getvalue()


def _header(shape: Any, body: bytes = b"", dtype: str = "<f8") -> bytes:
    text = repr({"descr": dtype, "fortran_order": False, "shape": tuple(int(s) for s in shape)}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return npy.MAGIC_PREFIX + b"\x01\x00" + struct.pack("<H", len(text)) + text + body


def _archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def run(seed: int) -> Outcome:
    """Several files of one kind: a single one takes no time."""
    rng = generator("files", seed)
    kind = str(rng.choice(["models", "models", "data", "data", "hostile", "checkpoint"]))
    result = Outcome(kind)
    if kind == "checkpoint":
        _checkpoint(rng, result)
        return result
    model_files()  # trained before the time is taken
    for index in range(60 if kind != "hostile" else 1):
        name, content = "", b""
        began = time.perf_counter(), time.process_time()
        answer = "FAILED"
        with recorded(Outcome("")):
            try:
                if kind == "models":
                    form, name, way, content = mutation(model_files(), seed, index)
                    name = f"{form} {name} ({way})"
                    answer = outcome(form, content)
                else:
                    name, content = hostile(rng) if kind == "hostile" else _damaged(rng)
                    began = time.perf_counter(), time.process_time()
                    answer = _read(content)
            except BaseException as error:
                result.faults.append(f"file {index}, {name}, {len(content)} bytes: {place(error)}")
        seconds = min(time.perf_counter() - began[0], time.process_time() - began[1])
        if seconds > SECONDS:
            result.faults.append(f"file {index}, {name}, {len(content)} bytes: {seconds:.1f} s ({answer})")
        result.checks += 1
        result.what = f"{name}: {answer}"
        result.answer = answer
    return result


def _damaged(rng: Rng) -> tuple[str, bytes]:
    sound = data_files()
    name = list(sound)[int(rng.integers(len(sound)))]
    content = sound[name]
    text = name.startswith(("csv", "svm"))
    if text and rng.random() < 0.6:
        content = edit_text(content.replace(b",", b" ") if rng.random() < 0.3 else content, rng)
    else:
        content = damage(content, rng, list(sound.values()))
    if rng.random() < 0.25:
        pack = PACKERS[int(rng.integers(3))]
        content = pack(content)
        if rng.random() < 0.5:
            content = damage(content, rng, list(sound.values()))
    return name, content


def _read(content: bytes) -> str:
    try:
        table = data.read(io.BytesIO(content))
    except data.DataError as error:
        if "\n" in str(error) or not str(error):
            raise AssertionError(f"not a message of one line: {error!r}") from None
        return "refused"
    values = table.X.data if sp.issparse(table.X) else np.asarray(table.X)
    assert values.dtype.kind in "fiu", f"features of type {values.dtype}"
    assert table.X.ndim == 2, "not a table"
    assert table.y is None or len(table.y) == table.X.shape[0], "another number of targets than rows"
    return "read"


@cache
def _search_file() -> tuple[bytes, Any, Any, Any]:
    X, y = load_iris(return_X_y=True)
    X, y = X[::3, :2], y[::3]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c"
        found = _search(path, X, y)
        return path.read_bytes(), X, y, found


def _search(path: Any, X: Any, y: Any) -> Any:
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 1.0]}
    search = SVMSearchCV(SVC(tol=1e-6), grid, cv=3, checkpoint=path, refit=False, progress=False, n_jobs=1)
    return search.fit(X, y).cv_results_["mean_test_score"]


def _checkpoint(rng: Rng, result: Outcome) -> None:
    """A damaged checkpoint is refused, or completed; the scores stay what they are."""
    sound, X, y, scores = _search_file()
    for index in range(6):
        content = damage(sound, rng, [sound]) if rng.random() < 0.6 else _digit(sound, rng)
        with tempfile.TemporaryDirectory() as folder, recorded(result):
            path = Path(folder) / "c"
            path.write_bytes(content)
            result.answer = "refused"
            try:
                found = _search(path, X, y)
                result.answer = "scores"
                if not np.array_equal(found, scores):
                    result.faults.append(
                        f"file {index}: a damaged checkpoint changes scores: {found} {scores}"
                    )
            except ValueError as error:
                if isinstance(error, UnicodeError) or str(path) not in str(error):
                    result.faults.append(
                        f"file {index}: an error that does not name the file: {place(error)}"
                    )
            except Exception as error:
                result.faults.append(f"file {index}: {place(error)}")
        result.checks += 1
    result.what = "checkpoints of a search"


def _digit(content: bytes, rng: Rng) -> bytes:
    """One digit of a number is another one."""
    out = bytearray(content)
    places = [k for k in range(len(out)) if chr(out[k]).isdigit()]
    at = places[int(rng.integers(len(places)))]
    out[at] = ord("0") + (out[at] - ord("0") + int(rng.integers(1, 10))) % 10
    return bytes(out)
