"""Options that several commands have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Scale(StrEnum):
    """How features are scaled before training; the scaler becomes a part of the model."""

    none = "none"
    standard = "standard"
    minmax = "minmax"
    maxabs = "maxabs"


class Format(StrEnum):
    """Formats of data files."""

    svmlight = "svmlight"
    csv = "csv"
    parquet = "parquet"
    npz = "npz"


_DATA, _MODEL, _RUN = "Data", "Model", "Training"

Data = Annotated[str, typer.Argument(help="Data file, or - for the standard input.", show_default=False)]
Target = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", rich_help_panel=_DATA, show_default=False,
        help="Name or number of the target column. Default: target, label, class, y, or the last column.",
    ),
]  # fmt: skip
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop", rich_help_panel=_DATA, help="A column to leave out; may be repeated.", show_default=False
    ),
]
DataFormat = Annotated[
    Format | None,
    typer.Option(
        "--format", rich_help_panel=_DATA, help="Format of the data.", show_default="from the contents"
    ),
]
Scaling = Annotated[
    Scale,
    typer.Option(
        "--scale", rich_help_panel=_DATA, help="Scale the features; the scaler is stored in the model."
    ),
]
Impute = Annotated[
    bool,
    typer.Option(
        "--impute/--no-impute", rich_help_panel=_DATA,
        help="Fill in empty cells: medians, categories of their own; rows without a target are left out.",
    ),
]  # fmt: skip
Encode = Annotated[
    bool,
    typer.Option(
        "--encode/--no-encode", rich_help_panel=_DATA,
        help="Turn categories, dates and text into numbers; the encoder is stored in the model.",
    ),
]  # fmt: skip
Category = Annotated[
    list[str] | None,
    typer.Option(
        "--category", rich_help_panel=_DATA, show_default=False,
        help="A column of numbers that are categories; may be repeated.",
    ),
]  # fmt: skip
Machine = Annotated[
    str,
    typer.Option("--machine", rich_help_panel=_MODEL, help="Estimator to train: see 'maxmargin solvers'."),
]
Kernel = Annotated[
    str | None,
    typer.Option(rich_help_panel=_MODEL, help="linear, poly, rbf, sigmoid or laplacian.", show_default="rbf"),
]
C = Annotated[
    float | None,
    typer.Option("-C", rich_help_panel=_MODEL, help="Penalty of the slack variables.", show_default="1"),
]
Gamma = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MODEL, help="Kernel coefficient: a number, scale or auto.", show_default="scale"
    ),
]
Degree = Annotated[
    int | None, typer.Option(rich_help_panel=_MODEL, help="Degree of the poly kernel.", show_default="3")
]
Coef0 = Annotated[
    float | None,
    typer.Option(rich_help_panel=_MODEL, help="Constant of the poly and sigmoid kernels.", show_default="0"),
]
Nu = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_MODEL,
        help="Parameter of nu-svc, nu-svr and one-class, in (0, 1].",
        show_default="0.5",
    ),
]
Quantile = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_MODEL, help="Share of targets below the function (quantile-svr).", show_default="0.5"
    ),
]
Quantiles = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MODEL, show_default="none",
        help="Several quantiles, such as 0.05,0.5,0.95: a column for each (quantile-svr).",
    ),
]  # fmt: skip
Contamination = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MODEL, show_default="auto",
        help="Share of outliers in the training data in (0, 0.5], auto, or margin (one-class, l2-one-class).",
    ),
]  # fmt: skip
Epsilon = Annotated[
    float | None,
    typer.Option(
        rich_help_panel=_MODEL, help="Deviations up to this size cost nothing (svr).", show_default="0.1"
    ),
]
Loss = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MODEL, show_default="the first",
        help="hinge or squared_hinge (svc), epsilon_insensitive or squared_epsilon_insensitive (svr).",
    ),
]  # fmt: skip
Bias = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MODEL, help="free, or penalised like the weights (svc).", show_default="free"
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(
        rich_help_panel=_MODEL, show_default=False,
        help="Factors of C per class: balanced, or label=weight,label=weight.",
    ),
]  # fmt: skip
Solver = Annotated[
    str | None,
    typer.Option(rich_help_panel=_RUN, help="Solver: see 'maxmargin solvers'.", show_default="auto"),
]
Tol = Annotated[float | None, typer.Option(rich_help_panel=_RUN, help="KKT tolerance.", show_default="0.001")]
CacheSize = Annotated[
    float | None, typer.Option(rich_help_panel=_RUN, help="Kernel cache in MB.", show_default="200")
]
MaxTime = Annotated[
    float | None,
    typer.Option(rich_help_panel=_RUN, help="Time limit of a fit in seconds.", show_default="none"),
]
Jobs = Annotated[
    int | None,
    typer.Option("--n-jobs", "-j", rich_help_panel=_RUN, help="Threads.", show_default="all cores"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]
Folds = Annotated[int | None, typer.Option("--cv", min=2, help="Folds of cross-validation.")]
Picture = Annotated[
    Path | None,
    typer.Option("--plot", help="Write a figure to this file (needs matplotlib).", show_default=False),
]


def given(**values: Any) -> dict[str, Any]:
    """The options that are set on the command line."""
    return {name: value for name, value in values.items() if value is not None}
