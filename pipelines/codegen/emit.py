"""Code of elements: the rules of ``evaluate.py`` written into a function of a kernel."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hloforge.dialect.marks import NEAREST
from hloforge.dialect.mlir import ir
from hloforge.pipelines.analysis.forms import may_flush_a_subnormal
from hloforge.pipelines.codegen.elements import conversions, memory as elements, table
from hloforge.pipelines.codegen.elements.memory import Element
from hloforge.pipelines.codegen.elements.quotients import by_shared_divisor
from hloforge.pipelines.codegen.evaluate import Condition, Place, Rules
from hloforge.pipelines.codegen.graph import Array, Op
from hloforge.pipelines.codegen.index import Index, Symbol
from hloforge.pipelines.codegen.lang.functions import Function
from hloforge.pipelines.codegen.lang.values import I64, Number, Value, bits_of
from hloforge.pipelines.codegen.ranges import range_of
from hloforge.pipelines.codegen.splats import splat_of

_ROUNDINGS = frozenset({"ceil", "floor"})
_ATTRIBUTES = ("comparison_direction", "compare_type", "exponent_bits", "mantissa_bits")


@dataclass(eq=False)
class Memory:
    """An array in memory, in a function's code.

    Attributes:
        element: its element type.
        access: the metadata of its loads and stores.
    """

    pointer: Value
    element: str
    access: str

    def load(self, number: Value, lanes: int = 0) -> Element:
        function = self.pointer.function
        with accessing(function, self.access):
            return elements.load(function, self.pointer, self.element, number, lanes)

    def store(self, value: Element, number: Value, align: int = 0) -> None:
        """Args: align: of the address, in bytes, where more is known than of any element."""
        function = self.pointer.function
        with accessing(function, self.access):
            elements.store(function, value, self.pointer, self.element, number, align)


@contextmanager
def accessing(function: Function, access: str) -> Iterator[None]:
    """Loads and stores inside have this metadata."""
    before, function.access = function.access, access
    yield
    function.access = before


class Emitter(Rules):
    """Writes elements into a function.

    Args:
        memory: where an array in memory is; None for one that is not.
    """

    def __init__(self, function: Function, memory: Callable[[Array], Memory | None]) -> None:
        self.function = function
        self._memory = memory
        # Whether LLVM shall not know which number is infinite: it makes a condition of ``max(x, y or -inf)``, and
        # loops of such conditions get no vectors.
        self.hides_infinity = False
        # Flags of conditions where both of what is chosen from is computed, as loads are inside of arrays.
        self.flags: dict[tuple[Index, int, int], Value] = {}
        # What is known here, from the outermost block to the innermost one.
        self._scopes: list[dict[Any, Any]] = [{}]

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is computed inside is not known after it, because its code may not have run."""
        self._scopes.append({})
        yield
        self._scopes.pop()

    def remembered(self, key: Any, make: Callable[[], Any]) -> Any:
        for scope in reversed(self._scopes):
            if key in scope:
                return scope[key]
        self._scopes[-1][key] = made = make()
        return made

    def known(self, key: Any, made: Any) -> None:
        """Remember something in the innermost block, whatever was known of it."""
        self._scopes[-1][key] = made

    def value(self, index: Index) -> Value:
        """A place as a number of 64 bits."""
        found: Value = self.remembered(("value", index), lambda: self._value(index))
        return found

    def _value(self, index: Index) -> Value:
        total: Value | None = None
        for symbol, factor in index.terms:
            value = self._symbol(symbol)
            term = value if factor == 1 else self._multiple(value, factor)
            total = term if total is None else self._sum(total, term)
        if total is None:
            return self.function.index(index.offset)
        return self._sum(total, self.function.index(index.offset)) if index.offset else total

    def _sum(self, left: Value, right: Value) -> Value:
        return self.function.binary("add nsw", left, right)

    def _multiple(self, value: Value, factor: int) -> Value:
        return self.function.binary("mul nsw", value, self.function.index(factor))

    def _symbol(self, symbol: Symbol) -> Value:
        if symbol.quotient is None:
            assert isinstance(symbol.value, Value)
            return symbol.value

        def quotient() -> Value:
            assert symbol.quotient is not None
            index, divisor = symbol.quotient
            return self.function.binary("udiv", self.value(index), self.function.index(divisor))

        found: Value = self.remembered(("quotient", symbol), quotient)
        return found

    def memory(self, array: Array) -> Memory:
        found = self._memory(array)
        assert found is not None
        return found

    def in_memory(self, array: Array) -> bool:
        return array in self.function.near or self._memory(array) is not None

    def made(self, array: Array, place: Place) -> Element:
        found: Element = super().made(array, place)
        self.known(("made", array), found)
        return found

    def load(self, array: Array, number: Index) -> Element:
        # What these loops make they read at its own place alone, before its memory is written. The number does not
        # tell: it may be the same in other words, quotients of other counters.
        made = self._made_here(array)
        if made is not None:
            return made
        memory, number = self.nearest(array, number)
        return memory.load(self.value(number))

    def nearest(self, array: Array, number: Index) -> tuple[Memory, Index]:
        """The memory that an element is read from, and the element's number there."""
        if array not in self.function.near:
            return self.memory(array), number
        first, memory = self.function.near[array]
        return memory(), number - first

    def _made_here(self, array: Array) -> Element | None:
        for scope in reversed(self._scopes):
            if ("made", array) in scope:
                found: Element = scope["made", array]
                return found
        return None

    def splat(self, op: Op) -> Element:
        element, number = op.result.element, splat_of(op)
        found = elements.constant(self.function, element, number)
        if self.hides_infinity and element in ("f32", "f64") and math.isinf(number):
            assert isinstance(found, Value)
            return self.function.hidden(found)
        return found

    def apply(self, op: Op, operands: Sequence[Element]) -> Element:
        if self.function.fuses and shares_divisor(op):
            x, y = operands
            assert isinstance(x, Value)
            assert isinstance(y, Value)
            return by_shared_divisor(x, y, *map(range_of, op.operands))
        return apply(op, operands)

    def number(self, index: Index, element: str) -> Element:
        value = self.value(index)
        return table.apply("convert", [value], ["i64"], element, {})

    def start(self, array: Array, at: Place, most: int, key: Any) -> Index:
        element = self.element(array, at)

        def clamped() -> Index:
            assert isinstance(element, Value)
            signed = not array.element.startswith("u")
            if most < 1 << bits_of(element.kind) - 1:
                # In its own width, of which a vector has more numbers; LLVM knows that no sign is left.
                bounded = element.maximum(0) if signed else element
                value = bounded.minimum(most, signed=signed).as_(I64, signed=False)
            else:
                # As unsigned of 64 bits, the largest ones are clamped as well.
                number = element.as_(I64, signed=signed)
                bounded = number.maximum(0) if signed else number
                value = bounded.minimum(most, signed=signed)
            return Index(((Symbol(most, value=value), 1),))

        found: Index = self.remembered(("start", key), clamped)
        return found

    def choose(
        self, array: Array, conditions: Sequence[Condition], yes: Callable[[], Element], no: Callable[[], Element]
    ) -> Element:
        known = [condition.known for condition in conditions]
        if all(known):
            return yes()
        if False in known:
            return no()
        flag: Value | None = None
        for condition, is_known in zip(conditions, known, strict=True):
            if not is_known:
                holds = self.flags.get((condition.index, condition.limit, condition.step)) or self.holds(condition)
                flag = holds if flag is None else flag & holds
        assert flag is not None
        if self.flags:
            pairs = list(zip(parts(yes()), parts(no()), strict=True))
            chosen = [flag.where(one, other) for one, other in pairs]
            return chosen[0] if len(chosen) == 1 else (chosen[0], chosen[1])

        def scoped(make: Callable[[], Element]) -> list[Value]:
            with self.scope():
                return parts(make())

        found = self.function.branch(flag, lambda: scoped(yes), lambda: scoped(no))
        return found[0] if len(found) == 1 else (found[0], found[1])

    def holds(self, condition: Condition) -> Value:
        """The flag of a condition of which it is not known whether it holds."""
        index, limit = condition.index, condition.limit
        value = self.value(index)
        if index.low < 0 and index.high >= limit:
            # Below zero is above any limit as an unsigned number.
            flag = value.compare("ult", limit)
        elif index.low < 0:
            flag = value.compare("sge", 0)
        elif index.high >= limit:
            flag = value.compare("slt", limit)
        else:
            flag = None
        if condition.step == 1:
            assert flag is not None
            return flag
        fits = value.srem(condition.step).equals(0)
        return fits if flag is None else flag & fits


def parts(element: Element) -> list[Value]:
    """The numbers that an element consists of."""
    return [element] if isinstance(element, Value) else list(element)


_ARITHMETIC = frozenset({"add", "subtract", "multiply"})
_SUMS = frozenset({"add", "subtract", "reduce"})
# Types whose quotients by a shared divisor are multiplications, elements that share it at least, and how many
# operations may lie between a quotient and what repeats its divisor.
_DIVIDED, _SHARED, _DEEPEST = frozenset({"f32", "f64"}), 16, 6


def apply(op: Op, operands: Sequence[Element]) -> Element:
    """An elementwise operation."""
    if op.name in _ROUNDINGS and not may_flush_a_subnormal(op.mlir):
        # Of a truncation (keep-truncations).
        (operand,) = operands
        assert isinstance(operand, Value)
        return operand.call(op.name)
    if op.name == "convert" and NEAREST in op.mlir.attributes:
        (operand,) = operands
        assert isinstance(operand, Value)
        return conversions.to_nearest(operand)
    types = [operand.element for operand in op.operands]
    return table.apply(op.name, operands, types, op.result.element, attributes_of(op))


def contracts(op: Op) -> bool:
    """Whether a product, sum or difference of floats may become one operation with another.

    A kernel makes again what others make too, and what a value is must not depend on the kernel: programs compute the
    rounding error of a sum or product by subtracting it (``(t + x) - t``, Dekker's products). So this is decided on the
    program's graph: a product with one reader is contracted with the sum that reads it, as XLA's CPU compiler does.
    """
    if op.name == "multiply":
        product = op.result
        return not product.is_result and len(product.readers) == 1 and product.readers[0].name in _SUMS
    products = [operand.op for operand in op.operands if operand.op is not None and operand.op.name == "multiply"]
    return any(map(contracts, products))


def shares_divisor(op: Op) -> bool:
    """Whether elements along the last dimension are divided by the same number, by which LLVM does not multiply."""
    if op.name != "divide" or op.result.element not in _DIVIDED:
        return False
    shape = op.result.shape
    last = max((d for d, size in enumerate(shape) if size > 1), default=None)
    return last is not None and shape[last] >= _SHARED and _repeats(op.operands[1], last, _DEEPEST)


def _repeats(array: Array, last: int, deep: int) -> bool:
    """Whether elements along a dimension are equal, and no power of two that is known."""
    op = array.op
    if op is not None and op.name == "constant":
        return op.is_splat and not (array.element in _DIVIDED and abs(math.frexp(splat_of(op))[0]) == 0.5)
    if not array.shape:
        return True
    if op is None or not deep or not op.operands:
        return False
    if op.name == "broadcast_in_dim":
        (operand,) = op.operands
        dims = op.integers("broadcast_dimensions")
        is_one = last not in dims or operand.shape[dims.index(last)] == 1
        return is_one and (bool(operand.shape) or _repeats(operand, last, deep - 1))
    if not table.supports(op.name, [operand.element for operand in op.operands], array.element):
        return False
    return all(_repeats(each, last, deep - 1) for each in op.operands)


def attributes_of(op: Op) -> dict[str, Any]:
    """What says which function of its operands an elementwise operation is."""
    if op.name in _ARITHMETIC:
        return {"contracts": contracts(op)}
    if op.name in table.SIZED:
        # The operation decides, and not where it is computed: all that compute it have the same bits.
        return {"elements": op.result.elements}
    if op.name == "exponential":
        return {"is_never_positive": range_of(op.operands[0]).high <= 0}
    if op.name == "convert":
        return {"range": range_of(op.operands[0])} if op.operands[0].element in _DIVIDED else {}
    if op.name not in ("compare", "reduce_precision"):
        return {}
    found: dict[str, Any] = {}
    for name in _ATTRIBUTES:
        if name in op.mlir.attributes:
            attribute = op.attribute(name)
            if isinstance(attribute, ir.IntegerAttr):
                found[name] = attribute.value
            else:
                found[name] = str(attribute).removesuffix(">").rpartition(" ")[2]
    return found


def place_of(numbers: Sequence[Number], shape: Sequence[int]) -> Place:
    """A place of numbers in the code."""
    return tuple(
        Index(((Symbol(max(size - 1, 0), value=number), 1),))
        if isinstance(number, Value) and not number.is_constant
        else Index((), int(number.text) if isinstance(number, Value) else int(number))
        for number, size in zip(numbers, shape, strict=True)
    )
