"""What an import and the first fit of a process cost."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest


def run(script, **environment):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True, text=True, timeout=120, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    "module",
    [
        "maxmargin",
        "maxmargin.solvers",
        "maxmargin.dual",
        "maxmargin.kernels",
        "maxmargin.inspection",
        "maxmargin.persistence",
    ],
)
def test_import_does_not_load_the_compiler(module):
    loaded = run(f"import sys, {module}; print(*sys.modules)").split()
    assert module in loaded
    assert not {"numba", "llvmlite", "maxmargin._compiled.jit"} & set(loaded)


def test_import_starts_no_threads_and_changes_no_limit_of_blas():
    run(
        """
        import threading
        import scipy.linalg, sklearn.svm
        from threadpoolctl import threadpool_info
        before = threadpool_info()
        import maxmargin
        assert threading.active_count() == 1
        assert [p["num_threads"] for p in threadpool_info()] == [p["num_threads"] for p in before]
        """
    )


def test_the_public_names_are_there_and_carry_a_version():
    names = run("import maxmargin as m; print(m.__version__, *[getattr(m, n).__name__ for n in m.__all__])")
    version, *names = names.split()
    assert version[0].isdigit() and {"SVC", "NuSVC", "OneClassSVM"} <= set(names)


def test_names_that_are_not_imported_yet_are_listed():
    run("import maxmargin as m; assert set(m.__all__) <= set(dir(m)), set(m.__all__) - set(dir(m))")


def test_import_takes_at_most_300_ms_more_than_that_of_sklearn_svm():
    # Of the processor's time, as other processes may have the computer.
    script = (
        "import time, sklearn.svm; t = time.process_time(); import maxmargin; print(time.process_time() - t)"
    )
    assert min(float(run(script)) for _ in range(3)) <= 0.3


#: Prints the number of functions that were compiled. Their seconds are those of `benchmarks/first_fit.py`.
FIRST_FIT = """
    from numba.core import event

    with event.install_recorder("numba:compile") as compiled:
        from sklearn.datasets import make_classification
        from maxmargin import SVC
        SVC().fit(*make_classification(400, 8, random_state=0))
    print(sum(e.is_start for _, e in compiled.buffer))
"""


@pytest.mark.timeout(200)
def test_first_fit_compiles_few_functions_without_a_cache_and_none_with_one(tmp_path):
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "MAXMARGIN_CODE": "0"}
    assert int(run(FIRST_FIT, **environment)) > 0
    assert len(list(tmp_path.rglob("*.nbc"))) <= 20, "each takes about a second to compile"
    assert int(run(FIRST_FIT, **environment)) == 0


def test_a_place_without_any_writable_cache_directory_still_fits():
    # A read-only container: neither the package's directory nor the user's cache can be written.
    run(
        """
        from numba.core import caching

        def refuse(self):
            raise PermissionError("read-only file system")

        caching._CacheLocator.ensure_cache_path = refuse
        from maxmargin import SVC
        assert SVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]).predict([[2.5]]) == [1]
        """,
        MAXMARGIN_CODE="0",
    )
