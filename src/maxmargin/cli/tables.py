"""Mixed tables in the commands: what is done with their columns, and a line that says so."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NoReturn

import numpy as np

from maxmargin.cli.output import BadInput, note
from maxmargin.data import DataError, Table
from maxmargin.data.blocks import Block, read_blocks
from maxmargin.data.encoder import encoder_of, fills_in, schema_of
from maxmargin.data.files import Contents, contents_of
from maxmargin.data.kinds import Column
from maxmargin.data.mixed import MixedTable, Schema, names_of, plain, read_new, read_training
from maxmargin.data.table import NotNumbers, Wanted, brief
from maxmargin.data.values import missing_cells

# Names that the line shows of each kind.
_SHOWN = 4


def read_table(
    source: str, *, target: str | None, drop: Sequence[str], format: str | None, impute: bool = True,
    encode: bool = True, category: Sequence[str] = (), quiet: bool = False,
) -> Table:  # fmt: skip
    """Read data to train on: a table of numbers where it is one, otherwise a `MixedTable`.

    Unless `quiet`, a line says what is done with the columns.
    """
    contents = contents_of(source, format)
    wanted = Wanted(target, None, None, tuple(drop))
    if category and not encode:
        raise BadInput("--category and --no-encode exclude each other")
    if category and contents.kind not in ("csv", "parquet"):
        raise BadInput(f"--category: {source} has no names of columns; only CSV and Parquet files have")
    if not category:
        try:
            table = contents.parse(wanted)
        except NotNumbers as error:
            if not impute and not encode:
                raise
            reason: NotNumbers | None = error
        else:
            if not impute or contents.kind not in ("csv", "parquet") or not _has_nan(table):
                return table
            reason = None
    mixed = _mixed(contents, wanted, category, None if category else reason)
    _check_allowed(mixed, source, impute, encode)
    if all(column.kind == "left out" for column in mixed.columns):
        raise DataError(f"{source}: no column is left for the features: {described(mixed)}.")
    numbers = plain(mixed)
    if not quiet and (numbers is None or mixed.unlabelled):
        note(f"{source}: {described(mixed)}")
    return mixed if numbers is None else numbers


def read_rows(
    estimator: Any, source: str, *, target: str | None, format: str | None, names: Any, width: int
) -> Table:
    """Read rows for a trained model, which may be a pipeline that begins with an encoder of columns."""
    contents = contents_of(source, format)
    encoder = encoder_of(estimator)
    if encoder is None:
        features = None if names is None else list(names)
        try:
            return contents.parse(Wanted(target, features, width, ()))
        except NotNumbers as error:
            return _with_commas(contents, features, target) or _raise(error)
    if contents.kind not in ("csv", "parquet"):
        raise DataError(
            f"{source}: the model was trained with named columns, which only CSV and Parquet files have."
        )
    table = read_new(contents, schema_of(encoder), target)
    if not fills_in(encoder):
        _check_filled(table, source, "the model was trained with --no-impute: fill them in")
    return table


def read_parts(estimator: Any, source: str, *, target: str | None, format: str | None) -> Iterator[Block]:
    """Read rows for a trained model in blocks; for one that begins with an encoder all rows are one block.

    How the cells of a mixed table are read, such as decimal commas, depends on all of them.
    """
    names = getattr(estimator, "feature_names_in_", None)
    width = int(estimator.n_features_in_)
    size = os.path.getsize(source) if os.path.isfile(source) else 0
    if encoder_of(estimator) is not None:
        table = read_rows(estimator, source, target=target, format=format, names=names, width=width)
        yield Block(table, 0, size)
        return
    features = None if names is None else names.tolist()
    blocks = read_blocks(source, target=target, format=format, features=features, width=width)
    try:
        first = next(blocks)
    except NotNumbers as error:
        if not size:  # a pipe, of which the beginning has been read
            raise
        try:
            table = read_rows(estimator, source, target=target, format=format, names=names, width=width)
        except DataError:
            raise error from None
        yield Block(table, 0, size)
        return
    yield first
    yield from blocks


def _with_commas(contents: Contents, names: list[str] | None, target: str | None) -> Table | None:
    """Numbers of a file that has decimal commas, for a model of numbers; None for others."""
    if names is None or find_spec("pandas") is None:
        return None
    schema = Schema(names, {name: Column(name, "number") for name in names})
    try:
        table = read_new(contents, schema, target)
    except DataError:
        return None
    if table.unlabelled or np.isnan(table.X.to_numpy()).any():
        return None
    return Table(table.X.to_numpy(dtype=np.float64), table.y, names, table.target, table.guessed)


def _raise(error: Exception) -> NoReturn:
    raise error


def labelled(table: Table, X: Any) -> tuple[Any, Any]:
    """The rows of X that have a label in the table, with their labels."""
    if not isinstance(table, MixedTable) or not table.unlabelled:
        return X, table.y
    known = ~missing_cells(table.y)
    y = np.asarray(table.y)[known]
    return X[known], np.array(y.tolist()) if y.dtype.kind == "O" else y


def labels_of(table: Table, part: slice, predicted: Any) -> tuple[Any, Any]:
    """The labels of some rows, and the predictions of these rows; without rows that have no label."""
    y: Any = table.y
    found, labels = labelled(replace(table, y=y[part]), predicted)
    return labels, found


def n_labelled(table: Table) -> int:
    """Number of rows that have a label."""
    return int(table.X.shape[0]) - (table.unlabelled if isinstance(table, MixedTable) else 0)


def pipeline_of(table: MixedTable, model: Any, scaler: Any, impute: bool) -> Any:
    """A pipeline of an encoder of the columns and a model."""
    from sklearn.pipeline import Pipeline

    from maxmargin.data.encoder import encoder_for

    encoder = encoder_for(table.columns, impute=impute, scaler=scaler)
    return Pipeline([("columns", encoder), (type(model).__name__.lower(), model)])


def encoded(table: Table, scale: str, impute: bool) -> tuple[Any, Any]:
    """A fitted encoder and the features that it makes of a mixed table; None and X for one of numbers."""
    if not isinstance(table, MixedTable):
        return None, table.X
    from sklearn.preprocessing import RobustScaler, StandardScaler

    from maxmargin.data.encoder import encoder_for

    scaler = {"standard": StandardScaler(), "robust": RobustScaler()}.get(scale)
    encoder = encoder_for(table.columns, impute=impute, scaler=scaler)
    return encoder, encoder.fit_transform(table.X)


def with_encoder(encoder: Any, estimator: Any) -> Any:
    """A fitted estimator of encoded features, behind their fitted encoder if there is one."""
    from sklearn.pipeline import Pipeline

    if encoder is None:
        return estimator
    return Pipeline([("columns", encoder), (type(estimator).__name__.lower(), estimator)])


def numbers_of(table: MixedTable) -> tuple[Any, list[str]]:
    """Numbers and dates of a table, with means in empty cells, and their names."""
    names = names_of(table.columns, "number", "date")
    X: Any = table.X[names].to_numpy(dtype=np.float64)
    return np.where(np.isnan(X), np.nanmean(X, axis=0) if len(names) else 0.0, X), names


def columns_entry(table: Table) -> dict[str, str]:
    """The treatment of the columns for JSON; nothing for a table of numbers."""
    return {"columns": described(table)} if isinstance(table, MixedTable) else {}


def described(table: MixedTable) -> str:
    """The treatment of the columns in words."""
    used = [column for column in table.columns if column.kind != "left out"]
    parts = [] if table.named else ["columns without names are numbered from 0"]
    filled = [f"{_called(column)} {column.missing:,}" for column in used if column.missing]
    dates = [_called(column) + _form(column) for column in used if column.kind == "date"]
    left = [f"{_called(column)}: {column.why}" for column in table.columns if column.kind == "left out"]
    for what, names in (
        ("empty cells filled in", filled),
        ("categories one-hot", [_called(column) for column in used if column.kind == "category"]),
        ("true/false as 1/0", [_called(column) for column in used if column.kind == "boolean"]),
        ("dates as days", dates),
        ("text as TF-IDF", [_called(column) for column in used if column.kind == "text"]),
        ("columns left out", left),
    ):
        if names:
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            parts.append(f"{what} ({', '.join(names[:_SHOWN])}{more})")
    if table.unlabelled:
        parts.append(f"rows without a target left out ({table.unlabelled:,})")
    return "; ".join(parts) or "all columns are numbers"


def _mixed(contents: Contents, wanted: Wanted, category: Sequence[str], reason: Any) -> MixedTable:
    """The mixed table; without pandas an error that gives the reason why it is needed."""
    try:
        import pandas  # noqa: F401
    except ImportError:
        from maxmargin.data.mixed import need_pandas

        need_pandas(str(reason) if reason else f"{contents.where} has empty cells or categories")
    return read_training(contents, wanted, category=category)


def _has_nan(table: Table) -> bool:
    y: Any = np.zeros(0) if table.y is None or table.y.dtype.kind != "f" else table.y
    return bool(np.isnan(table.X).any() or np.isnan(y).any())


def _check_allowed(table: MixedTable, source: str, impute: bool, encode: bool) -> None:
    """Raise an error for what the options do not allow."""
    if not impute:
        _check_filled(table, source, "fill them in, let them be filled in (--impute)")
        if table.unlabelled:
            raise DataError(
                f"{source}: {table.unlabelled:,} rows have no value in the target column {table.target!r}: "
                "remove them, or let them be left out (--impute)."
            )
    for column in table.columns if not encode else ():
        if column.kind not in ("number", "boolean") and column.why not in ("empty", "constant"):
            raise DataError(
                f"{source}: column {brief(column.name)} holds values other than numbers: let it be encoded "
                f"(--encode), or leave it out (--drop {brief(column.name)[1:-1]})."
            )


def _check_filled(table: MixedTable, source: str, remedy: str) -> None:
    """Raise an error that names the first empty cell of a column that is used."""
    for column in table.columns:
        if column.kind == "text" or (column.kind == "left out" and column.why != "empty"):
            continue
        empty = np.flatnonzero(missing_cells(table.X[column.name]))
        if len(empty):
            raise DataError(
                f"{source}: row {empty[0] + 1}, column {brief(column.name)} is empty: {remedy}, or leave the "
                f"column out (--drop {brief(column.name)[1:-1]})."
            )


def _form(column: Column) -> str:
    return "" if column.form in (None, "year-month-day") else f": {column.form}"


def _called(column: Column) -> str:
    """A name, in quotes where it could be misunderstood."""
    plain_name = column.name.replace("_", "").replace(" ", "").isalnum()
    return column.name if plain_name and len(column.name) <= 40 else brief(column.name)
