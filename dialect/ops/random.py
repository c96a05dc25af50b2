"""Random numbers: of a distribution, and bits as a function of a state.

Source: XLA "RngUniform", "RngNormal", "RngBitGenerator" and, of the first edition, "RngBernoulli"; Salmon et al.,
"Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from hloforge.dialect.constants import constant, scalar_operand
from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.emission import emit, emit_all, enum
from hloforge.dialect.errors import OperationError
from hloforge.dialect.op import FLOAT, INTEGER, PRED, describe, op
from hloforge.dialect.ops.comparison import lt
from hloforge.dialect.ops.conversion import convert_element_type
from hloforge.dialect.ops.shape import broadcast_in_dim
from hloforge.dialect.rules import parsed_shape, scalar
from hloforge.dialect.shapes import Shape
from hloforge.dialect.values import Operand, TupleValue, Value

_UNIFORM = PRED | INTEGER | FLOAT
# The sizes of the states that XLA takes; DEFAULT is the backend's choice among the two.
_STATE_SIZES = {"DEFAULT": (2, 3), "THREE_FRY": (2,), "PHILOX": (2, 3)}


@op("RngUniform", emits="stablehlo.rng", on=_UNIFORM)
def rng_uniform(a: Operand, b: Operand, shape: Shape | str) -> Value:
    """Random numbers that are equally likely in the whole interval from ``a`` to below ``b``.

    Two of these operations give different numbers, and so do two iterations of a loop and two calls of a program.
    Loaded again, a program that hloforge compiled starts with the same numbers again; those of another engine differ.
    Where numbers must follow from a state, ``rng_bit_generator`` makes them.

    Args:
        a: the lower end, a scalar of the result's element type; a number takes it.
        b: the upper end, likewise; the result is undefined if it is not above ``a``.
        shape: of the result: pred, integers or floats; text is parsed.

    Returns:
        An array of that shape.

    Raises:
        OperationError: the shape is malformed, dynamic or of other elements, or an end is no scalar of its element
            type.

    Example:
        >>> x = rng_uniform(2.0, 3.0, "f32[1000]")
        >>> reduce(and_(x >= 2.0, x < 3.0), True, and_, [0])
        True
    """
    return _rng("UNIFORM", _wanted(shape, _UNIFORM), a=a, b=b)


@op("RngNormal", emits="stablehlo.rng", on=FLOAT)
def rng_normal(mu: Operand, sigma: Operand, shape: Shape | str) -> Value:
    """Random numbers of the normal distribution; different ones each time, as of ``rng_uniform``.

    Args:
        mu: their mean, a scalar of the result's element type; a number takes it.
        sigma: their standard deviation, likewise.
        shape: of the result, floats; text is parsed.

    Returns:
        An array of that shape.

    Raises:
        OperationError: the shape is malformed, dynamic or not of floats, or a parameter is no scalar of its element
            type.

    Example:
        >>> x = rng_normal(0.0, 2.0, "f32[10000]")
        >>> abs(reduce(x, 0.0, add, [0]) / 10000.0) < 0.2
        True
    """
    return _rng("NORMAL", _wanted(shape, FLOAT), mu=mu, sigma=sigma)


@op(
    "RngBernoulli",
    emits=("stablehlo.rng", "stablehlo.compare", "stablehlo.convert"),
    on={"f32"},
    hlo="rng",
)
def rng_bernoulli(mean: Operand, shape: Shape | str) -> Value:
    """Random ones and zeros; different ones each time, as of ``rng_uniform``.

    An operation of XLA's first edition: a comparison of uniform numbers says it today.

    Args:
        mean: how likely a one is, an f32 scalar; a number takes that type.
        shape: of the result, u32; text is parsed.

    Returns:
        An array of that shape.

    Raises:
        OperationError: the shape is malformed, dynamic or not of u32, or ``mean`` is no f32 scalar.

    Example:
        >>> rng_bernoulli(1.0, "u32[3]")
        [1 1 1]
    """
    result = _wanted(shape, frozenset({"u32"}))
    f32 = element_type("f32")
    likely = scalar_operand(mean, f32)
    scalar(likely, "mean", f32)
    numbers = _rng("UNIFORM", Shape(f32, result.dimensions, layout=result.layout), a=0.0, b=1.0)
    ones = lt(numbers, broadcast_in_dim(likely, result.dimensions, ()))
    return convert_element_type(ones, "u32")


@op("RngBitGenerator", emits="stablehlo.rng_bit_generator", on={"u64"})
def rng_bit_generator(algorithm: str, initial_state: Value, shape: Shape | str) -> TupleValue:
    """Random bits as a function of a state, and the state for the next call.

    Args:
        algorithm: THREE_FRY, PHILOX, or DEFAULT for the target's own choice (on CPUs PHILOX).
        initial_state: ``u64[2]``, a key and a counter; PHILOX takes ``u64[3]`` as well, with a counter of 128 bits,
            its low half first.
        shape: of the bits; text is parsed. Element types other than unsigned integers represent the unsigned one of
            the same width, as in XLA's builder.

    Returns:
        ``(state, bits)``: of the state's shape, and an array of unsigned integers.

    Raises:
        OperationError: there is no such algorithm, the state is no vector of u64 of its size, or the shape is
            malformed, dynamic, or of elements of 1 or 128 bits.

    Example:
        >>> rng_bit_generator("PHILOX", constant([0, 0], "u64"), "u32[4]")
        [0 1]
        [1713891541 3781805453 3159862348 2600524760]
    """
    kind = algorithm.upper()
    if kind not in _STATE_SIZES:
        raise OperationError(f"algorithm {algorithm!r} must be one of {', '.join(_STATE_SIZES)}")
    state = initial_state.shape
    if initial_state.element_type.name != "u64" or initial_state.rank != 1 or not _fits(state, _STATE_SIZES[kind]):
        sizes = " or ".join(f"u64[{size}]" for size in _STATE_SIZES[kind])
        raise OperationError(f"the state of {kind} must be {sizes}, not {state}")
    wanted = _static(shape)
    bits = Shape(_unsigned(wanted), wanted.dimensions, layout=wanted.layout)
    return TupleValue(
        emit_all(
            "stablehlo.rng_bit_generator",
            [initial_state],
            [state, bits],
            rng_algorithm=enum("rng_algorithm", kind),
        )
    )


def _rng(distribution: str, shape: Shape, **parameters: Operand) -> Value:
    assert shape.element is not None
    operands = []
    for name, parameter in parameters.items():
        value = scalar_operand(parameter, shape.element)
        scalar(value, name, shape.element)
        operands.append(value)
    sizes = constant(list(shape.dimensions), "s64")
    return emit("stablehlo.rng", [*operands, sizes], shape, rng_distribution=enum("rng_distribution", distribution))


def _wanted(shape: Shape | str, accepted: frozenset[str]) -> Shape:
    """The shape of a result whose elements must be among the accepted ones."""
    result = _static(shape)
    if str(result.element) not in accepted:
        raise OperationError(f"the result must hold {describe(accepted)}, not {result.element}")
    return result


def _static(shape: Shape | str) -> Shape:
    result = parsed_shape(shape)
    if result.element is None:
        raise OperationError(f"shape must be an array's, not {result}")
    if not result.is_static:
        raise OperationError(
            f"shape must be static, not {result}", hint="declare padding with set_dimension_size afterwards"
        )
    return result


def _fits(state: Shape, sizes: tuple[int, ...]) -> bool:
    return state.dimensions[0] < 0 or state.dimensions[0] in sizes


def _unsigned(shape: Shape) -> ElementType:
    """The unsigned integers of the width of the shape's elements."""
    row = shape.element
    assert row is not None
    if row.kind is Kind.PRED or row.bits > 64:
        raise OperationError(f"there are no unsigned integers of the width of {row}", hint="ask for u8 to u64")
    return element_type(f"u{row.bits}")
