"""Data files that are damaged by chance or made to do harm, and what becomes of them (fuzz_data.py)."""

from __future__ import annotations

import bz2
import decimal
import gzip
import io
import lzma
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_iris

from maxmargin.data import DataError, Table, read
from maxmargin.data.files import _WRITE
from mutations import damage, edit_text

Rng = np.random.Generator
Edit = Callable[[bytes, Rng, list[bytes]], bytes]
PACK: tuple[Callable[[bytes], bytes], ...] = (gzip.compress, bz2.compress, lzma.compress)
OUTCOMES, SOUND = ("refused", "read"), "read"
MEANING = (
    "refused: DataError with a message of one line. read: what was changed does not matter, or it is another "
    "sound file."
)
# Megabytes that the files may take: far more than they should, far less than they ask for.
MEMORY = 64
_NUMBERS = (0, 1, -1, 3, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 10**30)
_TYPES = (
    "<f8",
    "<f4",
    "|O",
    "<c16",
    "<i8",
    "|V8",
    "<U9",
    "<U999999999",
    "|S4",
    "<M8[s]",
    "|b1",
    ">f8",
    "<f2",
)


def files() -> dict[str, dict[str, bytes]]:
    """Small sound files, by format and name."""
    X, y = load_iris(return_X_y=True)
    X, y = X[::5], y[::5]
    words = np.array(["setosa", "versicolor", "virginica"])[y]
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    sparse = sp.csr_array(np.where(X > 3, X, 0.0))
    tables = {
        "numbers": Table(X, y, names, "class"),
        "words": Table(X, words, names, "class"),
        "sparse": Table(sparse, y),
    }
    out: dict[str, dict[str, bytes]] = {}
    for form, write in _WRITE.items():
        out[form] = {}
        for name, table in tables.items():
            if form == "svmlight" and name == "words":
                continue
            stream = io.BytesIO()
            write(table, stream)
            out[form][name] = stream.getvalue()
    out["csv"]["spaces"] = "\n".join(" ".join(f"{v:g}" for v in row) for row in X).encode()
    out["csv"]["quoted"] = b'"a, b",c,y\n1,2,"x ""1"""\n3,4,z\n'
    out["svmlight"]["comments"] = b"# a comment\n1 qid:3 1:2 5:1e-3 # more\n-1 2:4\n"
    for form, save in (("csr", sparse), ("csc", sp.csc_array(sparse))):
        stream = io.BytesIO()
        sp.save_npz(stream, save)
        out["npz"][form] = stream.getvalue()
    stream = io.BytesIO()
    np.savez(stream, X=X.astype(np.float32), y=words)
    out["npz"]["stored"] = stream.getvalue()
    return out


def _text(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    return edit_text(data, rng)


def _packed(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Damaged and packed, or packed and damaged."""
    pack = PACK[int(rng.integers(len(PACK)))]
    if rng.random() < 0.5:
        return pack(damage(data, rng, others))
    return damage(pack(data), rng, others)


def _bomb(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """A piece of the file that is repeated to far more than the limit, packed; or a mark before it."""
    match int(rng.integers(3)):
        case 0:
            piece = data[: int(rng.integers(1, 200))] if rng.random() < 0.7 else bytes(100)
            many = piece * (3 * MEMORY * 10**6 // 2 // len(piece))
            return gzip.compress(many, 1)
        case 1:
            marks = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\n\n", b"\xef\xbb\xbf" * 2)
            return marks[int(rng.integers(len(marks)))] + data
        case _:
            codes = ("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-8-sig", "cp500")
            return data.decode("latin-1").encode(codes[int(rng.integers(len(codes)))])


def _repeated(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Long lines, long cells, many columns, many rows: some megabytes of text that ask for more."""
    lines = data.split(b"\n")
    at = int(rng.integers(len(lines)))
    words = lines[at].replace(b",", b" ").split() or [b"1"]
    word = words[int(rng.integers(len(words)))]
    many = 10 ** int(rng.integers(2, 7))
    match int(rng.integers(5)):
        case 0:
            lines[at] = b",".join([word[:5]] * many)
        case 1:
            lines[at] += b" " + b" ".join(b"%d:1" % k for k in range(1, many // 10))
        case 2:
            lines[at] = lines[at].replace(word, word * (many // len(word) + 1), 1)
        case 3:
            lines = lines[:at] + [lines[at]] * (many // 10) + [b"9" * (many // 10)]
        case _:
            lines[at] += b" %d:1" % _NUMBERS[int(rng.integers(len(_NUMBERS)))]
    return b"\n".join(lines)


def _header(rng: Rng) -> bytes:
    """A header of an array with something that does not belong there."""
    shape = [_NUMBERS[int(rng.integers(len(_NUMBERS)))] for _ in range(int(rng.integers(0, 4)))]
    kind = repr(_TYPES[int(rng.integers(len(_TYPES)))])
    match int(rng.integers(6)):
        case 0:
            kind = "[('a', '<f8'), ('b', '<f4', (2, 3))]"
        case 1:
            kind = "(" * 3000 + ")" * 3000
        case _:
            pass
    text = f"{{'descr': {kind}, 'fortran_order': {bool(rng.integers(2))}, 'shape': {tuple(shape)}, }}"
    text = text if rng.random() < 0.8 else text[: int(rng.integers(len(text)))]
    raw = text.encode() + b"\n"
    version = (1, 0) if rng.random() < 0.8 else (int(rng.integers(5)), int(rng.integers(2)))
    length = len(raw) if rng.random() < 0.9 else int(rng.integers(2**16))
    size = 2 if version == (1, 0) else 4
    return b"\x93NUMPY" + bytes(version) + (length % 256**size).to_bytes(size, "little") + raw


def _archive(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """An archive that is sound, of arrays that are not."""
    out = io.BytesIO()
    method = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        names = old.namelist()
        chosen = names[int(rng.integers(len(names)))]
        way = int(rng.integers(7))
        for name in names:
            content = old.read(name)
            if name == chosen:
                match way:
                    case 0:
                        content = damage(content, rng, others)
                    case 1:
                        content = _header(rng) + content[-int(rng.integers(1, 200)) :]
                    case 2:
                        content = _header(rng) + bytes(2 * MEMORY * 10**6)
                    case 3:
                        content = content[: int(rng.integers(len(content)))]
                    case 4:
                        new.writestr(name, content)
                    case 5:
                        continue
                    case _:
                        name = ("names.npy", "y", "X.npy", ".npy", "a" * 5000, "format.npy")[
                            int(rng.integers(6))
                        ]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # two of one name
                kind = zipfile.ZIP_DEFLATED if len(content) > 10**6 else method[int(rng.integers(4))]
                new.writestr(name, content, kind, compresslevel=1)
    return out.getvalue()


def _flags(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Encryption, compression methods and sizes that are not what they were, in the archive's own lists."""
    raw = bytearray(data)
    for mark, flag in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = raw.find(mark)
        while at >= 0 and at + flag + 20 < len(raw):
            match int(rng.integers(4)):
                case 0:
                    raw[at + flag] |= 1
                case 1:
                    raw[at + flag + 2] = int(rng.integers(100))
                case 2:
                    size = at + flag + 12 + 4 * int(rng.integers(2))
                    raw[size : size + 4] = int(rng.integers(2**32)).to_bytes(4, "little")
                case _:
                    pass
            at = raw.find(mark, at + 4)
    return bytes(raw)


def _wide_parquet(data: bytes, rng: Rng, others: list[bytes]) -> bytes:
    """Little text that stands for much: repeated values, and types that are no numbers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    n = 10 ** int(rng.integers(1, 7))
    columns: list[Callable[[], Any]] = [
        lambda: pa.array(np.zeros(n)),
        lambda: pa.array(["x" * (10**7 // n + 1)] * n),
        lambda: pa.array(["a", None] * (n // 2)),
        lambda: pa.array(np.arange(n).astype("M8[s]")),
        lambda: pa.array([[1.0, 2.0]] * n),
        lambda: pa.array(np.arange(n) % 3).dictionary_encode(),
        lambda: pa.array([b"\xff\xfe"] * n),
        lambda: pa.nulls(n),
        lambda: pa.array([decimal.Decimal(1)] * n),
        lambda: pa.array([{"a": 1}] * n),
    ]
    chosen = [columns[0](), *(columns[int(k)]() for k in rng.integers(len(columns), size=2))]
    names = [["a", "b", "y"], ["a", "a", "y"], ["", "é" * 999, "y"]][int(rng.integers(3))]
    out = io.BytesIO()
    pq.write_table(pa.table(chosen, names=names), out)
    return out.getvalue()


MUTATIONS: dict[str, dict[str, Edit]] = {
    "svmlight": {"damage": damage, "text": _text, "packed": _packed, "bomb": _bomb, "repeated": _repeated},
    "csv": {"damage": damage, "text": _text, "packed": _packed, "bomb": _bomb, "repeated": _repeated},
    "npz": {"damage": damage, "packed": _packed, "archive": _archive, "flags": _flags},
    "parquet": {"damage": damage, "packed": _packed, "wide": _wide_parquet},
}


def mutation(base: dict[str, dict[str, bytes]], seed: int, index: int) -> tuple[str, str, str, bytes]:
    """The format, file, way and bytes of one mutation."""
    rng = np.random.default_rng([seed, index])
    form = list(base)[index % len(base)]
    of_form = base[form]
    name = list(of_form)[int(rng.integers(len(of_form)))]
    ways = MUTATIONS[form]
    way = list(ways)[int(rng.integers(len(ways)))]
    return form, name, way, ways[way](of_form[name], rng, list(of_form.values()))


def outcome(form: str, data: bytes) -> str:
    """ "refused" or "read"; anything else is raised."""
    try:
        table = read(io.BytesIO(data), format=form if len(data) % 2 else None, memory=MEMORY)
    except DataError as error:
        if len(str(error)) > 2000 or "\n" in str(error):
            raise AssertionError("a message of several lines, or a very long one") from error
        return "refused"
    assert table.X.ndim == 2 and table.X.dtype in (np.float32, np.float64)
    assert table.y is None or (len(table.y) == table.X.shape[0] and table.y.dtype.kind in "biufU")
    assert table.names is None or len(table.names) == table.X.shape[1]
    return "read"
