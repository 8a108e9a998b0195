"""With compiled code in a file no fit compiles: a missing specialisation costs users seconds.

The file is that of the environment (``MAXMARGIN_CODE``, as in CI) if there is one for these sources, or else
it is made here, which takes one to two minutes on two cores. Every script runs in a fresh process with an
empty cache.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from maxmargin._compiled import cpu, ready_code

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not cpu.suitable_levels(), reason="no common set of instructions on this CPU"),
]
END = """
from maxmargin._compiled import announce, code_cache
assert not announce.compiled_here, announce.compiled_here
assert not code_cache.failed, code_cache.failed
assert code_cache.loaded
"""


def run(script, code, tmp_path, **environment):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script) + END],
        capture_output=True, text=True, timeout=600, cwd=tmp_path,
        env={**kept, ready_code.VARIABLE: str(code), "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
             "MPLBACKEND": "Agg", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


FITS = """
    import warnings
    import numpy as np, scipy.sparse as sp
    from maxmargin import *
    from maxmargin import solvers
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(7)

    def forms(X):
        wide = np.hstack([X] * 5) * (rng.random((len(X), 5 * X.shape[1])) < 0.1)
        long = sp.csr_array(wide)
        long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
        fixed = X.copy()
        fixed.flags.writeable = False
        return {
            "read-only": fixed, "float64": X, "float32": X.astype(np.float32),
            "Fortran": np.asfortranarray(X),
            "integers": X.round().astype(int), "view": np.repeat(X, 2, axis=0)[::2], "zeros": wide,
            "csr": sp.csr_array(wide), "csc": sp.csc_array(wide), "long": long,
            "csr32": sp.csr_matrix(wide.astype(np.float32)), "list": X[:50].tolist() if len(X) < 500 else X,
        }

    def data(n, d=7, classes=2):
        X = rng.normal(size=(n, d))
        y = rng.permutation(np.arange(n) % classes)
        X[:, 0] += 2 * y
        return X, y
"""


@pytest.mark.parametrize("n", [90, 700, 5000])
@pytest.mark.parametrize("model", ["SVC()", "SVR()", "OneClassSVM()", "NuSVC(nu=0.3)", "NuSVR()"])
def test_estimators_on_every_form_of_input(model, n, code, tmp_path):
    script = f"""
    X, y = data({n})
    for name, Z in forms(X).items():
        model = {model}.fit(Z, y[:len(Z)] if isinstance(Z, list) else y)
        model.predict(Z)
        model.predict(Z[:1])
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(script), code, tmp_path)


def test_kernels_weights_classes_and_losses(code, tmp_path):
    script = """
    for n in (150, 900):
        X, y = data(n, classes=4)
        for kernel in ("linear", "poly", "rbf", "sigmoid", "laplacian"):
            for Z in (X, forms(X)["csr"]):
                SVC(kernel=kernel, max_iter=5000).fit(Z, y).decision_function(Z)
        SVC(kernel="precomputed").fit(X @ X.T, y).predict(X @ X.T)
        SVC(kernel=lambda a, b: a @ b.T).fit(X, y).predict(X)
        SVC(class_weight="balanced").fit(X, y, rng.random(n)).predict(X)
        SVC(loss="squared_hinge", C=0.1).fit(X, y.astype(str)).predict(X)
        SVC(bias="penalised").fit(X, y).predict(X)
        SVC(tol=1e-7, C=100).fit(X, y)
        SVC(break_ties=True).fit(X, y).predict(X)
        SVR(loss="squared_epsilon_insensitive").fit(X, X[:, 1])
        SVC(warm_start=True).fit(X, y).set_params(C=3.0).fit(X, y)
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(script), code, tmp_path)


LARGE = """
    from maxmargin import _costs
    from maxmargin.solvers import costs
    _costs.STREAMED_BYTES = 0  # as if the data took more

    def files(X):
        # Data that are read from files, and other forms that are not copied.
        found = forms(X)
        for name in ("float64", "float32", "zeros"):
            found[name].tofile(name)
            for mode in ("r", "c"):
                found[f"{name} from a file, {mode}"] = np.memmap(
                    name, found[name].dtype, mode, shape=found[name].shape
                )
        found["wide"] = np.tile(X, 12)
        found["wide32"] = np.tile(X.astype(np.float32), 12)
        text = sp.random_array((len(X), 1100), density=0.02, format="csr", random_state=0)
        found["text"], found["text32"] = text, text.astype(np.float32)
        return {name: Z for name, Z in found.items() if name not in ("list", "integers")}
"""


@pytest.mark.parametrize("n", [300, 900, 5000])
def test_data_that_are_not_copied(n, code, tmp_path):
    script = f"""
    X, y = data({n})
    for name, Z in files(X).items():
        SVC().fit(Z, y).predict(Z)
        SVR(epsilon=0.5).fit(Z, X[:, 1]).predict(Z[:1])
    for name in ("float64", "csr32", "zeros from a file, r"):
        for kernel in ("linear", "poly", "sigmoid", "laplacian"):
            model = SVC(kernel=kernel, gamma=0.1, max_iter=3000).fit(files(X)[name], y)
            model.predict(files(X)[name][:9])
        for model in (OneClassSVM(), NuSVC(nu=0.3), NuSVR(), SVC(loss="squared_hinge"), SVC(tol=1e-7)):
            model.fit(files(X)[name], y)
    many, labels = data({n}, classes=3)
    SVC().fit(many, labels).predict(many)
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(LARGE) + textwrap.dedent(script), code, tmp_path)


def test_large_working_sets_and_data_beyond_any_threshold(code, tmp_path):
    script = """
    from maxmargin.solvers import Batch
    X, y = data(9000)
    X[:, 0] -= 2 * y  # as many support vectors as rows
    for Z in (X, X.astype(np.float32), forms(X)["csr"]):
        for size in (4096, 8192):
            SVC(solver=Batch(working_set=size)).fit(Z, y)
    costs.WORKING_SETS = ((0, 1024), (8000, 2048), (8000, 4096), (8000, 8192))  # as if there were more rows
    costs.WORKING_SET_SUPPORT = 0
    for model in (SVC(), SVC(kernel="laplacian"), SVR(), NuSVC(nu=0.4), OneClassSVM()):
        model.fit(X, y)
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(LARGE) + textwrap.dedent(script), code, tmp_path)


def test_probabilities(code, tmp_path):
    script = """
    for n in (90, 700):
        for classes in (2, 4):
            X, y = data(n, classes=classes)
            for Z in (X, X.astype(np.float32), forms(X)["csr"], forms(X)["zeros"]):
                for model in (SVC(), SVC(loss="squared_hinge"), SVC(kernel="laplacian"), NuSVC(nu=0.3)):
                    model.set_params(probability=True).fit(Z, y).predict_proba(Z)
            K = X @ X.T
            SVC(kernel="precomputed", probability=True).fit(K, y).predict_proba(K)
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(script), code, tmp_path)


def test_linear_kernels_of_texts_and_values_with_more_digits(code, tmp_path):
    script = """
    X, y = data(1500)
    texts = sp.csr_array(sp.hstack([sp.csr_array(X), sp.random(1500, 4000, 0.002, rng=0)]))
    for Z in (texts, texts.astype(np.float32)):
        for model in (SVC(), SVR(), NuSVC(nu=0.2), NuSVR(), OneClassSVM(), SVC(loss="squared_hinge")):
            model.set_params(kernel="linear", max_iter=2000).fit(Z, y).predict(Z)
    uneven = X * np.where(np.arange(7) == 3, 1e9, 1.0)
    for Z in (uneven, sp.csr_array(uneven)):
        for kernel in ("linear", "poly", "rbf", "laplacian"):
            SVC(kernel=kernel, gamma=1, coef0=1, degree=2, max_iter=200).fit(Z[:300], y[:300]).predict(Z)
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(script), code, tmp_path)


def test_models_and_solvers_of_the_papers(code, tmp_path):
    script = """
    for n in (120, 800):
        X, y = data(n, classes=3)
        two = y > 0
        AllDistancesSVC().fit(X, y).predict(X)
        CrammerSingerSVC(C=30.0, gamma=0.01, max_time=2).fit(X, y).predict(X)
        L2OneClassSVM(max_time=2).fit(X).predict(X)
        model = IncrementalSVC(gamma=0.1).fit(X[:100], two[:100])
        model.partial_fit(X[100:110], two[100:110]).predict(X)
        for solver in solvers.names():
            for loss in ("hinge", "squared_hinge"):
                try:
                    SVC(solver=solver, loss=loss, max_iter=500).fit(X, two)
                except (TypeError, ValueError):  # a solver of other problems
                    pass
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(script), code, tmp_path)


def test_explanations(code, tmp_path):
    script = """
    from maxmargin.inspection import shapley
    X, y = data(150, classes=3)
    for name, Z in forms(X).items():
        Z = np.asarray(Z) if isinstance(Z, list) else Z
        for kernel in ("rbf", "laplacian", "linear"):
            model = SVC(kernel=kernel).fit(Z, y[:Z.shape[0]])
            for distribution in ("joint", "independent"):
                shapley(model, Z[:3], Z[3:8], distribution=distribution)
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(script), code, tmp_path)


@pytest.mark.parametrize("n", [150, 900])
def test_searches(n, code, tmp_path):
    script = f"""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from maxmargin.model_selection import SVMSearchCV
    X, y = data({n})
    many, labels = data({n}, classes=4)
    grid = {{"C": [0.1, 1.0, 100.0], "gamma": [0.01, 0.1, 1.0]}}
    for Z in (X, X.astype(np.float32), forms(X)["csr"], forms(X)["zeros"]):
        SVMSearchCV(SVC(), grid, cv=3).fit(Z, y).predict(Z)
    SVMSearchCV(SVC(), grid, cv=3, n_jobs=2).fit(many, labels).predict(many)
    SVMSearchCV(SVR(), {{**grid, "epsilon": [0.1, 0.2]}}, cv=3).fit(X, X[:, 1]).predict(X)
    SVMSearchCV(NuSVC(), {{"nu": [0.2, 0.3], "gamma": [0.1, 1.0]}}, cv=3).fit(X, y)
    SVMSearchCV(SVC(kernel="linear"), {{"C": [0.1, 1.0]}}, cv=3).fit(X, y)
    SVMSearchCV(SVC(kernel="laplacian"), grid, cv=3).fit(X, y)
    piped = make_pipeline(StandardScaler(), SVC())
    SVMSearchCV(piped, {{"svc__C": [0.1, 1.0], "svc__gamma": [0.1, 1.0]}}, cv=3).fit(X, y).predict(X)
    SVMSearchCV(SVC(), grid, cv=3, calibrate="sigmoid").fit(many, labels).predict_proba(many)
    SVCCV().fit(X, y).predict_proba(X)
    SVCCV(kernel="auto").fit(many, labels).predict_proba(many)
    SVRCV().fit(X, X[:, 1]).predict(X)
    """
    run(textwrap.dedent(FITS) + textwrap.dedent(script), code, tmp_path)


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path, code, tmp_path):
    if path.stem in ("own_solver", "own_kernel"):
        pytest.skip("compiles functions of its own or calls plain Python")
    script = f"""
    import runpy, sys, warnings
    warnings.simplefilter("ignore")
    sys.argv = [{str(path)!r}]
    if __name__ == "__main__":
        runpy.run_path({str(path)!r}, run_name="__main__")
    """
    run(script, code, tmp_path)


def test_the_readme(code, tmp_path):
    script = f"""
    import doctest
    assert doctest.testfile({str(ROOT / "README.md")!r}, module_relative=False).failed == 0
    """
    run(script, code, tmp_path)


def test_a_read_only_installation_without_a_home(code, tmp_path):
    script = """
    from numba.core import caching

    def refuse(self):
        raise PermissionError("read-only file system")

    caching._CacheLocator.ensure_cache_path = refuse
    from maxmargin import SVC
    SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[2.5]])
    """
    environment = {"HOME": "", "XDG_CACHE_HOME": ""}
    run(script, code, tmp_path, **environment)
