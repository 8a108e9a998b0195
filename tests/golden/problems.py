"""Thirty-odd fixed problems across all engines and estimators, and what is recorded of their runs.

    python tests/golden/problems.py            # compare with runs.json, number by number
    python tests/golden/problems.py --record   # write runs.json

A restructured library should take the same steps. `tests/test_golden.py` allows for other processors, where
sums are rounded in another order; the command above does not.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, make_classification
from sklearn.datasets import make_friedman1 as friedman
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

import maxmargin as mm
from maxmargin.estimators.base import BaseSVM
from maxmargin.model_selection import SVMSearchCV

RUNS = Path(__file__).parent / "runs.json"
Run = dict[str, Any]


def two_classes(n: int, d: int = 10, noise: float = 0.05) -> tuple[Any, Any]:
    X, y = make_classification(n, d, n_informative=d // 2, flip_y=noise, class_sep=0.8, random_state=7)
    return StandardScaler().fit_transform(X), y


def cancer() -> tuple[Any, Any]:
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def digits(n: int = 600) -> tuple[Any, Any]:
    X, y = load_digits(return_X_y=True)
    return X[:n] / 16.0, y[:n]


def diabetes() -> tuple[Any, Any]:
    X, y = load_diabetes(return_X_y=True, scaled=False)
    return StandardScaler().fit_transform(X), y


def regression(n: int) -> tuple[Any, Any]:
    return friedman(n, 10, noise=1.0, random_state=3)


def _sparse(data: tuple[Any, Any]) -> tuple[Any, Any]:
    X, y = data
    return sp.csr_array(np.where(np.abs(X) > 0.7, X, 0.0)), y


def _given(data: tuple[Any, Any]) -> tuple[Any, Any]:
    return rbf_kernel(data[0], gamma=0.05), data[1]


def _own_kernel(A: Any, B: Any) -> Any:
    return (1.0 + A @ B.T) ** 2


def _one_class(data: tuple[Any, Any]) -> tuple[Any, Any]:
    return data[0], None


PROBLEMS: dict[str, tuple[Any, Callable[[], tuple[Any, Any]]]] = {
    "svc small": (mm.SVC(C=10.0), cancer),
    "svc many classes": (mm.SVC(C=10.0), digits),
    "svc linear": (mm.SVC(kernel="linear", C=0.1), cancer),
    "svc poly": (mm.SVC(kernel="poly", coef0=1.0, gamma=0.05), cancer),
    "svc laplacian": (mm.SVC(kernel="laplacian", gamma=0.02, C=10.0), cancer),
    "svc sigmoid": (mm.SVC(kernel="sigmoid", gamma=0.01), cancer),
    "svc balanced": (mm.SVC(class_weight="balanced", C=0.01), cancer),
    "svc sparse": (mm.SVC(C=10.0, gamma=0.1), lambda: _sparse(two_classes(900))),
    "svc precomputed": (mm.SVC(kernel="precomputed", C=10.0), lambda: _given(cancer())),
    "svc own kernel": (mm.SVC(kernel=_own_kernel, C=0.01), cancer),
    "svc working set": (mm.SVC(C=10.0, gamma=0.1), lambda: two_classes(5000)),
    "svc shrinking": (mm.SVC(C=100.0, gamma=0.02), lambda: two_classes(7000)),
    "svc refined": (mm.SVC(C=10.0, gamma=0.1, tol=1e-7), lambda: two_classes(5000)),
    "svc float32": (mm.SVC(C=10.0, gamma=0.1), lambda: two_classes(2500)),
    "svc float32 refined": (mm.SVC(C=10.0, gamma=0.1, tol=1e-6), lambda: two_classes(2500)),
    "svc newton": (mm.SVC(C=10.0, tol=1e-7), cancer),
    "svc squared": (mm.SVC(loss="squared_hinge", C=1.0), cancer),
    "svc hard": (mm.SVC(C=np.inf, gamma=0.5), cancer),
    "nu-svc": (mm.NuSVC(nu=0.1), cancer),
    "svr small": (mm.SVR(C=10.0), diabetes),
    "svr path": (mm.SVR(C=100.0, epsilon=0.1, gamma=0.1), lambda: regression(1000)),
    "svr working set": (mm.SVR(C=10.0, epsilon=0.5), lambda: regression(3000)),
    "svr squared": (mm.SVR(C=10.0, loss="squared_epsilon_insensitive"), diabetes),
    "nu-svr": (mm.NuSVR(C=10.0, nu=0.3), diabetes),
    "one-class": (mm.OneClassSVM(nu=0.1), lambda: _one_class(cancer())),
    "one-class l2": (mm.L2OneClassSVM(C=10.0), lambda: _one_class(cancer())),
    "all distances": (mm.AllDistancesSVC(nu=0.2), digits),
    "crammer-singer": (mm.CrammerSingerSVC(C=1.0), lambda: digits(300)),
    "smo": (mm.SVC(solver="smo", C=10.0), cancer),
    "smo first order": (mm.SVC(solver="smo-first-order", C=10.0), cancer),
    "rosen": (mm.SVC(solver="rosen", C=10.0), cancer),
    "rosen conjugate": (mm.SVC(solver="rosen-conjugate", C=10.0), cancer),
    "simple": (mm.SVC(solver="simple", C=10.0), cancer),
    "simple block": (mm.SVC(solver="simple-block", C=10.0), cancer),
    **{
        name: (mm.SVC(solver=name, loss="squared_hinge", C=10.0), cancer)
        for name in ("mdm", "mdm-accelerated", "npa", "gilbert", "maxminover", "geometric", "direct")
    },
}
SEARCHES: dict[str, tuple[Any, Callable[[], tuple[Any, Any]]]] = {
    "search svc": (
        SVMSearchCV(mm.SVC(), {"C": [0.1, 1, 10, 100], "gamma": [0.003, 0.03, 0.3]}, n_jobs=1),
        cancer,
    ),
    "search svr": (
        SVMSearchCV(mm.SVR(), {"C": [1, 10, 100], "gamma": [0.01, 0.1], "epsilon": [1, 10]}, n_jobs=1),
        diabetes,
    ),
    "search classes": (SVMSearchCV(mm.SVC(), {"C": [1, 10], "gamma": [0.01, 0.1]}, n_jobs=1), digits),
    "search cold": (SVMSearchCV(mm.NuSVC(), {"nu": [0.05, 0.1, 0.2]}, n_jobs=1, path="cold"), cancer),
}


def run(name: str) -> Run:
    """What is recorded of one problem."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name in SEARCHES:
            search, data = SEARCHES[name]
            search.fit(*data())
            return {"scores": search.cv_results_["mean_test_score"].tolist()}
        if name == "incremental":
            return _incremental()
        model, data = PROBLEMS[name]
        with recorded_engines() as engines:
            model.set_params(n_jobs=1).fit(*data())
    return {
        "engines": dict(engines),
        "iterations": int(np.sum(model.n_iter_)),
        "objective": [float(trace[-1].objective) for trace in _traces(model)],
        "gap": np.ravel(model.dual_gap_).tolist(),
        "support": np.asarray(model.support_).tolist(),
    }


@contextmanager
def recorded_engines() -> Iterator[Counter[str]]:
    """Count the engines that solve the problems of a fit (`Solution.engine`)."""
    engines: Counter[str] = Counter()
    solve = BaseSVM._solve

    def counted(*arguments: Any, **options: Any) -> Any:
        solutions, lengths = solve(*arguments, **options)
        engines.update(solution.engine for solution in solutions.values())
        return solutions, lengths

    with patch.object(BaseSVM, "_solve", counted):
        yield engines


def _incremental() -> Run:
    X, y = cancer()
    model = mm.IncrementalSVC(C=10.0, gamma=0.03).fit(X[:200], y[:200])
    model.partial_fit(X[200:260], y[200:260]).forget(np.arange(20))
    return {"support": model.support_.tolist(), "objective": [float(np.abs(model.dual_coef_).sum())]}


def _traces(model: Any) -> list[Any]:
    traces = model.trace_
    return traces if len(traces) and isinstance(traces[0], list | tuple) else [traces]


NAMES = [*PROBLEMS, "incremental", *SEARCHES]


def main() -> int:
    if "--record" in sys.argv:
        RUNS.write_text("{\n" + ",\n".join(f'"{n}": {json.dumps(run(n))}' for n in NAMES) + "\n}\n")
        return 0
    known, different = json.loads(RUNS.read_text()), 0
    for name in NAMES:
        found = json.loads(json.dumps(run(name)))
        keys = [key for key in found if found[key] != known[name][key]]
        different += bool(keys)
        print(f"{name:20} {'the same' if not keys else 'DIFFERENT: ' + ', '.join(keys)}", flush=True)
        for key in keys:
            if key in ("iterations", "gap", "objective"):
                print(f"    {key}: {str(known[name][key])[:90]} -> {str(found[key])[:90]}")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
