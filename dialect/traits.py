"""The traits of StableHLO's operations: one table for all passes that ask for a class of operations.

A pass that needs "the elementwise operations" takes them from here instead of typing their names again: lists that are
typed twice disagree in the end. ``tests/dialect/test_traits.py`` compares the table with the dialect that jaxlib
registers, so that an operation of a newer StableHLO fails the tests until it has a row.

Source: the StableHLO specification; what IREE does in place is measured (``pipelines/legalize``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, auto

from hloforge.dialect.mlir import SSAValue, ir

_PREFIX = "stablehlo."


class Kind(Enum):
    """What an operation is; each operation is one of these."""

    ELEMENTWISE = "each element of the result is computed of the operands' elements at its place, or of scalars"
    MOVES = "the elements of the result are those of its operands, at other positions"
    UPDATES = "the result is the first operands with other elements at some positions"
    MAKES = "makes an array of attributes or sizes alone"
    ASKS = "reads or sets the size of a dimension"
    COMBINES = "combines many elements: products, reductions, windows, normalizations"
    ORDERS = "transforms whole rows: sorts, Fourier transforms, linear algebra"
    CONTROL = "runs, names or ends computations"
    TUPLES = "makes tuples, or takes them apart"
    TOKENS = "orders effects"
    DEVICES = "reaches other devices, or asks which one runs"
    HOST = "reaches the host"
    RANDOM = "draws random numbers"


class Trait(Flag):
    """What else holds of an operation; any of these together."""

    NONE = 0
    # f(x, y) = f(y, x), bit for bit except for the bits of a NaN.
    COMMUTATIVE = auto()
    # f(x, f(x, y)) = f(x, y).
    IDEMPOTENT = auto()
    # Computes a float of floats: done in a wider type its result is rounded. Selections move bits, and are left out.
    FLOAT = auto()
    # A function that takes a processor many steps; XLA counts its elements as transcendentals.
    TRANSCENDENTAL = auto()
    # The result has the bytes of its operand in the same order: no work, another name of one memory.
    NAMES = auto()
    # A part, a spread or a permutation of the first operand, which IREE may make without moving it.
    VIEW = auto()
    # IREE runs it in the buffer of an operand.
    IN_PLACE = auto()
    # It does more than to compute results, or gives others when it runs again.
    EFFECTS = auto()
    # Of quantized types only.
    QUANTIZED = auto()


@dataclass(frozen=True)
class Operation:
    """A row of the table.

    Attributes:
        name: with the dialect's prefix.
        kind: what it is.
        traits: what else holds of it.
        arity: operands of an elementwise operation; 0 for any other.
        regions: how many it has; -1 for any number.
    """

    name: str
    kind: Kind
    traits: Trait = Trait.NONE
    arity: int = 0
    regions: int = 0


_T = Trait
_ELEMENTWISE: dict[tuple[int, Trait], str] = {
    (1, _T.NONE): "bitcast_convert convert count_leading_zeros imag is_finite not popcnt real reduce_precision",
    (1, _T.FLOAT): "abs ceil floor negate round_nearest_afz round_nearest_even sign",
    (1, _T.FLOAT | _T.TRANSCENDENTAL): (
        "cbrt cosine exponential exponential_minus_one log log_plus_one logistic rsqrt sine sqrt tan tanh"
    ),
    (1, _T.QUANTIZED): "uniform_dequantize uniform_quantize",
    (2, _T.NONE): "complex shift_left shift_right_arithmetic shift_right_logical",
    (2, _T.COMMUTATIVE): "xor",
    (2, _T.COMMUTATIVE | _T.IDEMPOTENT): "and or",
    (2, _T.FLOAT): "compare divide remainder subtract",
    (2, _T.FLOAT | _T.COMMUTATIVE): "add multiply",
    (2, _T.FLOAT | _T.COMMUTATIVE | _T.IDEMPOTENT): "maximum minimum",
    (2, _T.FLOAT | _T.TRANSCENDENTAL): "atan2 power",
    (3, _T.NONE): "select",
    (3, _T.FLOAT): "clamp",
}
_OTHERS: dict[tuple[Kind, Trait, int], str] = {
    (Kind.MOVES, _T.NAMES | _T.VIEW, 0): "dynamic_reshape reshape",
    (Kind.MOVES, _T.VIEW, 0): (
        "broadcast broadcast_in_dim dynamic_broadcast_in_dim dynamic_gather dynamic_pad dynamic_slice gather pad "
        "real_dynamic_slice reverse slice torch_index_select transpose"
    ),
    (Kind.MOVES, _T.NONE, 0): "concatenate",
    (Kind.UPDATES, _T.IN_PLACE, 0): "dynamic_update_slice",
    (Kind.UPDATES, _T.IN_PLACE, 1): "scatter",
    (Kind.UPDATES, _T.NONE, 2): "select_and_scatter",
    (Kind.MAKES, _T.NONE, 0): "constant dynamic_iota iota",
    (Kind.ASKS, _T.NONE, 0): "get_dimension_size set_dimension_size",
    (Kind.COMBINES, _T.NONE, 0): (
        "batch_norm_grad batch_norm_inference batch_norm_training convolution dot dot_general dynamic_conv einsum "
        "unary_einsum"
    ),
    (Kind.COMBINES, _T.NONE, 1): "map reduce reduce_window",
    (Kind.ORDERS, _T.NONE, 0): "cholesky triangular_solve",
    (Kind.ORDERS, _T.IN_PLACE, 0): "fft",
    (Kind.ORDERS, _T.IN_PLACE, 1): "sort",
    (Kind.CONTROL, _T.NONE, 0): "return",
    (Kind.CONTROL, _T.NAMES, 0): "optimization_barrier",
    (Kind.CONTROL, _T.NONE, 2): "if",
    (Kind.CONTROL, _T.IN_PLACE, 2): "while",
    (Kind.CONTROL, _T.NONE, -1): "case composite",
    (Kind.TUPLES, _T.NAMES, 0): "get_tuple_element tuple",
    (Kind.TOKENS, _T.NONE, 0): "after_all create_token",
    (Kind.DEVICES, _T.NONE, 0): "partition_id replica_id",
    (Kind.DEVICES, _T.EFFECTS, 0): (
        "all_gather all_to_all async_done collective_broadcast collective_permute cross-replica-sum"
    ),
    (Kind.DEVICES, _T.EFFECTS, 1): "all_reduce async_start reduce_scatter",
    (Kind.HOST, _T.EFFECTS, 0): "custom_call infeed outfeed recv send",
    (Kind.RANDOM, _T.EFFECTS, 0): "rng",
    (Kind.RANDOM, _T.NONE, 0): "rng_bit_generator",
}


def _rows() -> list[Operation]:
    rows = [
        Operation(_PREFIX + name, Kind.ELEMENTWISE, traits, arity=arity)
        for (arity, traits), names in _ELEMENTWISE.items()
        for name in names.split()
    ]
    for (kind, traits, regions), names in _OTHERS.items():
        rows += [Operation(_PREFIX + name, kind, traits, regions=regions) for name in names.split()]
    return rows


def _by_name(rows: list[Operation]) -> dict[str, Operation]:
    table: dict[str, Operation] = {}
    for row in rows:
        if row.name in table:
            raise ValueError(f"{row.name} has two rows")
        table[row.name] = row
    return table


TABLE: dict[str, Operation] = _by_name(_rows())


def of_kind(*kinds: Kind) -> frozenset[str]:
    """The names of the operations of some kinds."""
    return frozenset(name for name, row in TABLE.items() if row.kind in kinds)


def with_traits(traits: Trait) -> frozenset[str]:
    """The names of the operations that have all of some traits."""
    return frozenset(name for name, row in TABLE.items() if row.traits & traits == traits)


QUANTIZATIONS = with_traits(Trait.QUANTIZED)
# Elementwise on arrays of numbers. Mind ``bitcast_convert``, which changes shapes where widths differ
# (``keeps_shape``), and that clamp's bounds and select's condition may be scalars.
ELEMENTWISE = of_kind(Kind.ELEMENTWISE) - QUANTIZATIONS
UNARY = frozenset(name for name in ELEMENTWISE if TABLE[name].arity == 1)
COMMUTATIVE = with_traits(Trait.COMMUTATIVE)
IDEMPOTENT = with_traits(Trait.IDEMPOTENT)
FLOAT_ARITHMETIC = with_traits(Trait.FLOAT)
TRANSCENDENTAL = with_traits(Trait.TRANSCENDENTAL)
VIEWS = with_traits(Trait.VIEW)
NAMES = with_traits(Trait.NAMES)
IN_PLACE = with_traits(Trait.IN_PLACE)
EFFECTS = with_traits(Trait.EFFECTS)
CONTROL = of_kind(Kind.CONTROL)
COLLECTIVES = of_kind(Kind.DEVICES)


def keeps_shape(op: ir.Operation) -> bool:
    """Whether an operation is elementwise, and its result has the shape of each operand of its rank."""
    if op.name not in ELEMENTWISE:
        return False
    if op.name != "stablehlo.bitcast_convert":
        return True
    operand, result = op.operands[0].type, op.results[0].type
    return isinstance(result, ir.RankedTensorType) and operand.rank == result.rank


def shape_operand(op: ir.Operation) -> SSAValue | None:
    """An operand of an elementwise operation that has the shape of its result; None if there is none."""
    if not keeps_shape(op):
        return None
    rank = op.results[0].type.rank
    return next((operand for operand in op.operands if operand.type.rank == rank), None)
