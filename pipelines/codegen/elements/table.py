"""The table of elementwise operations: which element types each is built for, and by which function.

Names are StableHLO's and CHLO's without prefix, types are MLIR's. A pass takes apart before what the table refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, mul, sub
from typing import Any, TypeAlias

from hloforge.pipelines.codegen.elements import (
    arctangent,
    comparisons,
    complex_functions,
    complex_numbers,
    conversions,
    double_angles,
    error_functions,
    exponentials,
    hyperbolics,
    integers,
    logarithms,
    powers,
    remainders,
    roots,
    rounding,
    trigonometric,
)
from hloforge.pipelines.codegen.elements.kinds import (
    ANY,
    COMPLEX,
    COMPLEX_SINGLE,
    DOUBLE,
    HALF,
    INTEGERS,
    PRED,
    REALS,
    SIGNED,
    SINGLE,
    UNSIGNED,
    Element,
    Range,
    class_of,
    is_signed,
    pair,
    part_of,
    single,
)
from hloforge.pipelines.codegen.elements.narrow import rounded
from hloforge.pipelines.codegen.lang.values import Value, bits_of

__all__ = ["apply", "supports"]

# Operations whose code depends on how many elements they have.
SIZED: set[str] = set()


@dataclass(frozen=True)
class Call:
    """An operation on elements.

    Attributes:
        operands: the elements.
        types: of the operands.
        result: its element type.
        attributes: of the operation.
    """

    operands: Sequence[Element]
    types: Sequence[str]
    result: str
    attributes: Mapping[str, object]

    @property
    def signed(self) -> bool:
        return is_signed(self.types[0])

    def values(self) -> list[Value]:
        """The operands, which are numbers."""
        return [single(operand) for operand in self.operands]

    def number(self, name: str) -> int:
        """An integer attribute."""
        value = self.attributes[name]
        assert isinstance(value, int)
        return value


Rule: TypeAlias = Callable[[Call], Element]

# Arrays that are no longer have no vectors to speak of.
_FEW_BITS = 256
_EVERY = PRED + INTEGERS + REALS + COMPLEX
_NARROW = HALF + SINGLE
_CONTRACTED: dict[str, Callable[[Value, Value], Value]] = {"add": add, "sub": sub, "mul": mul}
# By operation: rows of the classes of the first operand, and what builds them.
_RULES: dict[str, list[tuple[str, Rule]]] = {}


def _add(names: str, classes: str, rule: Rule) -> None:
    for name in names.split():
        _RULES.setdefault(name, []).append((classes, rule))


def _is_few(call: Call) -> bool:
    """Whether the operation's arrays are short, which decides for all that compute it: they have the same bits."""
    elements = call.attributes.get("elements", _FEW_BITS)
    assert isinstance(elements, int)
    return elements * bits_of(call.values()[0].kind) <= _FEW_BITS


def _add_of_few_or_many(name: str, classes: str, few: Callable[..., Value], many: Callable[..., Value]) -> None:
    """A function of floats that has other code where time is what follows waits for."""

    def rule(call: Call) -> Element:
        return rounded((few if _is_few(call) else many)(*call.values()), part_of(call.result))

    _add(name, classes, rule)
    SIZED.add(name)


def _add_with_branches(
    name: str, classes: str, function: Callable[..., Value], simple: Callable[..., Value | None] = lambda *_: None
) -> None:
    """A function of floats that branches, so that LLVM makes no vectors of it; loops call it with vectors.

    Args:
        simple: the same by code without branches, or None.
    """

    def rule(call: Call) -> Element:
        values = call.values()
        made = simple(*values)
        if made is None:
            made = function(*values) if _is_few(call) else values[0].function.vectorizable_call(name, values, function)
        return rounded(made, part_of(call.result))

    _add(name, classes, rule)
    SIZED.add(name)


def _of_values(function: Callable[..., Value]) -> Rule:
    """A function of numbers whose result is not rounded."""
    return lambda call: function(*call.values())


def _of_floats(function: Callable[..., Value]) -> Rule:
    """A function of floats, rounded to half precision."""
    return lambda call: rounded(function(*call.values()), part_of(call.result))


def _arithmetic(name: str) -> Rule:
    """A sum, difference or product of floats, contracted only where the graph says so (``emit.contracts``)."""

    def rule(call: Call) -> Element:
        x, y = call.values()
        made = _CONTRACTED[name](x, y) if call.attributes.get("contracts") else x.literally(name, y)
        return rounded(made, part_of(call.result))

    return rule


def _of_complex(function: Callable[..., Any]) -> Rule:
    return lambda call: function(*(pair(operand) for operand in call.operands))


def _of_integers(function: Callable[..., Value]) -> Rule:
    return lambda call: function(*call.values(), signed=call.signed)


def _extreme(greatest: bool) -> Rule:
    return lambda call: comparisons.extreme(call.operands[0], call.operands[1], call.types[0], greatest=greatest)


def _compare(call: Call) -> Element:
    direction, kind = call.attributes["comparison_direction"], call.attributes.get("compare_type") or "NOTYPE"
    x, y = call.operands
    return comparisons.compare(x, y, call.types[0], str(direction), str(kind))


def _clamp(call: Call) -> Element:
    low, value, high = call.operands
    element = call.types[1]
    above = comparisons.extreme(value, low, element, greatest=True)
    return comparisons.extreme(above, high, element, greatest=False)


def _select(call: Call) -> Element:
    flag, yes, no = call.operands
    return comparisons.select(single(flag), yes, no)


def _convert(call: Call) -> Element:
    known = call.attributes.get("range", ANY)
    assert isinstance(known, Range)
    return conversions.convert(call.operands[0], call.types[0], call.result, known)


def _bitcast(call: Call) -> Element:
    return conversions.bitcast(call.operands[0], call.types[0], call.result)


def _reduce_precision(call: Call) -> Element:
    (x,) = call.values()
    return conversions.reduce_precision(x, call.number("exponent_bits"), call.number("mantissa_bits"), call.types[0])


def _real(call: Call) -> Element:
    value = call.operands[0]
    return value[0] if isinstance(value, tuple) else value


def _imaginary(call: Call) -> Element:
    value = call.operands[0]
    return value[1] if isinstance(value, tuple) else value.like(0.0)


def _complex(call: Call) -> Element:
    real, imaginary = call.values()
    return real, imaginary


def _square(call: Call) -> Element:
    return apply("multiply", [call.operands[0]] * 2, [call.types[0]] * 2, call.result, {})


def _identity(call: Call) -> Element:
    return call.operands[0]


def _exponential(call: Call) -> Element:
    is_negative = call.attributes.get("is_never_positive")
    function = exponentials.exponential_of_negative if is_negative else exponentials.exponential
    return _of_floats(function)(call)


def _sign(call: Call) -> Element:
    return integers.sign(*call.values(), signed=call.signed)


_add("add maximum or", PRED, _of_values(lambda x, y: x | y))
_add("multiply minimum and", PRED, _of_values(lambda x, y: x & y))
_add("and", INTEGERS, _of_values(lambda x, y: x & y))
_add("or", INTEGERS, _of_values(lambda x, y: x | y))
_add("xor", PRED + INTEGERS, _of_values(lambda x, y: x ^ y))
_add("not", PRED + INTEGERS, _of_values(lambda x: ~x))
_add("add", INTEGERS, _of_values(lambda x, y: x + y))
_add("add", REALS, _arithmetic("add"))
_add("subtract", INTEGERS, _of_values(lambda x, y: x - y))
_add("subtract", REALS, _arithmetic("sub"))
_add("multiply", INTEGERS, _of_values(lambda x, y: x * y))
_add("multiply", REALS, _arithmetic("mul"))
_add("negate", INTEGERS + REALS, _of_values(lambda x: -x))
_add("divide", INTEGERS, _of_integers(integers.divide))
_add("divide", REALS, _of_floats(lambda x, y: x / y))
_add("remainder", INTEGERS, _of_integers(integers.remainder))
_add("power", INTEGERS, _of_values(integers.power))
_add("abs", SIGNED, _of_values(integers.absolute))
_add("abs", UNSIGNED, _identity)
_add("abs", REALS, _of_values(lambda x: x.call("fabs")))
_add("sign", INTEGERS, _sign)
_add("sign", REALS, _of_values(rounding.sign))
_add("popcnt", INTEGERS, _of_values(lambda x: x.call("ctpop")))
_add("count_leading_zeros", INTEGERS, _of_values(lambda x: x.call("ctlz")))
_add("shift_left", INTEGERS, _of_values(integers.shift_left))
_add("shift_right_logical", INTEGERS, _of_values(integers.shift_right_logical))
_add("shift_right_arithmetic", INTEGERS, _of_values(integers.shift_right_arithmetic))

_add("maximum", INTEGERS + REALS + COMPLEX, _extreme(greatest=True))
_add("minimum", INTEGERS + REALS + COMPLEX, _extreme(greatest=False))
_add("compare", _EVERY, _compare)
_add("convert", _EVERY, _convert)
_add("bitcast_convert", _EVERY, _bitcast)
_add("reduce_precision", REALS, _reduce_precision)

_add("ceil", REALS, _of_values(rounding.ceil))
_add("floor", REALS, _of_values(rounding.floor))
_add("round_nearest_even", REALS, _of_values(rounding.nearest_even))
_add("round_nearest_afz", REALS, _of_values(rounding.nearest_away))
_add("is_finite", REALS, _of_values(rounding.is_finite))

_add("exponential", REALS, _exponential)
_add("exponential_minus_one", REALS, _of_floats(exponentials.exponential_minus_one))
_add("logistic", REALS, _of_floats(exponentials.logistic))
_add("tanh", REALS, _of_floats(exponentials.hyperbolic_tangent))
_add("sinh", REALS, _of_floats(hyperbolics.hyperbolic_sine))
_add("cosh", REALS, _of_floats(hyperbolics.hyperbolic_cosine))
_add("log", _NARROW, _of_floats(logarithms.log))
_add_of_few_or_many("log", DOUBLE, logarithms.log_of_few, logarithms.log)
_add("log_plus_one", _NARROW, _of_floats(logarithms.log_plus_one))
_add_of_few_or_many("log_plus_one", DOUBLE, logarithms.log_plus_one_of_few, logarithms.log_plus_one)
_add("sqrt", REALS, _of_floats(roots.square_root))
_add("rsqrt", REALS, _of_floats(roots.reciprocal_square_root))
_add("cbrt", _NARROW, _of_floats(roots.cube_root))
_add("cbrt", DOUBLE, _of_floats(roots.cube_root_of_doubles))
_add_with_branches("sine", _NARROW, trigonometric.sine)
_add_with_branches("sine", DOUBLE, double_angles.sine)
_add_with_branches("cosine", _NARROW, trigonometric.cosine)
_add_with_branches("cosine", DOUBLE, double_angles.cosine)
_add_with_branches("tan", _NARROW, trigonometric.tangent)
_add_with_branches("tan", DOUBLE, double_angles.tangent)
_add("atan2", _NARROW, _of_floats(arctangent.arc_tangent_2))
_add_with_branches("atan2", DOUBLE, arctangent.arc_tangent_2_of_doubles)
_add_with_branches("remainder", REALS, remainders.remainder)
_add("erf", REALS, _of_floats(error_functions.erf))
_add("erfc", REALS, _of_floats(error_functions.erfc))
_add("erf_inv", REALS, _of_floats(error_functions.erf_inv))
_add_with_branches("power", REALS, powers.power, powers.simple_power)
_add("square", INTEGERS + REALS + COMPLEX, _square)

_add("real", REALS + COMPLEX, _real)
_add("imag", REALS + COMPLEX, _imaginary)
_add("complex", REALS, _complex)
_add("add", COMPLEX, _of_complex(complex_numbers.add))
_add("subtract", COMPLEX, _of_complex(complex_numbers.subtract))
_add("multiply", COMPLEX, _of_complex(complex_numbers.multiply))
_add("divide", COMPLEX, _of_complex(complex_numbers.divide))
_add("negate", COMPLEX, _of_complex(complex_numbers.negate))
_add("abs", COMPLEX, _of_complex(complex_numbers.modulus))
_add("exponential", COMPLEX_SINGLE, _of_complex(complex_functions.exponential))
_add("log", COMPLEX_SINGLE, _of_complex(complex_functions.log))
_add("sqrt", COMPLEX_SINGLE, _of_complex(complex_functions.square_root))
_add("sign", COMPLEX, _of_complex(complex_numbers.sign))


def _rule(op: str, operands: Sequence[str]) -> Rule | None:
    if op in ("select", "clamp"):
        return _select if op == "select" else _clamp
    letter = class_of(operands[0])
    return next((rule for classes, rule in _RULES.get(op, ()) if letter in tuple(classes)), None)


def supports(op: str, operands: Sequence[str], result: str) -> bool:
    """Whether ``apply`` builds an operation of these element types."""
    if not all(map(class_of, (*operands, result))):
        return False
    if op == "bitcast_convert":
        return conversions.can_bitcast(operands[0], result)
    if op == "select":
        return operands[0] == "i1"
    return _rule(op, operands) is not None


def apply(
    op: str,
    operands: Sequence[Element],
    operand_types: Sequence[str],
    result_type: str,
    attributes: Mapping[str, object],
) -> Element:
    """An operation on elements, or on vectors of them.

    Args:
        op: its name without the dialect.
        operands: as ``kinds`` represents them; all single, or all vectors of as many lanes.
        operand_types: MLIR's names of their types.
        result_type: that of the result.
        attributes: ``comparison_direction`` and ``compare_type`` of ``compare`` as words, ``exponent_bits`` and
            ``mantissa_bits`` of ``reduce_precision``, ``elements`` of those in ``SIZED``, ``is_never_positive`` of
            ``exponential``, ``range`` of ``convert``.
    """
    rule = _rule(op, operand_types)
    if rule is None:
        raise ValueError(f"{op} of {', '.join(operand_types)} has no function of elements")
    return rule(Call(operands, operand_types, result_type, attributes))
