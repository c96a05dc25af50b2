"""``legalize-loop-carries``: make while loops carry only values that change and are read.

Before::

    %r:3 = stablehlo.while(%i = %zero, %k = %scale, %dead = %x) ... do { ... stablehlo.return %next, %k, %y }

After, where ``%r#2`` has no use and ``%dead`` none either::

    %r = stablehlo.while(%i = %zero) ... do { ... %scale ... stablehlo.return %next }

Each carried array costs a copy. A next value that may be fixed, and a carry that the body overwrites unread,
go through an optimization barrier: IREE 3.13 drops them from what the condition passes on, and then loses count
("region branch point has 26 operands, but region successor needs 28").

A carry that takes over another one (``u, t = t, f(t)``) in a loop that does not count crashes IREE: it carries the
size of ``t`` for ``u``, then folds one side of it. There the next value is a select that never selects the old one; so
is that of a carry that the body overwrites unread in any loop, because IREE does not wait for what comes after a
barrier on a carry, so that ``keep-loop-buffers`` takes such barriers away.
Of loops that do not count IREE makes some that test after their bodies: there it drops a carry that is overwritten
unread, barrier or not, and crashes (``ScfWhileOpConversion``). It also drops one whose next value is another one's
in another form, as the only element of a list of TensorFlow is: that is such a select, too.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import SSAValue, ir
from hloforge.dialect.operations import defining_op
from hloforge.dialect.values import Value
from hloforge.pipelines.framework.facts import Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import REWRITTEN, NoMatch, Replacement, apply_patterns, pattern
from hloforge.pipelines.workarounds.constant_folds import number_of

_BARRIER = "stablehlo.optimization_barrier"
_SAME_BYTES = frozenset({"stablehlo.reshape", "stablehlo.bitcast_convert", _BARRIER})
# Operations whose results IREE does not know, or that differ each time.
_VARIES = frozenset({_BARRIER, "stablehlo.custom_call", "stablehlo.rng", "func.call"})


@pattern("stablehlo.while")
def without_loop(op: ir.Operation) -> Replacement:
    """while that never runs -> its initial values: IREE forgets buffers of such loops."""
    if _first(_terminator(op.regions[0].blocks[0]).operands[0], op) is not False:
        return NoMatch("it may run")
    return [Value(value) for value in op.operands]


def _first(value: SSAValue, loop: ir.Operation) -> bool | int | float | None:
    """What a loop's condition first computes, where it is a known number or a comparison of integers."""
    if isinstance(value.owner, ir.Block):
        is_carry = value.owner == loop.regions[0].blocks[0]
        return number_of(loop.operands[ir.BlockArgument(value).arg_number]) if is_carry else None
    op = value.owner.operation
    if op.name != "stablehlo.compare":
        return number_of(value)
    numbers = [_first(operand, loop) for operand in op.operands]
    if not all(isinstance(number, int) for number in numbers):
        return None
    direction = str(op.attributes["comparison_direction"]).rsplit(maxsplit=1)[-1].rstrip(">")
    return bool(getattr(operator, direction.lower())(*numbers))


@pattern("stablehlo.while")
def without_idle_carries(op: ir.Operation) -> Replacement:
    """while -> while without invariant and unused carries."""
    blocks = [region.blocks[0] for region in op.regions]
    returned = list(_terminator(blocks[1]).operands)
    invariant = {i for i, value in enumerate(returned) if value in (blocks[1].arguments[i], op.operands[i])}
    unused = {i for i in range(len(returned)) if _is_unused(op, blocks, i)}
    idle = invariant | unused
    if not idle:
        return NoMatch("every carry changes and is used")
    inits = list(op.operands)
    kept = [i for i in range(len(inits)) if i not in idle]
    for block in blocks:
        for i in sorted(idle, reverse=True):
            block.arguments[i].replace_all_uses_with(inits[i])
            block.erase_argument(i)
    _return_only(blocks[1], kept)
    made = ir.Operation.create(
        "stablehlo.while",
        results=[inits[i].type for i in kept],
        operands=[inits[i] for i in kept],
        attributes={name: op.attributes[name] for name in op.attributes},
        regions=2,
    )
    for block, region in zip(blocks, made.regions, strict=True):
        block.append_to(region)
    results = dict(zip(kept, made.results, strict=True))
    return [Value(results.get(i, inits[i])) for i in range(len(inits))]


@pattern("stablehlo.while")
def with_opaque_carries(op: ir.Operation) -> Replacement:
    """Hide from IREE which next values are fixed or other carries, and which carries the body overwrites unread."""
    condition, body = (region.blocks[0] for region in op.regions)
    end = _terminator(body)
    counts = _counts(condition, body)
    fixed = _fixed_values(body)
    changed = False
    with ir.InsertionPoint(end), end.location:
        for i, argument in enumerate(body.arguments):
            if _is_opaque_copy(end.operands[i], argument):
                continue
            before = end.operands[i]
            unread = not _has_uses(argument)
            taken_over = _takes_over(end.operands[i], argument)
            idle = unread and not _has_uses(condition.arguments[i])
            repeated = not counts and _bytes_of(end.operands[i]) in map(_bytes_of, list(end.operands)[:i])
            if idle or repeated or (taken_over and (unread or not counts)):
                value = end.operands[i]
                if _may_be_fixed(value, body, fixed):
                    # IREE compares constants with themselves.
                    value = ir.Operation.create(_BARRIER, results=[value.type], operands=[value]).results[0]
                end.operands[i] = opaque_copy(Value(value), Value(argument)).ir
            elif unread or _may_be_fixed(end.operands[i], body, fixed):
                values = [end.operands[i], argument] if unread else [end.operands[i]]
                types = [value.type for value in values]
                barrier = ir.Operation.create(_BARRIER, results=types, operands=values)
                end.operands[i] = barrier.results[0]
            changed |= end.operands[i] != before
    return REWRITTEN if changed else NoMatch("IREE counts its carries right")


def _counts(condition: ir.Block, body: ir.Block) -> bool:
    """Whether a loop runs while an integer, to which each iteration adds a constant, is less than a fixed number."""
    test = defining_op(_terminator(condition).operands[0])
    if test is None or test.name != "stablehlo.compare" or "LT" not in str(test.attributes["comparison_direction"]):
        return False
    counter, bound = test.operands
    if counter.owner != condition or (isinstance(bound.owner, ir.Block) and bound.owner == condition):
        return False
    if Value(counter).element_type.is_float:
        return False
    number = ir.BlockArgument(counter).arg_number
    step = defining_op(_terminator(body).operands[number])
    if step is None or step.name != "stablehlo.add" or step.operands[0] != body.arguments[number]:
        return False
    by = defining_op(step.operands[1])
    return by is not None and by.name == "stablehlo.constant"


def _takes_over(value: Any, argument: Any) -> bool:
    """Whether a carry's next value may be the bytes of another carry, or chosen between them and others as a whole."""
    op = defining_op(value)
    if op is None:
        return bool(value.owner == argument.owner and value != argument)
    if op.name in _SAME_BYTES:
        return _takes_over(op.operands[ir.OpResult(value).result_number], argument)
    is_choice = op.name == "stablehlo.select" and not Value(op.operands[0]).dims
    return is_choice and any(_is_carry(branch, argument) for branch in list(op.operands)[1:])


def _is_carry(value: Any, argument: Any) -> bool:
    return _takes_over(value, argument) or value == argument


def opaque_copy(value: Value, other: Value) -> Value:
    """``value``, by an operation on both that IREE does not see through: no float is less than itself."""
    real = ops.real(value) if value.element_type.is_complex else value
    number = ops.convert_element_type(real, "f32")
    return ops.select(ops.lt(number, number), other, value)


def _is_opaque_copy(value: Any, other: Any) -> bool:
    """Whether a value is what ``opaque_copy`` made of another one and ``other``."""
    op = defining_op(value, "stablehlo.select")
    if op is None or op.operands[1] != other:
        return False
    test = defining_op(op.operands[0], "stablehlo.compare")
    return test is not None and bool(test.operands[0] == test.operands[1])


def _may_be_fixed(value: SSAValue, body: ir.Block, fixed: set[SSAValue]) -> bool:
    """Whether a next value is the same in every iteration: made from constants and values around the body, or a flag.

    IREE folds flags by what it knows of the loop's condition. What went through a barrier stays as it is.
    """
    if isinstance(value.owner, ir.Block):
        return bool(value.owner != body)
    op = value.owner.operation
    if op.name == _BARRIER:
        return False
    return str(value.type) == "tensor<i1>" or op.block != body or value in fixed


def _fixed_values(body: ir.Block) -> set[SSAValue]:
    """What a body computes from constants and values around it alone, and not after a barrier."""
    fixed: set[Any] = set()
    for view in body.operations:
        op = view.operation
        if op.name in _VARIES or list(op.regions) or not all(_is_around(v, body) or v in fixed for v in op.operands):
            continue
        fixed.update(op.results)
    return fixed


def _is_around(value: SSAValue, body: ir.Block) -> bool:
    return bool((value.owner if isinstance(value.owner, ir.Block) else value.owner.operation.block) != body)


def _bytes_of(value: Any) -> Any:
    """The value that a value is another form of; itself if it is computed."""
    op = defining_op(value)
    if op is None or op.name not in _SAME_BYTES:
        return value
    return _bytes_of(op.operands[ir.OpResult(value).result_number])


def _has_uses(value: SSAValue) -> bool:
    return any(True for _ in value.uses)


def _terminator(block: ir.Block) -> ir.Operation:
    return list(block.operations)[-1].operation


def _is_unused(op: ir.Operation, blocks: list[ir.Block], number: int) -> bool:
    """Whether neither the loop nor what follows it reads a carry."""
    values = [op.results[number], *(block.arguments[number] for block in blocks)]
    return not any(map(_has_uses, values))


def _return_only(block: ir.Block, kept: list[int]) -> None:
    old = _terminator(block)
    operands = [old.operands[i] for i in kept]
    with ir.InsertionPoint(old), old.location:
        ir.Operation.create("stablehlo.return", operands=operands)
    old.erase()


@register
@dataclass(frozen=True)
class LegalizeLoopCarries(Pass):
    """Remove carries that never change or that nothing reads; let the body read all others."""

    name: ClassVar[str] = "legalize-loop-carries"
    establishes: ClassVar[Facts] = frozenset({Fact.COUNTED_CARRIES})

    def run(self, module: ir.Module) -> None:
        apply_patterns(module, without_loop)
        apply_patterns(module, without_idle_carries)
        apply_patterns(module, with_opaque_carries)
