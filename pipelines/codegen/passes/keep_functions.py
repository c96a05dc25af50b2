"""``keep-functions``: functions of CHLO for which code generation has code pass by CHLO's expansion.

Before::

    %r = chlo.erfc %x : tensor<4xf32> -> tensor<4xf32>

After::

    %r = stablehlo.custom_call @hloforge.kept.erfc(%x) : (tensor<4xf32>) -> tensor<4xf32>

``keep-functions{back=true}`` makes the first of the second. An expanded erfc is some sixty operations, which all later
passes walk through, and three divisions; that of ``codegen/elements`` is shorter and more exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hloforge.dialect.marks import KEPT_FUNCTION
from hloforge.dialect.mlir import ir
from hloforge.dialect.operations import operations, string_attribute
from hloforge.pipelines.codegen.elements.table import supports
from hloforge.pipelines.framework.passes import Pass, register

_CHLO, _CALL, _TARGET = "chlo.", "stablehlo.custom_call", "call_target_name"
_FUNCTIONS = frozenset({"chlo.cosh", "chlo.erf", "chlo.erfc", "chlo.erf_inv", "chlo.sinh"})


@register
@dataclass(frozen=True)
class KeepFunctions(Pass):
    """Hide functions of CHLO in calls, or take them out again.

    Attributes:
        back: take them out.
    """

    name: ClassVar[str] = "keep-functions"
    needs: ClassVar[frozenset[str]] = _FUNCTIONS | {_CALL}
    back: bool = False

    def run(self, module: ir.Module) -> None:
        if self.back:
            for op in operations(module, {_CALL}):
                target = string_attribute(op, _TARGET)
                if target.startswith(KEPT_FUNCTION):
                    _replace(op, _CHLO + target.removeprefix(KEPT_FUNCTION), {})
            return
        for op in operations(module, _FUNCTIONS):
            element = str(op.results[0].type.element_type)
            name = op.name.removeprefix(_CHLO)
            if supports(name, [element], element):
                _replace(op, _CALL, {_TARGET: ir.StringAttr.get(KEPT_FUNCTION + name, op.context)})


def _replace(op: ir.Operation, name: str, attributes: dict[str, ir.Attribute]) -> None:
    made = ir.Operation.create(
        name,
        results=[op.results[0].type],
        operands=list(op.operands),
        attributes=attributes,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    op.results[0].replace_all_uses_with(made.results[0])
    op.erase()
