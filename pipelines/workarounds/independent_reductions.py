"""``legalize-independent-reductions``: split a reduction of several independent arrays into several.

Before::

    %s, %p = stablehlo.reduce(%x init: %zero), (%iota init: %one) ... { return (%a + %b), (%i * %j) }

After::

    %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add
    %p = stablehlo.reduce(%iota init: %one) applies stablehlo.multiply

IREE 3.13 returns the initial value of the second one where it computes positions (``iota``) on the way. Reductions of
one array each are also what passes after know. Sums of 16-bit floats that come apart are carried in f32, as others
already are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.regions import clone_with, read_values
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.forms import sums_16_bit_floats
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.framework.patterns import replace
from hloforge.pipelines.legalize.accumulation import carried_in_f32


@register
@dataclass(frozen=True)
class LegalizeIndependentReductions(Pass):
    """Split reductions whose results each depend on the elements of one array only."""

    name: ClassVar[str] = "legalize-independent-reductions"
    needs: ClassVar[frozenset[str]] = frozenset({"stablehlo.reduce"})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            for op in operations(module, {"stablehlo.reduce"}):
                if len(op.results) > 1 and _is_independent(op):
                    with ir.InsertionPoint(op), op.location:
                        replace(op, [_alone(op, number) for number in range(len(op.results))])


def _is_independent(op: ir.Operation) -> bool:
    block, count = op.regions[0].blocks[0], len(op.results)
    own = [{block.arguments[n], block.arguments[count + n]} for n in range(count)]
    return all(
        {value for value in _needed(block, n) if isinstance(value.owner, ir.Block)} <= own[n] for n in range(count)
    )


def _needed(block: ir.Block, number: int) -> set[SSAValue]:
    """The values of a computation on which one of its results depends."""
    *inner, end = (op.operation for op in block.operations)
    needed = {end.operands[number]}
    for op in reversed(inner):
        if needed.intersection(op.results):
            needed.update(read_values(op))
    return needed


def _alone(op: ir.Operation, number: int) -> Value:
    """The reduction of one of the arrays."""
    count, source = len(op.results), op.regions[0].blocks[0]
    made = ir.Operation.create(
        "stablehlo.reduce",
        results=[op.results[number].type],
        operands=[op.operands[number], op.operands[count + number]],
        attributes={"dimensions": op.attributes["dimensions"]},
        regions=1,
    )
    arguments = [source.arguments[number], source.arguments[count + number]]
    block = ir.Block.create_at_start(made.regions[0], [argument.type for argument in arguments])
    known: dict[SSAValue, SSAValue] = dict(zip(arguments, block.arguments, strict=True))
    needed = _needed(source, number)
    *inner, end = (one.operation for one in source.operations)
    with ir.InsertionPoint(block):
        for one in inner:
            if needed.intersection(one.results):
                known.update(zip(one.results, clone_with(one, known).results, strict=True))
        result = end.operands[number]
        ir.Operation.create("stablehlo.return", operands=[known.get(result, result)])
    if not sums_16_bit_floats(made):
        return Value(made.results[0])
    wide = carried_in_f32(made)
    made.erase()
    return wide
