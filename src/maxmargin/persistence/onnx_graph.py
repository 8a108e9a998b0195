"""A graph of ONNX operators that is built node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Understood by onnxruntime from 1.13 on.
_OPSET, _IR_VERSION = 17, 8


class Graph:
    """A graph that grows, with names for everything.

    Parameters
    ----------
    dtype : dtype
        Of all floating-point numbers.
    n_features : int
        Columns of the input.
    """

    def __init__(self, dtype: np.dtype[Any], n_features: int) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("ONNX export needs the package onnx: pip install 'maxmargin[onnx]'.") from error
        self.onnx: Any = onnx
        self.dtype = dtype
        self.n_features = n_features
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, value: Any, *, exact: bool = False) -> str:
        """A name for numbers, in the graph's dtype unless `exact`, or for texts."""
        value = np.asarray(value)
        name = f"c{len(self.constants)}"
        if value.dtype.kind in "UO":
            raw = [str(v).encode() for v in value.ravel()]
            string = self.onnx.TensorProto.STRING
            self.constants.append(self.onnx.helper.make_tensor(name, string, value.shape, raw))
            return name
        if value.dtype.kind == "f" and not exact:
            value = value.astype(self.dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def add(self, operator: str, *inputs: Any, output: str | None = None, **options: Any) -> str:
        """The name of an operator's output; inputs that are not strings become constants."""
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        output = output or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output], **options))
        return output

    def real(self, value: Any) -> Any:
        """A floating-point constant."""
        return np.asarray(value, dtype=np.float64)

    def emit(self, name: str, source: str, dtype: Any, shape: Sequence[Any]) -> None:
        """Make a value an output."""
        self.add("Identity", source, output=name)
        kind = (
            self.onnx.TensorProto.STRING
            if dtype.kind in "UO"
            else self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        )
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))

    def finish(self) -> Any:
        """The checked model."""
        from maxmargin import __version__

        helper = self.onnx.helper
        number = helper.np_dtype_to_tensor_dtype(self.dtype)
        X = helper.make_tensor_value_info("X", number, ["n_samples", self.n_features])
        graph = helper.make_graph(self.nodes, "maxmargin", [X], self.outputs, self.constants)
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(
            graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="maxmargin",
            producer_version=__version__,
        )  # fmt: skip
        self.onnx.checker.check_model(model)
        return model
