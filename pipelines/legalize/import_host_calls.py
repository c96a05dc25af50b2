"""``import-host-calls``: host calls as calls of functions that the module imports.

Before::

    %y = stablehlo.custom_call @hloforge.host_call(%x) {hloforge.host_call = "RECORD"} : (tensor<4xf32>) -> tensor<3xi8>

After::

    func.func private @host.call_0(tensor<4xf32>) -> tensor<3xi8> attributes {hloforge.host_call = "RECORD"}
    %y = func.call @host.call_0(%x) : (tensor<4xf32>) -> tensor<3xi8>

IREE takes the name up to the first point for the VM module that has the function. Calls of one record and of the same
types share an import. Source: IREE, "custom modules".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.emission import text
from hloforge.dialect.host_calls import MODULE, import_name
from hloforge.dialect.marks import HOST_CALL
from hloforge.dialect.mlir import in_context, ir
from hloforge.dialect.operations import operations, string_attribute
from hloforge.pipelines.framework.facts import NORMALIZED, NOTHING, Fact, Facts
from hloforge.pipelines.framework.passes import Pass, register


@register
@dataclass(frozen=True)
class ImportHostCalls(Pass):
    """Declare and call an imported function per record of a host call; run it last, after passes that merge calls."""

    name: ClassVar[str] = "import-host-calls"
    requires: ClassVar[Facts] = NORMALIZED | frozenset({Fact.HOST_CALLS})
    # A call becomes a call, with the same operands.
    breaks: ClassVar[Facts] = NOTHING

    def run(self, module: ir.Module) -> None:
        imports: dict[tuple[str, str], str] = {}
        with in_context(module):
            for op in operations(module, {"stablehlo.custom_call"}):
                if HOST_CALL in op.attributes:
                    _call(op, module, imports)


def _call(op: ir.Operation, module: ir.Module, imports: dict[tuple[str, str], str]) -> None:
    type_ = ir.FunctionType.get([value.type for value in op.operands], [value.type for value in op.results])
    key = string_attribute(op, HOST_CALL), str(type_)
    if key not in imports:
        imports[key] = f"{MODULE}.{import_name(len(imports))}"
        _declare(module, imports[key], type_, op)
    with ir.InsertionPoint(op), op.location:
        call = ir.Operation.create(
            "func.call",
            results=list(type_.results),
            operands=list(op.operands),
            attributes={"callee": ir.FlatSymbolRefAttr.get(imports[key])},
        )
    for old, new in zip(op.results, call.results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()


def _declare(module: ir.Module, name: str, type_: ir.Type, op: ir.Operation) -> None:
    # At the end, so that the records are in the order of their numbers.
    with ir.InsertionPoint(module.body), op.location:
        ir.Operation.create(
            "func.func",
            regions=1,
            attributes={
                "sym_name": text(name),
                "function_type": ir.TypeAttr.get(type_),
                "sym_visibility": text("private"),
                HOST_CALL: op.attributes[HOST_CALL],
            },
        )
