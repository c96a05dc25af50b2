"""Models written with the schema package, byte by byte, without TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite
from flatbuffers import flexbuffers

F32, S32, S8, STRING = tflite.TensorType.FLOAT32, tflite.TensorType.INT32, tflite.TensorType.INT8, 5


@dataclass
class T:
    """A tensor: -1 for a size that comes with the call; ``scale`` quantizes along ``axis``; a variable is a state."""

    name: str
    sizes: Sequence[int]
    kind: int = F32
    data: Any = None
    scale: Sequence[float] = ()
    zero: Sequence[int] = ()
    axis: int = 0
    variable: bool = False


@dataclass
class Op:
    """An operator with the scalar fields of its options, by the names of the schema's functions that add them."""

    name: str
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    custom: str = ""
    said: dict[str, Any] = field(default_factory=dict)


def model(tensors: Sequence[T], operators: Sequence[Op], inputs: Sequence[int], outputs: Sequence[int]) -> bytes:
    """The bytes of a model of one graph."""
    b = flatbuffers.Builder(1024)
    buffers, tables = [_table(b, "Buffer")], []
    for tensor in tensors:
        number = 0
        if tensor.data is not None:
            number = len(buffers)
            buffers.append(
                _table(b, "Buffer", Data=b.CreateNumpyVector(np.frombuffer(tensor.data.tobytes(), np.uint8)))
            )
        tables.append(_tensor(b, tensor, number))
    codes, ops = [], []
    for number, op in enumerate(operators):
        code = getattr(tflite.BuiltinOperator, op.name)
        custom = {"CustomCode": b.CreateString(op.custom)} if op.custom else {}
        codes.append(_table(b, "OperatorCode", DeprecatedBuiltinCode=min(code, 127), BuiltinCode=code, **custom))
        extra = {}
        if op.options:
            kind = getattr(tflite.BuiltinOptions, op.options)
            extra = {"BuiltinOptionsType": kind, "BuiltinOptions": _table(b, op.options, **op.fields)}
        if op.said:
            extra["CustomOptions"] = b.CreateNumpyVector(np.frombuffer(flexbuffers.Dumps(op.said), np.uint8))
        ops.append(
            _table(b, "Operator", OpcodeIndex=number, Inputs=_ints(b, op.inputs), Outputs=_ints(b, op.outputs), **extra)
        )
    graph = _table(
        b,
        "SubGraph",
        Tensors=_offsets(b, tables),
        Inputs=_ints(b, inputs),
        Outputs=_ints(b, outputs),
        Operators=_offsets(b, ops),
        Name=b.CreateString("main"),
    )
    lists = {"OperatorCodes": _offsets(b, codes), "Subgraphs": _offsets(b, [graph]), "Buffers": _offsets(b, buffers)}
    b.Finish(_table(b, "Model", Version=3, **lists), b"TFL3")
    return bytes(b.Output())


def _tensor(b: Any, tensor: T, buffer: int) -> int:
    extra: dict[str, Any] = {}
    if -1 in tensor.sizes:
        extra["ShapeSignature"] = _ints(b, tensor.sizes)
    if tensor.scale:
        scale = b.CreateNumpyVector(np.array(tensor.scale, np.float32))
        zero = b.CreateNumpyVector(np.array(tensor.zero or [0] * len(tensor.scale), np.int64))
        extra["Quantization"] = _table(
            b, "QuantizationParameters", Scale=scale, ZeroPoint=zero, QuantizedDimension=tensor.axis
        )
    shape = _ints(b, [max(size, 1) for size in tensor.sizes])
    name = b.CreateString(tensor.name)
    return _table(
        b,
        "Tensor",
        Shape=shape,
        Type=tensor.kind,
        Buffer=buffer,
        Name=name,
        HasRank=True,
        IsVariable=tensor.variable,
        **extra,
    )


def _table(b: Any, name: str, **fields: Any) -> int:
    module = getattr(tflite, name) if not hasattr(tflite, f"{name}Start") else tflite
    getattr(module, f"{name}Start")(b)
    for key, value in fields.items():
        getattr(module, f"{name}Add{key}")(b, value)
    return int(getattr(module, f"{name}End")(b))


def _ints(b: Any, numbers: Sequence[int]) -> int:
    return int(b.CreateNumpyVector(np.array(numbers, np.int32)))


def _offsets(b: Any, tables: Sequence[int]) -> int:
    b.StartVector(4, len(tables), 4)
    for table in reversed(tables):
        b.PrependUOffsetTRelative(table)
    return int(b.EndVector())
