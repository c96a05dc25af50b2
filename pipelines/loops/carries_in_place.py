"""``carries-in-place``: keep the large loop-carried arrays in place.

Before::

    module { func.func @main { ... stablehlo.while(%i = %zero, %rows = %first) ... dynamic_update_slice %rows ... } }

After::

    module attributes {stream.topology = #hal.device.topology<links =
        [(@__device_0 -> @__device_0 = {unified_memory = true})]>} { ... }

IREE 3.13 copies each array that a loop outside of a dispatch carries, in each iteration: it does not know on which
device the array is, and moves it to the only one that there is. A device that can read its own memory needs no move.
200 iterations that change a row of 16 MB take 40 ms for 2 s.

IREE then also takes some copies away that updates need. Where it does, the audit of its compilation says so
(``runtime/compile/in_place_audit.py``), and the program is compiled again without these links (``without_links``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hloforge.dialect.mlir import SSAValue, in_context, ir
from hloforge.dialect.operations import operations
from hloforge.dialect.values import Value
from hloforge.pipelines.analysis.aliasing import LOOP
from hloforge.pipelines.framework.builders import stands_in_dispatch
from hloforge.pipelines.framework.facts import NORMALIZED, NOTHING, Fact, Facts
from hloforge.pipelines.framework.machine import Machine
from hloforge.pipelines.framework.passes import CPU, MachinePass, register

_DEVICE = "@__device_0"
_TOPOLOGY = f"#hal.device.topology<links = [({_DEVICE} -> {_DEVICE} = {{unified_memory = true}})]>"
_ATTRIBUTE = "stream.topology"


@register
@dataclass(frozen=True)
class CarriesInPlace(MachinePass):
    """Let loops carry large arrays without copies."""

    name: ClassVar[str] = "carries-in-place"
    targets: ClassVar[frozenset[str]] = CPU
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.UPDATES_DECIDED})
    # It sets flags on loops, and moves nothing.
    breaks: ClassVar[Facts] = NOTHING

    def run(self, module: ir.Module) -> None:
        loops = [loop for loop in operations(module, {LOOP}) if not stands_in_dispatch(loop)]
        if any(_is_large(value, self.machine) for loop in loops for value in loop.operands):
            with in_context(module):
                module.operation.attributes[_ATTRIBUTE] = ir.Attribute.parse(_TOPOLOGY)


def without_links(module: ir.Module) -> bool:
    """Undo the pass; whether there was something to undo."""
    had = _ATTRIBUTE in module.operation.attributes
    if had:
        del module.operation.attributes[_ATTRIBUTE]
    return had


def _is_large(array: SSAValue, machine: Machine) -> bool:
    """Whether a copy takes longer than a dispatch."""
    value = Value(array)
    return value.shape.is_static and prod(value.dims) * value.element_type.bits >= machine.dispatch_bytes * 8
