"""``lower-sdy``: Shardy's operations as a program of one device sees them.

Before::

    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
    %2 = sdy.manual_computation(%1) ... manual_axes={"x"} (%a: tensor<8xf32>) { ... sdy.return %b } : ...

After: ``%1`` is ``%0``; the body of the manual computation stands in its place if its mesh axes have size 1. The
attributes of arguments still name the mesh: ``strip-attributes`` takes both. Source: Shardy "SDY dialect".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.inlining import splice
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.pipelines.manager import op_text
from hloforge.pipelines.passes import Pass, register

# In Shardy, collectives keep the global shape: they move shards, not elements.
_IDENTITIES = frozenset(
    {
        "sdy.all_gather",
        "sdy.all_reduce",
        "sdy.all_slice",
        "sdy.all_to_all",
        "sdy.collective_permute",
        "sdy.data_flow_edge",
        "sdy.func_data_flow_edge",
        "sdy.propagation_barrier",
        "sdy.reduce_scatter",
        "sdy.replicated_to_unreduced",
        "sdy.reshard",
        "sdy.sharded_to_unreduced",
        "sdy.sharding_constraint",
    }
)
_AXIS = re.compile(r'"([^"]+)"\s*=\s*(\d+)')


@register
@dataclass(frozen=True)
class LowerSdy(Pass):
    """Remove every operation of Shardy but the meshes.

    Raises (on run):
        UnsupportedError: a manual computation over more than one device, or an unknown operation.
    """

    name: ClassVar[str] = "lower-sdy"

    def run(self, module: Any) -> None:
        with in_context(module):
            axes = _axes(module)
            for op in operations(module):
                if op.name.startswith("sdy."):
                    _lower(op, axes)


def _axes(module: Any) -> dict[str, int]:
    """The sizes of all mesh axes; of a name that several meshes use, the largest."""
    sizes: dict[str, int] = {}
    for op in module.body.operations:
        if op.operation.name == "sdy.mesh":
            for name, size in _AXIS.findall(str(op.operation.attributes["mesh"])):
                sizes[name] = max(sizes.get(name, 1), int(size))
    return sizes


def _lower(op: Any, axes: dict[str, int]) -> None:
    if op.name in _IDENTITIES:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    elif op.name == "sdy.sharding_group":
        op.erase()
    elif op.name == "sdy.constant":
        _constant(op)
    elif op.name == "sdy.named_computation":
        splice(op, op.regions[0].blocks[0])
    elif op.name == "sdy.manual_computation":
        _manual(op, axes)
    elif op.name not in ("sdy.mesh", "sdy.return"):
        raise UnsupportedError(f"{op.name} has no meaning on one device", location=location_of(op), op=op_text(op))


def _constant(op: Any) -> None:
    with ir.InsertionPoint(op), op.location:
        plain = ir.Operation.create(
            "stablehlo.constant", results=[op.results[0].type], attributes={"value": op.attributes["value"]}
        )
    op.results[0].replace_all_uses_with(plain.results[0])
    op.erase()


def _manual(op: Any, axes: dict[str, int]) -> None:
    names = re.findall(r'"([^"]+)"', str(op.attributes["manual_axes"]))
    split = [f'"{name}"={axes[name]}' for name in names if axes.get(name, 1) > 1]
    if split:
        raise UnsupportedError(
            f"a manual computation over {', '.join(split)}: this program runs on several devices",
            location=location_of(op),
            hint="export it with a mesh of size 1",
        )
    splice(op, op.regions[0].blocks[0])
