"""Computing nodes whose inputs are known, with numpy: the chains of Shape, Gather, Concat … that lead to sizes.

ONNX's reference evaluator is asked for one node at a time, which knows every version of every operator. Nodes that are
large or of narrow element types become operations of the program instead, which IREE folds when it compiles.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from hloforge.importers.tensors import Array

# Shapes, indices, tables; a weight is larger.
_MOST_ELEMENTS = 1 << 16
_MOST_RESULTS = 1 << 22
# The elements of their inputs say how large their results are; of the last ones those of the first input, too.
_SIZE_FIRST = ("Window", "Matrix")
_BY_ELEMENTS = frozenset(
    {
        *("CenterCropPad", "Col2Im", "DFT", "Expand", "OneHot", "Pad", "Resize", "STFT", "Tile", "Upsample"),
        *("BlackmanWindow", "HammingWindow", "HannWindow", "MelWeightMatrix"),
    }
)
_MOST_RANK = 64
# Their results can be far larger than their inputs, are drawn again at each call, or are graphs of their own.
_EXCLUDED = frozenset(
    {
        *("Bernoulli", "ConstantOfShape", "Dropout", "EyeLike", "Identity", "If", "Loop", "Multinomial"),
        *("Optional", "OptionalGetElement", "OptionalHasElement", "RandomNormal", "RandomNormalLike", "RandomUniform"),
        *("RandomUniformLike", "Scan", "SequenceMap", "ImageDecoder"),
    }
)
# The evaluator knows these in later versions alone; what earlier ones and ONNX Runtime's own mean is the same.
_SINCE = {"DequantizeLinear": 21}


def fold(proto: Any, version: int, inputs: Sequence[Any]) -> list[Array] | None:
    """The outputs of a node, as numpy computes them; None if it is to become a part of the program."""
    given = [tensor for tensor in inputs if tensor is not None]
    if not given or proto.op_type in _EXCLUDED or not all(map(_is_small, given)):
        return None
    # Products multiply the bytes themselves.
    if proto.op_type == "DequantizeLinear" and given[0].size > 1 and given[0].dtype.itemsize == 1:
        return None
    if _most_elements(proto.op_type, given) > _MOST_RESULTS:
        return None
    if any(attribute.ref_attr_name or attribute.HasField("g") for attribute in proto.attribute):
        return None
    try:
        results = evaluate(proto, version, inputs)
    except Exception:
        # An operator or a type that the evaluator lacks: the operator's own function decides what is wrong.
        return None
    if not all(isinstance(result, np.ndarray | np.generic) for result in results):
        return None
    return [np.asarray(result) for result in results]


def _most_elements(name: str, given: Sequence[Array]) -> float:
    """How many elements a result may have, or more: a few bytes can ask for any number."""
    first, *others = given
    if name == "Range" and len(given) == 3 and all(tensor.dtype.kind in "iuf" for tensor in given):
        start, limit, step = (float(tensor.reshape(-1)[0]) if tensor.size else 0.0 for tensor in given)
        return abs(limit - start) / abs(step) if step else math.inf
    if name in _BY_ELEMENTS:
        sizes = given if name.endswith(_SIZE_FIRST) else others
        numbers = [
            number for tensor in sizes if tensor.dtype.kind in "iuf" for number in tensor.reshape(-1)[:_MOST_RANK]
        ]
        return math.prod((1 + abs(float(number)) for number in numbers), start=float(max(first.size, 1)))
    if name.startswith("Gather"):
        return math.prod(float(tensor.size) for tensor in given)
    try:
        return math.prod(np.broadcast_shapes(*(tensor.shape for tensor in given)))
    except ValueError:
        return math.prod(float(max(tensor.size, 1)) for tensor in given if tensor.ndim > 1)


def _is_small(tensor: Any) -> bool:
    return (
        isinstance(tensor, np.ndarray)
        and tensor.size <= _MOST_ELEMENTS
        and (tensor.dtype.kind in "biufOSU" or tensor.dtype == ml_dtypes.bfloat16)
    )


def evaluate(proto: Any, version: int, inputs: Sequence[Any]) -> list[Any]:
    """The outputs of a node by ONNX's reference evaluator."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    if since := _SINCE.get(proto.op_type):
        proto, version = _of_onnx(proto), max(version, since)
    names = [name for name in proto.input if name]
    graph = onnx.helper.make_graph(
        [proto],
        "node",
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in dict.fromkeys(names)],
        [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in proto.output if name],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(proto.domain, version)])
    feeds = {name: tensor for name, tensor in zip(proto.input, inputs, strict=False) if name}
    with np.errstate(all="ignore"):
        computed = list(ReferenceEvaluator(model).run(None, feeds))
    results = iter(computed)
    return [next(results) if name else np.zeros(0) for name in proto.output]


def _of_onnx(proto: Any) -> Any:
    """A node without its domain."""
    copy = type(proto)()
    copy.CopyFrom(proto)
    copy.domain = ""
    return copy
