"""The first fit of a process, in a fresh environment with and without compiled code in the package.

    python benchmarks/first_fit.py            # makes two environments and installs this tree: minutes
    python benchmarks/first_fit.py --quick    # this environment only, whatever it has

The tree is copied (as committed) and installed with pip, as the README says, once as pure Python
(MAXMARGIN_BUILD_CODE=none) and once with code for this CPU. "first" and "second" are the calls of one
process; caches are empty, the home folder does not exist, and where the program runs as root the processes
belong to another user, who cannot write to the installation. "compiled" counts the functions that the process
compiled. Packages were downloaded before installations are timed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from report import ROOT, write

CALLS = {
    "SVC, breast_cancer": ("SVC()", "load_breast_cancer"),
    "SVC, digits": ("SVC()", "load_digits"),
    "SVR, diabetes": ("SVR()", "load_diabetes"),
    "SVMSearchCV, breast_cancer, 3 x 3": (
        "SVMSearchCV(SVC(), {'C': [0.1, 1.0, 10.0], 'gamma': [0.001, 0.01, 0.1]})",
        "load_breast_cancer",
    ),
}
SCRIPT = """
import json, logging, time
logging.getLogger("maxmargin").setLevel("WARNING")
from sklearn import datasets
from sklearn.preprocessing import StandardScaler
from maxmargin import SVC, SVR
from maxmargin.model_selection import SVMSearchCV
X, y = datasets.{data}(return_X_y=True)
X = StandardScaler().fit_transform(X)
model, seconds = {model}, []
for _ in range(2):
    began = time.perf_counter()
    model.fit(X, y)
    seconds.append(time.perf_counter() - began)
from maxmargin._compiled import announce
print(json.dumps([*seconds, len(announce.compiled_here)]))
"""


def environment(empty: Path) -> dict[str, str]:
    """Variables of a process without caches and without a home."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "SYSTEMROOT", "MAXMARGIN_CODE")}
    return {**kept, "NUMBA_CACHE_DIR": str(empty)}


def first_fits(python: str, repeat: int, folder: Path, user: str | None) -> list[dict[str, Any]]:
    """Seconds of the first and the second call, the best of several processes, and functions compiled."""
    rows: list[dict[str, Any]] = []
    for name, (model, data) in CALLS.items():
        runs = []
        for k in range(repeat):
            empty = folder / f"cache-{k}-{len(rows)}"
            script = SCRIPT.format(model=model, data=data)
            done = subprocess.run(
                [python, "-c", script], capture_output=True, text=True, cwd=folder, user=user,
                env=environment(empty),
            )  # fmt: skip
            if done.returncode:
                sys.exit(done.stderr)
            runs.append(json.loads(done.stdout.splitlines()[-1]))
        first = min(run[0] for run in runs)
        second = min(run[1] for run in runs)
        rows.append({"call": name, "first": first, "second": second, "compiled": max(run[2] for run in runs)})
    return rows


def another_user(python: str) -> str | None:
    """A user who cannot write to the installation, if there is one who can run it."""
    try:
        subprocess.run([python, "-c", ""], user="nobody", check=True)
    except (OSError, ValueError, LookupError, subprocess.CalledProcessError):
        return None
    return "nobody"


def installed(folder: Path, code: str) -> tuple[str, float]:
    """Python of a fresh environment with this tree, and the seconds of its installation."""
    tree, venv = folder / "tree", folder / f"venv-{code}"
    if not tree.exists():
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(tree)], check=True)
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = str(venv / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    began = time.perf_counter()
    subprocess.run([*pip, f"{tree}[plot]"], check=True, env={**os.environ, "MAXMARGIN_BUILD_CODE": code})
    return python, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="measure this environment, one process each")
    parser.add_argument("--repeat", type=int, default=3, help="processes per call")
    parser.add_argument("--out", default="first_fit", help="name of the result files in benchmarks/results")
    args = parser.parse_args()
    notes: list[str] = []
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        if args.quick:
            rows = [
                {"installation": "this one", **row} for row in first_fits(sys.executable, 1, folder, None)
            ]
        else:
            installed(folder, "none")  # downloads packages
            subprocess.run(["rm", "-rf", str(folder / "venv-none")], check=True)
            seconds = {}
            for code in ("none", "host"):
                python, seconds[code] = installed(folder, code)
                user = another_user(python)
                repeat = 1 if code == "none" else args.repeat
                label = "pure Python" if code == "none" else "with compiled code"
                rows += [{"installation": label, **row} for row in first_fits(python, repeat, folder, user)]
                began = time.perf_counter()
                subprocess.run(
                    [python, "-m", "maxmargin", "demo", "--out", str(folder / f"demo-{code}")],
                    check=True, capture_output=True, cwd=folder,
                    env=environment(folder / f"demo-cache-{code}"),
                )  # fmt: skip
                demo = time.perf_counter() - began
                rows.append({"installation": label, "call": "maxmargin demo", "first": demo})
            notes.append(
                f"Installation: {seconds['none']:.0f} s as pure Python, {seconds['host']:.0f} s with code."
            )
            rows += [
                {"installation": "seconds of pip install", "call": k, "first": v} for k, v in seconds.items()
            ]
    shown = [
        {
            k: f"{v:.3g}" if isinstance(v, float) else v
            for k, v in {**dict.fromkeys(rows[0], ""), **row}.items()
        }
        for row in rows
    ]
    write(
        args.out, "The first fit of a process (seconds)", shown, notes, rows, threads="all cores",
        repetitions="best of 3 processes; 1 with compilation" if not args.quick else 1,
    )  # fmt: skip


if __name__ == "__main__":
    main()
