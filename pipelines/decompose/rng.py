"""``decompose-rng``: random bits by arithmetic, and distributions from a stream that the program keeps.

Before::

    %state, %bits = stablehlo.rng_bit_generator %key, algorithm = PHILOX : (tensor<2xui64>) -> ...
    %x = stablehlo.rng %a, %b, %sizes, distribution = UNIFORM : ... -> tensor<8xf32>

After::

    %bits = ten rounds of multiplications over counters, as in XLA, bit by bit

    util.global private mutable @hloforge.rng_blocks = dense<0> : tensor<i64>
    util.func private @hloforge.rng_blocks.take(%count)       (load the variable, store it raised by %count)
    %n = util.call @hloforge.rng_blocks.take(2)
    %x = %a + (%b - %a) * (blocks %n and %n + 1 of Philox, as fractions)

``rng`` has no state of its own: two of them, two iterations of a loop and two calls of the program must give different
numbers. So the program counts the blocks that it has used, in a variable of IREE's runtime. Each loaded program starts
at the same block, so the numbers of its first call are always the same. XLA's are others, as are those of its versions.

Source: XLA "RngUniform", "RngNormal", "RngBitGenerator"; Box and Muller, 1958.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, prod
from typing import ClassVar

import ml_dtypes

from hloforge.dialect import ops
from hloforge.dialect.constants import constant, full
from hloforge.dialect.element_types import ElementType, Kind
from hloforge.dialect.idioms import zeros
from hloforge.dialect.marks import RNG_BLOCKS
from hloforge.dialect.mlir import AnyOp, ir, stablehlo
from hloforge.dialect.values import Value
from hloforge.pipelines.decompose.random_bits import philox_bits, threefry_bits
from hloforge.pipelines.framework.facts import REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern
from hloforge.pipelines.framework.variables import take

# The key of the program's own stream; any number would do.
_KEY = 0x243F6A8885A308D3


def has_no_state(op: ir.Operation) -> bool:
    """Whether an ``rng_bit_generator`` gets something else than a state: HLO's text may have any array there."""
    state = Value(op.operands[0])
    return state.element_type.name != "u64" or len(state.dims) != 1


@pattern("stablehlo.rng_bit_generator")
def by_counters(op: ir.Operation) -> Replacement:
    """The state after, and bits of any integer or float type; DEFAULT is Philox, as on XLA's CPU."""
    state, bits = Value(op.operands[0]), Value(op.results[1])
    if not bits.shape.is_static or not state.shape.is_static:
        return NoMatch("dynamic size")
    if not any(list(result.uses) for result in op.results):
        return [state, zeros(bits.element_type, bits.dims)]
    if has_no_state(op):
        return NoMatch("its state is none")
    row = bits.element_type
    algorithm = stablehlo.RngAlgorithmAttr(op.attributes["rng_algorithm"]).value
    generate = threefry_bits if algorithm == "THREE_FRY" else philox_bits
    after, words = generate(state, bits.dims, row.bits)
    return [after, ops.bitcast_convert_type(words, row)]


@pattern("stablehlo.rng")
def by_the_stream(op: ir.Operation) -> Replacement:
    """Uniform or normal numbers between or around two scalars."""
    result = Value(op.results[0])
    if not result.shape.is_static:
        return NoMatch("dynamic size")
    first, second = (ops.broadcast_in_dim(Value(operand), result.dims, ()) for operand in list(op.operands)[:2])
    if stablehlo.RngDistributionAttr(op.attributes["rng_distribution"]).value == "NORMAL":
        return _normal(op, first, second)
    if result.element_type.is_float:
        return _uniform_floats(op, first, second)
    return _uniform_integers(op, first, second)


def _uniform_floats(op: ir.Operation, a: Value, b: Value) -> Value:
    row = a.element_type
    low, high = (ops.convert_element_type(end, _wide(row)) for end in (a, b))
    x = low + ops.reshape(_fractions(op, prod(a.dims), _wide(row)), a.dims) * (high - low)
    if row != x.element_type:
        # IREE compares what is before a conversion.
        format_ = ml_dtypes.finfo(row.dtype)
        x = ops.reduce_precision(x, int(format_.nexp), int(format_.nmant))
    # What rounding carried up to the open end goes to the other one.
    return ops.convert_element_type(ops.select(x < high, x, low), row)


def _normal(op: AnyOp, mu: Value, sigma: Value) -> Value:
    """Box and Muller: two independent numbers of a radius and an angle."""
    row, wide = mu.element_type, _wide(mu.element_type)
    count = prod(mu.dims)
    pairs = -(-count // 2)
    fractions = _fractions(op, 2 * pairs, wide)
    # A fraction may be 0 but not 1, whose logarithm's argument would be 0.
    squared = ops.log1p(-ops.slice(fractions, [0], [pairs])) * -2.0
    radius, angle = ops.sqrt(squared), ops.slice(fractions, [pairs], [2 * pairs]) * (2 * pi)
    both = ops.concat_in_dim([radius * ops.cos(angle), radius * ops.sin(angle)], 0)
    x = ops.reshape(ops.slice(both, [0], [count]), mu.dims)
    mean, deviation = (ops.convert_element_type(value, wide) for value in (mu, sigma))
    return ops.convert_element_type(mean + deviation * x, row)


def _uniform_integers(op: AnyOp, a: Value, b: Value) -> Value:
    """Remainders of 64 bits by the number of integers, which favour small ones by less than one in 2**32 if that
    number has 32 bits."""
    row = a.element_type
    if row.kind is Kind.PRED:
        return a  # the only one from false to below true
    wide = "s64" if row.kind is Kind.SIGNED else "u64"
    low, high = (ops.bitcast_convert_type(ops.convert_element_type(end, wide), "u64") for end in (a, b))
    count = ops.select(a < b, high - low, full(low, 1))
    words = _words(op, prod(a.dims), 64)
    return a + ops.convert_element_type(ops.reshape(words, a.dims) % count, row)


def _wide(row: ElementType) -> str:
    return "f64" if row.bits == 64 else "f32"


def _fractions(op: AnyOp, count: int, element: str) -> Value:
    """Numbers from 0 to below 1 with all digits of the element type."""
    width, digits = (64, 53) if element == "f64" else (32, 24)
    words = ops.shift_right_logical(_words(op, count, width), width - digits)
    # As signed numbers, which processors convert.
    return ops.convert_element_type(ops.bitcast_convert_type(words, f"s{width}"), element) * 2.0**-digits


def _words(op: AnyOp, count: int, width: int) -> Value:
    """The next ``count`` numbers of 32 or 64 random bits of the program's stream."""
    blocks = -(-count * width // 128)
    start = _advance(op, blocks)
    state = ops.concat_in_dim([constant([_KEY], "u64"), ops.reshape(start, [1]), constant([0], "u64")], 0)
    return philox_bits(state, [count], width)[1]


def _advance(op: AnyOp, blocks: int) -> Value:
    """The program's count of blocks, a u64 scalar, which is raised for the next operation."""
    count = take(op, RNG_BLOCKS, 0, lambda held, step: held + step, constant(blocks, "s64"))
    return ops.bitcast_convert_type(count, "u64")


@register
@dataclass(frozen=True)
class DecomposeRng(PatternPass):
    """Replace random bits and random numbers of static sizes."""

    name: ClassVar[str] = "decompose-rng"
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.NO_CHLO})
    patterns: ClassVar[tuple[Pattern, ...]] = (*by_counters, *by_the_stream)
