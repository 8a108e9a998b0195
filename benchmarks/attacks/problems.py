"""Random problems: every estimator, kernel and solver, and every difficulty that is known to hurt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

import maxmargin
from attacks.exact import callable_kernel

Rng = np.random.Generator
ESTIMATORS = (
    "SVC", "SVC", "SVC squared", "SVC hard", "NuSVC", "SVR", "SVR squared", "NuSVR", "OneClassSVM",
    "L2OneClassSVM", "AllDistancesSVC", "CrammerSingerSVC", "IncrementalSVC",
    "IncrementalSVC hinge", "IncrementalSVR", "IncrementalSVR squared",
)  # fmt: skip
KERNELS = ("linear", "poly", "rbf", "rbf", "laplacian", "precomputed", "callable", "sigmoid")
DIFFICULTIES = (
    "plain", "offset", "sentinel row", "sentinel values", "zero or huge columns", "mixed scales",
    "duplicates", "opposite labels", "bootstrap", "weights", "balanced, small C", "many classes", "tiny C",
    "huge C",
    "rank deficient", "few rows per class", "extreme gamma", "large coef0", "many rows", "wide column",
    "text",
)  # fmt: skip
EVERY = ("auto", "batch", "smo", "smo-accelerated", "smo-first-order", "rosen", "rosen-conjugate")
HULLS = ("mdm", "mdm-accelerated", "mdm-second-order", "npa", "gilbert", "maxminover", "maxminover-doubling")
SOLVERS = {
    "SVC": (*EVERY, "simple", "simple-block"),
    "SVC squared": (*EVERY, "simple", "simple-block", "geometric", "direct", *HULLS),
    "SVC hard": (*EVERY, *HULLS),
    "NuSVC": EVERY,
    "SVR": (*EVERY, "simple", "simple-block"),
    "SVR squared": (*EVERY, "simple", "simple-block"),
    "NuSVR": EVERY,
    "OneClassSVM": (*EVERY, "simple", "simple-block"),
    "L2OneClassSVM": (*EVERY, *HULLS),
    "AllDistancesSVC": EVERY,
    "CrammerSingerSVC": ("crammer-singer", *(name for name in EVERY if name != "batch")),
}


@dataclass
class Problem:
    """Data and a model that is not fitted yet."""

    kind: str
    difficulty: str
    model: Any
    X: Any  # what fit is given
    y: Any
    weight: Any = None
    rows: Any = None  # the feature vectors, if X is a kernel matrix
    matrix: Any = None  # the kernel matrix, if precomputed or callable
    notes: list[str] = field(default_factory=list)

    @property
    def certified(self) -> bool:
        """Whether the gap is a bound: not for an indefinite kernel."""
        return self.model.kernel != "sigmoid"

    def describe(self) -> str:
        """One line."""
        kind = f"{type(self.X).__name__} {getattr(self.X, 'dtype', '')} {np.shape(self.X)}"
        return f"{self.difficulty}: {self.model!r} on {kind} " + " ".join(self.notes)


def points(rng: Rng, n: int, d: int) -> NDArray[np.float64]:
    """Rows without any difficulty."""
    X = rng.normal(size=(n, d))
    if rng.random() < 0.2:
        X = np.round(X * 2) / 2
    return X


def spoil(rng: Rng, X: NDArray[np.float64], difficulty: str) -> NDArray[np.float64]:
    """Rows with a difficulty."""
    n, d = X.shape
    X = X.copy()
    if difficulty == "offset":
        X += 10.0 ** rng.choice([4, 5, 6, 7, 8]) * rng.choice([1.0, -1.0, 0.37], size=d)
    elif difficulty == "sentinel row":
        X[rng.integers(n)] = rng.choice([1e8, -1e8, 1e9, 1e6, 1e12])
    elif difficulty == "sentinel values":
        at = rng.random(X.shape) < rng.choice([0.01, 0.1])
        X[at] = rng.choice([-999.0, 99999.0, 1e8, 1e9])
    elif difficulty == "zero or huge columns":
        for k in rng.permutation(d)[: int(rng.integers(1, d + 1))]:
            size = 10.0 ** rng.uniform(5, np.log10(1.7e9))
            values = size * (1.0 + (0.0 if rng.random() < 0.3 else rng.choice([1e-6, 0.01, 0.3])) * X[:, k])
            X[:, k] = np.where(rng.random(n) < 0.5, 0.0, np.round(values))
    elif difficulty == "mixed scales":
        X *= 10.0 ** rng.uniform(-6, 6, size=d)
    elif difficulty == "wide column":
        with np.errstate(over="ignore"):  # of rows that are large already
            powers = 10.0 ** (2 * X[:, 0])
        wide = (rng.integers(0, 500_000, n), 1.6e9 + 60.0 * np.arange(n), 1e5 * X[:, 0], powers)
        X[:, rng.integers(d)] = wide[int(rng.integers(4))]
    elif difficulty == "text" and d > 20:
        X = np.abs(np.round(X, 2)) * (rng.random(X.shape) < rng.choice([0.003, 0.02]))
        X[rng.random(n) < 0.05] = 0.0
    elif difficulty == "duplicates":
        X[n // 3 :] = X[rng.integers(max(n // 3, 1), size=n - n // 3)]
    elif difficulty == "bootstrap":
        X = X[rng.integers(n, size=n)]
    elif difficulty == "rank deficient":
        X[:, rng.integers(d)] = rng.choice([0.0, 1.0, 1e6])
        if d > 1:
            X[:, -1] = 2 * X[:, 0]
        if rng.random() < 0.5:
            X = X[:, : max(1, d // 3)]
    return X


def labels(rng: Rng, X: NDArray[np.float64], k: int, noise: float) -> NDArray[np.intp]:
    """k classes, every one with at least two rows if there are enough."""
    direction = rng.normal(size=X.shape[1])
    z = (X * direction).sum(axis=1)
    rank = np.argsort(np.argsort(z, kind="stable"), kind="stable")
    y = (rank * k // len(z)).astype(np.intp)
    if rng.random() < 0.3:
        y = np.where(np.abs(X[:, 0]) > 0.7, y, y[::-1])
    swap = rng.random(len(z)) < noise
    y[swap] = rng.integers(k, size=int(swap.sum()))
    y[: 2 * k] = np.tile(np.arange(k), 2)[: len(y)]
    return rng.permutation(y) if rng.random() < 0.1 else y


def size_of(rng: Rng, difficulty: str, most: int) -> tuple[int, int]:
    """Rows and columns."""
    d = int(rng.choice([1, 2, 3, 5, 8, 20]))
    if difficulty == "many rows" or (
        difficulty == "wide column" and rng.random() < 0.7
    ):  # beyond 512 and 2,048 rows other code is used
        return min(int(rng.choice([520, 600, 900, 1500, 2100, 2600])), most), min(d, 5)
    n = int(rng.choice([rng.integers(6, 40), rng.integers(20, 150), rng.integers(100, 350)]))
    if difficulty == "text":  # many columns: inverted index, coordinate descent
        d = int(rng.choice([200, 1100, 1500]))
    return n, d


def random_problem(
    rng: Rng, most: int = 2600, kinds: Any = ESTIMATORS, difficulty: str | None = None
) -> Problem:
    """A problem of any kind."""
    kind = str(rng.choice(kinds))
    difficulty = str(rng.choice(DIFFICULTIES)) if difficulty is None else difficulty
    n, d = size_of(rng, difficulty, most)
    k = _classes(rng, kind, difficulty, n)
    n = max(n, k * (1 if difficulty == "few rows per class" else 2))
    if difficulty == "few rows per class":
        n = k + int(rng.integers(0, 4))
    X = points(rng, n, d)
    y: Any = labels(rng, X, k, rng.choice([0.0, 0.0, 0.1, 0.5]))
    second = str(rng.choice(DIFFICULTIES)) if rng.random() < 0.25 else "plain"
    for what in (difficulty, second):
        X = spoil(rng, X, what)
        if what == "opposite labels" and n >= 4:
            half = n // 2
            X[half : 2 * half] = X[:half]
            y[half : 2 * half] = (y[:half] + 1) % k
    regression = kind.startswith(("SVR", "NuSVR", "IncrementalSVR"))
    if regression:
        y = _targets(rng, X, difficulty)
    elif kind.endswith("OneClassSVM"):
        y = None
    elif rng.random() < 0.15:
        y = np.array([f"c{v:03d}" for v in y])
    model, matrix, given, notes = _model(rng, kind, X, difficulty if difficulty != "plain" else second)
    if kind.startswith(("SVC", "NuSVC")) and model.max_iter > 0:  # the budget is that of a pair of classes
        model.max_iter = max(1, min(model.max_iter, 120_000 // (k * (k - 1))))
    weight = _weights(rng, n, y, regression, difficulty) if "weights" in (difficulty, second) else None
    problem = Problem(kind, difficulty, model, given, y, weight, X, matrix, notes)
    if second != "plain":
        problem.notes.append(f"and {second}")
    return problem


def _classes(rng: Rng, kind: str, difficulty: str, n: int) -> int:
    if kind.startswith("IncrementalSVC"):
        return 2
    if difficulty == "many classes":
        return int(rng.choice([5, 10, 10, 26, 26, 40, 60] if kind.startswith("SVC") else [5, 10, 26, 40]))
    if difficulty == "few rows per class":
        return int(rng.choice([2, 3, 10]))
    return int(rng.choice([2, 2, 2, 3, 4])) if difficulty != "many rows" else int(rng.choice([2, 2, 3]))


def _targets(rng: Rng, X: NDArray[np.float64], difficulty: str) -> NDArray[np.float64]:
    scale = X.std() or 1.0
    y = np.sin((X - np.median(X)) / scale).sum(axis=1) + rng.choice([0.0, 0.1, 1.0]) * rng.normal(size=len(X))
    if rng.random() < 0.2:
        y = y * 10.0 ** rng.choice([-3, 3]) + rng.choice([0.0, 1e4])
    return np.asarray(np.round(y, 1) if rng.random() < 0.2 else y)


def _weights(rng: Rng, n: int, y: Any, regression: bool, difficulty: str) -> NDArray[np.float64]:
    style = int(rng.integers(4))
    if style == 0:
        weight = rng.integers(0, 4, size=n).astype(float)
    elif style == 1:
        weight = 10.0 ** rng.uniform(-6, 6, size=n)
    elif style == 2:
        weight = rng.uniform(0.1, 2.0, size=n) * (rng.random(n) < 0.7)
    else:
        weight = np.where(rng.random(n) < 0.05, 1e6, 1.0)
    weight[:2] = 1.0
    if y is not None and not regression:  # a class without any weight is refused, as it should be
        for label in np.unique(y):
            weight[np.flatnonzero(np.asarray(y) == label)[0]] = 1.0
    return weight


def _model(rng: Rng, kind: str, X: Any, difficulty: str) -> tuple[Any, Any, Any, list[str]]:
    name, _, variant = kind.partition(" ")
    options: dict[str, Any] = {}
    notes: list[str] = []
    kernel = str(rng.choice(KERNELS))
    if difficulty == "large coef0":
        kernel = "poly"
    if difficulty in ("zero or huge columns", "rank deficient") and rng.random() < 0.5:
        kernel = "linear"
    if difficulty == "sentinel row" and rng.random() < 0.5:
        kernel = "rbf"
    if kernel == "precomputed" and name.startswith("Incremental"):
        kernel = "callable"
    spread = float(np.median(np.abs(X - np.median(X, axis=0)))) or 1.0
    gamma = 10.0 ** rng.uniform(-1.5, 0.7) / (X.shape[1] * spread**2)
    if difficulty == "extreme gamma":
        gamma *= 10.0 ** rng.choice([-8, -4, 4, 8])
    elif difficulty == "sentinel row" and rng.random() < 0.7:
        gamma = 10.0 ** rng.uniform(-2, 1)
    elif difficulty == "wide column":
        gamma = 10.0 ** rng.uniform(-4, 0)
    options["gamma"] = str(rng.choice(["scale", "auto"])) if rng.random() < 0.25 else float(gamma)
    if kernel in ("poly", "sigmoid"):
        options["degree"] = int(rng.integers(1, 6))
        options["coef0"] = float(rng.choice([0.0, 1.0, 5.0]))
        if difficulty == "large coef0":
            options["coef0"] = float(rng.choice([1e2, 1e4, 1e6]))
    options |= _penalty(rng, name, variant, difficulty)
    if not name.startswith("Incremental"):
        options["tol"] = float(rng.choice([1e-2, 1e-3, 1e-3, 1e-4, 1e-6, 1e-8, 1e-9]))
        options["solver"] = str(rng.choice(SOLVERS[kind])) if rng.random() < 0.55 else SOLVERS[kind][0]
        if options["solver"] not in ("auto", "batch", "crammer-singer"):
            # Steps, not seconds: a case must come out the same when it is repeated.
            options["max_iter"] = 20_000 if len(X) <= 400 else 2_000
        if rng.random() < 0.08:
            options["max_iter"] = int(rng.choice([1, 5, 30, 300]))
        if rng.random() < 0.1:
            options["cache_size"] = 0.1
    options["n_jobs"] = int(rng.choice([1, 2]))
    given, matrix = X, None
    if kernel == "precomputed":
        given = matrix = _gram(rng, X, gamma)
        options.pop("gamma")
    elif kernel == "callable":
        scale = float(np.abs(X).max()) or 1.0
        function = callable_kernel(float(gamma))
        given = X / scale if scale > 100 else X
        matrix = function(given, given)
        options["kernel"] = function
        options.pop("gamma")
    else:
        given = sp.csr_matrix(X) if X.shape[1] > 20 and rng.random() < 0.7 else _container(rng, X)
    options.setdefault("kernel", kernel)
    model = getattr(maxmargin, name)(**options)
    return model, matrix, given, notes


def _container(rng: Rng, X: Any) -> Any:
    style = int(rng.integers(9))
    if style == 0:
        return sp.csr_matrix(X)
    if style == 4:
        return in_parts(rng, sp.csr_matrix(X))
    if style == 1:
        return X.astype(np.float32)
    if style == 2:
        return sp.csr_array(X.astype(np.float32))
    if style == 3:
        return np.asfortranarray(X)
    return X


def in_parts(rng: Rng, X: Any) -> Any:
    """The same CSR matrix with each entry stored as two halves, in any order within its row."""
    data, indices = np.repeat(X.data / 2, 2), np.repeat(X.indices, 2)
    indptr = 2 * X.indptr
    for start, end in zip(indptr, indptr[1:], strict=False):
        order = start + rng.permutation(end - start)
        data[start:end], indices[start:end] = data[order], indices[order]
    return sp.csr_matrix((data, indices, indptr), shape=X.shape)


def _gram(rng: Rng, X: Any, gamma: float) -> NDArray[np.float64]:
    """A matrix as a user would compute it, but with sums in an order that no library changes."""
    K = np.zeros((len(X), len(X)))
    for column in X.T:
        K += np.multiply.outer(column, column)
    if rng.random() < 0.5:
        return np.asarray(K / (np.abs(K).max() or 1.0) * rng.choice([1.0, 1e3, 1e6]))
    square = np.diag(K)
    return np.asarray(np.exp(-gamma * np.maximum(square[:, None] + square - 2 * K, 0.0)))


def _penalty(rng: Rng, name: str, variant: str, difficulty: str) -> dict[str, Any]:
    C = float(10.0 ** rng.uniform(-2, 4))
    if difficulty == "tiny C":
        C = float(10.0 ** rng.uniform(-8, -4))
    elif difficulty == "huge C":
        C = float(10.0 ** rng.uniform(5, 8))
    elif difficulty == "balanced, small C":
        C = float(10.0 ** rng.uniform(-5, -1))
    if variant == "hard":
        C = float("inf")
    options: dict[str, Any] = {}
    if name in ("SVC", "SVR", "NuSVR", "L2OneClassSVM", "CrammerSingerSVC") or name.startswith("Incremental"):
        options["C"] = C
    if name == "NuSVR":
        options["C"] = float(min(C, 1e6))
    if name == "SVC":
        if variant == "squared":
            options["loss"] = "squared_hinge"
        if difficulty == "balanced, small C" or rng.random() < 0.1:
            options["class_weight"] = "balanced"
    if name == "IncrementalSVC" and variant:
        options["loss"] = variant
    if name in ("SVR", "IncrementalSVR"):
        options["epsilon"] = float(rng.choice([0.0, 0.01, 0.1, 0.5]))
        if variant == "squared":
            options["loss"] = "squared_epsilon_insensitive"
    if name in ("NuSVC", "OneClassSVM", "AllDistancesSVC", "NuSVR"):
        options["nu"] = float(rng.choice([0.02, 0.1, 0.3, 0.5, 0.8]))
    return options
