"""``keep-loop-buffers``: arrays around loops and conditionals live as long as something refers to them.

Before::

    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %r = stablehlo.while(%a = %x) ... }

After::

    util.func private @hloforge.keep_buffers() { %barrier = util.optimization_barrier %zero }
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      util.call @hloforge.keep_buffers()
      %r = stablehlo.while(%a = %x) ... }

IREE 3.13 frees an array after its last use in a function. For the arrays that a loop or a conditional takes and returns
it finds this use too early, or twice where two results are one array (iree-org/iree#24885, #24841): a call ends with
"transient buffer has not been committed", or reads what another array has become. It leaves functions alone that call
others, whatever those do. Arrays then end with their last reference, which costs no time that can be measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.emission import create
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.program import entry_function
from hloforge.pipelines.passes import Pass, register

_KEEP = "hloforge.keep_buffers"
_CONTROL = frozenset({"stablehlo.case", "stablehlo.if", "stablehlo.while", "scf.for", "scf.if", "scf.while"})


@register
@dataclass(frozen=True)
class KeepLoopBuffers(Pass):
    """Keep IREE from freeing arrays in a program with loops or conditionals outside of dispatches."""

    name: ClassVar[str] = "keep-loop-buffers"

    def run(self, module: Any) -> None:
        block = entry_function(module).operation.regions[0].blocks[0]
        if not any(op.operation.name in _CONTROL for op in block.operations):
            return
        with in_context(module):
            with ir.InsertionPoint.at_block_begin(module.body):
                _declare()
            with ir.InsertionPoint.at_block_begin(block):
                create("util.call", [], [], 0, callee=ir.FlatSymbolRefAttr.get(_KEEP))


def _declare() -> None:
    """A function that does nothing, by an operation that IREE drops only after it has looked for last uses."""
    function = create(
        "util.func",
        [],
        [],
        1,
        sym_name=ir.StringAttr.get(_KEEP),
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
