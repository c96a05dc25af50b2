"""``legalize-strided-slices``: keep a slice with steps apart from what reads it by index.

Before::

    %s = stablehlo.slice %x [0:5:2] : (tensor<5xf32>) -> tensor<3xf32>
    %r = stablehlo.reverse %s, dims = [0] : tensor<3xf32>

After::

    %b = stablehlo.optimization_barrier %s : tensor<3xf32>
    %r = stablehlo.reverse %b, dims = [0] : tensor<3xf32>

IREE 3.13 puts both into one dispatch, for which it then has no machine code ("failed to translate the MLIR LLVM
dialect"), also across operations that only rearrange elements or rename their type. Arithmetic between them keeps them
apart as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect import ops
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import integers
from hloforge.dialect.values import Value
from hloforge.pipelines.passes import Pass, register
from hloforge.pipelines.patterns import NoMatch, Replacement, apply_patterns, pattern

# Operations that IREE puts into the dispatch of what reads them, without any arithmetic.
_REARRANGING = frozenset(
    f"stablehlo.{name}" for name in ("bitcast_convert", "broadcast_in_dim", "reshape", "reverse", "transpose")
)


@pattern("stablehlo.gather", "stablehlo.reverse")
def behind_a_barrier(op: Any) -> Replacement:
    """Read the slice behind a barrier."""
    source = _origin(op.operands[0])
    if source is None or source.name != "stablehlo.slice":
        return NoMatch("reads no slice")
    if all(step == 1 for step in integers(source, "strides")):
        return NoMatch("without steps")
    op.operands[0] = ops.optimization_barrier(Value(op.operands[0])).ir
    return NoMatch("rewritten in place")


def _origin(value: Any) -> Any:
    """The operation whose elements a value holds, maybe in another order; None for an argument."""
    while not isinstance(value.owner, ir.Block):
        op = value.owner.operation
        if op.name not in _REARRANGING:
            return op
        value = op.operands[0]
    return None


@register
@dataclass(frozen=True)
class LegalizeStridedSlices(Pass):
    """Put a barrier between slices with steps and gathers or reversals of them."""

    name: ClassVar[str] = "legalize-strided-slices"

    def run(self, module: Any) -> None:
        apply_patterns(module, behind_a_barrier)
