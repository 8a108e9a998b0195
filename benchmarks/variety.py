"""Training on many kinds of input: kernels, estimators, text, given matrices, small and wide data.

    python benchmarks/variety.py --quick            # bundled and generated data, reduced: a minute or two
    python benchmarks/variety.py                    # all rows; some need MAXMARGIN_DATA
    python benchmarks/variety.py --only text poly   # rows whose name starts so; the others are kept

scikit-learn (LIBSVM), scikit-learn-intelex (oneDAL, which hands what it does not support to LIBSVM) and
maxmargin, each in its own process, with the same parameters, tolerance, cache and threads; LIBSVM always
uses one thread, so maxmargin is timed with one as well. All libraries are fitted equally often on a row,
after a fit that compiles and loads, and the fastest fit counts. Objectives are recomputed in float64
(objectives.py); "excess" is relative to the best of a row.

`LinearSVC` (LIBLINEAR, hinge loss) solves nearly the same problem as a linear SVC: its bias is penalised,
and with more than two classes it trains one against the rest. It gets the loosest of its tolerances with
which it is as good as maxmargin: within 1e-3 of the primal objective for two classes, within 0.2 points of
the test error for more; where none is, its tightest, and the table says how far it is.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from datasets import Data, MissingData, load
from objectives import dual_value, hinge_value
from peers import memory, touch_memory
from report import RESULTS, geometric_mean, write

TOL, CACHE_MB, EPSILON = 1e-3, 2000, 0.1
LIBRARIES = {"scikit-learn": "sklearn.svm", "intelex": "sklearnex.svm", "maxmargin": "maxmargin"}
# Tolerances of LinearSVC, and what counts as equally good.
LIBLINEAR = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
PRIMAL, ERROR = 1e-3, 2e-3


class Row(NamedTuple):
    """One problem."""

    data: str
    n: int | None
    estimator: str
    params: dict[str, Any]
    #: Fits of every library.
    fits: int = 3
    #: What is done to the data before training: "matrix" for the kernel matrix itself, "float32" or both.
    form: str = ""


def svc(data: str, n: int | None, fits: int = 3, form: str = "", **params: Any) -> Row:
    return Row(data, n, "SVC", params, fits, form)


ROWS: dict[str, Row] = {
    "poly, degree 2": svc("synthetic", 4000, kernel="poly", degree=2, gamma=0.05),
    "poly, degree 3": svc("synthetic", 4000, kernel="poly", degree=3, gamma=0.05),
    "poly, degree 4": svc("synthetic", 4000, kernel="poly", degree=4, gamma=0.05, coef0=1.0),
    "sigmoid": svc("synthetic", 4000, kernel="sigmoid", gamma=0.005),
    "laplacian": svc("synthetic", 4000, kernel="laplacian", gamma=0.05),
    "matrix, C=1": svc("synthetic", 3000, gamma=0.05, C=1.0, form="matrix"),
    "matrix, C=100": svc("synthetic", 3000, gamma=0.05, C=100.0, form="matrix"),
    "matrix, float32": svc("synthetic", 3000, gamma=0.05, C=10.0, form="matrix float32"),
    "matrix, 10 classes": svc("digits", None, 5, gamma=0.01, C=10.0, form="matrix"),
    "150 classes, rbf": svc("many classes", 5000, gamma=0.1, C=10.0),
    "150 classes, linear": svc("many classes", 5000, kernel="linear", C=1.0),
    "text, linear": svc("text", 8000, kernel="linear"),
    "text, rbf": svc("text", 8000, gamma=1.0, C=10.0),
    "a9a, linear": svc("a9a", None, 1, kernel="linear", C=1.0),
    "ijcnn1, linear": svc("ijcnn1", None, 1, kernel="linear", C=10.0),
    "covtype, linear": svc("covtype_binary_50k", 20_000, 1, kernel="linear", C=1.0),
    "mnist, linear": svc("mnist", 10_000, 2, kernel="linear", C=0.1),
    "mnist, poly": svc("mnist", 10_000, 2, kernel="poly", gamma=0.01, coef0=1.0),
    "usps, linear": svc("usps", 4000, kernel="linear", C=0.1),
    "usps, poly": svc("usps", 4000, kernel="poly", gamma=0.01, coef0=1.0),
    "covtype float32, rbf": svc("covtype_binary_50k", 10_000, 2, gamma=1.0, C=10.0, form="float32"),
    "satimage, NuSVC": Row("satimage", None, "NuSVC", {"gamma": 1.0, "nu": 0.1}),
    "covtype, OneClassSVM": Row("covtype_binary_50k", 10_000, "OneClassSVM", {"gamma": 1.0, "nu": 0.1}),
    "friedman1, NuSVR": Row("friedman1", 4000, "NuSVR", {"gamma": 0.05, "C": 10.0, "nu": 0.5}),
    "friedman1, SVR poly": Row("friedman1", 4000, "SVR", {"kernel": "poly", "gamma": 0.1, "coef0": 1.0}),
    "california-like, SVR linear": Row("california-like", 10_000, "SVR", {"kernel": "linear", "C": 1.0}),
    "breast_cancer, linear": svc("breast_cancer", None, 30, kernel="linear", C=1.0),
    "breast_cancer, rbf": svc("breast_cancer", None, 50, gamma=1 / 30),
    "digits, rbf": svc("digits", None, 15, gamma=0.01, C=10.0),
    "diabetes, SVR": Row("diabetes", None, "SVR", {"gamma": 0.02}, 50),
}
QUICK: dict[str, Row] = {
    "poly, degree 3": svc("synthetic", 600, 1, kernel="poly", degree=3, gamma=0.05),
    "laplacian": svc("synthetic", 400, 1, kernel="laplacian", gamma=0.05),
    "matrix, float32": svc("synthetic", 500, 1, gamma=0.05, form="matrix float32"),
    "text, linear": svc("text", 500, 1, kernel="linear"),
    "breast_cancer, linear": svc("breast_cancer", None, 1, kernel="linear"),
    "friedman1, NuSVR": Row("friedman1", 300, "NuSVR", {"gamma": 0.05, "nu": 0.5}, 1),
}


def prepared(row: Row) -> Data:
    """The data of a row in the form in which they are given to the libraries."""
    data = load(row.data, row.n)
    data = data._replace(X_test=data.X_test[:2000], y_test=data.y_test[:2000])
    if "matrix" in row.form:
        from sklearn.metrics.pairwise import rbf_kernel

        gamma = row.params["gamma"]
        data = data._replace(X=rbf_kernel(data.X, gamma=gamma), X_test=rbf_kernel(data.X_test, data.X, gamma))
    if "float32" in row.form:
        data = data._replace(X=data.X.astype(np.float32), X_test=data.X_test.astype(np.float32))
    return data


def estimator(row: Row, library: str, threads: int, tol: float = TOL) -> Any:
    """An unfitted estimator of a library for this row."""
    params: dict[str, Any] = dict(row.params)
    if library == "LinearSVC":
        from sklearn.svm import LinearSVC

        return LinearSVC(loss="hinge", dual=True, C=params.get("C", 1.0), tol=tol, max_iter=100_000)
    params |= {"tol": tol, "cache_size": CACHE_MB}
    if row.estimator == "SVR":
        params["epsilon"] = EPSILON
    if "matrix" in row.form:
        params["kernel"] = "precomputed"
        del params["gamma"]
    if library == "maxmargin":
        params["n_jobs"] = threads
    elif params.get("kernel") == "laplacian":
        params["kernel"] = _Laplacian(params.pop("gamma"))  # what their users write
    return getattr(import_module(LIBRARIES[library]), row.estimator)(**params)


class _Laplacian:
    """scikit-learn's Laplacian kernel as a function of two data sets."""

    def __init__(self, gamma: float) -> None:
        self.gamma = gamma

    def __call__(self, A: Any, B: Any) -> Any:
        from sklearn.metrics.pairwise import laplacian_kernel

        return laplacian_kernel(A, B, gamma=self.gamma)


def fitted(model: Any, data: Data, row: Row) -> Any:
    return model.fit(data.X) if row.estimator == "OneClassSVM" else model.fit(data.X, data.y)


def child(args: argparse.Namespace) -> None:
    """Time one library on one row; writes arrays and times for the parent to judge."""
    import warnings

    warnings.simplefilter("ignore")
    row = (QUICK if args.quick else ROWS)[args.row]
    data = prepared(row)
    some = np.random.default_rng(0).permutation(data.X.shape[0])[:1500]
    part = data.X[some][:, some] if "matrix" in row.form else data.X[some]
    fitted(estimator(row, args.library, args.threads), data._replace(X=part, y=data.y[some]), row)
    found: dict[str, Any] = {}
    for tol in LIBLINEAR if args.library == "LinearSVC" else (TOL,):
        seconds = []
        for _ in range(row.fits):
            if row.fits <= 3 and not args.quick:
                touch_memory(data.X.shape[0])
            memory(reset=True)
            model = estimator(row, args.library, args.threads, tol)
            began = time.perf_counter()
            fitted(model, data, row)
            seconds.append(time.perf_counter() - began)
        found = {"seconds": min(seconds), "tol": tol}
        if row.estimator != "OneClassSVM":
            found["score"] = float(model.score(data.X_test, data.y_test))
        if args.library != "LinearSVC":
            coef = model.dual_coef_
            found |= {
                "support": model.support_,
                "coef": coef.toarray() if hasattr(coef, "toarray") else coef,
                "gap": float(np.sum(getattr(model, "dual_gap_", np.nan))),
            }
        # For the comparison with LinearSVC; the weights of other libraries may lack columns without entries.
        compared = args.library in ("maxmargin", "LinearSVC") and row.params.get("kernel") == "linear"
        if compared and row.estimator == "SVC" and len(np.unique(data.y)) == 2:
            w = np.asarray(model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_).ravel()
            sign = np.where(data.y == np.unique(data.y)[1], 1.0, -1.0)
            found["primal"] = hinge_value(data.X, sign, w, row.params.get("C", 1.0))
        if args.library == "LinearSVC" and good_enough(found, args.primal, args.score):
            break
    np.savez(args.child, **found)


def good_enough(found: dict[str, Any], primal: float | None, score: float) -> bool:
    """Whether a model of LinearSVC is as good as one with this primal value, or this test score."""
    if primal is not None:
        return bool(found["primal"] <= primal * (1.0 + PRIMAL))
    return bool(found["score"] >= score - ERROR)


def measured(
    name: str, library: str, threads: int, args: argparse.Namespace, *more: str
) -> dict[str, Any] | None:
    """The measurements of a process of its own; None if it failed."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "result.npz")
        command = [sys.executable, __file__, "--child", out, "--row", name, "--library", library, *more]
        command += ["--threads", str(threads), *(["--quick"] if args.quick else [])]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{name}: {library} failed: {done.stderr.strip().splitlines()[-1:]}", flush=True)
            return None
        with np.load(out) as archive:
            return {key: archive[key] if archive[key].ndim else archive[key].item() for key in archive}


def run(name: str, args: argparse.Namespace) -> list[dict[str, Any]]:
    """All libraries on one row."""
    from maxmargin.kernels.kernel import Kernel

    row = (QUICK if args.quick else ROWS)[name]
    data = prepared(row)
    kernel: Any = {key: row.params[key] for key in ("gamma", "degree", "coef0") if key in row.params}
    kernel = Kernel(row.params.get("kernel", "rbf"), **kernel)
    if "matrix" in row.form:
        kernel = Kernel("precomputed")
    found: list[dict[str, Any]] = []
    ours: dict[str, Any] = {}
    for library in ("maxmargin", "scikit-learn", "intelex"):
        result = measured(name, library, args.threads, args)
        if result is None:
            continue
        value = dual_value(row.estimator, data.X, data.y, kernel, result["support"], result["coef"], EPSILON)
        one = None
        if library == "maxmargin":
            ours = result
            one = measured(name, library, 1, args) if args.threads > 1 else result
        found.append(
            {
                "row": name, "library": library, "n": int(data.X.shape[0]), "fits": row.fits,
                "seconds": result["seconds"], "one_thread": None if one is None else one["seconds"],
                "objective": value, "score": result.get("score"),
                "gap": result["gap"] if np.isfinite(result["gap"]) else None,
                "n_sv": len(result["support"]),
            }
        )  # fmt: skip
    for each in found:
        best = min(f["objective"] for f in found)
        each["excess"] = (each["objective"] - best) / abs(best)
    if ours and row.params.get("kernel") == "linear" and row.estimator == "SVC":
        aim = ["--primal", str(ours["primal"])] if "primal" in ours else ["--score", str(ours["score"])]
        result = measured(name, "LinearSVC", 1, args, *aim)
        if result is not None:
            excess = result["primal"] / ours["primal"] - 1.0 if "primal" in ours else None
            found.append(
                {
                    "row": name, "library": "LinearSVC", "n": int(data.X.shape[0]), "fits": row.fits,
                    "seconds": result["seconds"], "one_thread": result["seconds"], "objective": None,
                    "score": result["score"], "gap": None, "n_sv": None, "excess": excess,
                    "tol": result["tol"],
                    "reached": good_enough(result, ours.get("primal"), ours["score"]),
                }
            )  # fmt: skip
    return found


def _tol_and_excess(row: dict[str, Any]) -> str:
    return f"{row['tol']:g}" + ("" if row["excess"] is None else f", {row['excess']:.0e}")


def summary(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The table and the geometric means."""
    by: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by.setdefault(row["row"], {})[row["library"]] = row
    table, notes = [], []
    for name, of in by.items():
        ours = of.get("maxmargin")
        if ours is None:
            continue

        def times(library: str, of: dict[str, Any] = of, ours: dict[str, Any] = ours) -> str:
            return f"{of[library]['seconds'] / ours['seconds']:.2g}" if library in of else "-"

        linear = of.get("LinearSVC")
        line = {"row": name, "rows": ours["n"], "fits": ours["fits"]}
        for library in ("scikit-learn", "intelex", "LinearSVC", "maxmargin"):
            line[f"{library} s"] = f"{of[library]['seconds']:.3g}" if library in of else "-"
        line |= {
            "1 thread s": f"{ours['one_thread']:.3g}" if ours["one_thread"] else "-",
            "x scikit-learn": times("scikit-learn"),
            "x intelex": times("intelex"),
            "x LinearSVC": times("LinearSVC") + ("" if not linear or linear["reached"] else " (not reached)"),
            "excess: ours / scikit-learn / intelex": " / ".join(
                f"{of[k]['excess']:.0e}" if k in of else "-" for k in ("maxmargin", "scikit-learn", "intelex")
            ),
            "LinearSVC: tol, excess": "-" if linear is None else _tol_and_excess(linear),
        }  # fmt: skip
        table.append(line)
    for library in ("scikit-learn", "intelex", "LinearSVC"):
        some = [
            of[library]["seconds"] / of["maxmargin"]["seconds"]
            for of in by.values()
            if {library, "maxmargin"} <= set(of) and of[library].get("reached", True)
        ]
        if some:
            notes.append(
                f"{library} / maxmargin, geometric mean of {len(some)}"
                + (" on which it is as good" if library == "LinearSVC" else "")
                + f": {geometric_mean(some):.1f} (least {min(some):.2f})"
            )
    threads = [of["maxmargin"]["one_thread"] / of["maxmargin"]["seconds"] for of in by.values()
               if "maxmargin" in of and of["maxmargin"]["one_thread"]]  # fmt: skip
    if threads:
        notes.append(f"maxmargin, one thread / all, geometric mean: {geometric_mean(threads):.2f}")
    return table, notes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="run reduced rows, which need no data files")
    parser.add_argument("--only", nargs="*", help="run the rows whose name starts with one of these")
    parser.add_argument("--threads", type=int, default=2, help="number of threads")
    parser.add_argument("--out", default=None, help="name of the result files in benchmarks/results")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--row", help=argparse.SUPPRESS)
    parser.add_argument("--library", help=argparse.SUPPRESS)
    parser.add_argument("--primal", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--score", type=float, default=1.0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    rows: list[dict[str, Any]] = []
    table = QUICK if args.quick else ROWS
    for name in table:
        if args.only and not name.startswith(tuple(args.only)):
            continue
        try:
            new = run(name, args)
        except MissingData as missing:
            print(missing, flush=True)
            continue
        rows += new
        print(f"{name}: " + ", ".join(f"{r['library']} {r['seconds']:.3g} s" for r in new), flush=True)
    out = args.out or ("variety-quick" if args.quick else "variety")
    if args.only and (RESULTS / f"{out}.json").exists():
        earlier = json.loads((RESULTS / f"{out}.json").read_text())["rows"]
        new_rows = {r["row"] for r in rows}
        rows = sorted(
            [r for r in earlier if r["row"] not in new_rows] + rows, key=lambda r: list(table).index(r["row"])
        )
    lines, notes = summary(rows)
    threads = f"{args.threads} (LIBSVM and LIBLINEAR use 1); ours also with 1" if args.threads > 1 else 1
    how = "the quickest of as many fits as the column says, the same for all libraries on a row"
    write(out, "Variety", lines, notes, rows, threads=threads, repetitions=how, keep=bool(args.only))


if __name__ == "__main__":
    main()
