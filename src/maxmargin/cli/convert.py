"""``maxmargin convert``: convert data and models between formats."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from maxmargin.cli import options as o
from maxmargin.cli.checks import check_writable
from maxmargin.cli.output import BadInput, emit, note


class Kind(StrEnum):
    """Formats that can be written."""

    svmlight = "svmlight"
    csv = "csv"
    parquet = "parquet"
    npz = "npz"
    maxmargin = "maxmargin"
    libsvm_model = "libsvm-model"
    onnx = "onnx"


_MODELS = {".maxmargin": Kind.maxmargin, ".model": Kind.libsvm_model, ".onnx": Kind.onnx}


def convert(
    source: Annotated[
        str,
        typer.Argument(help="Data or model file; - reads data from the standard input.", show_default=False),
    ],
    result: Annotated[
        str, typer.Argument(help="File to write; - writes data to the standard output.", show_default=False)
    ],
    to: Annotated[
        Kind | None, typer.Option("--to", help="Format to write.", show_default="from the suffix")
    ] = None,
    target: o.Target = None,
    drop: o.Drop = None,
    format: o.DataFormat = None,
    json: o.Json = False,
) -> None:
    """Convert data (SVMlight, CSV, Parquet, NPZ) or a model (maxmargin, LIBSVM; ONNX is written only).

    Examples: maxmargin convert data.csv data.svm; maxmargin convert a.maxmargin a.onnx
    """
    check_writable(None if result == "-" else result, data=source, content="source")
    from maxmargin.persistence import kind

    found = None if source == "-" else kind(source)
    suffix = Path(result).suffix.lower()
    if found is None:
        if to in _MODELS.values() or (to is None and suffix in _MODELS):
            raise BadInput(f"{source} is not a model file, so it cannot be converted to a model")
        from maxmargin.data import FORMATS, read, write
        from maxmargin.data.files import SUFFIXES

        if to is None and suffix not in SUFFIXES:
            known = ", ".join(FORMATS)
            raise BadInput(f"{result}: unknown suffix: choose one of the formats {known} with --to")
        table = read(source, target=target, drop=drop or (), format=format)
        if table.guessed and not json:
            note(f"{source}: column {table.target!r} is the target (--target names another)")
        write(table, result, format=to)
        summary = {"rows": table.X.shape[0], "features": table.X.shape[1]}
    else:
        wanted = to or _MODELS.get(suffix)
        if wanted is None or wanted not in _MODELS.values():
            raise BadInput(
                f"{source} is a model: use a file name that ends in {', '.join(_MODELS)}, or set --to to one "
                f"of {', '.join(_MODELS.values())}"
            )
        from maxmargin.cli.models import load_model
        from maxmargin.persistence import save, save_libsvm, to_onnx

        estimator = load_model(source)
        writers: dict[Kind, Any] = {
            Kind.maxmargin: save,
            Kind.libsvm_model: save_libsvm,
            Kind.onnx: to_onnx,
        }
        if result == "-":
            raise BadInput("a model is written to a file, not to the standard output: name a file")
        if wanted is Kind.libsvm_model and hasattr(estimator, "steps"):
            raise BadInput(
                f"{source} has a scaler, which LIBSVM files cannot hold: convert to .onnx, or train with "
                "`--scale none` on scaled data"
            )
        try:
            writers[wanted](estimator, result)
        except TypeError as error:
            raise BadInput(str(error)) from error
        summary = {"model": type(estimator).__name__}
    if json:
        emit({"source": source, "result": result, **summary})
    elif result != "-":
        note(f"{source} -> {result}")
