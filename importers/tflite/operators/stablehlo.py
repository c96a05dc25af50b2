"""StableHLO's operators in a flatbuffer: each is one of our operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Value
from hloforge.importers.tensors import cast, lift, window
from hloforge.importers.tflite.node import Node
from hloforge.importers.tflite.registry import operator

_ELEMENTWISE: dict[str, Callable[..., Value]] = {
    "ABS": ops.abs,
    "ADD": ops.add,
    "AND": ops.and_,
    "CBRT": ops.cbrt,
    "CLAMP": ops.clamp,
    "COSINE": ops.cos,
    "DIVIDE": ops.div,
    "EXPONENTIAL": ops.exp,
    "FLOOR": ops.floor,
    "LOG": ops.log,
    "LOGISTIC": ops.logistic,
    "MAXIMUM": ops.max,
    "MINIMUM": ops.min,
    "MULTIPLY": ops.mul,
    "NEGATE": ops.neg,
    "OR": ops.or_,
    "POWER": ops.pow,
    "REMAINDER": ops.rem,
    "RSQRT": ops.rsqrt,
    "SELECT": ops.select,
    "SHIFT_LEFT": ops.shift_left,
    "SUBTRACT": ops.sub,
    "TANH": ops.tanh,
}
# Source: StablehloComparisonDirection, StablehloComparisonType, StablehloPrecisionConfig, RngAlgorithm of schema.fbs.
_DIRECTIONS = ("EQ", "NE", "GE", "GT", "LE", "LT")
_COMPARISONS = ("", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
_ALGORITHMS = ("DEFAULT", "PHILOX", "THREE_FRY")


@operator(*(f"STABLEHLO_{name}" for name in _ELEMENTWISE))
def elementwise(node: Node) -> Value:
    return _ELEMENTWISE[node.name.removeprefix("STABLEHLO_")](*_values(node))


def _values(node: Node) -> list[Value]:
    return [node.value(number) for number in range(node.count)]


def _sizes(node: Node, number: int = 0) -> list[int]:
    """The sizes of an output. Raises UnsupportedError if the file does not say them."""
    sizes = node.result(number).sizes
    if sizes is None or min(sizes, default=0) < 0:
        raise UnsupportedError(f"{node.name} with a result of dynamic sizes", hint="convert the model with fixed sizes")
    return list(sizes)


def _applied(node: Node, option: str) -> Callable[..., tuple[Value, ...]]:
    """A graph of the model as a computation."""
    graph = node.option(option, -1)
    return lambda *values: tuple(map(lift, node.run(graph, values)))


def _single(results: Any) -> Any:
    return list(results.elements) if hasattr(results, "elements") else results


@operator("STABLEHLO_COMPARE")
def compare(node: Node) -> Value:
    direction = _DIRECTIONS[node.option("ComparisonDirection")]
    return ops.compare(direction, node.value(0), node.value(1), _COMPARISONS[node.option("CompareType")])


@operator("STABLEHLO_CONVERT")
def convert(node: Node) -> Value:
    return cast(node.value(0), node.result().row)


@operator("STABLEHLO_RESHAPE")
def reshape(node: Node) -> Value:
    return ops.reshape(node.value(0), _sizes(node))


@operator("STABLEHLO_BROADCAST_IN_DIM")
def broadcast(node: Node) -> Value:
    return ops.broadcast_in_dim(node.value(0), _sizes(node), node.listed("BroadcastDimensions"))


@operator("STABLEHLO_CONCATENATE")
def concatenate(node: Node) -> Value:
    return ops.concat_in_dim(_values(node), node.option("Dimension"))


@operator("STABLEHLO_IOTA")
def iota(node: Node) -> Value:
    return ops.iota(node.result().row, _sizes(node), node.option("IotaDimension"))


@operator("STABLEHLO_TRANSPOSE")
def transpose(node: Node) -> Value:
    return ops.transpose(node.value(0), node.listed("Permutation"))


@operator("STABLEHLO_SLICE")
def slice_(node: Node) -> Value:
    return ops.slice(node.value(0), *(node.listed(name) for name in ("StartIndices", "LimitIndices", "Strides")))


@operator("STABLEHLO_DYNAMIC_SLICE", "STABLEHLO_DYNAMIC_UPDATE_SLICE")
def dynamic_slice(node: Node) -> Value:
    if node.name == "STABLEHLO_DYNAMIC_SLICE":
        x, *starts = _values(node)
        return ops.dynamic_slice(x, _scalars(starts), node.listed("SliceSizes"))
    x, update, *starts = _values(node)
    return ops.dynamic_update_slice(x, update, _scalars(starts))


def _scalars(starts: list[Value]) -> list[Value]:
    """Starts, which may be in one vector, as scalars."""
    if len(starts) == 1 and starts[0].rank == 1:
        vector = starts[0]
        return [ops.reshape(window(vector, 0, d, d + 1), []) for d in range(vector.dims[0])]
    return [ops.reshape(start, []) for start in starts]


@operator("STABLEHLO_PAD")
def pad(node: Node) -> Value:
    names = ("EdgePaddingLow", "EdgePaddingHigh", "InteriorPadding")
    widths = zip(*(node.listed(name) for name in names), strict=True)
    return ops.pad(node.value(0), ops.reshape(node.value(1), []), list(widths))


@operator("STABLEHLO_DOT_GENERAL")
def dot_general(node: Node) -> Value:
    layout = ops.DotDimensionNumbers(
        *(node.listed(f"{side}{kind}Dimensions") for kind in ("Contracting", "Batching") for side in ("Lhs", "Rhs"))
    )
    return ops.dot_general(node.value(0), node.value(1), layout, "HIGHEST", node.result().row)


@operator("STABLEHLO_CONVOLUTION")
def convolution(node: Node) -> Value:
    layout = ops.ConvolutionDimensionNumbers(
        node.option("InputBatchDimension"),
        node.option("InputFeatureDimension"),
        tuple(node.listed("InputSpatialDimensions")),
        node.option("KernelInputFeatureDimension"),
        node.option("KernelOutputFeatureDimension"),
        tuple(node.listed("KernelSpatialDimensions")),
        node.option("OutputBatchDimension"),
        node.option("OutputFeatureDimension"),
        tuple(node.listed("OutputSpatialDimensions")),
    )
    return ops.conv_with_general_padding(
        node.value(0),
        node.value(1),
        node.listed("WindowStrides"),
        _pairs(node.listed("Padding")) or [(0, 0)] * len(layout.input_spatial_dimensions),
        node.listed("LhsDilation"),
        node.listed("RhsDilation"),
        node.option("FeatureGroupCount", 1),
        node.option("BatchGroupCount", 1),
        layout,
        [bool(turn) for turn in node.listed("WindowReversal")],
        "HIGHEST",
        node.result().row,
    )


def _pairs(flat: list[int]) -> list[tuple[int, int]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


@operator("STABLEHLO_REDUCE")
def reduce(node: Node) -> Any:
    values = _values(node)
    half = len(values) // 2
    starts = [ops.reshape(start, []) for start in values[half:]]
    return _single(ops.reduce(values[:half], starts, _applied(node, "BodySubgraphIndex"), node.listed("Dimensions")))


@operator("STABLEHLO_REDUCE_WINDOW")
def reduce_window(node: Node) -> Any:
    values = _values(node)
    half = len(values) // 2
    return _single(
        ops.reduce_window(
            values[:half],
            [ops.reshape(start, []) for start in values[half:]],
            _applied(node, "BodySubgraphIndex"),
            node.listed("WindowDimensions"),
            node.listed("WindowStrides"),
            _pairs(node.listed("Padding")) or "VALID",
            node.listed("BaseDilations"),
            node.listed("WindowDilations"),
        )
    )


@operator("STABLEHLO_SORT")
def sort(node: Node) -> Any:
    compared = _applied(node, "ComparatorSubgraphIndex")
    return _single(
        ops.sort(
            _values(node), lambda *pair: compared(*pair)[0], node.option("Dimension"), bool(node.option("IsStable"))
        )
    )


@operator("STABLEHLO_GATHER")
def gather(node: Node) -> Value:
    layout = ops.GatherDimensionNumbers(
        node.listed("OffsetDims"),
        node.listed("CollapsedSliceDims"),
        node.listed("StartIndexMap"),
        node.option("IndexVectorDim"),
    )
    return ops.gather(node.value(0), node.value(1), layout, node.listed("SliceSizes"))


@operator("STABLEHLO_SCATTER")
def scatter(node: Node) -> Value:
    layout = ops.ScatterDimensionNumbers(
        node.listed("UpdateWindowDims"),
        node.listed("InsertedWindowDims"),
        node.listed("ScatterDimsToOperandDims"),
        node.option("IndexVectorDim"),
    )
    combined = _applied(node, "UpdateComputationSubgraphIndex")
    operand, places, updates = _values(node)
    return ops.scatter(operand, places, updates, lambda *pair: combined(*pair)[0], layout)


@operator("STABLEHLO_RNG_BIT_GENERATOR")
def random_bits(node: Node) -> Any:
    shape = Shape.array(node.result(1).row, *_sizes(node, 1))
    return _single(ops.rng_bit_generator(_ALGORITHMS[node.option("Algorithm")], node.value(0), shape))


@operator("STABLEHLO_CUSTOM_CALL")
def custom_call(node: Node) -> Any:
    target = node.option("CallTargetName", b"") or b""
    raise UnsupportedError(f"the custom call {target.decode('utf-8', 'replace')!r} is not imported")
