"""Data files and a way to run commands."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_diabetes, load_iris, load_wine

from maxmargin.cli import app


@dataclass
class Run:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def run(capsys, monkeypatch, tmp_path):
    """Run a command in an empty folder with some data in it."""
    monkeypatch.chdir(tmp_path)
    for name, bunch in (("iris", load_iris()), ("wine", load_wine())):
        with open(f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*bunch.feature_names, "kind"])
            for row, label in zip(bunch.data.tolist(), bunch.target_names[bunch.target], strict=True):
                writer.writerow([*row, label])
    bunch = load_diabetes()
    with open("diabetes.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*bunch.feature_names, "progression"])
        writer.writerows(np.column_stack([bunch.data, bunch.target + 0.5]).tolist())
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    dump_svmlight_file(X, 2 * y - 1, "cancer.svm", zero_based=False)
    np.savez("cancer.npz", X=X, y=y)

    def run(*arguments: str) -> Run:
        capsys.readouterr()
        code = app.run([str(a) for a in arguments])
        return Run(code, *capsys.readouterr())

    return run
