"""``legalize-extreme-places``: the place of an extreme (argmax, argmin) is the first one that has the extreme.

Before, one reduction of pairs, whose region keeps the larger number, of equal ones the one that comes first, and NaN::

    %v, %p = stablehlo.reduce(%x init: -inf), (%iota init: 0) across dimensions = [1] reducer(...)
      : (tensor<32x1000xf32>, tensor<32x1000xi32>, ...) -> (tensor<32xf32>, tensor<32xi32>)

After, two reductions of numbers, if nothing reads ``%v``::

    %m    = stablehlo.reduce(%x init: -inf) applies stablehlo.maximum across dimensions = [1]
    %same = stablehlo.compare EQ, %x, (broadcast %m)
    %nan  = stablehlo.compare NE, %x, %x
    %i    = stablehlo.select (%same or %nan), %iota, 1000
    %p    = stablehlo.reduce(%i init: 1000) applies stablehlo.minimum across dimensions = [1]

Pairs wait for each other: a comparison, two choices, and what ends NaN and ties. Extremes of numbers are vectors of one
instruction. What a region keeps is found by running it on all relations that two numbers can have, as it only compares
and chooses. ``%x`` is in memory (``OF_EXTREME``) unless it is the same in every loop that computes it: a sum of a
product may be rounded once or twice, and none would be the extreme then. Pairs stay where that memory would be large
and ``%x`` is computed of little, such as each of some numbers with each of others. Source: StableHLO spec "reduce".
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hloforge.dialect import ops
from hloforge.dialect.constants import full
from hloforge.dialect.dense_values import constant_of
from hloforge.dialect.element_types import ElementType, Kind, element_type
from hloforge.dialect.marks import OF_EXTREME
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import is_static
from hloforge.pipelines.codegen.passes.few_terms import has_few_terms
from hloforge.pipelines.decompose.scatter_combiner import identity_of
from hloforge.pipelines.evaluation.arithmetic import ARITHMETIC
from hloforge.pipelines.evaluation.plan import Plan, Planner, UnplannedError
from hloforge.pipelines.framework.passes import PatternPass, register
from hloforge.pipelines.framework.patterns import NoMatch, Pattern, Replacement, pattern

# What a region may do for its relations to tell all: it makes no number of its own.
_CHOICES = frozenset(
    f"stablehlo.{name}" for name in ["compare", "select", "and", "or", "not", "maximum", "minimum", "return"]
)
_FLOATS = frozenset({"bf16", "f16", "f32", "f64"})
# Places are counted in 32 bits.
_MOST = 1 << 31
# Operations whose elements are views or whose results are the same in every loop, products with sums apart.
_MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("broadcast_in_dim", "concatenate", "constant", "dynamic_slice", "gather", "iota", "pad", "reshape"),
        *("reverse", "slice", "transpose"),
    )
)
_EXACT = _MOVES | frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "add", "and", "clamp", "compare", "convert", "is_finite", "maximum", "minimum", "multiply"),
        *("negate", "not", "or", "select", "sign", "subtract", "xor"),
    )
)
_SUMS = frozenset({"stablehlo.add", "stablehlo.subtract"})
# Operations whose results are in memory, also those of which other passes make sums.
_STORED = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("case", "cholesky", "fft", "if", "reduce_window", "scatter", "select_and_scatter", "sort"),
        *("triangular_solve", "while"),
    )
)
_REDUCED = frozenset({"stablehlo.convolution", "stablehlo.dot_general", "stablehlo.reduce"})
# Elements of an array, and how many times those that it is computed of, from which on memory for it is too much.
_LARGE, _TIMES = 1 << 18, 4
# Operations that are looked at.
_MOST_SEEN = 500


@dataclass(frozen=True)
class _Rule:
    """Which place a region keeps: of the largest or the smallest number, of equal ones the first or the last."""

    is_largest: bool
    is_first: bool


def _is_sum(op: ir.Operation) -> bool:
    """Whether a product is computed where it is read."""
    return op.name == "stablehlo.dot_general" and is_static(op) and has_few_terms(op)


@dataclass(frozen=True)
class _Made:
    """How an array is made.

    Attributes:
        is_exact: whether every loop that computes it finds the same numbers.
        is_expansion: whether it is large, and computed of much smaller arrays.
    """

    is_exact: bool
    is_expansion: bool

    @staticmethod
    def of(value: SSAValue) -> _Made:
        """Look at the operations up to arrays that are in memory anyway."""
        seen, waiting, names, sources = {value}, [value], set(), 0
        while waiting and len(seen) < _MOST_SEEN:
            one = waiting.pop()
            op = None if isinstance(one.owner, ir.Block) else one.owner.operation
            if op is None or op.name in _STORED:
                sources += Value(one).shape.element_count
                continue
            if Value(one).element_type.is_float or op.name not in _EXACT:
                names.add(op.name)
            if op.name in _REDUCED and not _is_sum(op):
                sources += Value(one).shape.element_count
                continue
            fresh = [operand for operand in op.operands if operand not in seen]
            seen.update(fresh)
            waiting += fresh
        is_contracted = "stablehlo.multiply" in names and not names.isdisjoint(_SUMS)
        count = Value(value).shape.element_count
        return _Made(
            not waiting and names <= _EXACT and not is_contracted,
            not waiting and count > max(_LARGE, _TIMES * sources),
        )


@pattern("stablehlo.reduce")
def place_of_extreme(op: ir.Operation) -> Replacement:
    """The place alone, of the numbers' extreme."""
    if len(op.results) != 2 or not is_static(op):
        return NoMatch("no pair, or of unknown size")
    dims = list(ir.DenseI64ArrayAttr(op.attributes["dimensions"]))
    if len(dims) != 1:
        return NoMatch("along several dimensions")
    along = dims[0]
    place = next((number for number in (0, 1) if _counts_along(op.operands[number], along)), None)
    if place is None or next(iter(op.results[1 - place].uses), None) is not None:
        return NoMatch("neither number is the place, or the extreme itself is read")
    array, start, kind = Value(op.operands[1 - place]), op.operands[3 - place], Value(op.results[place]).element_type
    size = array.dims[along]
    if not 0 < size < _MOST or not (
        array.element_type.is_integer or array.element_type.kind is Kind.PRED or array.element_type.name in _FLOATS
    ):
        return NoMatch("of no elements, or of another type")
    rule = _rule(op.regions[0].blocks[0], place, array.element_type)
    if (
        rule is None
        or not _is(start, identity_of("maximum" if rule.is_largest else "minimum", array.element_type))
        or not _is(op.operands[2 + place], 0)
    ):
        return NoMatch("it keeps something else")
    made = _Made.of(array.ir)
    if made.is_expansion and not made.is_exact:
        return NoMatch("memory for it would be large beside what it is computed of")
    extreme = ops.reduce(array, Value(start), ops.max if rule.is_largest else ops.min, [along])
    kept = [d for d in range(array.rank) if d != along]
    found = ops.eq(array, ops.broadcast_in_dim(extreme, array.dims, kept))
    if not made.is_exact:
        found.ir.owner.attributes[OF_EXTREME] = ir.UnitAttr.get()
    if array.element_type.is_float:
        found = found | ops.ne(array, array)
    counted = ops.iota(element_type("s32"), array.dims, along)
    none, first = (size, ops.min) if rule.is_first else (-1, ops.max)
    result = ops.convert_element_type(
        ops.reduce(ops.select(found, counted, full(counted, none)), none, first, [along]), kind
    )
    return [result, extreme] if place == 0 else [extreme, result]


def _counts_along(value: SSAValue, dim: int) -> bool:
    """Whether the elements of an array are the places along a dimension."""
    if (op := defining_op(value, "stablehlo.iota")) is not None:
        return ir.IntegerAttr(op.attributes["iota_dimension"]).value == dim
    if (op := defining_op(value, "stablehlo.broadcast_in_dim")) is not None:
        places = list(ir.DenseI64ArrayAttr(op.attributes["broadcast_dimensions"]))
        return dim in places and _counts_along(op.operands[0], places.index(dim))
    return False


def _rule(block: ir.Block, place: int, row: ElementType) -> _Rule | None:
    """What a region keeps; None if it is another function."""
    if any(op.operation.name not in _CHOICES for op in block.operations):
        return None
    planner = Planner({}, ARITHMETIC, {})
    try:
        plan = Plan(planner.body(block), planner.size)
    except UnplannedError:
        return None
    numbers = [-1.0, -0.0, 0.0, 1.0, np.nan] if row.is_float else [False, True] if row.kind is Kind.PRED else [1, 2]
    pairs = list(itertools.product(numbers, numbers))
    left, right = (np.array([pair[side] for pair in pairs], row.dtype) for side in (0, 1))
    places = Value(block.arguments[place]).element_type.dtype

    def kept(mine: int, other: int) -> tuple[Any, Any]:
        """The numbers and the places that stay of all pairs at two places."""
        sides = ((left, np.full(len(pairs), mine, places)), (right, np.full(len(pairs), other, places)))
        found = plan([side[number if place else 1 - number] for side in sides for number in (0, 1)])
        return (found[0], found[1]) if place else (found[1], found[0])

    before, after = kept(1, 2), kept(2, 1)
    for rule in itertools.starmap(_Rule, itertools.product((True, False), repeat=2)):
        if _keeps(rule, left, right, before) and _keeps(rule, right, left, after, is_turned=True):
            return rule
    return None


def _keeps(rule: _Rule, first: Any, second: Any, kept: tuple[Any, Any], *, is_turned: bool = False) -> bool:
    """Whether what stays of pairs at the places 1 and 2 is what a rule says.

    Args:
        is_turned: whether the later one is the region's left side. Then ties are open, because elements are reduced in
            their order.
    """
    values, places = kept
    with np.errstate(invalid="ignore"):
        is_first = (first > second if rule.is_largest else first < second) | (first != first)
        is_second = (second > first if rule.is_largest else second < first) | (second != second)
    is_open = (is_first == is_second) & is_turned
    wins = np.where(is_first == is_second, rule.is_first, is_first)
    chosen = np.where(wins, first, second)
    same = (values == chosen) | ((values != values) & (chosen != chosen))
    return bool(np.all(same & (is_open | (places == np.where(wins, 1, 2)))))


def _is(value: SSAValue, wanted: Any) -> bool:
    """Whether a value is a constant of this number."""
    op = defining_op(value, "stablehlo.constant")
    return op is not None and bool(np.all(np.asarray(constant_of(op)) == wanted))


@register
@dataclass(frozen=True)
class LegalizeExtremePlaces(PatternPass):
    """Places of extremes are found by two reductions of numbers."""

    name: ClassVar[str] = "legalize-extreme-places"
    patterns: ClassVar[tuple[Pattern, ...]] = place_of_extreme
