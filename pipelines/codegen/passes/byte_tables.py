"""``legalize-byte-tables``: dear functions of a byte are looked up in a table of its 256 values.

Before, of a quantized activation::

    %x = (convert(%q : tensor<1x112x112x32xui8>) - 128) * 0.05
    %r = convert(round_nearest_even(logistic(%x) / 0.004)) : tensor<1x112x112x32xui8>

After::

    %t = convert(round_nearest_even(logistic((convert(dense<[0, 1, …, 255]>) - 128) * 0.05) / 0.004)) : tensor<256xui8>
    %r = stablehlo.gather %t, %q {hloforge.byte_table}

A call computes each table once. What is elementwise from one array of bytes to another is one table, whatever bytes and
numbers lie between, where it has a function that costs more than some operations of arithmetic. Runtimes of quantized
models do the same. Source: TensorFlow Lite, "lut" kernels; ONNX Runtime, "QLinearLookup".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import i64s
from hloforge.dialect.marks import BYTE_TABLE
from hloforge.dialect.mlir import SSAValue, in_context, ir, stablehlo
from hloforge.dialect.operations import defining_op, operations
from hloforge.dialect.regions import ELEMENTWISE
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import Pass, register

_BYTES = frozenset({"s8", "u8"})
_VALUES = 256
# Elements from which on a table pays for itself, and operations between bytes.
_LEAST, _MOST = 4096, 96
_DEAR = frozenset(
    "stablehlo." + name
    for name in (
        *("logistic", "tanh", "exponential", "exponential_minus_one", "log", "log_plus_one", "power", "sine", "cosine"),
        *("tan", "cbrt", "atan2"),
    )
)
_CONSTANT, _BROADCAST = "stablehlo.constant", "stablehlo.broadcast_in_dim"


class _Function:
    """What an array of bytes is as a function of another one's elements.

    Attributes:
        source: the other array.
        ops: what computes it, each after what it reads.
    """

    def __init__(self, value: SSAValue) -> None:
        self.ops: list[ir.Operation] = []
        self.source: SSAValue | None = None
        self._dims = tuple(value.type.shape)
        self._seen: set[SSAValue] = set()
        self.is_one = self._add(value)

    @property
    def is_dear(self) -> bool:
        return any(op.name in _DEAR or op.name.startswith("chlo.") for op in self.ops)

    def _add(self, value: SSAValue) -> bool:
        """Whether a value is a function of the source, which it may become."""
        if value in self._seen or len(self.ops) > _MOST:
            return len(self.ops) <= _MOST
        op = defining_op(value)
        if _repeated(value) is None:
            if op is None or not self._is_elementwise(op) or not self._follows(op):
                return self._ends(value)
            return True
        self._seen.add(value)
        return True

    def _is_elementwise(self, op: ir.Operation) -> bool:
        return (
            (op.name in ELEMENTWISE or op.name.startswith("chlo."))
            and len(op.results) == 1
            and not len(op.regions)
            and tuple(op.results[0].type.shape) == self._dims
            and all(tuple(operand.type.shape) in (self._dims, ()) for operand in op.operands)
        )

    def _follows(self, op: ir.Operation) -> bool:
        """Add an operation and what it reads; nothing where one of these is no function of the source."""
        before = list(self.ops), self.source, set(self._seen)
        if all(self._add(operand) for operand in op.operands):
            self.ops.append(op)
            self._seen.add(op.results[0])
            return True
        self.ops, self.source, self._seen = before
        return False

    def _ends(self, value: SSAValue) -> bool:
        """Whether a value may be, or is, the source."""
        if tuple(value.type.shape) != self._dims or Value(value).element_type.name not in _BYTES:
            return False
        if self.source is None:
            self.source = value
        return bool(self.source == value)

    def table(self, result: SSAValue) -> Value:
        """The result of each byte, in the order of the bytes without a sign."""
        assert self.source is not None
        numbers = np.arange(_VALUES, dtype=np.uint8)
        is_signed = Value(self.source).element_type.name == "s8"
        made = {self.source: constant(numbers.view(np.int8) if is_signed else numbers)}
        for op in self.ops:
            operands = [made[one] if one in made else _alone(one) for one in op.operands]
            row = Value(op.results[0]).element_type
            attributes = {name: op.attributes[name] for name in op.attributes}
            kind = ir.RankedTensorType.get([_VALUES], op.results[0].type.element_type)
            created: Any = ir.Operation.create(
                op.name, results=[kind], operands=[one.ir for one in operands], attributes=attributes
            )
            made[op.results[0]] = Value(created.results[0])
            assert made[op.results[0]].element_type == row
        return made[result]


def _repeated(value: SSAValue) -> SSAValue | None:
    """The number that an array repeats, or a number itself; None for other arrays."""
    op = defining_op(value)
    if op is None:
        return value if not value.type.shape else None
    if op.name == _BROADCAST and not op.operands[0].type.shape:
        number: SSAValue = op.operands[0]
        return number
    if op.name == _CONSTANT and ir.DenseElementsAttr(op.attributes["value"]).is_splat:
        return value
    return value if not value.type.shape else None


def _alone(value: SSAValue) -> Value:
    """A repeated number for each byte, or a number as it is."""
    if not value.type.shape:
        return Value(value)
    number = _repeated(value)
    assert number is not None
    if number is value:
        op = defining_op(value)
        assert op is not None
        attribute = ir.DenseElementsAttr(op.attributes["value"])
        kind = ir.RankedTensorType.get([_VALUES], value.type.element_type)
        splat = ir.DenseElementsAttr.get_splat(kind, attribute.get_splat_value())
        return Value(stablehlo.constant(splat))
    return ops.broadcast_in_dim(Value(number), [_VALUES], [])


def _looked_up(table: Value, source: SSAValue) -> Value:
    """The table's elements by the bytes of an array."""
    codes = Value(source)
    if codes.element_type.name == "s8":
        codes = ops.bitcast_convert_type(codes, "u8")
    numbers = stablehlo.GatherDimensionNumbers.get([], [0], [], [], [0], len(codes.dims))
    kind = ir.RankedTensorType.get(list(codes.dims), table.ir.type.element_type)
    attributes = {
        "dimension_numbers": numbers,
        "slice_sizes": i64s([1]),
        "indices_are_sorted": ir.BoolAttr.get(False),
        BYTE_TABLE: ir.UnitAttr.get(),
    }
    made: Any = ir.Operation.create(
        "stablehlo.gather", results=[kind], operands=[table.ir, codes.ir], attributes=attributes
    )
    return Value(made.results[0])


@register
@dataclass(frozen=True)
class LegalizeByteTables(Pass):
    """Look up functions of bytes that cost much."""

    name: ClassVar[str] = "legalize-byte-tables"
    requires: ClassVar[Facts] = NORMALIZED
    needs: ClassVar[frozenset[str]] = _DEAR

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            # Readers first: what only they read is dead then, and goes with the next pass that folds.
            dead: dict[SSAValue, bool] = {}
            for op in reversed(operations(module, {"stablehlo.convert"})):
                result = op.results[0]
                if not is_static(op) or Value(result).element_type.name not in _BYTES:
                    continue
                if np.prod(result.type.shape) < _LEAST or _is_dead(result, dead):
                    continue
                found = _Function(result)
                if not found.is_one or found.source is None or not found.is_dear or found.source == result:
                    continue
                with ir.InsertionPoint(op), op.location:
                    looked_up = _looked_up(found.table(result), found.source)
                result.replace_all_uses_with(looked_up.ir)


def _is_dead(value: SSAValue, known: dict[SSAValue, bool]) -> bool:
    """Whether nobody reads a value but those whom nobody reads."""
    if value not in known:
        readers = [use.owner for use in value.uses]
        known[value] = all(
            reader.name in ELEMENTWISE | {_BROADCAST} and _is_dead(reader.operation.results[0], known)
            for reader in readers
        )
    return known[value]
