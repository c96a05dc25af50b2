"""How a fused loop carries a value: as a scalar, as a vector, or in a buffer that iterations update in place.

Scalars and vectors are values of the program: whatever an iteration reads of them is what the previous iteration
returned, also when carries swap. A buffer has one address in memory. An iteration may return it only after
writing into it, else IREE's compiler refuses the loop.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from math import prod
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.mlir import ir
from hloforge.dialect.values import Value
from hloforge.pipelines.framework import builders

# The longest vector that a loop carries, its elements widened to 32 bits. IREE keeps long ones on its stack, on any
# processor.
VECTOR_BYTES = 4096
# The largest buffer that every iteration overwrites, in elements. What is written into it is a vector in IREE's code,
# and as many numbers of 16 bits are the longest one (``loop_cost.VECTOR_BYTES``).
REWRITTEN_ELEMENTS = 4096
# Operations that change a part of their first operand, and that IREE runs in its buffer.
_IN_PLACE = frozenset({"stablehlo.dynamic_update_slice", "stablehlo.scatter"})
# Operations whose result may be a view of an operand.
_VIEWS = frozenset(
    {
        "stablehlo.bitcast_convert",
        "stablehlo.broadcast_in_dim",
        "stablehlo.dynamic_slice",
        "stablehlo.dynamic_update_slice",
        "stablehlo.optimization_barrier",
        "stablehlo.reshape",
        "stablehlo.scatter",
        "stablehlo.slice",
        "stablehlo.transpose",
        "stablehlo.while",
    }
)
# IREE emulates bf16 operation by operation outside of loops, and misses conversions inside.
ELEMENTS = frozenset({"pred", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "f32", "f64"})


class Form(enum.Enum):
    """Where the value lives between iterations."""

    SCALAR = "scalar"
    VECTOR = "vector"
    UPDATED = "a buffer of which an iteration updates a part"
    REWRITTEN = "a buffer that an iteration overwrites"


@dataclass(frozen=True)
class Carry:
    """A value that a loop carries.

    Attributes:
        type: its static tensor type in StableHLO.
        form: where it lives.
    """

    type: Any
    form: Form

    @property
    def dims(self) -> list[int]:
        return [int(size) for size in self.type.shape]

    @property
    def size(self) -> int:
        return prod(self.dims)

    @property
    def is_buffer(self) -> bool:
        return self.form in (Form.UPDATED, Form.REWRITTEN)

    @property
    def _element(self) -> ElementType:
        return element_type(self.type.element_type)

    @property
    def _bits(self) -> ElementType:
        """A signless type: code generators know no unsigned, few 16-bit floats, and no single flag in memory."""
        row = self._element
        if row.kind is Kind.PRED:
            return element_type("s8")
        if row.kind is Kind.UNSIGNED or (row.is_float and row.bits == 16 and not self.is_buffer):
            return element_type(f"s{row.bits}")
        return row

    @property
    def carried_type(self) -> Any:
        """The type of the loop's own value."""
        element = ir.Type.parse(self._bits.mlir)
        if self.form is Form.SCALAR:
            return element
        if self.form is Form.VECTOR:
            return ir.VectorType.get([self.size], element)
        return ir.RankedTensorType.get(self.dims, element)

    @property
    def stored_type(self) -> Any:
        """The type of the result that a dispatch stores."""
        carried = self.carried_type
        if self.form is Form.SCALAR:
            return ir.RankedTensorType.get([1], carried)
        return ir.RankedTensorType.get([self.size], carried.element_type) if self.form is Form.VECTOR else carried

    def pack(self, value: Value) -> Value:
        """The array in the shape and element type of the loop's own value."""
        bits = self.bits_of(value)
        if self.is_buffer:
            return bits
        return ops.reshape(bits, [] if self.form is Form.SCALAR else [self.size])

    def bits_of(self, value: Value) -> Value:
        """An array of the carry's element type in the element type of the loop's own value."""
        if self._bits is self._element:
            return value
        if self._element.kind is Kind.PRED:
            return ops.convert_element_type(value, self._bits)
        return ops.bitcast_convert_type(value, self._bits)

    def unpack(self, packed: Value) -> Value:
        """The array of which ``pack``, or a dispatch's result, has the contents."""
        value = ops.reshape(packed, self.dims)
        if self._element.kind is Kind.PRED and self._bits is not self._element:
            return ops.convert_element_type(value, self._element)
        return value if self._bits is self._element else ops.bitcast_convert_type(value, self._element)

    def enter(self, value: Value) -> Any:
        """From an array to a scalar or vector; of buffers, the packed array."""
        packed = self.pack(value).ir
        if self.form is Form.SCALAR:
            return builders.element_of(packed)
        if self.form is Form.VECTOR:
            return builders.read_vector(packed, [builders.index(0)], self.size)
        return packed

    def enter_first(self, value: Value, zero: Any) -> Any:
        """``enter`` of what a loop begins with; ``zero`` is ``below.one_workgroup_zero``.

        IREE takes the reading of a number at a known position out of the dispatch: then the host waits for the number.
        """
        if self.form is not Form.SCALAR or _is_constant(value):
            return self.enter(value)
        array = ops.reshape(self.bits_of(value), [1]).ir
        return builders.only_element(builders.read_vector(array, [zero], 1))

    def leave(self, carried: Any) -> Value:
        """From the loop's own value to the array."""
        if self.form is Form.SCALAR:
            carried = builders.scalar_tensor(carried)
        elif self.form is Form.VECTOR:
            carried = builders.write_vector(carried, builders.empty(self.stored_type), [builders.index(0)])
        return self.unpack(Value(carried))

    def store(self, carried: Any, zero: Any) -> Any:
        """From the loop's own value to what the dispatch stores; ``zero`` is ``below.one_workgroup_zero``."""
        if self.form is Form.SCALAR:
            carried = builders.full_vector(carried, 1)
        if self.is_buffer:
            return carried
        return builders.write_vector(carried, builders.empty(self.stored_type), [zero])


def _is_constant(value: Value) -> bool:
    owner = value.ir.owner
    return not isinstance(owner, ir.Block) and bool(owner.operation.name == "stablehlo.constant")


def carry_of(loop: ir.Operation, number: int) -> Carry | None:
    """The form of a carry of a ``stablehlo.while``; None if a fused loop cannot carry it."""
    type_ = loop.operands[number].type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    row = _carried_element(type_)
    size = prod(int(n) for n in type_.shape)
    if row is None or not size:
        return None
    # IREE stores flags as bytes, and forgets it for those that it has in registers.
    if size == 1 and row.kind is not Kind.PRED:
        return Carry(type_, Form.SCALAR)
    if size * max(32, row.bits) <= VECTOR_BYTES * 8:
        return Carry(type_, Form.VECTOR)
    body = loop.regions[1].blocks[0]
    returned = list(body.operations)[-1].operation.operands[number]
    if row.kind is not Kind.PRED and updates(returned, body.arguments[number]):
        return Carry(type_, Form.UPDATED)
    if size <= REWRITTEN_ELEMENTS and _is_fresh(returned, body):
        return Carry(type_, Form.REWRITTEN)
    return None


def _carried_element(type_: ir.RankedTensorType) -> ElementType | None:
    try:
        row = element_type(type_.element_type)
    except ValueError:
        return None
    return row if row.name in ELEMENTS else None


def updates(value: Any, argument: Any) -> bool:
    """Whether a value is the argument with parts of it overwritten, one after the other."""
    while value != argument:
        if isinstance(value.owner, ir.Block):
            return False
        op = value.owner.operation
        if op.name in _IN_PLACE and len(op.results) == 1:
            value = op.operands[0]
        elif op.name == "stablehlo.while":
            number = list(op.results).index(value)
            carry = carry_of(op, number)
            if carry is None or carry.form is not Form.UPDATED:
                return False
            value = op.operands[number]
        else:
            return False
    return True


def _is_fresh(value: Any, body: Any) -> bool:
    """Whether a value is computed in the body, and is no part of something else."""
    if isinstance(value.owner, ir.Block):
        return False
    op = value.owner.operation
    if op.block != body:
        return False
    if op.name in ("stablehlo.reshape", "stablehlo.bitcast_convert"):
        return _is_fresh(op.operands[0], body)
    return op.name not in _VIEWS
