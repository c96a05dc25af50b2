"""Elementwise StableHLO over a whole array, evaluated a vector at a time by a dispatch of our own.

The array is seen as ``[outer, middle, inner]``, its elements in their order. It may be computed, in cheap arithmetic,
from arrays of as many elements, from vectors along the inner dimension, and from single numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import AnyOp, SSAValue, arith, ir
from hloforge.dialect.operations import defining_op, integers
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.builders import full_vector, index, read_vector
from hloforge.pipelines.kernels.lang import loops as code
from hloforge.pipelines.kernels.lang.elementwise import constant_number, filling, has_code, on_numbers
from hloforge.pipelines.kernels.lang.row_expressions import Spread

# Arithmetic that is cheaper than reading its operands.
_CHEAP_NAMES = """
abs add and bitcast_convert divide maximum minimum multiply negate not or shift_left shift_right_arithmetic
shift_right_logical subtract xor
"""
_CHEAP = frozenset(_CHEAP_NAMES.split())
# Conversions that widen, also from types that are converted as they are read.
_EXTENSIONS = {
    **{(source, "f32"): arith.extf for source in ("bf16", "f16")},
    **{(source, "f64"): arith.extf for source in ("bf16", "f16", "f32")},
    **{(source, "s32"): arith.extsi for source in ("s8", "s16")},
    **{(source, "s64"): arith.extsi for source in ("s8", "s16", "s32")},
}
VECTOR_TYPES = ("f32", "f64", "s32", "s64")
# What vectors are read of: signless numbers.
READ = frozenset((*VECTOR_TYPES, *(source for source, _ in _EXTENSIONS)))
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
        small: what is repeated: numbers for each of ``middle``, vectors of ``inner`` elements, scalars.
        most: operations; an expression of more is left to IREE.
    """

    most: ClassVar[int] = 24
    root: Any
    dims: tuple[int, int, int]
    arrays: list[Any] = field(default_factory=list)
    small: dict[Spread, list[Any]] = field(default_factory=lambda: {kind: [] for kind in Spread})
    _computed: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, array: Value, dims: tuple[int, int, int]) -> Expression | None:
        """The expression of an array; None if its dispatch would need an array that is stored for it alone."""
        found = cls(array.ir, dims)
        found._add(array.ir)
        is_read = all(is_stored(array) and Value(array).element_type.name in READ for array in found.arrays)
        return found if is_read and found.arrays else None

    @property
    def operands(self) -> list[Any]:
        """What a dispatch is given: arrays ``[outer, middle, inner]``, then what is repeated, in one dimension."""
        small = [Value(value) for values in self.small.values() for value in values]
        arrays = [ops.reshape(Value(array), self.dims).ir for array in self.arrays]
        return [*arrays, *(ops.reshape(value, [value.shape.element_count]).ir for value in small)]

    def _add(self, value: SSAValue) -> None:
        if value in self._computed or value in self.arrays:
            return
        op = defining_op(value)
        if op is None or len(self._computed) >= self.most or not self._is_computed(op):
            self.arrays.append(value)
            return
        self._computed[value] = op
        if op.name == "stablehlo.broadcast_in_dim":
            kind = self._spread(op)
            if kind is not None and filling(value) is None and op.operands[0] not in self.small[kind]:
                self.small[kind].append(op.operands[0])
            return
        for operand in op.operands:
            self._add(operand)

    def _is_computed(self, op: AnyOp) -> bool:
        """Whether vectors of a result can be made from vectors of the operands."""
        row = Value(op.results[0]).element_type
        match op.name.removeprefix("stablehlo."):
            case "constant":
                return row.name in VECTOR_TYPES and ir.DenseElementsAttr(op.attributes["value"]).is_splat
            case "broadcast_in_dim":
                return row.name in VECTOR_TYPES and self._spread(op) is not None
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

    def _spread(self, op: AnyOp) -> Spread | None:
        """What a broadcast repeats: a number, one for each position along the middle dimension, or a vector of them."""
        small, whole = Value(op.operands[0]), Value(op.results[0]).dims
        if small.shape.element_count == 1:
            return Spread.SCALAR
        placed = zip(integers(op, "broadcast_dimensions"), small.dims, strict=True)
        kept = [dimension for dimension, size in placed if size > 1]
        first, end = kept[0], kept[-1] + 1
        if kept != [dimension for dimension in range(first, end) if whole[dimension] > 1]:
            return None
        sizes = prod(whole[:first]), small.shape.element_count, prod(whole[end:])
        if sizes[1:] == (self.dims[2], 1):
            return Spread.VECTOR
        return Spread.NUMBERS if sizes == self.dims else None

    def evaluate(
        self,
        memory: Sequence[SSAValue],
        position: Sequence[SSAValue],
        length: int,
        known: Mapping[Any, Any] | None = None,
    ) -> Any:
        """The vector at a position.

        Args:
            memory: the contents of the ``operands``.
            position: an ``index`` along outer, middle and inner.
            length: of the vector; it must end inside of the inner dimension.
            known: vectors of values that are no operands.
        """
        repeated = [(kind, value) for kind, values in self.small.items() for value in values]
        arrays, small = memory[: len(self.arrays)], dict(zip(repeated, memory[len(self.arrays) :], strict=True))
        made = {
            **(known or {}),
            **{of: read_vector(array, position, length) for of, array in zip(self.arrays, arrays, strict=True)},
        }

        def vector(value: SSAValue) -> Any:
            if value not in made:
                made[value] = compute(self._computed[value])
            return made[value]

        def compute(op: ir.OpView) -> Any:
            if (constant := filling(op.results[0])) is not None:
                return constant_number(constant, length)
            if op.name != "stablehlo.broadcast_in_dim":
                return _on_vectors(op, [vector(operand) for operand in op.operands])
            match self._spread(op):
                case Spread.VECTOR:
                    return read_vector(small[Spread.VECTOR, op.operands[0]], position[2:], length)
                case Spread.NUMBERS:
                    return full_vector(code.read(small[Spread.NUMBERS, op.operands[0]], position[1]), length)
            return full_vector(code.read(small[Spread.SCALAR, op.operands[0]], index(0)), length)

        return vector(self.root)

    def text(self, known: Mapping[Any, str]) -> str:
        """What is computed: equal for expressions that equal code evaluates.

        Args:
            known: names of values that are no operands.
        """
        names = {**known, **{array: f"array {number} {array.type}" for number, array in enumerate(self.arrays)}}
        lines = []
        for value in self._computed:
            names[value] = f"%{len(names)}"
        for value, op in self._computed.items():
            if (constant := filling(value)) is not None:
                lines.append(f"{names[value]} = {constant.attributes['value']}")
                continue
            kind = self._spread(op) if op.name == "stablehlo.broadcast_in_dim" else None
            read = [f"{kind} {self.small[kind].index(op.operands[0])}"] if kind else [names[v] for v in op.operands]
            settings = "" if kind else [f"{name} {op.attributes[name]}" for name in op.attributes]
            lines.append(f"{names[value]} = {op.name} {settings} {read} {value.type}")
        return "\n".join(lines)


def is_stored(array: SSAValue) -> bool:
    """Whether an array lies in memory anyway: an argument, what IREE stores, or what others read as well."""
    if isinstance(array.owner, ir.Block) or array.owner.name in _STORED or array.owner.name.startswith("flow."):
        return True
    return len(list(array.uses)) > 1


def _on_vectors(op: ir.OpView, operands: Sequence[SSAValue]) -> Any:
    """The operation on vectors."""
    if op.name == "stablehlo.reshape":
        return operands[0]
    source, target = (Value(value).element_type for value in (op.operands[0], op.results[0]))
    if op.name != "stablehlo.convert" or (source.name, target.name) not in _EXTENSIONS:
        return on_numbers(op, operands)
    wide = ir.VectorType.get(operands[0].type.shape, op.results[0].type.element_type)
    return _EXTENSIONS[source.name, target.name](wide, *operands)
