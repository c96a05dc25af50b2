"""``unwrap-async``: replace asynchronous pairs by the computations that they wrap.

Before::

    %s = "mhlo.async_start"(%x) <{called_computation = @comp}> : ... -> !mhlo.async_bundle<...>
    %r = "mhlo.async_done"(%s) ...

After::

    %r = call @comp(%x)

Also ``stablehlo.async_start`` / ``async_done``, whose work is in a region. Start and done only say that other work
may go on in between, which IREE's scheduler finds by itself. ``custom_call @control_dep``, which orders starts for
XLA's scheduler, goes with them. Source: XLA "Async HLO Instructions", StableHLO "async_start", JAX "control_deps".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.errors import PassError
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of, operations, string_attribute
from hloforge.pipelines.framework.facts import NOTHING, REWRITES, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register

# A call that only says which of its operands comes first; they may be starts.
CONTROL_DEPENDENCY = "control_dep"
_STARTS = frozenset({"mhlo.async_start", "stablehlo.async_start"})
_UPDATE = "mhlo.async_update"
_DONES = frozenset({"mhlo.async_done", "stablehlo.async_done"})


@register
@dataclass(frozen=True)
class UnwrapAsync(Pass):
    """Replace each async start by its computation, and each done by the results; before ``inline-calls``.

    Raises (on run):
        PassError: a done whose start is out of sight (a bundle carried through a loop).
    """

    name: ClassVar[str] = "unwrap-async"
    removes: ClassVar[frozenset[str]] = _STARTS | _DONES | {_UPDATE}
    needs: ClassVar[frozenset[str]] = removes
    requires: ClassVar[Facts] = NOTHING
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.ONE_FUNCTION})

    def run(self, module: Any) -> None:
        with in_context(module):
            for op in operations(module, frozenset({"stablehlo.custom_call"})):
                # Its result is an empty tuple, or nothing.
                if string_attribute(op, "call_target_name") == CONTROL_DEPENDENCY and not _is_used(op):
                    op.erase()
            functions = {op.sym_name.value: op for op in module.body.operations if op.operation.name == "func.func"}
            # By start, because several may await the same work, which is done once.
            results: dict[Any, list[Any]] = {}
            for done in operations(module, _DONES):
                start = _start(done)
                if start not in results:
                    is_region = start.name == "stablehlo.async_start"
                    results[start] = _region_results(start) if is_region else _call_results(start, functions)
                for old, new in zip(done.results, results[start], strict=True):
                    old.replace_all_uses_with(new)
                done.erase()
            # What nobody awaits has no effect that the program could see.
            for op in reversed(operations(module, self.removes)):
                if not _is_used(op):
                    op.erase()


def _is_used(op: Any) -> bool:
    return any(list(result.uses) for result in op.results)


def _start(done: Any) -> Any:
    """The start of a done; there may be updates in between."""
    op = done.operands[0].owner
    while getattr(op, "name", "") == _UPDATE:
        op = op.operands[0].owner
    if getattr(op, "name", "") not in _STARTS:
        raise PassError(
            f"the start of this {done.name} is not in the same computation",
            location=location_of(done),
            hint="dump the program before XLA's scheduler split the pair",
        )
    return op


def _call_results(start: Any, functions: dict[str, Any]) -> list[Any]:
    callee = ir.FlatSymbolRefAttr(start.attributes["called_computation"]).value
    with ir.InsertionPoint(start), start.location:
        call = ir.Operation.create(
            "func.call",
            results=list(functions[callee].type.results),
            operands=list(start.operands),
            attributes={"callee": ir.FlatSymbolRefAttr.get(callee)},
        )
    return list(call.results)


def _region_results(start: Any) -> list[Any]:
    """Move the region's operations before the start. Its block may name the operands, or take them as arguments."""
    block = start.regions[0].blocks[0]
    for argument, operand in zip(block.arguments, start.operands, strict=False):
        argument.replace_all_uses_with(operand)
    *body, terminator = list(block.operations)
    for op in body:
        op.operation.move_before(start)
    return list(terminator.operation.operands)
