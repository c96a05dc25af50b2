"""Elementwise StableHLO over a whole array, evaluated a vector at a time by a dispatch of our own.

The array is seen as ``[outer, middle, inner]``, its elements in their order. It may be computed, in cheap arithmetic,
from arrays of as many elements, from vectors along the inner dimension, and from single numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.optimize import scalar_code as code
from hloforge.pipelines.optimize.below import create, full_vector, index, read_vector
from hloforge.pipelines.optimize.number_code import constant_number, has_code, on_numbers

# Arithmetic that is cheaper than reading its operands.
_CHEAP_NAMES = """
abs add and bitcast_convert divide maximum minimum multiply negate not or shift_left shift_right_arithmetic
shift_right_logical subtract xor
"""
_CHEAP = frozenset(_CHEAP_NAMES.split())
# Conversions that widen, also from types that are converted as they are read.
_EXTENSIONS = {
    **{(source, "f32"): "arith.extf" for source in ("bf16", "f16")},
    **{(source, "f64"): "arith.extf" for source in ("bf16", "f16", "f32")},
    **{(source, "s32"): "arith.extsi" for source in ("s8", "s16")},
    **{(source, "s64"): "arith.extsi" for source in ("s8", "s16", "s32")},
}
VECTOR_TYPES = ("f32", "f64", "s32", "s64")
# What vectors are read of: signless numbers.
_READ = frozenset((*VECTOR_TYPES, *(source for source, _ in _EXTENSIONS)))
# An expression of more is left to IREE.
_MOST_OPERATIONS = 24
# Operations whose results lie in memory anyway; IREE computes others on the way to where they are read.
_STORED_NAMES = """
case convolution custom_call dot_general dynamic_update_slice gather if optimization_barrier reduce reduce_window
rng_bit_generator scatter sort while
"""
_STORED = frozenset(f"stablehlo.{name}" for name in _STORED_NAMES.split())


@dataclass
class Expression:
    """What an array is computed from.

    Attributes:
        root: the array.
        dims: outer, middle and inner.
        arrays: of as many elements.
        vectors: of ``inner`` elements.
        scalars: of one element.
    """

    root: Any
    dims: tuple[int, int, int]
    arrays: list[Any] = field(default_factory=list)
    vectors: list[Any] = field(default_factory=list)
    scalars: list[Any] = field(default_factory=list)
    _computed: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, array: Value, dims: tuple[int, int, int]) -> Expression | None:
        """The expression of an array; None if its dispatch would need an array that is stored for it alone."""
        found = cls(array.ir, dims)
        found._add(array.ir)
        is_read = all(is_stored(array) and Value(array).element_type.name in _READ for array in found.arrays)
        return found if is_read and found.arrays else None

    @property
    def operands(self) -> list[Any]:
        """What a dispatch is given: arrays ``[outer, middle, inner]``, vectors ``[inner]`` and scalars ``[1]``."""
        shapes = [(self.arrays, self.dims), (self.vectors, self.dims[2:]), (self.scalars, (1,))]
        return [ops.reshape(Value(operand), shape).ir for operands, shape in shapes for operand in operands]

    def _add(self, value: Any) -> None:
        if value in self._computed or value in self.arrays:
            return
        op = None if isinstance(value.owner, ir.Block) else value.owner
        if op is None or len(self._computed) >= _MOST_OPERATIONS or not self._is_computed(op):
            self.arrays.append(value)
            return
        self._computed[value] = op
        if op.name == "stablehlo.broadcast_in_dim":
            small = op.operands[0]
            kept = self.scalars if Value(small).shape.element_count == 1 else self.vectors
            kept += [small] if small not in kept else []
            return
        for operand in op.operands:
            self._add(operand)

    def _is_computed(self, op: Any) -> bool:
        """Whether vectors of a result can be made from vectors of the operands."""
        row = Value(op.results[0]).element_type
        match op.name.removeprefix("stablehlo."):
            case "constant":
                return row.name in VECTOR_TYPES and bool(op.attributes["value"].is_splat)
            case "broadcast_in_dim":
                return row.name in VECTOR_TYPES and self._repeats(op)
            case "reshape":
                return True
            case "convert":
                return (Value(op.operands[0]).element_type.name, row.name) in _EXTENSIONS
            case "select":
                return row.name in VECTOR_TYPES and Value(op.operands[0]).dims == Value(op.results[0]).dims
            case "compare":
                is_total = "compare_type" in op.attributes and "TOTALORDER" in str(op.attributes["compare_type"])
                return Value(op.operands[0]).element_type.name in ("f32", "f64") and not is_total
        return row.name in VECTOR_TYPES and op.name.removeprefix("stablehlo.") in _CHEAP and has_code(op)

    def _repeats(self, op: Any) -> bool:
        """Whether a broadcast repeats a number, or a vector along the inner dimension."""
        small, whole = Value(op.operands[0]), Value(op.results[0]).dims
        if small.shape.element_count == 1:
            return True
        placed = zip(integers(op, "broadcast_dimensions"), small.dims, strict=True)
        kept = [dimension for dimension, size in placed if size > 1]
        wide = [dimension for dimension, size in enumerate(whole) if size > 1]
        return kept == wide[-len(kept) :] and small.shape.element_count == self.dims[2]

    def evaluate(self, memory: Sequence[Any], position: Sequence[Any], length: int) -> Any:
        """The vector at a position.

        Args:
            memory: the contents of the ``operands``.
            position: an ``index`` along outer, middle and inner.
            length: of the vector; it must end inside of the inner dimension.
        """
        contents = dict(zip([*self.arrays, *self.vectors, *self.scalars], memory, strict=True))
        made = {array: read_vector(contents[array], position, length) for array in self.arrays}

        def vector(value: Any) -> Any:
            if value not in made:
                made[value] = compute(self._computed[value])
            return made[value]

        def compute(op: Any) -> Any:
            if op.name == "stablehlo.broadcast_in_dim":
                small = op.operands[0]
                if small in self.vectors:
                    return read_vector(contents[small], position[2:], length)
                return full_vector(code.read(contents[small], index(0)), length)
            if op.name == "stablehlo.constant":
                return constant_number(op, length)
            return _on_vectors(op, [vector(operand) for operand in op.operands])

        return vector(self.root)


def is_stored(array: Any) -> bool:
    """Whether an array lies in memory anyway: an argument, what IREE stores, or what others read as well."""
    if isinstance(array.owner, ir.Block) or array.owner.name in _STORED or array.owner.name.startswith("flow."):
        return True
    return len(list(array.uses)) > 1


def _on_vectors(op: Any, operands: Sequence[Any]) -> Any:
    """The operation on vectors."""
    if op.name == "stablehlo.reshape":
        return operands[0]
    if op.name != "stablehlo.convert":
        return on_numbers(op, operands)
    source, target = (Value(value).element_type for value in (op.operands[0], op.results[0]))
    wide = ir.VectorType.get(operands[0].type.shape, op.results[0].type.element_type)
    return create(_EXTENSIONS[source.name, target.name], operands, [wide]).results[0]
