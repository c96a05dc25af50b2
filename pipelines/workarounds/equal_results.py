"""``legalize-equal-results``: merge arrays of equal values that are computed in different ways.

Before::

    %y = stablehlo.select %m, %x, %zero
    %e = stablehlo.exponential %y
    %s = stablehlo.select %m, %y, %zero

After: readers of ``%s`` read ``%y``.

IREE 3.13 finds such arrays equal only once they are in one dispatch with a third: its canonicalization of
``flow.dispatch.region`` then gives the readers of the second one the dispatch's *first* result, whatever that is
(``%e`` here, or ``%y`` transposed; it asks for the new number of the result under the number of the one that goes
away). Wrong without a word where the two have one type. What IREE or MLIR folds inside a dispatch is therefore folded
here: values are numbered, with constants spread over arrays, positions (``iota``), and chains of broadcasts and
transpositions in one form each, as well as functions that undo or repeat each other. What a loop carries twice becomes
one value, for a loop may become a dispatch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import blocks, integer, integers
from hloforge.pipelines.framework.passes import Pass, register

# Operations whose result depends on operands and attributes alone, element by element.
_COMMUTATIVE = frozenset(f"stablehlo.{name}" for name in ("add", "and", "maximum", "minimum", "multiply", "or", "xor"))
_ELEMENTWISE = _COMMUTATIVE | frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "atan2", "bitcast_convert", "cbrt", "ceil", "clamp", "compare", "complex", "convert", "cosine"),
        *("count_leading_zeros", "divide", "exponential", "exponential_minus_one", "floor", "imag", "is_finite", "log"),
        *("log_plus_one", "logistic", "negate", "not", "popcnt", "power", "real", "remainder", "round_nearest_afz"),
        *("round_nearest_even", "rsqrt", "select", "shift_left", "shift_right_arithmetic", "shift_right_logical"),
        *("sign", "sine", "sqrt", "subtract", "tan", "tanh"),
    )
)
_MIRRORED = {"GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_REPEATED = frozenset({"abs", "ceil", "floor", "round_nearest_afz", "round_nearest_even", "sign"})
_ABSORBING = frozenset({"and", "maximum", "minimum", "or"})
_NEUTRAL = {"add": 0, "divide": 1, "multiply": 1, "or": 0, "subtract": 0, "xor": 0}
# Floats: to add 0 makes 0 of -0.
_NEUTRAL_FLOATS = {"add": "-0.0", "divide": "1.0", "multiply": "1.0", "subtract": "0.0"}
_UNDOING = frozenset({"negate", "not"})
_POSITIONS = frozenset(f"stablehlo.{name}" for name in ("broadcast_in_dim", "iota", "reshape", "transpose"))
_NESTING = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while"})

# The name of an operation, the numbers of its operands, its attributes, and the type of its result.
_Form = tuple[str, tuple[int, ...], Any, Any]


@register
@dataclass(frozen=True)
class LegalizeEqualResults(Pass):
    """Replace equal arrays by the first of them, in loops and branches too."""

    name: ClassVar[str] = "legalize-equal-results"

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in module.body.operations:
                if op.operation.name == "func.func":
                    numbering = _Numbering()
                    for block in blocks(op):
                        numbering.share(block)


@dataclass
class _Numbering:
    """Numbers of values: equal ones for equal arrays.

    Attributes:
        values: the number of each value met.
        forms: the number of each form met, and the form of each number.
        first: the first value of a number, of those in sight.
    """

    values: dict[Any, int] = field(default_factory=dict)
    numbers: dict[_Form, int] = field(default_factory=dict)
    forms: list[_Form] = field(default_factory=list)
    first: dict[int, Any] = field(default_factory=dict)

    def share(self, block: ir.Block) -> None:
        """Number the values of a block; those of the blocks inside of it are out of sight after it."""
        own = []
        for entry in list(block.operations):
            op = entry.operation
            if op.name in _NESTING:
                for inner in blocks(op):
                    self.share(inner)
                if op.name == "stablehlo.while":
                    _merge_carries(op)
            if op.name != "stablehlo.constant" and op.name not in _ELEMENTWISE and op.name not in _POSITIONS:
                continue
            number, result = self.result_number(op), op.results[0]
            known = self.first.get(number)
            if known is not None and known.type == result.type:
                result.replace_all_uses_with(known)
                op.erase()
                continue
            self.values[result] = number
            if known is None:
                self.first[number] = result
                own.append(number)
        for number in own:
            del self.first[number]

    def number(self, value: SSAValue) -> int:
        """The number of a value; a new one for what is not computed element by element."""
        known = self.values.get(value)
        if known is None:
            known = self.values[value] = self.of_form(("leaf", (), len(self.forms), value.type))
            self.first[known] = value
        return known

    def result_number(self, op: ir.Operation) -> int:
        """The number of what an operation computes."""
        type_, operands = op.results[0].type, tuple(self.number(value) for value in op.operands)
        if op.name == "stablehlo.constant":
            if isinstance(type_.element_type, ir.ComplexType):
                # MLIR's bindings raise an error for the elements of complex constants: each is taken for another one.
                return self.of_form(("leaf", (), len(self.forms), type_))
            value = op.attributes["value"]
            if isinstance(value, ir.DenseElementsAttr) and value.is_splat:
                return self.of_form(("splat", (), value.get_splat_value(), type_))
            return self.of_form((op.name, (), value, type_))
        if op.name == "stablehlo.iota":
            return self.of_form((op.name, (), integer(op, "iota_dimension"), type_))
        if op.name in _POSITIONS:
            return self.rearranged(op, operands[0], type_)
        attributes = tuple((name, op.attributes[name]) for name in sorted(op.attributes))
        if op.name == "stablehlo.compare":
            attributes, operands = _directed(op, operands)
        elif op.name in _COMMUTATIVE:
            operands = tuple(sorted(operands))
        folded = self.folded(op.name, operands, type_)
        return self.of_form((op.name, operands, attributes, type_)) if folded is None else folded

    def rearranged(self, op: ir.Operation, source: int, type_: ir.RankedTensorType) -> int:
        """The number of a broadcast, a transposition or a reshape, in one form for chains of them."""
        name, inner, attribute, before = self.forms[source]
        if name == "splat":
            return self.of_form((name, (), attribute, type_))
        target = _target_dimensions(op)
        if target is None:
            # Reshapes in a row have the order of elements of the first one.
            source = inner[0] if name == "stablehlo.reshape" else source
            is_same = self.forms[source][3] == type_
            return source if is_same else self.of_form(("stablehlo.reshape", (source,), (), type_))
        if name == "stablehlo.iota" and before.shape[attribute] == type_.shape[target[attribute]]:
            return self.of_form((name, (), target[attribute], type_))
        if name == "spread":
            source, target = inner[0], tuple(target[number] for number in attribute)
            before = self.forms[source][3]
        if target == tuple(range(len(before.shape))) and before == type_:
            return source
        return self.of_form(("spread", (source,), target, type_))

    def folded(self, name: str, operands: tuple[int, ...], type_: ir.RankedTensorType) -> int | None:
        """The number of a function that repeats or undoes what its operands did; None for another one."""
        for fold in (_unary, _binary):
            number = fold(self, name.removeprefix("stablehlo."), operands, type_)
            if number is not None:
                return number
        return self.select(operands, type_) if name == "stablehlo.select" else None

    def select(self, operands: tuple[int, ...], type_: ir.Type) -> int:
        """The number of a choice, whose operands are not chosen by the same mask again."""
        mask, yes, no = operands
        while (form := self.forms[mask])[0] == "stablehlo.not":
            mask, yes, no = form[1][0], no, yes
        if (form := self.forms[yes])[0] == "stablehlo.select" and form[1][0] == mask:
            yes = form[1][1]
        if (form := self.forms[no])[0] == "stablehlo.select" and form[1][0] == mask:
            no = form[1][2]
        return yes if yes == no else self.of_form(("stablehlo.select", (mask, yes, no), (), type_))

    def of_form(self, form: _Form) -> int:
        """The number of a form."""
        if form not in self.numbers:
            self.numbers[form] = len(self.forms)
            self.forms.append(form)
        return self.numbers[form]


def _merge_carries(loop: ir.Operation) -> None:
    """Let readers of what a loop carries twice read the first of the two: each iteration gives both the same value."""
    condition, body = (region.blocks[0] for region in loop.regions)
    given = list(body.operations)[-1].operation.operands
    first: dict[Any, int] = {}
    for number, pair in enumerate(zip(loop.operands, given, strict=True)):
        known = first.setdefault(pair, number)
        if known != number:
            for values in (loop.results, condition.arguments, body.arguments):
                values[number].replace_all_uses_with(values[known])


def _target_dimensions(op: ir.Operation) -> tuple[int, ...] | None:
    """The dimension of the result where each of the operand's is found; None if a reshape moves elements among them."""
    before, after = op.operands[0].type, op.results[0].type
    if op.name == "stablehlo.broadcast_in_dim":
        return tuple(integers(op, "broadcast_dimensions"))
    if op.name == "stablehlo.transpose":
        order = integers(op, "permutation")
        return tuple(order.index(dimension) for dimension in range(len(order)))
    if not (before.has_static_shape and after.has_static_shape):
        return None
    wide = [dimension for dimension, size in enumerate(after.shape) if size != 1]
    return tuple(wide) if [after.shape[dimension] for dimension in wide] == list(before.shape) else None


def _directed(op: ir.Operation, operands: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Direction, kind and operands of a comparison that looks one way."""
    direction = str(op.attributes["comparison_direction"]).rsplit(maxsplit=1)[-1].rstrip(">")
    kind = op.attributes.get("compare_type", None)
    if direction in {"EQ", "NE"}:
        return (direction, kind), tuple(sorted(operands))
    if direction in _MIRRORED:
        return (_MIRRORED[direction], kind), operands[::-1]
    return (direction, kind), operands


def _unary(numbering: _Numbering, name: str, operands: tuple[int, ...], type_: ir.RankedTensorType) -> int | None:
    """Folds of a function of one array."""
    if len(operands) != 1:
        return None
    inner, arguments, _, before = numbering.forms[operands[0]]
    inner = inner.removeprefix("stablehlo.")
    if name == inner and name in _REPEATED:
        return operands[0]
    if name == inner and name in _UNDOING:
        return arguments[0]
    if inner == "complex" and name in {"imag", "real"}:
        return arguments[name == "imag"]
    if name in {"convert", "bitcast_convert"} and before == type_:
        return operands[0]
    if name != inner or name not in {"convert", "bitcast_convert"} or numbering.forms[arguments[0]][3] != type_:
        return None
    return arguments[0] if name == "bitcast_convert" or _holds(before.element_type, type_.element_type) else None


def _holds(wide: ir.Type, narrow: ir.Type) -> bool:
    """Whether a type has all numbers of another, so that a conversion to it and back changes none."""
    if isinstance(wide, ir.IntegerType) and isinstance(narrow, ir.IntegerType):
        # As many bits of another sign hold them too, modulo; booleans are not taken modulo.
        return bool(wide.width >= narrow.width and (wide.width > 1 or narrow.width == 1))
    names = str(narrow), str(wide)
    return names in {(half, whole) for half in ("f16", "bf16") for whole in ("f32", "f64")} | {("f32", "f64")}


def _binary(numbering: _Numbering, name: str, operands: tuple[int, ...], type_: ir.RankedTensorType) -> int | None:
    """Folds of a function of two arrays: neutral elements, the same operand again, and what undoes one of integers."""
    if len(operands) != 2:
        return None
    if not isinstance(type_.element_type, ir.IntegerType):
        return _of_floats(numbering, name, operands)
    for one, other in (operands, operands[::-1]):
        if _is_neutral(name, numbering.forms[other]) and (one == operands[0] or f"stablehlo.{name}" in _COMMUTATIVE):
            return one
        inner, arguments, _, _ = numbering.forms[one]
        inner = inner.removeprefix("stablehlo.")
        if name == inner and name in _ABSORBING and other in arguments:
            return one
        undone = _undone(name, inner, arguments, other)
        if undone is not None and (name != "subtract" or one == operands[0]):
            return undone
    return operands[0] if name in _ABSORBING and operands[0] == operands[1] else None


def _of_floats(numbering: _Numbering, name: str, operands: tuple[int, ...]) -> int | None:
    """Folds of floats that keep every number as it is; of complex numbers, whose constants have no form, none."""
    one, other = operands
    if name in {"maximum", "minimum"} and one == other:
        return one
    for one, other in (operands, operands[::-1]):
        form = numbering.forms[other]
        is_neutral = form[0] == "splat" and str(float(form[2].value)) == _NEUTRAL_FLOATS.get(name)
        if is_neutral and (one == operands[0] or f"stablehlo.{name}" in _COMMUTATIVE):
            return one
    return None


def _undone(name: str, inner: str, arguments: tuple[int, ...], other: int) -> int | None:
    """What an addition, a subtraction or an exclusive or gives back of the operation before it."""
    if (name, inner) in {("subtract", "add"), ("xor", "xor")} and other in arguments:
        return arguments[arguments[0] == other]
    return arguments[0] if (name, inner) == ("add", "subtract") and arguments[1] == other else None


def _is_neutral(name: str, form: _Form) -> bool:
    """Whether an operand on the right changes nothing of integers."""
    if form[0] != "splat" or name not in _NEUTRAL:
        return False
    return bool(int(form[2].value) == _NEUTRAL[name])
