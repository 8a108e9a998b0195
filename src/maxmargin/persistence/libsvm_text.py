"""The text of a LIBSVM model, read line by line and checked."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._files import File
from maxmargin.persistence.streams import ModelFileError, name_of, reading

KERNELS = {
    "linear": "linear",
    "polynomial": "poly",
    "rbf": "rbf",
    "sigmoid": "sigmoid",
    "precomputed": "precomputed",
}
_LARGEST = 2**31 - 1
# A support vector with some million features; also limits files without line ends.
_LONGEST_LINE = 1 << 26
_IGNORED = ("prob_density_marks",)


@dataclass
class Text:
    """The contents of a file, with its classes in the file's order.

    `labels` and `n_support` are of length zero for one-class models and regressions, and `support` has the
    training samples of a precomputed kernel.
    """

    svm_type: str = ""
    kernel: str = ""
    degree: int = 3
    gamma: float = 0.0
    coef0: float = 0.0
    n_classes: int = 0
    total: int = 0
    rho: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    prob_a: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    prob_b: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    labels: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    n_support: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    coef: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    vectors: Any = None
    support: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    n_features: int = 1
    n_samples: int = 1


def parse(file: File, n_features: int | None, svm_types: tuple[str, ...]) -> Text:
    """Read a file; raises `ModelFileError` with the number of the first wrong line."""
    with reading(file) as (stream, _):
        reader = _Reader(stream, name_of(file), svm_types)
        reader.head()
        reader.rows()
    text = reader.text
    largest = reader.largest
    if n_features is not None:
        if largest > n_features:
            reader.fail(f"it has the index {largest}, and n_features is {n_features}: give a larger number")
        largest = int(n_features)
    text.n_features = max(1, largest)
    n = len(text.support)
    if text.kernel == "precomputed":
        text.n_samples = text.n_features
        return text
    text.n_samples = max(1, n)
    shape = (n, text.n_features)
    lists = (np.asarray(values) for values in (reader.data, reader.indices, reader.indptr))
    text.vectors = sp.csr_array(tuple(lists), shape=shape)
    return text


class _Reader:
    def __init__(self, stream: IO[bytes], name: str, svm_types: tuple[str, ...]) -> None:
        self.stream, self.name, self.svm_types = stream, name, svm_types
        self.text = Text()
        self.line = 0
        self.largest = 0
        self.data, self.indices, self.indptr = array("d"), array("q"), array("q", [0])

    def fail(self, what: str) -> NoReturn:
        raise ModelFileError(
            f"{self.name}, line {self.line}: {what}. It is not a LIBSVM model, or it was damaged: write it "
            "again with svm_save_model or maxmargin.persistence.save_libsvm."
        )

    def _next(self) -> bytes | None:
        """The next line, None at the end."""
        raw = self.stream.readline(_LONGEST_LINE)
        if not isinstance(raw, bytes):
            raise TypeError("file must be opened in binary mode, open(..., 'rb').")
        if not raw:
            return None
        self.line += 1
        if len(raw) >= _LONGEST_LINE:
            self.fail("the line is too long")
        return raw

    # -- the head --------------------------------------------------------------------------------

    def head(self) -> None:
        """Lines of a word and its values, up to the word SV."""
        seen: dict[str, list[bytes]] = {}
        while True:
            raw = self._next()
            if raw is None:
                self.fail("the file ends before its support vectors")
            words = raw.split()
            if words == [b"SV"]:
                break
            key = words[0].decode("ascii", "replace") if words else ""
            if key in _IGNORED:
                continue
            if key not in self._keys:
                self.fail(f"unknown key {key[:40]!r}")
            if key in seen:
                self.fail(f"{key} is given twice")
            seen[key] = words[1:]
            self._keys[key](self, words[1:])
        text = self.text
        needed = {"svm_type", "kernel_type", "nr_class", "total_sv", "rho"}
        if text.svm_type.endswith("svc"):
            needed |= {"label", "nr_sv"}
        if text.kernel in ("poly", "rbf", "sigmoid"):
            needed.add("gamma")
        if text.kernel == "poly":
            needed.add("degree")
        if text.kernel in ("poly", "sigmoid"):
            needed.add("coef0")
        if not needed <= set(seen):
            self.fail(f"there was no line with {', '.join(sorted(needed - set(seen)))}")
        self._check_head()

    def _check_head(self) -> None:
        text, k = self.text, self.text.n_classes
        pairs = text.svm_type.endswith("svc")
        if k < 2 or (not pairs and k != 2):
            self.fail(f"nr_class is {k}")
        if len(text.rho) != (k * (k - 1) // 2 if pairs else 1):
            self.fail(f"rho has {len(text.rho)} values, which does not fit nr_class {k}")
        if pairs and {len(text.prob_a), len(text.prob_b)} not in ({0}, {len(text.rho)}):
            self.fail(f"probA and probB do not have a value for each of {len(text.rho)} pairs of classes")
        if not pairs:
            if len(text.labels) or len(text.n_support):
                self.fail(f"a model of type {text.svm_type} has no labels")
            return
        if len(text.labels) != k or len(np.unique(text.labels)) != k:
            self.fail(f"label does not have {k} different values")
        if len(text.n_support) != k or (text.n_support < 0).any() or text.n_support.sum() != text.total:
            self.fail(f"nr_sv does not have {k} values that add up to total_sv, {text.total}")

    def _svm_type(self, words: list[bytes]) -> None:
        known = {name.encode(): name for name in self.svm_types}
        if len(words) != 1 or words[0] not in known:
            self.fail(f"svm_type is {_shown(words)}, and only {', '.join(self.svm_types)} can be read")
        self.text.svm_type = known[words[0]]

    def _kernel_type(self, words: list[bytes]) -> None:
        known = {theirs.encode(): ours for theirs, ours in KERNELS.items()}
        if len(words) != 1 or words[0] not in known:
            self.fail(f"kernel_type is {_shown(words)}, not one of {', '.join(KERNELS)}")
        self.text.kernel = known[words[0]]

    def _number(self, word: bytes) -> float:
        """A finite number; Python would also take 1_000, nan and more."""
        try:
            value = float(word)
        except ValueError:
            self.fail(f"{_shown([word])} is not a number")
        if not math.isfinite(value) or b"_" in word:
            self.fail(f"{_shown([word])} is not a finite number")
        return value

    def _integer(self, word: bytes, low: int = -_LARGEST - 1) -> int:
        if len(word) > 11 or not word.removeprefix(b"-").removeprefix(b"+").isdigit():
            self.fail(f"{_shown([word])} is not an integer")
        value = int(word)
        if not low <= value <= _LARGEST:
            self.fail(f"{value} is out of range")
        return value

    def _one(self, words: list[bytes]) -> bytes:
        if len(words) != 1:
            self.fail("there should be one value")
        return words[0]

    def _gamma(self, words: list[bytes]) -> None:
        self.text.gamma = self._number(self._one(words))
        if self.text.gamma < 0:
            self.fail("gamma is negative")

    def _degree(self, words: list[bytes]) -> None:
        self.text.degree = self._integer(self._one(words), 0)

    def _nr_class(self, words: list[bytes]) -> None:
        self.text.n_classes = self._integer(self._one(words), 0)

    def _total_sv(self, words: list[bytes]) -> None:
        self.text.total = self._integer(self._one(words), 0)

    def _coef0(self, words: list[bytes]) -> None:
        self.text.coef0 = self._number(self._one(words))

    def _rho(self, words: list[bytes]) -> None:
        self.text.rho = np.array([self._number(word) for word in words])

    def _prob_a(self, words: list[bytes]) -> None:
        self.text.prob_a = np.array([self._number(word) for word in words])

    def _prob_b(self, words: list[bytes]) -> None:
        self.text.prob_b = np.array([self._number(word) for word in words])

    def _label(self, words: list[bytes]) -> None:
        self.text.labels = np.array([self._integer(word) for word in words], np.int64)

    def _nr_sv(self, words: list[bytes]) -> None:
        self.text.n_support = np.array([self._integer(word, 0) for word in words], np.int64)

    _keys: dict[str, Callable[[_Reader, list[bytes]], None]] = {  # noqa: RUF012
        "svm_type": _svm_type,
        "kernel_type": _kernel_type,
        "degree": _degree,
        "gamma": _gamma,
        "coef0": _coef0,
        "nr_class": _nr_class,
        "total_sv": _total_sv,
        "rho": _rho,
        "probA": _prob_a,
        "probB": _prob_b,
        "label": _label,
        "nr_sv": _nr_sv,
    }

    # -- the support vectors ---------------------------------------------------------------------

    def rows(self) -> None:
        """One line per support vector: coefficients, then index:value."""
        text = self.text
        height = text.n_classes - 1
        coef: list[list[float]] = []
        support: list[int] = []
        for row in range(text.total):
            raw = self._next()
            if raw is None:
                self.fail(f"the file ends after {row} of {text.total} support vectors")
            words = raw.split()
            if len(words) < height:
                self.fail(f"there are fewer than {height} coefficients")
            coef.append([self._number(word) for word in words[:height]])
            if text.kernel == "precomputed":
                support.append(self._serial(words[height:]))
            else:
                support.append(row)
                self._vector(words[height:])
        while (raw := self._next()) is not None:
            if raw.strip():
                self.fail(f"there is more after the {text.total} support vectors")
        text.coef = np.array(coef, np.float64).reshape(len(coef), height).T.copy()
        text.support = np.array(support, np.int64)

    def _vector(self, words: list[bytes]) -> None:
        last = 0
        for word in words:
            index, colon, value = word.partition(b":")
            if not colon:
                self.fail(f"{_shown([word])} is not of the form index:value")
            at = self._integer(index, 1)
            if at <= last:
                self.fail(f"the index {at} does not come after {last}")
            last = at
            self.indices.append(at - 1)
            self.data.append(self._number(value))
        self.largest = max(self.largest, last)
        self.indptr.append(len(self.data))

    def _serial(self, words: list[bytes]) -> int:
        """The number of a training sample, 0:number."""
        index, _, value = self._one(words).partition(b":")
        if index != b"0":
            self.fail("a support vector of a precomputed kernel is not of the form 0:number")
        at = self._integer(value, 1)
        self.largest = max(self.largest, at)
        return at - 1


def _shown(words: list[bytes]) -> str:
    return repr(b" ".join(words)[:40].decode("ascii", "replace"))
