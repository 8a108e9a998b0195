"""Data for the benchmarks, found through the environment variable MAXMARGIN_DATA.

The folder may hold, for a data set NAME,

- ``NAME.npz`` with ``X_train``, ``y_train`` and, if there are any, ``X_test``, ``y_test``; a sparse part as
  ``X_train_data``, ``X_train_indices``, ``X_train_indptr``, ``X_train_shape``; optionally ``scale_min``,
  ``scale_max``, ``scale_to``, a linear scaling per feature that is applied on loading; or
- ``NAME.npz`` with ``X`` and ``y`` (Rätsch's benchmark sets, as ``raetsch_NAME.npz``); or
- the files ``NAME`` and ``NAME.t`` in LIBSVM's text format, as on the LIBSVM data sets page.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn import datasets
from sklearn.preprocessing import StandardScaler


class Data(NamedTuple):
    """Training and test part."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


class MissingData(Exception):
    """A data set that is not there, with what to do about it."""


def load(name: str, rows: int | None = None, *, raw: bool = False) -> Data:
    """Load a data set by name; `rows` keeps the first rows of the training part.

    If `raw` the values are not scaled.
    """
    bundled = {
        "digits": datasets.load_digits,
        "breast_cancer": datasets.load_breast_cancer,
    }
    if name in bundled:
        X, y = bundled[name](return_X_y=True)
        X = StandardScaler().fit_transform(X)
        data = Data(X, y, X, y)
    elif name.startswith("synthetic"):
        data = synthetic(rows or 4000)
    elif name == "many classes":
        data = many_classes(rows or 5000)
    elif name == "text":
        data = text_like(rows or 8000)
    elif name in REGRESSION:
        data = REGRESSION[name](rows or 4000)
    else:
        data = _from_folder(name, raw)
    return data if rows is None else data._replace(X=data.X[:rows], y=data.y[:rows])


def synthetic(n: int, d: int = 20, seed: int = 0) -> Data:
    """Two classes in overlapping clusters, standardised."""
    X, y = datasets.make_classification(
        n + 2000, d, n_informative=d // 2, n_clusters_per_class=4, flip_y=0.05, random_state=seed
    )
    X = StandardScaler().fit_transform(X)
    return Data(X[:n], y[:n], X[n:], y[n:])


def many_classes(n: int, classes: int = 150, d: int = 10, seed: int = 0) -> Data:
    """Overlapping clusters, one for each class, standardised."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n + 2000) % classes)
    X = StandardScaler().fit_transform(2.0 * rng.normal(size=(classes, d))[y] + rng.normal(size=(len(y), d)))
    return Data(X[:n], y[:n], X[n:], y[n:])


def covtype_like(n: int, seed: int = 0) -> Data:
    """Two classes like those of covtype: ten measurements in [0, 1], and one-hot groups of 4 and 40.

    The label follows the measurements within regions of the second group, with 4 % of noise.
    """
    rng = np.random.default_rng(seed)
    total = n + 2000
    height = rng.beta(3.0, 2.0, size=total)
    area = np.minimum(3, (4 * np.clip(height + 0.25 * rng.normal(size=total), 0, 0.999)).astype(int).clip(0))
    soil = (40 * np.clip(height + 0.12 * rng.normal(size=total), 0, 0.999)).astype(int)
    others = np.clip(0.5 + 0.2 * rng.normal(size=(total, 9)) + 0.15 * (height[:, None] - 0.5), 0, 1)
    tilt = np.random.default_rng(1).normal(size=(40, 9))
    score = np.sin(9 * height) + 0.6 * np.einsum("ij,ij->i", others - 0.5, tilt[soil]) + 0.3 * (area - 1.5)
    y = (score > np.median(score)).astype(int)
    flip = rng.random(total) < 0.04
    y[flip] = 1 - y[flip]
    X = np.zeros((total, 54))
    X[:, 0], X[:, 1:10] = height, others
    X[np.arange(total), 10 + area] = 1.0
    X[np.arange(total), 14 + soil] = 1.0
    return Data(X[:n], y[:n], X[n:], y[n:])


def text_like(n: int, d: int = 30_000, classes: int = 4, seed: int = 0) -> Data:
    """Documents as rows of tf-idf values: some 60 of d words each, frequencies after Zipf, rows of length 1.

    Every class has 600 words that occur three times as often in it; a tenth of the labels is wrong.
    """
    rng = np.random.default_rng(seed)
    total = n + 2000
    common = 1.0 / (np.arange(d) + 10.0)
    label = rng.integers(classes, size=total)
    lengths = np.maximum(5, rng.lognormal(4.2, 0.5, total).astype(int))
    words: list[Any] = [None] * classes
    for k in range(classes):
        own = common.copy()
        own[rng.choice(np.arange(50, 6000), 600, replace=False)] *= 3.0
        edges = np.cumsum(own) / own.sum()
        words[k] = np.minimum(np.searchsorted(edges, rng.random(int(lengths[label == k].sum()))), d - 1)
    order = np.argsort(label, kind="stable")
    rows = np.repeat(order, lengths[order])
    counts = sp.csr_matrix((np.ones(len(rows)), (rows, np.concatenate(words))), shape=(total, d))
    seen = np.bincount(counts.indices, minlength=d)
    counts.data = 1.0 + np.log(counts.data)
    values = counts @ sp.diags(np.log((1.0 + total) / (1.0 + seen)) + 1.0)
    X = sp.csr_matrix(
        sp.diags(1.0 / np.sqrt(np.asarray(values.multiply(values).sum(axis=1)).ravel())) @ values
    )
    y = np.where(rng.random(total) < 0.1, rng.integers(classes, size=total), label)
    return Data(X[:n], y[:n], X[n:], y[n:])


def diabetes(n: int) -> Data:
    """All 442 rows of scikit-learn's diabetes data; features and targets standardised."""
    X, y = datasets.load_diabetes(return_X_y=True)
    return _standardised(X, y, len(y))


def friedman1(n: int, seed: int = 0) -> Data:
    """Friedman's first problem with noise 1; features and targets standardised."""
    X, y = datasets.make_friedman1(n + 2000, noise=1.0, random_state=seed)
    return _standardised(X, y, n)


def california_like(n: int, seed: int = 0) -> Data:
    """Eight features of the kind of the California housing data, and prices that are cut off at 5.

    Incomes, ages, rooms, bedrooms, inhabitants of a block and of a household, all but the ages skewed; two
    clusters of latitudes and longitudes. Prices grow with the income, more so near two centres on the coast;
    their noise is a factor.
    """
    rng = np.random.default_rng(seed)
    total = n + 2000
    income = rng.gamma(3.5, 1.1, total)
    age = np.clip(rng.normal(28, 12, total), 1, 52)
    rooms = rng.lognormal(1.65, 0.25, total) + 0.2 * income
    bedrooms = 1 + rng.lognormal(-3, 0.7, total)
    people = rng.lognormal(7, 0.7, total)
    household = 1 + rng.lognormal(0.6, 0.35, total)
    south = rng.random(total) < 0.58
    latitude = np.where(south, rng.normal(33.9, 0.6, total), rng.normal(37.8, 0.8, total))
    longitude = np.where(south, rng.normal(-118.0, 0.6, total), rng.normal(-121.8, 0.7, total))
    first = np.exp(-((longitude + 118.3) ** 2 + (latitude - 34.0) ** 2) / 0.3)
    second = np.exp(-((longitude + 122.3) ** 2 + (latitude - 37.7) ** 2) / 0.25)
    price = 0.45 * income + (0.9 * first + 1.08 * second) * (0.4 + 0.15 * income)
    price += 0.01 * age - 0.15 * np.log(people / 1000) - 0.35 * np.log(household) + 0.2 * np.log(rooms)
    price += 0.1 * np.sin(2 * longitude + latitude)
    y = np.minimum(price * np.exp(rng.normal(0, 0.2, total)), 5.0)
    X = np.column_stack([income, age, rooms, bedrooms, people, household, latitude, longitude])
    return _standardised(X, y, n)


def _standardised(X: Any, y: Any, n: int) -> Data:
    """The first n rows and the others (the same ones, if there are none); targets standardised too."""
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    return Data(X[:n], y[:n], X[n:], y[n:]) if n < len(y) else Data(X, y, X, y)


# Data whose targets are numbers.
REGRESSION = {"diabetes": diabetes, "friedman1": friedman1, "california-like": california_like}


def whole(name: str, *, raw: bool = False) -> tuple[Any, Any]:
    """All rows of a data set, standardised unless `raw`, with labels -1 and +1; for cross-validation."""
    if name in ("breast_cancer", "synthetic"):
        data = load(name, 300)
        X, y = data.X, np.where(np.asarray(data.y) > 0, 1.0, -1.0)
    else:
        with np.load(_path(name)) as archive:
            if "X" not in archive.files:
                data = _from_folder(name)
                return data.X, np.asarray(data.y, dtype=np.float64)
            X, y = archive["X"].astype(np.float64), archive["y"].astype(np.float64)
    if raw:
        return X, y
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), y


def partitions(name: str, count: int) -> list[tuple[Any, Any, Any, Any]]:
    """Training and test rows of the first partitions of one of Rätsch's sets, standardised as a whole."""
    X, y = whole(name)
    if name == "breast_cancer":
        halves = [np.random.default_rng(k).permutation(len(y)) for k in range(count)]
        splits = [(half[: len(y) // 2], half[len(y) // 2 :]) for half in halves]
    else:
        with np.load(_path(name)) as archive:
            pairs = zip(archive["train_splits"], archive["test_splits"], strict=True)
            splits = [(train.astype(np.intp), test.astype(np.intp)) for train, test in pairs][:count]
    return [(X[train], y[train], X[test], y[test]) for train, test in splits]


def available(name: str) -> bool:
    """Whether `load` would find the data set."""
    try:
        _path(name)
    except MissingData:
        return name in ("digits", "breast_cancer", "text", *REGRESSION) or name.startswith("synthetic")
    return True


def _path(name: str) -> Path:
    folder = os.environ.get("MAXMARGIN_DATA")
    if not folder:
        raise MissingData(
            f"Data set {name!r} is needed: set MAXMARGIN_DATA to a folder that holds {name}.npz, or the "
            f"files {name} and {name}.t from the LIBSVM data sets page."
        )
    for candidate in (Path(folder) / f"{name}.npz", Path(folder) / name):
        if candidate.exists():
            return candidate
    raise MissingData(
        f"{folder} holds neither {name}.npz nor {name}: fetch {name} and {name}.t from the LIBSVM data "
        "sets page and put them there."
    )


def _from_folder(name: str, raw: bool = False) -> Data:
    path = _path(name)
    if path.suffix != ".npz":
        files = [str(path)] + [str(p) for p in [path.with_name(path.name + ".t")] if p.exists()]
        parts = datasets.load_svmlight_files(files)
        X, y = parts[:2]
        X_test, y_test = parts[2:] if len(parts) == 4 else (X, y)
        return Data(X, y, X_test, y_test)
    with np.load(path) as archive:
        arrays = {key: archive[key] for key in archive.files}
    parts = []
    for part in ("train", "test"):
        if f"X_{part}_indptr" in arrays:
            pieces = [arrays[f"X_{part}_{k}"] for k in ("data", "indices", "indptr")]
            X = sp.csr_matrix(
                (pieces[0].astype(np.float64), pieces[1].astype(np.int32), pieces[2].astype(np.int32)),
                shape=tuple(arrays[f"X_{part}_shape"]),
            )
        elif f"X_{part}" in arrays:
            X = arrays[f"X_{part}"].astype(np.float64)
            if "scale_min" in arrays and not raw:
                low, high, to = (arrays[k] for k in ("scale_min", "scale_max", "scale_to"))
                span = np.where(high > low, high - low, 1.0)
                X = to[0] + (to[1] - to[0]) * (X - low) / span
        else:
            continue
        parts += [X, arrays[f"y_{part}"].astype(np.int64)]
    return Data(*parts) if len(parts) == 4 else Data(*parts, *parts)
