"""A graph of ONNX operators that is built node by node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np

# Understood by onnxruntime from 1.13 on.
_OPSET, _IR_VERSION = 17, 8
# Operators for texts.
_ML, _ML_OPSET = "ai.onnx.ml", 3


class Graph:
    """A graph that grows, with names for everything.

    Parameters
    ----------
    dtype : dtype
        Of all floating-point numbers.
    n_features : int
        Columns of the input ``X``.
    prefix : str
        Begins the names of all values inside, which must differ from those of inputs.
    """

    def __init__(self, dtype: np.dtype[Any], n_features: int, prefix: str = "") -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("ONNX export needs the package onnx: pip install 'maxmargin[onnx]'.") from error
        self.onnx: Any = onnx
        self.dtype = dtype
        self.n_features = n_features
        self.prefix = prefix
        self.inputs: dict[str, Any] = {}
        self._needs_ml = False
        self.nodes: list[Any] = []
        self._numbers = count()
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, value: Any, *, exact: bool = False) -> str:
        """A name for numbers, in the graph's dtype unless `exact`, or for texts."""
        value = np.asarray(value)
        name = f"{self.prefix}c{len(self.constants)}"
        if value.dtype.kind in "UO":
            raw = [str(v).encode() for v in value.ravel()]
            string = self.onnx.TensorProto.STRING
            self.constants.append(self.onnx.helper.make_tensor(name, string, value.shape, raw))
            return name
        if value.dtype.kind == "f" and not exact:
            value = value.astype(self.dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def add(
        self,
        operator: str,
        *inputs: Any,
        output: str | None = None,
        unused: Sequence[str] = (),
        **options: Any,
    ) -> str:
        """The name of an operator's output; inputs that are not strings become constants.

        `unused` names further outputs.
        """
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        output = output or f"{self.prefix}v{next(self._numbers)}"
        self._needs_ml |= options.get("domain") == _ML
        self.nodes.append(self.onnx.helper.make_node(operator, names, [output, *unused], **options))
        return output

    def real(self, value: Any) -> Any:
        """A floating-point constant."""
        return np.asarray(value, dtype=np.float64)

    def loop(self, most: int, start: str, body: Callable[[str], tuple[str, str]]) -> str:
        """The last state of a loop.

        `body` adds the operators of one round, and returns whether to go on and the new state, from the state
        before; it may use values from outside. There are at most `most` rounds.
        """
        helper, number = self.onnx.helper, next(self._numbers)
        around, self.nodes = self.nodes, []
        names = [f"{self.prefix}{what}{number}" for what in ("round", "going", "state")]
        # The outputs of a body must be its own.
        going, state = (self.add("Identity", found) for found in body(names[2]))
        real = helper.np_dtype_to_tensor_dtype(self.dtype)
        kinds = [self.onnx.TensorProto.INT64, self.onnx.TensorProto.BOOL, real]
        shapes: list[list[int] | None] = [[], [], None]
        inputs = [
            helper.make_tensor_value_info(name, kind, shape)
            for name, kind, shape in zip(names, kinds, shapes, strict=True)
        ]
        outputs = [
            helper.make_tensor_value_info(going, self.onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info(state, real, None),
        ]
        inner = helper.make_graph(self.nodes, f"{self.prefix}loop{number}", inputs, outputs)
        self.nodes = around
        return self.add("Loop", np.array(most), np.array(True), start, body=inner)

    def column(self, name: str, *, text: bool) -> str:
        """An input of one column, of numbers or of texts, which takes the place of ``X``."""
        helper = self.onnx.helper
        kind = self.onnx.TensorProto.STRING if text else helper.np_dtype_to_tensor_dtype(self.dtype)
        if name in self.inputs and self.inputs[name].type.tensor_type.elem_type != kind:
            raise ValueError(
                f"The column {name!r} is used as text and as a number, and an input of an ONNX graph has one "
                "type: give the model a copy of the column."
            )
        self.inputs[name] = helper.make_tensor_value_info(name, kind, ["n_samples", 1])
        return name

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
        inputs = list(self.inputs.values()) or [X]
        same = set(self.inputs) & {output.name for output in self.outputs}
        if same:
            raise ValueError(f"The column {min(same)!r} has the name of an output of the graph: rename it.")
        graph = helper.make_graph(self.nodes, "maxmargin", inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", _OPSET)]
        if self._needs_ml:
            opsets.append(helper.make_opsetid(_ML, _ML_OPSET))
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="maxmargin",
            producer_version=__version__,
        )  # fmt: skip
        self.onnx.checker.check_model(model)
        return model
