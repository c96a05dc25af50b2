"""Between which numbers the elements of an array lie, unless they are NaN (interval arithmetic on the program's graph).

The exponential of what is not positive, as that of a softmax, overflows nowhere, and a quotient of numbers that are
neither large nor small needs no special cases. The graph decides, and not the loop that computes something. Bounds of
sums, products and functions are those of exact numbers: they say how large numbers are, and which sign they have, but
not to the last place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from hloforge.pipelines.codegen.elements.kinds import Range
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.row_blocks import is_orderless
from hloforge.pipelines.codegen.splats import splat_of

Bounds: TypeAlias = tuple[float, float]

_ANY: Bounds = (-math.inf, math.inf)
# How many operations are looked through.
_DEEPEST = 12
# From where on a number of a type is as good as infinite.
_LARGE = {"f16": 6e4, "bf16": 1e30, "f32": 1e30, "f64": 1e30}
_MOVES = frozenset(
    ["broadcast_in_dim", "reshape", "slice", "transpose", "reverse", "dynamic_slice", "gather", "convert"]
)
_BOUNDED: dict[str, Bounds] = {"logistic": (0, 1), "tanh": (-1, 1), "sine": (-1, 1), "cosine": (-1, 1)}
_ROUNDINGS = frozenset({"floor", "ceil", "round_nearest_even", "round_nearest_afz"})


def range_of(array: Array) -> Range:
    """What an element may be."""
    return _range(array, _DEEPEST, {})


def _range(array: Array, deep: int, seen: dict[Array, Range]) -> Range:
    found = seen.get(array)
    if found is None:
        found = seen[array] = _found(array, deep, seen)
    return found


def _found(array: Array, deep: int, seen: dict[Array, Range]) -> Range:
    large, op = _LARGE.get(array.element), array.op
    if large is None:
        low, high = _of_integers(array.element)
        if op is not None and deep and op.name in _MOVES and op.operands[0].element not in _LARGE:
            inner = _range(op.operands[0], deep - 1, seen)
            if low <= inner.low and inner.high <= high:
                return inner
        return Range(low, high, math.isfinite(low))
    if op is None or not deep:
        return Range()
    operands = [_range(operand, deep - 1, seen) for operand in _numbers_of(op)]
    low, high = _made(op, operands)
    low, high = (low if low > -large else -math.inf), (high if high < large else math.inf)
    is_number = all(one.is_number for one in operands) and math.isfinite(low) and math.isfinite(high)
    return Range(low, high, is_number and not (op.name == "sqrt" and operands[0].low < 0))


def _of_integers(element: str) -> Bounds:
    bits = element.removeprefix("u").removeprefix("i")
    if not bits.isdecimal():
        return _ANY
    if element.startswith("u") or bits == "1":
        return 0, 2.0 ** int(bits)
    return -(2.0 ** (int(bits) - 1)), 2.0 ** (int(bits) - 1)


def _numbers_of(op: Op) -> Sequence[Array]:
    """Operands that are no places and no flags."""
    if op.name in _MOVES:
        return op.operands[:1]
    return op.operands[1:] if op.name == "select" else op.operands


def _made(op: Op, operands: Sequence[Range]) -> Bounds:
    """The bounds of the result of an operation of floats."""
    if op.name == "constant":
        number = float(splat_of(op)) if op.is_splat else math.nan
        return _ANY if math.isnan(number) else (number, number)
    if op.name == "reduce":
        return _reduced(op, operands)
    if op.name in _BOUNDED:
        return _BOUNDED[op.name]
    bounds = [(one.low, one.high) for one in operands]
    rule = _RULES.get(op.name)
    if rule is None:
        return bounds[0] if op.name in _MOVES else _ANY
    low, high = rule(bounds)
    if op.name == "multiply" and op.operands[0] is op.operands[1]:
        low = max(low, 0)
    if op.name == "subtract" and _is_greatest_of(op.operands[0], op.operands[1]):
        high = min(high, 0)
    return low, high


def _reduced(op: Op, operands: Sequence[Range]) -> Bounds:
    if len(operands) != 2 or not is_orderless(op) or not op.operands[0].elements:
        return _ANY
    terms, start = ((one.low, one.high) for one in operands)
    count = math.prod(op.operands[0].shape[d] for d in op.integers("dimensions"))
    name = op.inner[0].ops[0].name
    if name == "add":
        low, high = _sum([(_product(terms[0], count), _product(terms[1], count)), start])
        return (max(low, 1), high) if low >= 0 and _has_one(op) else (low, high)
    return _RULES[name]([terms, start]) if name in ("minimum", "maximum") else _ANY


def _has_one(op: Op) -> bool:
    """Whether each sum has a term of 1: the exponential of an element less the greatest of those that are summed."""
    term = op.operands[0].op
    less = term.operands[0].op if term is not None and term.name == "exponential" else None
    if less is None or less.name != "subtract":
        return False
    return _is_greatest_of(less.operands[0], less.operands[1], among=op.integers("dimensions"))


def _product(x: float, y: float) -> float:
    return x * y if x and y else 0.0


def _sum(ranges: Sequence[Bounds]) -> Bounds:
    (low, high), (other_low, other_high) = ranges
    return low + other_low, high + other_high


def _difference(ranges: Sequence[Bounds]) -> Bounds:
    (low, high), (other_low, other_high) = ranges
    return low - other_high, high - other_low


def _ends(numbers: Iterable[float]) -> Bounds:
    found = list(numbers)
    return min(found), max(found)


def _multiplied(ranges: Sequence[Bounds]) -> Bounds:
    left, right = ranges
    return _ends(_product(x, y) for x in left for y in right)


def _divided(ranges: Sequence[Bounds]) -> Bounds:
    left, right = ranges
    if right[0] <= 0 <= right[1]:
        # Also by a zero of either sign.
        return _ANY
    return _ends(_product(x, 1 / y) for x in left for y in right)


def _magnitude(ranges: Sequence[Bounds]) -> Bounds:
    ((low, high),) = ranges
    return max(low, -high, 0), max(-low, high)


def _exponential(ranges: Sequence[Bounds]) -> Bounds:
    ((low, high),) = ranges
    # What is small may be 0.
    return math.exp(low) if -50 < low < 50 else 0, math.exp(high) if high < 50 else math.inf


def _rounded(ranges: Sequence[Bounds]) -> Bounds:
    ((low, high),) = ranges
    return (math.floor(low) if math.isfinite(low) else low), (math.ceil(high) if math.isfinite(high) else high)


def _either(ranges: Sequence[Bounds]) -> Bounds:
    return min(low for low, _ in ranges), max(high for _, high in ranges)


def _clamped(ranges: Sequence[Bounds]) -> Bounds:
    low, value, high = ranges
    return _RULES["minimum"]([_RULES["maximum"]([low, value]), high])


_RULES: dict[str, Callable[[Sequence[Bounds]], Bounds]] = {
    "add": _sum,
    "subtract": _difference,
    "multiply": _multiplied,
    "divide": _divided,
    "negate": lambda ranges: (-ranges[0][1], -ranges[0][0]),
    "abs": _magnitude,
    "sqrt": lambda ranges: (0, math.sqrt(max(ranges[0][1], 0))),
    "exponential": _exponential,
    "minimum": lambda ranges: (min(ranges[0][0], ranges[1][0]), min(ranges[0][1], ranges[1][1])),
    "maximum": lambda ranges: (max(ranges[0][0], ranges[1][0]), max(ranges[0][1], ranges[1][1])),
    "clamp": _clamped,
    **dict.fromkeys(("select", "concatenate", "pad"), _either),
    **dict.fromkeys(_ROUNDINGS, _rounded),
}


def _is_greatest_of(array: Array, taken: Array, among: Sequence[int] | None = None) -> bool:
    """Whether each element of an array meets a number that none of some elements is above, of which it is one.

    Args:
        among: dimensions of the array; then it has to be the greatest of those along them, and no greater number.
    """
    dims: list[int | None] = list(range(array.rank))
    op = taken.op
    while op is not None and op.name in ("broadcast_in_dim", "reshape"):
        (source,) = op.operands
        if op.name == "broadcast_in_dim":
            places = zip(op.integers("broadcast_dimensions"), source.shape, strict=True)
            dims = [dims[dim] if size > 1 else None for dim, size in places]
        else:
            long = [(size, dim) for size, dim in zip(taken.shape, dims, strict=True) if size > 1]
            if [size for size, _ in long] != [size for size in source.shape if size > 1]:
                return False
            rest = iter(dim for _, dim in long)
            dims = [next(rest) if size > 1 else None for size in source.shape]
        taken, op = source, source.op
    if op is None or op.name != "reduce" or len(op.operands) != 2 or op.operands[0] is not array:
        return False
    if not is_orderless(op):
        return False
    reduced = op.integers("dimensions")
    kept = [dim for dim in range(array.rank) if dim not in reduced]
    own = all(size == 1 or dim == one for size, dim, one in zip(taken.shape, dims, kept, strict=True))
    start = range_of(op.operands[1])
    is_exact = among is None or (set(reduced) <= set(among) and start.high == -math.inf)
    return op.inner[0].ops[0].name == "maximum" and own and is_exact
