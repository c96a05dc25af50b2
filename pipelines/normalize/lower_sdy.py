"""``lower-sdy``: Shardy's operations as a program of one device sees them.

Before::

    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
    %2 = sdy.manual_computation(%1) ... manual_axes={"x"} (%a: tensor<8xf32>) { ... sdy.return %b } : ...

After: ``%1`` is ``%0``; the body of the manual computation is in its place, for all devices of the mesh, on their
parts of the arrays (``pipelines/replicas/manual.py``). Groups of collectives that are named by axes are listed. The
attributes of arguments still name the mesh: ``strip-attributes`` takes both. Source: Shardy "SDY dialect".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.errors import UnsupportedError
from hloforge.dialect.inlining import inline_calls, splice
from hloforge.dialect.meshes import Mesh, list_groups, meshes_of
from hloforge.dialect.mlir import AnyOp, in_context, ir
from hloforge.dialect.operations import location_of, operations
from hloforge.pipelines.framework.facts import NOTHING, REWRITES, Fact, Facts
from hloforge.pipelines.framework.manager import op_text
from hloforge.pipelines.framework.passes import Pass, register
from hloforge.pipelines.replicas.manual import fold_manual, manual_axes

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
_MANUAL = "sdy.manual_computation"


@register
@dataclass(frozen=True)
class LowerSdy(Pass):
    """Remove every operation of Shardy except the meshes.

    Raises (on run):
        UnsupportedError: an unknown operation, or a manual computation over several devices that cannot be folded.
    """

    name: ClassVar[str] = "lower-sdy"
    requires: ClassVar[Facts] = NOTHING
    breaks: ClassVar[Facts] = REWRITES | frozenset({Fact.ONE_FUNCTION})

    def run(self, module: ir.Module) -> None:
        with in_context(module):
            list_groups(module)
            meshes = meshes_of(module)
            if operations(module, {_MANUAL}):
                # Its body may communicate in a function that it calls.
                inline_calls(module)
            for op in operations(module):
                if op.name.startswith("sdy."):
                    _lower(op, meshes)


def _lower(op: ir.Operation, meshes: dict[str, Mesh]) -> None:
    if op.name in _IDENTITIES:
        op.results[0].replace_all_uses_with(op.operands[0])
        op.erase()
    elif op.name == "sdy.sharding_group":
        op.erase()
    elif op.name == "sdy.constant":
        _constant(op)
    elif op.name == "sdy.named_computation":
        splice(op, op.regions[0].blocks[0])
    elif op.name == _MANUAL:
        _manual(op, meshes)
    elif op.name not in ("sdy.mesh", "sdy.return"):
        raise UnsupportedError(f"{op.name} has no meaning on one device", location=location_of(op), op=op_text(op))


def _constant(op: AnyOp) -> None:
    with ir.InsertionPoint(op), op.location:
        plain = ir.Operation.create(
            "stablehlo.constant", results=[op.results[0].type], attributes={"value": op.attributes["value"]}
        )
    op.results[0].replace_all_uses_with(plain.results[0])
    op.erase()


def _manual(op: ir.Operation, meshes: dict[str, Mesh]) -> None:
    """Its body in its place, for all devices if there are several."""
    sizes = {name: size for mesh in meshes.values() for name, size in mesh.axes if size > 1}
    if any(name in sizes for name in manual_axes(op)):
        fold_manual(op, meshes)
    else:
        splice(op, op.regions[0].blocks[0])
