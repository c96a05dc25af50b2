"""``legalize-excess-precision``: bf16 in f32 where XLA's CPU client does not round.

Before::

    %m = stablehlo.multiply %x, %y : tensor<64x128xbf16>
    %w = stablehlo.convert %m : (tensor<64x128xbf16>) -> tensor<64x128xf32>

After: whoever converts a result to f32 takes it as it was, everybody else reads it rounded::

    %w = stablehlo.multiply (convert %x), (convert %y) : tensor<64x128xf32>
    %m = stablehlo.convert %w : (tensor<64x128xf32>) -> tensor<64x128xbf16>

XLA's rule, found by experiment with jaxlib 0.10.2:

1. Each operation on bf16 computes in f32 and rounds its result, except for readers that convert it to f32
   (``FloatNormalization`` drops their conversions). A program's own conversion from f32 to bf16 and back stays.
2. A reduction of at least 4,096 elements is its library's (YNN), with all that is computed for it alone: operations of
   ``_LIBRARY``, some views, products and further reductions, as long as all of their readers belong to it
   (``LibraryRewriter``). The library drops every conversion to bf16 and back inside, the program's own as well. At its
   border numbers are rounded: where arrays have fewer elements, where an operation is none of these or is computed
   before the loop, and after 95 operations of XLA's graph.
3. After a reduction of at least 4,096 results it goes on with what reads its last result, as long as that is one
   operation of XLA's graph and one of its own, and then with what is computed for that alone. The conversion to bf16 is
   such an operation, and the one back that its readers share is the next: what several operations read is not rounded
   either, unless one of them takes bf16 as it is (results, conversions, loops, maxima of arrays).
4. f16 is rounded after each operation, because neither of these takes it.

What is left in bf16 is rounded by ``codegen/elements``. Source: XLA "FloatNormalization", "LibraryRewriter",
"YnnMatcher".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.computations import fill_region
from hloforge.dialect.emission import emit
from hloforge.dialect.mlir import AnyOp, in_context, ir, stablehlo
from hloforge.dialect.operations import block_of, defining_op, integers, operations, stands_in, types_of
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import ROUNDING, combiner, names_an_algorithm
from hloforge.pipelines.codegen.passes.fold_constants import FoldConstants
from hloforge.pipelines.framework.facts import NORMALIZED, Facts
from hloforge.pipelines.framework.passes import NativePass, Pass, register

# Elements from which on an operation is worth YNN's time, and operations that it takes at most.
_LEAST, _MOST = 4096, 95


def _names(text: str) -> frozenset[str]:
    return frozenset(f"stablehlo.{name}" for name in text.split())


_CONVERT, _COMPARE = "stablehlo.convert", "stablehlo.compare"
# XLA has operations of its own for these; the others are taken apart before it normalizes floats.
_CHLO = frozenset({"chlo.erf", "chlo.square"})
_REDUCTIONS = _names("reduce reduce_window")
_PRODUCTS = _names("convolution dot dot_general")
# What YNN computes beside a reduction, of at least so many elements.
_LIBRARY = _CHLO | _names(
    "abs add ceil convert divide exponential exponential_minus_one floor log log_plus_one logistic maximum minimum "
    "multiply negate power round_nearest_even rsqrt sign sqrt subtract tanh"
)
_MOVES = _names("broadcast_in_dim iota pad reshape")
_SUMS, _EXTREMES = _names("add"), _names("maximum minimum")
# What gives a number of bf16 for numbers of bf16: there is nothing to round.
_EXACT = _names("abs ceil clamp compare floor maximum minimum negate round_nearest_afz round_nearest_even sign")
_ROUNDED = (frozenset(ROUNDING) | _PRODUCTS | _names("iota reduce") | _CHLO) - _EXACT
# What reads an array before it is rounded, if the library hands it on so. Others move numbers, which they round after.
_WIDENING = _PRODUCTS | _ROUNDED | _EXACT | _names("select")
# Conversions to f32 go through these.
_TRANSPARENT = _names("broadcast_in_dim reshape transpose")
# Operations that XLA does not give to FloatNormalization: they hand bf16 on as it is.
_BORDERS = _names("constant convert bitcast_convert custom_call while if case optimization_barrier get_tuple_element")
_ENDS = ("func.return", "stablehlo.return")
_HELD = ("func.func", "stablehlo.while", "stablehlo.case", "stablehlo.if")


def _element(value: Any) -> Any:
    return value.type.element_type if isinstance(value.type, ir.RankedTensorType) else None


def _is_of_bf16(type_: ir.Type) -> bool:
    return isinstance(type_, ir.RankedTensorType) and isinstance(type_.element_type, ir.BF16Type)


def _is_bf16(value: Any) -> bool:
    return _is_of_bf16(value.type)


def _is_f32(value: Any) -> bool:
    return isinstance(_element(value), ir.F32Type)


def _is_large(value: Any) -> bool:
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return False
    count = 1
    for size in type_.shape:
        count *= size
    return count >= _LEAST


def _is_of_library(value: Any) -> bool:
    """Whether YNN knows the element type."""
    element = _element(value)
    if isinstance(element, ir.IntegerType):
        return bool(element.width == 8)
    return isinstance(element, (ir.BF16Type, ir.F32Type, ir.F64Type))


def _normalized(value: Any) -> ir.Operation | None:
    """The operation that makes an array of bf16 by computing in f32; None for any other array."""
    op = defining_op(value)
    if op is None or not _is_bf16(value) or op.name in _BORDERS or len(op.results) != 1:
        return None
    return op


def _widens(op: AnyOp) -> bool:
    """A conversion from bf16 to f32."""
    return op.name == _CONVERT and _is_bf16(op.operands[0]) and _is_f32(op.results[0])


def _readers(value: Any) -> list[ir.Operation]:
    return [use.owner.operation for use in value.uses]


# An operation of XLA's graph: one of ours, or the conversion of an array to bf16 or back, which is in no program.
_Node = tuple[str, Any]
_OP, _NARROW, _WIDEN = "op", "narrow", "widen"


def _is_rounded(value: Any) -> bool:
    """Whether an array of bf16 is computed in f32 and converted."""
    op = _normalized(value)
    return op is not None and op.name not in _TRANSPARENT and op.name != "stablehlo.reduce"


def _reads_wide(reader: ir.Operation) -> bool:
    """Whether XLA converts the arrays of bf16 that an operation reads to f32."""
    if reader.name in _TRANSPARENT:
        return bool(_readers(reader.results[0])) and all(map(_reads_wide, _readers(reader.results[0])))
    if reader.name in _BORDERS or reader.name in _ENDS:
        return _widens(reader)
    return not (reader.name == "stablehlo.reduce" and len(reader.results) == 1 and _is_extreme(reader))


def _users(node: _Node) -> set[_Node]:
    """What reads an operation's result in XLA's graph."""
    kind, key = node
    if kind == _WIDEN:
        return {
            (_OP, other)
            for reader in _readers(key)
            for other in (_readers(reader.results[0]) if _widens(reader) else [reader])
        }
    value = key.results[0] if kind == _OP else key
    if kind == _OP and not _is_bf16(value):
        return {
            (_NARROW, reader.results[0]) if reader.name == _CONVERT and _is_bf16(reader.results[0]) else (_OP, reader)
            for reader in _readers(value)
        }
    if kind == _OP and _is_rounded(value):
        found: set[_Node] = set()
        for reader in _readers(value):
            found |= {(_OP, other) for other in _readers(reader.results[0])} if _widens(reader) else {(_NARROW, value)}
        return found
    is_rounded = _is_rounded(value)
    return {
        (_WIDEN, value) if _reads_wide(reader) else (_OP, reader)
        for reader in _readers(value)
        if not (is_rounded and _widens(reader))
    }


@dataclass
class _Library:
    """What YNN computes in one piece with a reduction.

    Attributes:
        hoisted: what XLA computes before the loop that the reduction stands in.
        own: results of its operations.
        exact: arrays of bf16 that it reads before they are rounded.
        spread: those of them that its last operation hands on unrounded.
        count: of operations in XLA's graph.
    """

    reduction: ir.Operation
    hoisted: set[Any]
    own: set[Any] = field(default_factory=set)
    exact: set[Any] = field(default_factory=set)
    spread: set[Any] = field(default_factory=set)
    count: int = 0
    _waiting: deque[ir.Operation] = field(default_factory=deque)

    def grow(self) -> None:
        """Take in what is computed for the reduction alone, and what reads its result alone."""
        self._take(self.reduction)
        last: _Node | None = (_OP, self.reduction)
        while last:
            while self._waiting and self.count < _MOST:
                op = self._waiting.popleft()
                for operand in op.operands:
                    self._look(operand)
            last = self._go_on(last)

    def _go_on(self, last: _Node) -> _Node | None:
        """Take in what reads the last operation's result alone; None if there is no such operation."""
        users = _users(last)
        if len(users) != 1 or self.count >= _MOST:
            return None
        (node,) = users
        kind, key = node
        if kind != _OP:
            if not _is_large(key):
                return None
            self.count += 1
            if kind == _WIDEN:
                self._hand_on(key)
            return node
        if len(key.results) != 1 or not self._is_beside(key) or not _is_library(key):
            return None
        self._take(key)
        # What the reductions and their readers share is theirs alone now.
        self._waiting.extend(result.owner for result in self.own)
        return node

    def _hand_on(self, value: Any) -> None:
        """What reads an array of bf16, reads it before it is rounded."""
        self.exact.add(value)
        self.spread.add(value)
        for reader in _readers(value):
            if reader.name in _TRANSPARENT:
                self._hand_on(reader.results[0])

    def _is_beside(self, op: ir.Operation) -> bool:
        """Whether an operation runs where the reduction runs."""
        if op.block != self.reduction.block:
            return False
        return op.results[0] not in self.hoisted or self.reduction.results[0] in self.hoisted

    def _take(self, op: ir.Operation) -> None:
        self.own.add(op.results[0])
        self.count += 1
        self._waiting.append(op)

    def _look(self, value: Any) -> None:
        """Take in what makes an operand, if all that read it are here."""
        op = defining_op(value)
        if self.count >= _MOST or op is None or not self._is_beside(op):
            return
        if _is_bf16(value):
            self._look_through(value)
        elif not _widens(op):
            self._join(op)
        elif all(self._has(reader) for reader in _readers(value)):
            made = _normalized(op.operands[0])
            if made is None:
                self._look_through(op.operands[0])
            else:
                self._join(made)

    def _look_through(self, value: Any) -> None:
        """Take in the conversion to bf16 and back between an array's maker and what reads it."""
        op = defining_op(value)
        if op is None or not self._is_beside(op) or value in self.exact:
            return
        if not _is_large(value) or not self._has_readers(value):
            return
        is_narrowed = op.name == _CONVERT and _is_f32(op.operands[0])
        made = _normalized(value)
        if made is None and not is_narrowed:
            return
        self.exact.add(value)
        self.count += 2
        if made is not None:
            self._join(made)
        else:
            self._look(op.operands[0])

    def _has_readers(self, value: Any) -> bool:
        """Whether all that read an array of bf16 rounded are here."""
        is_normalized = _normalized(value) is not None
        for reader in _readers(value):
            if _widens(reader):
                if not is_normalized and not all(self._has(other) for other in _readers(reader.results[0])):
                    return False
            elif not self._has(reader):
                return False
        return True

    def _has(self, reader: AnyOp) -> bool:
        if len(reader.results) != 1:
            return False
        result = reader.results[0]
        return result in self.own or (reader.name == _CONVERT and result in self.exact)

    def _join(self, op: ir.Operation) -> None:
        if self.count >= _MOST or len(op.results) != 1 or op.results[0] in self.own or not _is_library(op):
            return
        for reader in _readers(op.results[0]):
            if _is_bf16(op.results[0]) and _widens(reader):
                if not all(self._has(other) for other in _readers(reader.results[0])):
                    return
            elif _is_bf16(op.results[0]):
                if op.results[0] not in self.exact:
                    return
            elif not self._has(reader):
                return
        self._take(op)


def _is_library(op: ir.Operation) -> bool:
    """Whether YNN has an operation, and is worth it."""
    values = [*op.operands, op.results[0]]
    if op.name in _REDUCTIONS:
        return _is_library_reduction(op)
    if not all(map(_is_of_library, values)):
        return False
    if op.name == _CONVERT and any(map(_is_bf16, values)):
        return False
    if op.name in _MOVES:
        return op.name != "stablehlo.pad" or not any(integers(op, "interior_padding"))
    if op.name == "stablehlo.dot_general":
        return _is_library_product(op)
    return op.name in _LIBRARY and any(map(_is_large, values))


def _is_library_reduction(op: ir.Operation) -> bool:
    if len(op.results) != 1 or not any(stands_in(op, name) for name in _HELD) or not any(map(_is_large, op.operands)):
        return False
    if op.name == "stablehlo.reduce_window" and not _is_of_parts(op):
        return False
    name, result = combiner(op), op.results[0]
    if name in _SUMS:
        return isinstance(_element(result), (ir.F32Type, ir.F64Type))
    return name in _EXTREMES and _is_of_library(result)


def _is_of_parts(op: ir.Operation) -> bool:
    """Whether windows lie side by side."""
    sizes, strides = integers(op, "window_dimensions"), integers(op, "window_strides")
    dilations = [*integers(op, "base_dilations"), *integers(op, "window_dilations")]
    if all(size == 1 for size in sizes) or any(dilation != 1 for dilation in dilations):
        return False
    return all(size == stride for size, stride in zip(sizes, strides or [1] * len(sizes), strict=True) if size > 1)


def _is_library_product(op: ir.Operation) -> bool:
    """Whether YNN has a product: of row-major matrices, neither of them a vector.

    One that names its algorithm multiplies the numbers that this says.
    """
    if names_an_algorithm(op):
        return False
    lhs, rhs = (operand.type for operand in op.operands)
    if not lhs.has_static_shape or not rhs.has_static_shape:
        return False
    numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
    batch = list(range(len(list(numbers.lhs_batching_dimensions))))
    lhs_depth, rhs_depth = list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions)
    if list(numbers.lhs_batching_dimensions) != batch or list(numbers.rhs_batching_dimensions) != batch:
        return False
    if (lhs.rank, rhs.rank) != (len(batch) + 2, len(batch) + 2):
        return False
    if lhs_depth != [len(batch) + 1] or rhs_depth != [len(batch)]:
        return False
    rows, depth, columns = lhs.shape[-2], lhs.shape[-1], rhs.shape[-1]
    return 1 not in (rows, columns) and max(rows, depth, columns) >= 8


class _Rewriter:
    """Writes what is not rounded in f32.

    Args:
        own: results of what YNN computes.
        exact: arrays of bf16 that this reads before they are rounded.
        spread: those of them that everybody reads so.
    """

    def __init__(self, own: set[Any], exact: set[Any], spread: set[Any]) -> None:
        self._own, self._exact, self._spread = own, exact, spread
        # Arrays of f32 by those of bf16 that are rounded from them.
        self._wide: dict[Any, Value] = {}

    def rewrite(self, op: ir.Operation) -> None:
        """Write one operation; those that make its operands were written before."""
        if len(op.results) != 1:
            return
        result = op.results[0]
        if op.name == _CONVERT:
            if result in self._exact:
                self._hand_on(op, Value(op.operands[0]))
        elif _is_bf16(result):
            if _is_extreme(op):
                # XLA compares numbers of bf16.
                return
            is_wide = _can_be_wide(op) and (result in self._exact or _is_widened(result))
            if result in self._own or is_wide or self._reads_spread(op):
                with ir.InsertionPoint(op), op.location:
                    self._round(op, self._in_f32(op))
        elif any(operand in self._wide for operand in op.operands) and (result in self._own or op.name == _COMPARE):
            # A product of bf16 in f32, or a comparison.
            with ir.InsertionPoint(op), op.location:
                made = self._in_f32(op)
            result.replace_all_uses_with(made.ir)
            op.erase()

    def _reads_spread(self, op: ir.Operation) -> bool:
        return op.name in _WIDENING | _TRANSPARENT and any(operand in self._spread for operand in op.operands)

    def _hand_on(self, op: ir.Operation, source: Value) -> None:
        """Let what reads a conversion to bf16 read its operand; all of it is YNN's."""
        self._wide[op.results[0]] = source
        for reader in _readers(op.results[0]):
            if _widens(reader):
                reader.results[0].replace_all_uses_with(source.ir)

    def _round(self, op: ir.Operation, wide: Value) -> None:
        """Give the result of f32 to those that widen it, and round it for all others."""
        narrow = ops.convert_element_type(wide, "bf16")
        result = op.results[0]
        for reader in _readers(result):
            if _widens(reader):
                reader.results[0].replace_all_uses_with(wide.ir)
        result.replace_all_uses_with(narrow.ir)
        if result in self._exact:
            self._wide[narrow.ir] = wide
        if result in self._spread:
            self._spread.add(narrow.ir)
        op.erase()

    def _operand(self, value: Any) -> Value:
        if value in self._wide:
            return self._wide[value]
        return ops.convert_element_type(Value(value), "f32") if _is_bf16(value) else Value(value)

    def _in_f32(self, op: ir.Operation) -> Value:
        """An operation on f32, or a product of bf16 whose result is f32."""
        is_narrow = op.name in _PRODUCTS and not any(operand in self._wide for operand in op.operands)
        operands = [Value(operand) if is_narrow else self._operand(operand) for operand in op.operands]
        type_ = op.results[0].type
        if _is_of_bf16(type_):
            type_ = ir.RankedTensorType.get(type_.shape, ir.F32Type.get())
        attributes = {name: op.attributes[name] for name in op.attributes}
        if not len(op.regions):
            return emit(op.name, operands, type_, **attributes)
        made = ir.Operation.create(
            op.name,
            results=[type_],
            operands=[operand.ir for operand in operands],
            attributes=attributes,
            regions=1,
        )
        scalar = ir.RankedTensorType.get([], ir.F32Type.get())
        name = combiner(op)
        fill_region(made.regions[0], [scalar, scalar], lambda a, b: emit(name, [a, b], scalar))
        return Value(made.results[0])


def _is_extreme(op: ir.Operation) -> bool:
    return op.name in _REDUCTIONS and combiner(op) in _EXTREMES


def _can_be_wide(op: ir.Operation) -> bool:
    """Whether an operation rounds, and has a form of f32: reductions are sums and products alone."""
    if op.name not in _ROUNDED:
        return False
    return not len(op.regions) or combiner(op) in _names("add multiply")


def _is_widened(value: Any) -> bool:
    """Whether an array of bf16 is converted to f32."""
    return any(map(_widens, _readers(value)))


def _invariant(loop: ir.Operation) -> set[Any]:
    """What an iteration of a loop computes of nothing that the loop changes."""
    body = loop.regions[1].blocks[0]
    *inner, end = (op.operation for op in body.operations)
    pairs = zip(body.arguments, end.operands, strict=True)
    found = {argument for argument, returned in pairs if argument == returned}
    for op in inner:
        if len(op.regions) or not len(op.operands):
            continue
        if all(operand in found or block_of(operand) != body for operand in op.operands):
            found.update(op.results)
    return found


def _chosen(all_ops: Sequence[ir.Operation]) -> tuple[set[Any], set[Any], set[Any]]:
    """The results of what YNN computes, the arrays of bf16 that it does not round, and those that nobody rounds."""
    own: set[Any] = set()
    exact: set[Any] = set()
    spread: set[Any] = set()
    hoisted = {value for op in all_ops if op.name == "stablehlo.while" for value in _invariant(op)}
    for op in reversed(all_ops):
        if op.name in _REDUCTIONS and len(op.results) == 1 and op.results[0] not in own and _is_library_reduction(op):
            library = _Library(op, hoisted)
            library.grow()
            own |= library.own
            exact |= library.exact
            spread |= library.spread
    return own, exact, spread


@register
@dataclass(frozen=True)
class LegalizeExcessPrecision(Pass):
    """Compute bf16 in f32 where XLA's client does not round between operations."""

    name: ClassVar[str] = "legalize-excess-precision"
    requires: ClassVar[Facts] = NORMALIZED

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            if not any(map(_is_of_bf16, types_of(module))):
                return
        # Who reads an array shows after equal operations are one and known choices are made, as in XLA.
        FoldConstants().run(module)
        _CLEAN.run(module)
        with in_context(module):
            all_ops = operations(module)
            rewriter = _Rewriter(*_chosen(all_ops))
            for op in all_ops:
                rewriter.rewrite(op)


_CLEAN = NativePass("func.func(canonicalize,cse)")
