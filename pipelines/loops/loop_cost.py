"""Cost model of loop fusion: a loop gains if each of its operations is small and known to run well in one dispatch.

Measured on two cores of a Zen 3: outside of a dispatch, an operation or a few fused ones cost 1.3 µs per iteration
beside their work, and the iteration itself 2 µs. Inside, elementwise work runs as fast as outside (8 floats an
instruction), and a product of matrices at a half of its speed. What a loop may multiply follows from the processor's
model (``Machine``); what it may copy and what its code consists of are limits of IREE and of the time of compilation.
"""

from __future__ import annotations

from math import prod
from typing import Any

from hloforge.dialect.element_types import element_type
from hloforge.dialect.mlir import AnyOp, SSAValue, ir, stablehlo
from hloforge.dialect.traits import ELEMENTWISE, TRANSCENDENTAL
from hloforge.pipelines.framework.machine import AVX2, Machine
from hloforge.pipelines.loops.carries import ELEMENTS


def _stablehlo(names: str) -> frozenset[str]:
    return frozenset(f"stablehlo.{name}" for name in names.split())


# Work that IREE unrolls into vector instructions, each of the size of the whole operation: some twenty for an element.
_DEAR = (TRANSCENDENTAL - _stablehlo("rsqrt sqrt")) | _stablehlo("count_leading_zeros popcnt")
# The same, with one or a few. Complex numbers are not among ``ELEMENTS``.
_CHEAP = (ELEMENTWISE - _DEAR - _stablehlo("bitcast_convert complex imag real")) | _stablehlo(
    "broadcast_in_dim concatenate iota pad reduce reverse transpose"
)
# Operations that copy a part of an array, and the operand or result (-1) whose elements they copy.
_COPIES = {
    "stablehlo.dynamic_slice": -1,
    "stablehlo.dynamic_update_slice": 1,
    "stablehlo.gather": -1,
    "stablehlo.scatter": 2,
    "stablehlo.slice": -1,
}
_FREE = _stablehlo("bitcast_convert constant optimization_barrier reshape return")
_WITH_COMPUTATION = _stablehlo("reduce scatter")
LOOP, PRODUCT = "stablehlo.while", "stablehlo.dot_general"

# IREE refuses vectors of 16 KiB on any processor.
VECTOR_BYTES = 8192
# The largest copy of an iteration, in elements. IREE keeps copies on its stack, where 32 KiB are allowed on any
# processor: a slice of 8192 floats does not compile, and one of 2048 numbers of 64 bits does.
_COPIED = 2048
# Multiplications of the largest product, by those of a further dispatch. IREE makes 10 to 20 of them in a nanosecond
# inside, if a row of an operand becomes a row of the result, and 1 if every row is summed. Outside, a vector times a
# matrix runs at 3.
_MULTIPLIED, _MULTIPLIED_BY_FEW, _SUMMED_ALONG_ROWS = 1 / 2, 4, 1 / 16
_FEW_ROWS = 4
# An array that a loop updates is copied once, to the position of the result: in the time of so many dispatches, if its
# elements have 32 bits.
_UPDATED = 64
# Vector instructions of all iterations' code together, which bounds the time of compilation (a second for so many).
# They are counted as of AVX2 for every processor: wider registers would allow more, which was not tried.
_INSTRUCTIONS = 1 << 14
_DEAR_INSTRUCTIONS = 20
# A gather makes a branch for each element.
_GATHER_INSTRUCTIONS = 32
_REGISTER_BYTES = AVX2.vector_bytes
# The elements of a row that IREE makes vectors of: a register of f32.
_ROW = _REGISTER_BYTES // 4


def gains_by_fusion(loop: ir.Operation, machine: Machine) -> bool:
    """Whether every operation of a ``stablehlo.while`` is one that a fused loop may hold, and small."""
    inside = _inner(loop)
    carried = max((_elements(value) for value in loop.operands), default=0)
    if carried * 4 > _UPDATED * machine.dispatch_bytes or not all(_fits(op, machine) for op in inside):
        return False
    return sum(map(_instructions, inside)) <= _INSTRUCTIONS


def _inner(op: ir.Operation) -> list[ir.Operation]:
    """The operations in an operation's regions, without the computations of reductions."""
    found: list[Any] = []
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                found.append(inner.operation)
                if inner.operation.name not in _WITH_COMPUTATION:
                    found += _inner(inner.operation)
    return found


def _fits(op: ir.Operation, machine: Machine) -> bool:
    if not all(map(_is_known_array, (*op.operands, *op.results))):
        return False
    if op.name in _COPIES:
        return _elements(_copied(op)) <= _COPIED
    if op.name == PRODUCT:
        is_small = multiplications(op) <= _most(op) * machine.dispatch_work
        return is_small and (vector_bytes(op) <= longest_vector(op) or can_split(op))
    if op.name in _CHEAP or op.name in _DEAR:
        return vector_bytes(op) <= VECTOR_BYTES
    return op.name == LOOP or op.name in _FREE


def _copied(op: AnyOp) -> Any:
    number = _COPIES[op.name]
    return op.results[0] if number < 0 else op.operands[number]


def _instructions(op: AnyOp) -> int:
    if op.name == "stablehlo.gather":
        return _GATHER_INSTRUCTIONS * _elements(op.results[0])
    if op.name not in _CHEAP and op.name not in _DEAR and op.name != PRODUCT:
        return 1
    size = min(vector_bytes(op), longest_vector(op))
    if op.name == "stablehlo.transpose" or (op.name == PRODUCT and not _makes_rows(op)):
        return 1 + size // _bytes(op.results[0])
    vectors = 1 + size // _REGISTER_BYTES
    return vectors * _DEAR_INSTRUCTIONS if op.name in _DEAR else vectors


def longest_vector(op: AnyOp) -> int:
    """The bytes of a vector from which an operation is not made in one piece."""
    return VECTOR_BYTES // 4 if op.name == PRODUCT and not _makes_rows(op) else VECTOR_BYTES


def vector_bytes(op: AnyOp) -> int:
    """The size of the vector that IREE makes of an operation: all the elements that it combines."""
    if op.name == PRODUCT:
        return multiplications(op) * _bytes(op.results[0])
    values = [*op.operands, *op.results] if op.name == "stablehlo.reduce" else list(op.results)
    return max((_elements(value) * max(map(_bytes, (*op.operands, value))) for value in values), default=0)


def _most(product: Any) -> float:
    """The multiplications that a product may have in a fused loop, by those of a further dispatch."""
    depth = multiplications(product) // _elements(product.results[0])
    if not any(
        _has_rows(operand, side, product) for operand, side in zip(product.operands, ("lhs", "rhs"), strict=True)
    ):
        return _SUMMED_ALONG_ROWS
    few = min(_elements(operand) for operand in product.operands) <= _FEW_ROWS * depth
    return _MULTIPLIED_BY_FEW if few else _MULTIPLIED


def _makes_rows(product: Any) -> bool:
    """Whether rows of an operand become rows of the result, so that vectors need no transposition."""
    sides = zip(product.operands, ("lhs", "rhs"), strict=True)
    return any(_has_rows(operand, side, product) for operand, side in sides)


def _has_rows(operand: Any, side: str, product: Any) -> bool:
    """Whether the last dimension of an operand is one of the result, and long enough for a vector."""
    sizes = operand.type.shape
    numbers = product.attributes["dot_dimension_numbers"]
    taken = {*_numbers(numbers, f"{side}_contracting_dimensions"), *_numbers(numbers, f"{side}_batching_dimensions")}
    return bool(sizes) and len(sizes) - 1 not in taken and int(sizes[-1]) >= _ROW


def multiplications(product: Any) -> int:
    """The multiplications of a ``dot_general``."""
    numbers = product.attributes["dot_dimension_numbers"]
    sizes = product.operands[0].type.shape
    contracted = prod(int(sizes[int(n)]) for n in _numbers(numbers, "lhs_contracting_dimensions"))
    return _elements(product.results[0]) * contracted


def _numbers(dimension_numbers: Any, name: str) -> list[int]:
    return [int(n) for n in getattr(stablehlo.DotDimensionNumbers(dimension_numbers), name)]


def can_split(product: Any) -> bool:
    """Whether a ``dot_general`` can be summed part by part: along one dimension, exactly as wide as its result."""
    numbers = product.attributes["dot_dimension_numbers"]
    element = element_type(product.results[0].type.element_type)
    return (
        len(_numbers(numbers, "lhs_contracting_dimensions")) == 1
        and _elements(product.results[0]) * _bytes(product.results[0]) * 2 <= longest_vector(product)
        and not (element.is_float and element.bits < 32)
    )


def _is_known_array(value: SSAValue) -> bool:
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape or not _elements(value):
        return False
    try:
        return element_type(type_.element_type).name in ELEMENTS
    except ValueError:
        return False


def _elements(value: Any) -> int:
    if not isinstance(value.type, ir.RankedTensorType) or not value.type.has_static_shape:
        return 0
    return prod(int(size) for size in value.type.shape)


def _bytes(value: SSAValue) -> int:
    return max(1, element_type(value.type.element_type).bits // 8)
