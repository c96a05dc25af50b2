"""Count the arithmetic, transcendental functions and bytes of operations.

The counts are those of XLA's ``HloCostAnalysis``, so that they compare with ``cost_analysis()`` of JAX: two for a
multiplication with its addition, one for each element of an elementwise operation, transcendental functions apart. They
say what the program asks for, not how it is computed: a product by any algorithm counts the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2, prod
from typing import Any

from hloforge.dialect import traits
from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.operations import integers
from hloforge.dialect.shapes import Shape

_FUSED = 2  # a multiplication with its addition
_COMPLEX = 4  # such of a complex product

# Elements of these are functions that take a processor many steps each.
TRANSCENDENTAL = traits.TRANSCENDENTAL | frozenset(
    "chlo." + name
    for name in (
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh", "tan", "erf", "erf_inv", "erfc"),
        *("lgamma", "digamma", "polygamma", "zeta", "bessel_i1e"),
    )
)
# Elementwise in StableHLO's classification, one for each element.
ARITHMETIC = traits.of_kind(traits.Kind.ELEMENTWISE) - TRANSCENDENTAL - {"stablehlo.bitcast_convert"}
# No operation at all: their memory is another value's, or nobody's.
_FREE = frozenset(
    "stablehlo." + name
    for name in (
        *("constant", "reshape", "bitcast_convert", "tuple", "get_tuple_element", "optimization_barrier"),
        *("after_all", "create_token", "while", "if", "case", "composite", "return", "get_dimension_size"),
    )
) | {"func.return", "func.call", "func.func"}
# A batch normalization takes so many steps an element; XLA counts none, because it takes them apart before it counts.
_STEPS_OF_NORMALIZATION = {
    "stablehlo.batch_norm_inference": 4,
    "stablehlo.batch_norm_training": 7,
    "stablehlo.batch_norm_grad": 11,
}


@dataclass(frozen=True)
class Cost:
    """Counts of one execution.

    Attributes:
        flops: arithmetic of any element type.
        transcendentals: elements of transcendental functions, which are not among ``flops``.
        bytes: read and written, each operand and result once.
    """

    flops: float = 0
    transcendentals: float = 0
    bytes: float = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.flops + other.flops, self.transcendentals + other.transcendentals, self.bytes + other.bytes)

    def times(self, factor: float) -> Cost:
        """So many executions, or so large a part of one."""
        return Cost(factor * self.flops, factor * self.transcendentals, factor * self.bytes)


def cost_of(op: AnyOp) -> Cost:
    """The counts of one StableHLO operation; of a loop or branch none, for what it contains is counted by itself.

    Sizes that only a call knows count as one.
    """
    flops, transcendentals = _work(op.operation)
    reads, writes = traffic(op.operation)
    return Cost(flops, transcendentals, sum(reads) + sum(writes))


def traffic(op: AnyOp) -> tuple[list[float], list[float]]:
    """The bytes that an operation reads of each operand and writes of each result."""
    operands = [byte_count(value.type) for value in op.operands]
    results = [byte_count(value.type) for value in op.results]
    if op.name in _FREE or not op.name.startswith(("stablehlo.", "chlo.", "mhlo.")):
        return [0.0] * len(operands), [0.0] * len(results)
    name = op.name.partition(".")[2]
    if name in ("slice", "dynamic_slice", "real_dynamic_slice", "gather", "dynamic_gather"):
        # Of what is sliced no more is read than comes out.
        return [min(operands[0], results[0]), *operands[1:]], results
    if name == "dynamic_update_slice":
        # The rest of the array stays where it is.
        return [0.0, *operands[1:]], [operands[1]]
    if name == "scatter":
        arrays = len(results)
        updates = operands[arrays + 1 :]
        return [*updates, *operands[arrays:]], updates
    if name in ("cholesky", "triangular_solve"):
        # Of a triangle one half is read; of the other operand all.
        halves = [operands[0] / 2, *operands[1:]]
        return halves, [results[0] / 2] if name == "cholesky" else results
    return operands, results


def byte_count(type_: Any) -> float:
    """Bytes of a tensor's elements; 0 of anything else."""
    try:
        shape = Shape.of_type(type_)
    except ValueError:
        return 0
    return sum(map(_shape_bytes, shape.leaves()))


def _shape_bytes(shape: Shape) -> float:
    if shape.element is None:
        return 0
    return ceil(prod(1 if size < 0 else size for size in shape.dimensions) * shape.element.bits / 8)


def _work(op: AnyOp) -> tuple[float, float]:
    """Arithmetic and transcendental functions."""
    if op.name in TRANSCENDENTAL:
        return 0, _elements(op.results[0])
    if op.name in ARITHMETIC:
        return _elements(op.results[0]), 0
    if op.name in _STEPS_OF_NORMALIZATION:
        return _STEPS_OF_NORMALIZATION[op.name] * _elements(op.operands[0]), 0
    rule = _RULES.get(op.name.partition(".")[2])
    return rule(op) if rule is not None and op.name.startswith("stablehlo.") else (0, 0)


def _elements(value: Any) -> int:
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType):
        return 0
    return prod(1 if type_.is_dynamic_dim(d) else int(type_.get_dim_size(d)) for d in range(type_.rank))


def _sizes(value: Any) -> list[int]:
    return [max(1, int(size)) for size in value.type.shape]


def _body(op: AnyOp, number: int = 0) -> tuple[float, float]:
    """What one application of a computation over scalars takes."""
    found = [_work(inner.operation) for block in op.regions[number].blocks for inner in block.operations]
    return sum(flops for flops, _ in found), sum(functions for _, functions in found)


def _applied(body: tuple[float, float], times: float) -> tuple[float, float]:
    return body[0] * max(0, times), body[1] * max(0, times)


def _dot_general(op: AnyOp) -> tuple[float, float]:
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    sizes = _sizes(op.operands[0])
    return _FUSED * _elements(op.results[0]) * prod(sizes[d] for d in numbers.lhs_contracting_dimensions), 0


def _dot(op: AnyOp) -> tuple[float, float]:
    return _FUSED * _elements(op.results[0]) * _sizes(op.operands[0])[-1], 0


def _convolution(op: AnyOp) -> tuple[float, float]:
    """Products with the padding and with the zeros of dilation are not counted."""
    numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
    image, kernel, result = (_sizes(value) for value in (op.operands[0], op.operands[1], op.results[0]))
    inputs, outputs = numbers.input_spatial_dimensions, numbers.output_spatial_dimensions
    kernels = numbers.kernel_spatial_dimensions
    rank = len(inputs)
    strides = integers(op, "window_strides") or [1] * rank
    padding = integers(op, "padding") or [0] * (2 * rank)
    spread = integers(op, "lhs_dilation") or [1] * rank
    holes = integers(op, "rhs_dilation") or [1] * rank
    positions = 1
    for axis in range(rank):
        positions *= _positions(
            image[inputs[axis]],
            kernel[kernels[axis]],
            result[outputs[axis]],
            (strides[axis], padding[2 * axis], spread[axis], holes[axis]),
        )
    groups = ir.IntegerAttr(op.attributes["batch_group_count"]).value
    # The kernel holds the features of one group already.
    features = kernel[numbers.kernel_input_feature_dimension] * kernel[numbers.kernel_output_feature_dimension]
    return _FUSED * features * (image[numbers.input_batch_dimension] // groups) * positions, 0


def _positions(size: int, window: int, results: int, how: tuple[int, int, int, int]) -> int:
    """How many elements of an image all positions of a window meet along one axis."""
    stride, low, spread, holes = how
    found = 0
    for place in range(window):
        offset = place * holes - low
        # index = result * stride + offset has to lie on an element of the spread-out image.
        found += sum(
            1
            for index in range(offset, offset + results * stride, stride)
            if 0 <= index < size * spread and index % spread == 0
        )
    return found


def _reduce(op: AnyOp) -> tuple[float, float]:
    return _applied(_body(op), _elements(op.operands[0]) - _elements(op.results[0]))


def _reduce_window(op: AnyOp) -> tuple[float, float]:
    window = prod(integers(op, "window_dimensions"))
    return _applied(_body(op), (window - 1) * _elements(op.results[0]))


def _select_and_scatter(op: AnyOp) -> tuple[float, float]:
    window = prod(integers(op, "window_dimensions"))
    sources = _elements(op.operands[1])
    selected, scattered = _applied(_body(op, 0), (window - 1) * sources), _applied(_body(op, 1), sources)
    return selected[0] + scattered[0], selected[1] + scattered[1]


def _map(op: AnyOp) -> tuple[float, float]:
    return _applied(_body(op), _elements(op.results[0]))


def _scatter(op: AnyOp) -> tuple[float, float]:
    return _applied(_body(op), _elements(op.operands[len(op.results) + 1]))


def _sort(op: AnyOp) -> tuple[float, float]:
    count = _elements(op.operands[0])
    return count * ceil(log2(count)) if count > 1 else 0, 0


def _fft(op: AnyOp) -> tuple[float, float]:
    # The sum over the axes; XLA multiplies their logarithms, which is the same for one.
    steps = sum(int(log2(size)) for size in integers(op, "fft_length") if size > 1)
    return _FUSED * _COMPLEX * steps * _elements(op.operands[0]), 0


def _cholesky(op: AnyOp) -> tuple[float, float]:
    return _elements(op.operands[0]) * _sizes(op.operands[0])[-1] / 3, 0


def _triangular_solve(op: AnyOp) -> tuple[float, float]:
    return _FUSED * _sizes(op.operands[0])[-1] * _elements(op.operands[1]), 0


def _random(op: AnyOp) -> tuple[float, float]:
    return 0, sum(_elements(result) for result in op.results)


def _all_reduce(op: AnyOp) -> tuple[float, float]:
    return sum(_elements(result) for result in op.results), 0


_RULES: dict[str, Callable[[Any], tuple[float, float]]] = {
    "all_reduce": _all_reduce,
    "cholesky": _cholesky,
    "convolution": _convolution,
    "dot": _dot,
    "dot_general": _dot_general,
    "fft": _fft,
    "map": _map,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "rng": _random,
    "rng_bit_generator": _random,
    "scatter": _scatter,
    "select_and_scatter": _select_and_scatter,
    "sort": _sort,
    "triangular_solve": _triangular_solve,
}


# Their regions are computations over scalars, which their own counts contain.
COUNTED_WITH_REGIONS = frozenset(f"stablehlo.{name}" for name in (*_RULES, "reduce_scatter", "custom_call"))
