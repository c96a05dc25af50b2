"""``protect-arguments``: a copy of each argument that the program would overwrite.

Before::

    func.func @main(%x: tensor<8xf32>, ...) { %r = stablehlo.dynamic_update_slice %x, %u, %i ... }

After::

    %true = stablehlo.optimization_barrier (constant true)
    %y = stablehlo.select %true, %x, zeros
    %r = stablehlo.dynamic_update_slice %y, %u, %i

IREE 3.13 takes the last use of an argument for permission to write into the caller's buffer
(iree-org/iree#16168): the caller's array changes, and an argument that is also returned comes back changed. It elides
every plain copy again, so this one is a choice whose condition it cannot see. A donated argument needs no copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.abi import donated_arguments
from hloforge.dialect.constants import constant
from hloforge.dialect.emission import emit
from hloforge.dialect.idioms import zeros
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.program import Signature, entry_function
from hloforge.dialect.values import Value
from hloforge.pipelines.by_index import restored, signless
from hloforge.pipelines.passes import Pass, register

# Operations that IREE runs in the buffer of an operand, and how many of their leading operands may be overwritten.
_IN_PLACE = {"stablehlo.dynamic_update_slice": 1, "stablehlo.scatter": 1}
# Operations whose result may be their operand's buffer.
_PASS_ON = frozenset(
    f"stablehlo.{name}"
    for name in (
        "bitcast_convert",
        "clamp",
        "complex",
        "convert",
        "imag",
        "optimization_barrier",
        "real",
        "reshape",
        "select",
        "transpose",
    )
) | {"flow.tensor.bitcast", "flow.tensor.reshape", "flow.tensor.tie_shape", "tensor.cast"}
# Operations that move elements, and none if the result has as many as the operand.
_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in ("broadcast_in_dim", "concatenate", "dynamic_slice", "pad", "reduce", "reverse", "slice")
)
# Operations that IREE folds to an operand where the other one is neutral, and those that it folds if both are the same.
_BINARY = """
    add divide multiply remainder shift_left shift_right_arithmetic shift_right_logical subtract xor
"""
_FOLDED_OF_SAME = frozenset(f"stablehlo.{name}" for name in ("and", "maximum", "minimum", "or"))
_FOLDED = _FOLDED_OF_SAME | {f"stablehlo.{name}" for name in _BINARY.split()}


@register
@dataclass(frozen=True)
class ProtectArguments(Pass):
    """Copy the arguments of ``main`` that reach an in-place operation, donated ones left out; run it last."""

    name: ClassVar[str] = "protect-arguments"

    def run(self, module: Any) -> None:
        donated = donated_arguments(Signature.of(module))
        block = entry_function(module).operation.regions[0].blocks[0]
        with in_context(module), ir.InsertionPoint.at_block_begin(block):
            exposed = [
                argument
                for number, argument in enumerate(block.arguments)
                if number not in donated and may_be_overwritten(argument)
            ]
            if not exposed:
                return
            flag = constant(True)
            condition = emit("stablehlo.optimization_barrier", [flag], flag.type)
            for argument in exposed:
                _copy(argument, condition)


def _copy(argument: Any, condition: Value) -> None:
    uses = list(argument.uses)
    value = Value(argument)
    # IREE fills arrays with patterns of at most 64 bits.
    fills = value.shape.is_static and value.element_type.bits <= 64
    other = zeros(value.element_type, value.dims) if fills else _reversed(value)
    copied = ops.select(condition, value, other)
    for use in uses:
        use.owner.operands[use.operand_number] = copied.ir


def _reversed(value: Value) -> Value:
    """Another array of the same shape, which may be dynamic; of a scalar, which is complex, its negation."""
    if not value.rank:
        return ops.neg(value)
    dimensions = ir.DenseI64ArrayAttr.get(list(range(value.rank)))
    # IREE refuses reversals of unsigned integers.
    plain = signless(value.ir)
    reversed_ = emit("stablehlo.reverse", [Value(plain)], plain.type, dimensions=dimensions)
    return restored(reversed_.ir, value.type)


def may_be_overwritten(value: Any) -> bool:
    """Whether an in-place operation may get this value's own buffer."""
    pending, seen = [value], set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        for use in current.uses:
            op, position = use.owner.operation, use.operand_number
            if _overwrites(op, position):
                return True
            pending += _aliases(op, position)
    return False


def _overwrites(op: Any, position: int) -> bool:
    if op.name == "tensor.insert_slice":
        return position == 1
    return bool(op.name == "stablehlo.sort") or position < _IN_PLACE.get(op.name, 0)


def _passes_on(op: Any, position: int) -> bool:
    """Whether the first result may be the operand as it is."""
    if op.name in _PASS_ON:
        return True
    operand = op.operands[position]
    if op.name in _MOVES:
        result = op.results[0]
        return all(v.type.has_static_shape for v in (operand, result)) and _count(operand) == _count(result)
    if op.name not in _FOLDED:
        return False
    other = op.operands[1 - position]
    return _may_be_neutral(other) or (op.name in _FOLDED_OF_SAME and other == operand)


def _count(value: Any) -> int:
    return prod(int(size) for size in value.type.shape)


def _may_be_neutral(value: Any) -> bool:
    """Whether a value is an array of one constant, 0, 1 or -1; any complex constant, which the bindings do not read."""
    op = None if isinstance(value.owner, ir.Block) else value.owner.operation
    if op is not None and op.name == "stablehlo.broadcast_in_dim":
        return _may_be_neutral(op.operands[0])
    if op is None or op.name != "stablehlo.constant":
        return False
    if isinstance(value.type.element_type, ir.ComplexType):
        return True
    if not op.attributes["value"].is_splat:
        return False
    number = op.attributes["value"].get_splat_value()
    return getattr(number, "value", None) in (0, 1, -1)


def _aliases(op: Any, position: int) -> Iterator[Any]:
    """The values that may share the buffer of an operation's operand."""
    if op.name in ("stablehlo.optimization_barrier", "util.optimization_barrier"):
        yield op.results[position]
    elif _passes_on(op, position):
        yield op.results[0]
    elif op.name == "stablehlo.while":
        yield op.results[position]
        for region in op.regions:
            yield region.blocks[0].arguments[position]
    elif op.name == "stablehlo.return":
        parent = op.parent.operation
        if parent.name in ("stablehlo.if", "stablehlo.case"):
            yield parent.results[position]
        elif parent.name == "stablehlo.while" and position < len(parent.results):
            yield parent.results[position]
            for region in parent.regions:
                yield region.blocks[0].arguments[position]
