"""Probabilities in ONNX graphs, from the values of class pairs: the calibrators and pairwise coupling."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from maxmargin.estimators.calibration import (
    LEAST,
    Calibrator,
    IsotonicCalibrator,
    SigmoidCalibrator,
    TemperatureCalibrator,
)
from maxmargin.persistence.onnx_graph import Graph


def probabilities(
    graph: Graph, calibrator: Calibrator, values: str, by_class: str | None, order: Any = None
) -> str:
    """The probabilities of the classes.

    Parameters
    ----------
    graph : Graph
        To which operators are added.
    calibrator : Calibrator
        That of the model.
    values : str
        The values of pairs, of shape (n, n_pairs); of two classes positive for the second.
    by_class : str or None
        The decision values of three or more classes.
    order : ndarray or None
        The order in which the classes are coupled, if it is another than their own.

    Returns
    -------
    str
        Of shape (n, n_classes).
    """
    k = calibrator.n_classes
    if isinstance(calibrator, TemperatureCalibrator):
        logits = by_class or graph.add("MatMul", values, graph.real([[-1.0, 1.0]]))
        return graph.add("Softmax", graph.add("Mul", logits, graph.real(calibrator.beta)), axis=1)
    if k == 2:
        first = graph.add("Neg", values)
    elif order is not None and isinstance(calibrator, SigmoidCalibrator):
        calibrator, first = calibrator.in_order(order), graph.add("MatMul", values, _reordering(order))
    else:
        order, first = None, values
    if isinstance(calibrator, SigmoidCalibrator):
        inner = graph.add("Add", graph.add("Mul", first, graph.real(calibrator.A)), graph.real(calibrator.B))
        # Both classes by a sigmoid of their own: 1 - p would lose the digits of a small one.
        of_first = _clipped(graph, graph.add("Sigmoid", graph.add("Neg", inner)))
        of_second = _clipped(graph, graph.add("Sigmoid", inner)) if k == 2 else ""
    else:
        assert isinstance(calibrator, IsotonicCalibrator)
        of_first = _interpolated(graph, calibrator, first)
        of_second = graph.add("Sub", graph.real(1.0), of_first) if k == 2 else ""
    if k == 2:
        return graph.add("Concat", of_first, of_second, axis=1)
    coupled = _coupled(graph, _clipped(graph, of_first), k)
    return coupled if order is None else graph.add("Gather", coupled, np.argsort(order), axis=1)


def _clipped(graph: Graph, share: str) -> str:
    return graph.add("Clip", share, graph.real(LEAST), graph.real(1.0 - LEAST))


def _reordering(order: Any) -> Any:
    """The matrix that makes values of the pairs of ``classes[order]``; they change sign with the order."""
    pairs = list(combinations(range(len(order)), 2))
    place = {pair: p for p, pair in enumerate(pairs)}
    out = np.zeros((len(pairs), len(pairs)))
    for p, (a, b) in enumerate(pairs):
        first, second = int(order[a]), int(order[b])
        at = place[min(first, second), max(first, second)]
        out[at, p] = 1.0 if first < second else -1.0
    return out


def _interpolated(graph: Graph, calibrator: IsotonicCalibrator, first: str) -> str:
    """The increasing function of each pair: linear between its knots, constant beyond."""
    columns = []
    for p, (start, end) in enumerate(zip(calibrator.ends, calibrator.ends[1:], strict=False)):
        x, y = calibrator.x[start:end], calibrator.y[start:end]
        value = graph.add("Gather", first, np.array([p]), axis=1)
        if len(x) == 1:
            zero = graph.add("Mul", value, graph.real(0.0))
            columns.append(graph.add("Add", zero, graph.real(y)))
            continue
        value = graph.add("Clip", value, graph.real(x[0]), graph.real(x[-1]))
        passed = graph.add("Cast", graph.add("GreaterOrEqual", value, graph.real(x[:-1])), to=_INT64)
        piece = graph.add("Sub", graph.add("ReduceSum", passed, np.array([1]), keepdims=1), np.array(1))
        width = np.diff(x)
        slope = np.divide(np.diff(y), width, out=np.zeros_like(width), where=width > 0)
        rise = graph.add("Sub", value, graph.add("Gather", graph.constant(x[:-1]), piece))
        rise = graph.add("Mul", rise, graph.add("Gather", graph.constant(slope), piece))
        columns.append(graph.add("Add", graph.add("Gather", graph.constant(y[:-1]), piece), rise))
    return columns[0] if len(columns) == 1 else graph.add("Concat", *columns, axis=1)


# onnx.TensorProto.INT64, without importing onnx.
_INT64 = 7


def _coupled(graph: Graph, first: str, k: int) -> str:
    """The iteration of `maxmargin.estimators._coupling` for all rows at once.

    Rows that are accurate enough stay as they are while others go on.
    """
    from maxmargin.estimators._coupling import ERROR, FEWEST_ROUNDS  # compiled: not at import

    pairs = np.array(list(combinations(range(k), 2)))
    second = graph.add("Sub", graph.real(1.0), first)
    of_first, of_second = np.zeros((len(pairs), k)), np.zeros((len(pairs), k))
    of_first[np.arange(len(pairs)), pairs[:, 0]] = 1.0
    of_second[np.arange(len(pairs)), pairs[:, 1]] = 1.0
    diagonal = graph.add(
        "Add",
        graph.add("MatMul", graph.add("Mul", second, second), of_first),
        graph.add("MatMul", graph.add("Mul", first, first), of_second),
    )
    place = np.zeros((k, k), np.int64)
    place[pairs[:, 0], pairs[:, 1]] = place[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    minus = graph.add("Neg", graph.add("Mul", first, second))
    off = graph.add("Mul", graph.add("Gather", minus, place, axis=1), 1.0 - np.eye(k))
    column = graph.add("Unsqueeze", diagonal, np.array([2]))
    Q = graph.add("Add", off, graph.add("Mul", column, np.eye(k)))
    start = graph.add("Add", graph.add("Mul", diagonal, graph.real(0.0)), graph.real(1.0 / k))

    def round_(p: str) -> tuple[str, str]:
        Qp = graph.add(
            "Squeeze", graph.add("MatMul", Q, graph.add("Unsqueeze", p, np.array([2]))), np.array([2])
        )
        square = graph.add("ReduceSum", graph.add("Mul", p, Qp), np.array([1]), keepdims=1)
        error = graph.add("ReduceMax", graph.add("Abs", graph.add("Sub", Qp, square)), axes=[1], keepdims=1)
        active = graph.add("GreaterOrEqual", error, graph.real(ERROR / k))
        new = p
        for t in range(k):
            at = np.array([t])
            of_t, Q_t = graph.add("Gather", Qp, at, axis=1), graph.add("Gather", Q, t, axis=1)
            Q_tt = graph.add("Gather", diagonal, at, axis=1)
            change = graph.add("Div", graph.add("Sub", square, of_t), Q_tt)
            whole = graph.add("Add", change, graph.real(1.0))
            grown = graph.add("Add", graph.add("Mul", change, Q_tt), graph.add("Mul", of_t, graph.real(2.0)))
            square = graph.add("Add", square, graph.add("Mul", change, grown))
            square = graph.add("Div", square, graph.add("Mul", whole, whole))
            Qp = graph.add("Div", graph.add("Add", Qp, graph.add("Mul", change, Q_t)), whole)
            step = graph.add("Mul", change, np.eye(k)[t])
            new = graph.add("Div", graph.add("Add", new, step), whole)
        count = graph.add("ReduceSum", graph.add("Cast", active, to=_INT64), keepdims=0)
        return graph.add("Greater", count, np.array(0)), graph.add("Where", active, new, p)

    return graph.loop(max(FEWEST_ROUNDS, k), start, round_)
