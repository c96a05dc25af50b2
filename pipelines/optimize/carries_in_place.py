"""``carries-in-place``: a loop that updates parts of large arrays leaves the rest where it is.

Before::

    module { func.func @main { ... stablehlo.while(%i = %zero, %rows = %first) ... dynamic_update_slice %rows ... } }

After::

    module attributes {stream.topology = #hal.device.topology<links =
        [(@__device_0 -> @__device_0 = {unified_memory = true})]>} { ... }

IREE 3.13 copies each array that a loop outside of a dispatch carries, in each turn: it does not know on which device
the array is, and moves it to the only one that there is. A device that can read its own memory needs no move. 200 turns
that change a row of 16 MB take 40 ms for 2 s.

These copies also hide that IREE overwrites arrays which are still read: without them, programs of several loops and
conditionals were wrong. So only those of one loop change, in which each array that is overwritten has no other reader.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.program import entry_function
from hloforge.dialect.values import Value
from hloforge.pipelines.legalize.protect_updated import overwritten, unsafe, updates
from hloforge.pipelines.passes import Pass, register

_DEVICE = "@__device_0"
_TOPOLOGY = f"#hal.device.topology<links = [({_DEVICE} -> {_DEVICE} = {{unified_memory = true}})]>"
_LOOP = "stablehlo.while"
# What else has regions that run more or less than once, or runs in the place of an operand.
_OTHERS = frozenset(
    {
        "flow.dispatch.region",
        "stablehlo.case",
        "stablehlo.custom_call",
        "stablehlo.fft",
        "stablehlo.if",
        "stablehlo.sort",
    }
) | {f"scf.{name}" for name in ("for", "if", "while")}
# From this size on a copy takes longer than a dispatch.
_LARGE_BYTES = 1 << 16


@register
@dataclass(frozen=True)
class CarriesInPlace(Pass):
    """Let the only loop of a program update large arrays where they are."""

    name: ClassVar[str] = "carries-in-place"

    def run(self, module: Any) -> None:
        loops = operations(module, {_LOOP})
        if len(loops) != 1 or operations(module, _OTHERS):
            return
        block = entry_function(module).operation.regions[0].blocks[0]
        if _updates_much(loops[0]) and not any(True for op in updates(block) for _ in unsafe(op)):
            with in_context(module):
                module.operation.attributes["stream.topology"] = ir.Attribute.parse(_TOPOLOGY)


def _updates_much(loop: Any) -> bool:
    values = [Value(loop.operands[number]) for number in overwritten(loop)]
    if not all(value.shape.is_static and _has_one_reader(value.ir) for value in values):
        return False
    return any(prod(value.dims) * value.element_type.bits >= _LARGE_BYTES * 8 for value in values)


def _has_one_reader(value: Any) -> bool:
    return len(list(value.uses)) == 1
