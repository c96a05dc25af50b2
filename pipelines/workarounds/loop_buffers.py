"""``keep-loop-buffers``: keep the arrays that loops and conditionals take and return alive, and wait for them.

Before::

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %r = stablehlo.while(%a = %x) ... }

After::

    util.func private @hloforge.keep_buffers() { %barrier = util.optimization_barrier %zero }
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      util.call @hloforge.keep_buffers()
      %r = stablehlo.while(%a = %x) cond { ... } do { util.call @hloforge.keep_buffers() ... } ... }

IREE 3.13 frees an array after its last use in a function. For the arrays that a loop or a conditional takes and returns
it finds this use too early, or twice where two results are one array (iree-org/iree#24885, #24841): a call ends with
"transient buffer has not been committed", or reads what another array has become. It leaves functions alone that call
others, whatever those do. Arrays then end with their last reference, which costs no time that can be measured.

IREE joins dispatches before and after a loop whose number of iterations it knows, and then fails to order them and the
loop between them ("circular dependency"): where ``y`` is a loop's first value and is read beside the loop's result. It
moves nothing across what calls a function, so each loop and conditional calls one inside. Before it, a call is not
enough for Vulkan (VK_ERROR_DEVICE_LOST, now and then); there it is only if the condition is computed from arrays.

Inside a loop that waits for its condition, a call splits what a turn does; IREE then lets the parts wait for what the
loop began with, again and again ("maximum iteration count exceeded in fixed point pipeline"). A second attempt
(``without_calls_in_loops``) compiles such a program without.

An array that a branch hands on as it is, and that is read after the conditional too, may lose its register to the
conditional's result ("ref is null", or another array): there the branch hands on a copy. So it does of what IREE may
find to be such an array: the greater one of unsigned numbers and 0, a broadcast that is made before as well
(``analysis/kin.py``). The results of several dispatches may be parts of one allocation, which is then what loses its
register: a branch hands on a copy of any array that was made before the conditional where another one is read after it.

After an optimization barrier on what a loop carries, IREE does not wait for the previous iteration, which on a device
with threads may still be writing. Such barriers end; a single number goes through arithmetic that IREE does not see
through.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.emission import create, emit
from hloforge.dialect.idioms import zeros
from hloforge.dialect.marks import KEEP_BUFFERS
from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import in_block, operations
from hloforge.dialect.program import entry_function
from hloforge.dialect.traits import Kind, of_kind
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.kin import Kin
from hloforge.pipelines.framework.facts import NORMALIZED, NOTHING, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.workarounds.loop_carries import opaque_copy
from hloforge.pipelines.workarounds.shared_allocations import conditionals

_BARRIER = "stablehlo.optimization_barrier"
_CALL = "util.call"
_CONDITIONALS = frozenset({"stablehlo.case", "stablehlo.if"})
_LOOPS = frozenset({"stablehlo.while", "scf.for", "scf.while"})
_WHILE = "stablehlo.while"
_CONTROL = _CONDITIONALS | _LOOPS | {"scf.if"}
_NO_DISPATCH = _CONTROL | of_kind(Kind.MAKES)


@register
@dataclass(frozen=True)
class KeepLoopBuffers(Pass):
    """Prevent IREE from freeing live arrays in programs with loops or conditionals outside of dispatches."""

    name: ClassVar[str] = "keep-loop-buffers"
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.UPDATES_DECIDED})
    # Barriers around loops: they keep every reader where it is.
    breaks: ClassVar[Facts] = NOTHING

    def run(self, module: ir.Module) -> None:
        block = entry_function(module).operation.regions[0].blocks[0]
        if not any(op.operation.name in _CONTROL for op in block.operations):
            return
        with in_context(module):
            for barrier in operations(module, {_BARRIER}):
                _pass_carries(barrier)
            met = conditionals(module, _CONDITIONALS, _LOOPS, _is_made_by_dispatch)
            kin = Kin.of(module) if met else Kin()
            for conditional in met:
                _copy_kept(conditional.operation, kin, may_share=conditional.is_met_before_reads)
            with ir.InsertionPoint.at_block_begin(module.body):
                _declare()
            with ir.InsertionPoint.at_block_begin(block):
                _call()
            for op in tuple(_controls(block)):
                if op.name == _WHILE and _reads_arrays(op.regions[0].blocks[0]):
                    with ir.InsertionPoint(op), op.location:
                        _call()
                else:
                    with ir.InsertionPoint.at_block_begin(op.regions[len(op.regions) - 1].blocks[0]):
                        _call()


def without_calls_in_loops(module: ir.Module) -> bool:
    """Take the calls inside of loops away again; False where there are none."""
    calls = [call for call in operations(module, {_CALL}) if _is_of_this_pass(call) and _is_in_loop(call)]
    for call in calls:
        call.erase()
    return bool(calls)


def _is_of_this_pass(call: ir.Operation) -> bool:
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value == KEEP_BUFFERS


def _is_in_loop(op: ir.Operation) -> bool:
    parent = op.parent
    while parent is not None:
        if parent.operation.name in _LOOPS:
            return True
        parent = parent.operation.parent
    return False


def _controls(block: ir.Block) -> Iterator[ir.Operation]:
    """Each loop and conditional outside of dispatches."""
    for op in block.operations:
        if op.operation.name in _CONTROL:
            yield op.operation
            for region in op.operation.regions:
                for inside in region.blocks:
                    yield from _controls(inside)


def _call() -> None:
    create(_CALL, [], [], 0, callee=ir.FlatSymbolRefAttr.get(KEEP_BUFFERS))


def _reads_arrays(condition: Any) -> bool:
    """Whether something in a loop's condition is computed from arrays, so that IREE does not know its turns."""
    operands = [operand for op in condition.operations for operand in op.operation.operands]
    return any(isinstance(operand.type, ir.RankedTensorType) and operand.type.rank for operand in operands)


def _copy_kept(conditional: Any, kin: Kin, *, may_share: bool) -> None:
    """Let branches return copies of what may be an array, of static shape, that is used after the conditional.

    Args:
        may_share: whether what a dispatch made may lie in one allocation with such an array.
    """

    def loses_register(value: Any) -> bool:
        return _is_used_behind(value, conditional) or (may_share and _is_part_of_allocation(value, conditional))

    # All are asked before the first copy is one more reader.
    kept = [
        (operation.operation, number)
        for region in conditional.regions
        for operation in list(region.blocks[0].operations)[-1:]
        for number, value in enumerate(operation.operation.operands)
        if Value(value).shape.is_static and any(map(loses_register, kin.equals(value)))
    ]
    for end, number in kept:
        with ir.InsertionPoint(end), end.location:
            end.operands[number] = _opaque(Value(end.operands[number])).ir


def _is_used_behind(value: Any, conditional: Any) -> bool:
    """Whether a value is made before a conditional and used after it, or after what is around it."""
    return any(_is_used_after(value, op) for op in _around(conditional))


def _is_used_after(value: Any, op: Any) -> bool:
    maker = None if isinstance(value.owner, ir.Block) else in_block(value.owner.operation, op.block)
    if maker is not None and not maker.is_before_in_block(op):
        return False
    users = (in_block(use.owner.operation, op.block) for use in value.uses)
    # What a loop reads, and does not carry, it reads again in its next turn.
    return any(
        user is not None and (op.is_before_in_block(user) or (user == op and op.name in _LOOPS)) for user in users
    )


def _around(op: Any) -> Iterator[Any]:
    """An operation, and those around it within the function."""
    while op is not None and op.name != "func.func":
        yield op
        op = None if op.parent is None else op.parent.operation


def _is_made_by_dispatch(value: Any) -> bool:
    """Whether a value may be a part of an allocation: no argument of a block, constant, or result of control flow."""
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name not in _NO_DISPATCH


def _is_part_of_allocation(value: Any, conditional: Any) -> bool:
    """Whether a value is made by a dispatch, and not in a conditional."""
    return _is_made_by_dispatch(value) and all(op != conditional for op in _around(value.owner.operation))


def _pass_carries(barrier: ir.Operation) -> None:
    """Take a barrier away from the values that a loop carries."""
    if not any(map(_is_carried, barrier.operands)):
        return
    # A carry that nothing but the barrier reads, beside its next value (``legalize-loop-carries``), is still read.
    pairs = list(zip(barrier.operands, barrier.results, strict=True))
    unread = [Value(value) for value, result in pairs if _is_carried(value) and not list(result.uses)]
    with ir.InsertionPoint(barrier), barrier.location:
        values = [_behind_barrier(Value(operand)) for operand in barrier.operands]
        for carry in unread:
            values[0] = opaque_copy(values[0], carry) if values[0].shape == carry.shape else values[0]
        replace(barrier, values)


def _behind_barrier(value: Value) -> Value:
    if not _is_carried(value.ir):
        return emit(_BARRIER, [value], value.type)
    is_number = value.shape.is_static and prod(value.dims) == 1
    return _opaque(value) if is_number else value


def _opaque(value: Value) -> Value:
    """A copy of a number; of a complex one by its parts, because IREE has no constants of c128."""
    if value.element_type.is_complex:
        return ops.complex(_opaque(ops.real(value)), _opaque(ops.imag(value)))
    return opaque_copy(value, zeros(value.element_type, value.dims))


def _is_carried(value: SSAValue) -> bool:
    return isinstance(value.owner, ir.Block) and value.owner.owner.name == "stablehlo.while"


def _declare() -> None:
    """A function that does nothing, by an operation that IREE drops only after it has looked for last uses."""
    function = create(
        "util.func",
        [],
        [],
        1,
        sym_name=ir.StringAttr.get(KEEP_BUFFERS),
        sym_visibility=ir.StringAttr.get("private"),
        function_type=ir.TypeAttr.get(ir.FunctionType.get([], [])),
        **{"inlining.policy": ir.Attribute.parse("#util.inline.never")},
    )
    with ir.InsertionPoint(function.regions[0].blocks.append()):
        number = ir.IntegerType.get_signless(32)
        zero = ir.Operation.create(
            "arith.constant", results=[number], attributes={"value": ir.IntegerAttr.get(number, 0)}
        )
        ir.Operation.create("util.optimization_barrier", results=[number], operands=[zero.results[0]])
        create("util.return", [], [], 0)
