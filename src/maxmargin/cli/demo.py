"""``maxmargin demo``: train, search and plot on bundled data, compared with scikit-learn."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.demo_pictures import fitted, pictures
from maxmargin.cli.output import BadInput, Interrupted, emit, note, working

# Fits of each estimator, of which the fastest counts; the first one loads code, so there are at least two.
_LEAST, _MOST = 2, 3
# Seconds of fits after which there is not another one.
_ENOUGH = 1.0
# Seconds after which a line says what is going on, where no spinner can be shown.
_SILENT = 1.5


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures.")] = Path(
        "maxmargin-demo"
    ),
    json: o.Json = False,
) -> None:
    """Train, search and plot on data that scikit-learn bundles, in under 20 seconds.

    Every step is also timed with scikit-learn's SVC, in the same process and on the same data.
    """
    began = time.perf_counter()
    if next((place for place in (out, *out.parents) if place.exists()), out).is_file():
        raise BadInput(f"--out {out}: a file is in the way: name a folder")
    say: Callable[..., None] = _nothing if json else _say
    try:
        with warnings.catch_warnings():  # such as those of an interrupted fit
            warnings.simplefilter("ignore")
            report = _run(out, say, began)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted after {time.perf_counter() - began:.0f} s") from None
    if json:
        emit(report)


def _run(out: Path, say: Callable[..., None], began: float) -> dict[str, Any]:
    """All parts of the demonstration; returns its numbers."""
    say(
        "maxmargin trains the support vector machines of scikit-learn, and says how exact they are. This "
        "demonstration trains the same models with both."
    )
    if _is_busy():
        say("Other programs keep this computer busy: the times below mean little.")
    with _busy("loading libraries and data"):
        data = _data()
    say()
    say("1. Training: SVC(C=10), seconds")
    trained = [_train(*parts) for parts in data]
    _show_table(say, trained)
    say(_speed_in_words(trained))
    say()
    say("2. How reliable is that?")
    say(_gap_in_words(trained))
    say()
    say("3. Searching C and gamma: 100 combinations, 5 folds each, on breast cancer")
    found, search = _search()
    say(_search_in_words(found))
    say()
    say("4. Pictures")
    drawn = _draw(out, search, say)
    seconds = time.perf_counter() - began
    say()
    say(f"Done in {seconds:.0f} s. With a table of your own: maxmargin tune table.csv model.maxmargin")
    return {"training": trained, "search": [found], "pictures": drawn, "seconds": seconds}


def _is_busy() -> bool:
    """Whether other programs use more than half of the cores, where that is known."""
    try:
        return os.getloadavg()[0] > 0.5 * (os.cpu_count() or 1)
    except (AttributeError, OSError):
        return False


def _data() -> Sequence[tuple[Any, ...]]:
    from sklearn.datasets import load_breast_cancer, load_digits, make_classification
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import StandardScaler

    sets = {
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits": load_digits(return_X_y=True),
        "generated": make_classification(8_000, 20, n_informative=10, n_clusters_per_class=4, random_state=0),
    }
    parts = []
    for name, (X, y) in sets.items():
        X, X_test, y, y_test = train_test_split(X, y, random_state=0)
        scaler = StandardScaler().fit(X)
        parts.append((name, scaler.transform(X), y, scaler.transform(X_test), y_test))
    return parts


def _train(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    import numpy as np
    import sklearn.svm

    from maxmargin import SVC
    from maxmargin.cli.models import gaps

    ours, theirs = SVC(C=10.0), sklearn.svm.SVC(C=10.0)
    with _busy(f"training on {name}, {len(X):,} rows: maxmargin"):
        fast = _best_of(lambda: fitted(ours, X, y))
    with _busy(f"training on {name}, {len(X):,} rows: scikit-learn"):
        slow = _best_of(lambda: theirs.fit(X, y))
        a, b = ours.predict(X_test), theirs.predict(X_test)
    return {
        "data": name,
        "rows": len(X),
        "seconds_sklearn": slow,
        "seconds": fast,
        "ratio": slow / fast,
        "support_vectors": len(ours.support_),
        **gaps(ours),
        "accuracy_sklearn": float((b == y_test).mean()),
        "accuracy": float((a == y_test).mean()),
        "same_labels": float(np.mean(a == b)),
        "held_out_rows": len(y_test),
    }


def _search() -> tuple[dict[str, Any], Any]:
    import numpy as np
    import sklearn.svm
    from joblib import parallel_config
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import StandardScaler

    from maxmargin import SVC
    from maxmargin.model_selection import SVMSearchCV

    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    grid = {"C": np.geomspace(0.1, 1000.0, 10), "gamma": np.geomspace(1e-4, 1.0, 10)}
    search = SVMSearchCV(SVC(), grid, n_jobs=2, progress=False)
    theirs = GridSearchCV(sklearn.svm.SVC(), grid, n_jobs=2)
    with _busy("searching: SVMSearchCV"):
        fast = _best_of(lambda: fitted(search, X, y))
    # Threads: its fits release Python's lock, so that no time is spent on starting processes.
    with _busy("searching: GridSearchCV"), parallel_config(backend="threading"):
        before = set(threading.enumerate())
        try:
            slow = _best_of(lambda: theirs.fit(X, y), 1)
        except KeyboardInterrupt:
            # Python must not end while one of these threads is in a fit: the process would be aborted.
            for thread in set(threading.enumerate()) - before:
                thread.join(10.0)
            raise
    return {
        "data": "breast cancer",
        "rows": len(X),
        "seconds_sklearn": slow,
        "seconds": fast,
        "ratio": slow / fast,
        "best_score_sklearn": float(theirs.best_score_),
        "best_score": float(search.best_score_),
        "best_params": search.best_params_,
    }, search


def _draw(out: Path, search: Any, say: Callable[..., None]) -> list[str]:
    """Plot the boundary, the search, the convergence of solvers and the hulls; returns the file names."""
    try:
        import matplotlib
    except ImportError:
        say("None: they need matplotlib, pip install 'maxmargin[plot]'.")
        return []
    matplotlib.use("Agg")  # no window is opened
    out.mkdir(parents=True, exist_ok=True)
    names = []
    for name, (draw, words) in pictures(search).items():
        file = out / name
        with _busy(f"drawing {name}"):
            draw().figure_.savefig(file, dpi=120)
        say(f"{file}:", indent=2)
        say(words, indent=4)
        names.append(str(file))
    return names


def _best_of(run: Callable[[], Any], least: int = _LEAST) -> float:
    best, start = float("inf"), time.perf_counter()
    for k in range(_MOST):
        began = time.perf_counter()
        run()
        ended = time.perf_counter()
        best = min(best, ended - began)
        if k + 1 >= least and ended - start > _ENOUGH:
            break
    return best


# -- words -----------------------------------------------------------------------------------


def _show_table(say: Callable[..., None], rows: Sequence[dict[str, Any]]) -> None:
    head = ("data", "rows", "scikit-learn", "maxmargin", "times as fast", "relative gap")
    lines = [
        (
            row["data"], f"{row['rows']:,}", f"{row['seconds_sklearn']:.4f}", f"{row['seconds']:.4f}",
            f"{row['ratio']:.1f}", f"{row['relative_gap']:.0e}",
        )
        for row in rows
    ]  # fmt: skip
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    for line in (head, *lines):
        cells = [cell.rjust(width) for cell, width in zip(line, widths, strict=True)]
        say("  ".join([line[0].ljust(widths[0]), *cells[1:]]), indent=2, wrap=False)


def _speed_in_words(rows: Sequence[dict[str, Any]]) -> str:
    from maxmargin._compiled.threads import effective_n_jobs

    ratios, threads = [row["ratio"] for row in rows], effective_n_jobs(None)
    n = sum(row["held_out_rows"] for row in rows)
    same, ours, theirs = (
        round(sum(row[key] * row["held_out_rows"] for row in rows))
        for key in ("same_labels", "accuracy", "accuracy_sklearn")
    )
    right = f"maxmargin is right for {ours:,} of them, scikit-learn for {theirs:,}."
    return (
        f"maxmargin was {min(ratios):.1f} to {max(ratios):.1f} times as fast, with {threads} "
        f"thread{'s' * (threads != 1)}; scikit-learn's SVC has one. Both predict the same label for "
        f"{same:,} of {n:,} rows that were held out. "
        + (f"Both are right for {ours:,} of them." if ours == theirs else right)
    )


def _gap_in_words(rows: Sequence[dict[str, Any]]) -> str:
    largest = max(row["relative_gap"] for row in rows)
    return (
        "Training minimises an objective, and stops before the exact minimum. Each model of maxmargin has a "
        "certificate of how far away it is, the relative gap. The largest one of these three is "
        f"{largest:.1e}: the objective is at most {percent_above(largest)} % above the lowest possible "
        "value. scikit-learn stops by the same rule, but gives no such bound."
    )


def percent_above(gap: float) -> str:
    """A relative gap in percent, rounded up to two digits, without an exponent."""
    import numpy as np

    percent = max(100.0 * gap, 1e-9)
    unit = 10.0 ** (np.floor(np.log10(percent)) - 1.0)
    rounded = float(np.ceil(percent / unit - 1e-9) * unit)
    return np.format_float_positional(rounded, precision=2, unique=False, fractional=False, trim="-")


def _search_in_words(found: dict[str, Any]) -> str:
    best = ", ".join(f"{name} = {value:.3g}" for name, value in found["best_params"].items())
    ours, theirs = (f"{100 * found[key]:.1f} %" for key in ("best_score", "best_score_sklearn"))
    return (
        f"GridSearchCV with scikit-learn's SVC took {found['seconds_sklearn']:.2f} s, SVMSearchCV "
        f"{found['seconds']:.2f} s, {found['ratio']:.1f} times as fast, with 2 threads each: the folds share "
        "distances, and each combination starts from the solution of a neighbour. The best accuracy is "
        f"{ours} ({best}), with GridSearchCV {theirs}."
    )


# -- output ----------------------------------------------------------------------------------


def _say(text: str = "", *, indent: int = 0, wrap: bool = True) -> None:
    """Print text in lines of at most 80 columns, at once: the output may be a file that someone reads."""
    width = min(80, shutil.get_terminal_size().columns)
    space = " " * indent
    if wrap:
        text = textwrap.fill(
            text, width, initial_indent=space, subsequent_indent=space, break_long_words=False,
            break_on_hyphens=False,
        )  # fmt: skip
    print(text if wrap else space + text, flush=True)


def _nothing(*_: Any, **__: Any) -> None:
    pass


@contextmanager
def _busy(text: str) -> Iterator[None]:
    """A spinner in a terminal; elsewhere a line whenever nothing was said for some time."""
    if sys.stderr.isatty():
        with working(text):
            yield
        return
    done = threading.Event()
    began = time.perf_counter()

    def beat() -> None:
        while not done.wait(_SILENT):
            note(f"... {text}, {time.perf_counter() - began:.0f} s")
            sys.stderr.flush()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
