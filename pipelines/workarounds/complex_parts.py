"""``legalize-complex-parts``: apply what IREE cannot do to complex numbers to their parts.

Before::

    %b = stablehlo.bitcast_convert %x : (tensor<4xcomplex<f64>>) -> tensor<4x2xcomplex<f32>>
    %p = stablehlo.pad %x, %v, low = [1], high = [0], interior = [0] : ... -> tensor<5xcomplex<f64>>

After::

    %b = complex of the even and odd elements of bitcast_convert(real %x, imag %x) : ... -> tensor<4x2x2xf32>
    %p = complex(pad (real %x), (real %v)), (pad (imag %x), (imag %v))

IREE 3.13 crashes on such bitcasts and on paddings with constants, folds updates of constants into invalid ones, and
fills arrays with patterns of at most 64 bits.
Source: StableHLO spec "bitcast_convert" (bits in little-endian order), "pad", "broadcast_in_dim".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect import ops
from hloforge.dialect.computations import fill_region
from hloforge.dialect.constants import constant
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.emission import create
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import defining_op, is_made_by
from hloforge.dialect.regions import inline_region
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import fills_with_complex, reduces_complex
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern


@pattern("stablehlo.bitcast_convert")
def bitcast_of_parts(op: ir.Operation) -> Replacement:
    """A bitcast between complex types by bitcasts of floats."""
    x, target = Value(op.operands[0]), Value(op.results[0]).element_type
    if not x.element_type.is_complex or not target.is_complex:
        return NoMatch("not between complex types")
    if x.element_type == target:
        return x
    if target.bits > x.element_type.bits:
        # [..., 2] of (low, high) halves of the real part, then of the imaginary part.
        halves = ops.bitcast_convert_type(_interleaved(x), "f64")
        return ops.complex(_element(halves, 0), _element(halves, 1))
    halves = ops.bitcast_convert_type(_interleaved(x), "f32")
    return ops.complex(_element(halves, 0), _element(halves, 1))


def _interleaved(x: Value) -> Value:
    """``[...]`` of complex numbers as ``[..., 2]`` of their parts."""
    dims = [*x.dims, 1]
    return ops.concat_in_dim([ops.reshape(part, dims) for part in (ops.real(x), ops.imag(x))], x.rank)


def _element(x: Value, number: int) -> Value:
    """``x[..., number]``."""
    *dims, _ = x.dims
    return ops.reshape(ops.slice(x, [0] * len(dims) + [number], [*dims, number + 1]), dims)


@pattern(
    "stablehlo.broadcast_in_dim",
    "stablehlo.pad",
    "stablehlo.dynamic_broadcast_in_dim",
    "stablehlo.dynamic_pad",
    "stablehlo.dynamic_update_slice",
)
def fill_of_parts(op: ir.Operation) -> Replacement:
    """An operation that fills with complex numbers, once for each part."""
    if not fills_with_complex(op):
        return NoMatch("IREE fills with up to 64 bits")
    operands = [Value(operand) for operand in op.operands]
    type_ = _split_type(op.results[0].type)[0]
    attributes = {name: op.attributes[name] for name in op.attributes}
    parts = []
    for number in range(2):
        taken = [_part(operand, number) if operand.element_type.is_complex else operand for operand in operands]
        if _is_padded(taken[0]):
            # IREE has no code for taking a part and padding it twice in one dispatch.
            taken[0] = ops.optimization_barrier(taken[0])
        parts.append(Value(create(op.name, taken, [type_], 0, **attributes).results[0]))
    return ops.complex(parts[0], parts[1])


def _part(value: Value, number: int) -> Value:
    """The real part, 0, or the imaginary one, 1; of an array that was made of parts, its own.

    Of a constant it is a constant: IREE shares an array that is filled with what it does not know among operations that
    overwrite it.
    """
    source = defining_op(value.ir, "stablehlo.complex", "stablehlo.constant")
    if source is None:
        return ops.imag(value) if number else ops.real(value)
    if source.name == "stablehlo.constant":
        values = constant_of(source)
        return constant(values.imag if number else values.real, "f64" if value.element_type.bits == 128 else "f32")
    part = source.operands[number]
    fence = defining_op(part, "stablehlo.optimization_barrier")
    # As legalize-complex-constants makes them.
    if fence is not None and len(fence.operands) == 1 and is_made_by(fence.operands[0], "stablehlo.constant"):
        return Value(fence.operands[0])
    return Value(part)


def _is_padded(value: Value) -> bool:
    return is_made_by(value.ir, "stablehlo.pad")


@pattern("stablehlo.reduce_window")
def windows_of_parts(op: ir.Operation) -> Replacement:
    """A reduction of windows of complex numbers as one of their parts, together."""
    if not reduces_complex(op):
        return NoMatch("not of complex numbers")
    is_complex = [Value(operand).element_type.is_complex for operand in op.operands]
    operands = [part for operand in op.operands for part in _split(Value(operand))]
    types = [part for result in op.results for part in _split_type(result.type)]
    attributes = {name: op.attributes[name] for name in op.attributes}
    made = create(op.name, operands, types, 1, **attributes)
    scalars = [ir.RankedTensorType.get([], operand.type.element_type) for operand in operands]

    def computation(*arguments: Value) -> list[Value]:
        values = _joined(arguments, is_complex)
        return [part for value in inline_region(op.regions[0], values) for part in _split(value)]

    fill_region(made.regions[0], scalars, computation)
    return _joined([Value(result) for result in made.results], is_complex[: len(op.results)])


def _split(value: Value) -> list[Value]:
    return [ops.real(value), ops.imag(value)] if value.element_type.is_complex else [value]


def _split_type(type_: ir.RankedTensorType) -> list[ir.RankedTensorType]:
    element = type_.element_type
    if not isinstance(element, ir.ComplexType):
        return [type_]
    return [ir.RankedTensorType.get(type_.shape, element.element_type)] * 2


def _joined(parts: Sequence[Value], is_complex: Sequence[bool]) -> list[Value]:
    """The values of which ``_split`` made ``parts``."""
    source = iter(parts)
    return [ops.complex(next(source), next(source)) if flag else next(source) for flag in is_complex]


@register
@dataclass(frozen=True)
class LegalizeComplexParts(PatternPass):
    """Apply bitcasts between complex types, paddings, updates of constants, and fills with c128 to the parts."""

    name: ClassVar[str] = "legalize-complex-parts"
    establishes: ClassVar[Facts] = frozenset({Fact.SAFE_FILLS})
    breaks: ClassVar[Facts] = REWRITES | {Fact.SEPARATE_PADS}
    patterns: ClassVar[tuple[Pattern, ...]] = (*bitcast_of_parts, *fill_of_parts, *windows_of_parts)
